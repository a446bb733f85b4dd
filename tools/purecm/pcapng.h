/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes pcapng: packets as they were captured, and MADs that were never in a packet as RoCE v2
 * over Ethernet, so that tshark decodes them. Each bears a comment: the connection and its states.
 */
#ifndef TOOLS_PURECM_PCAPNG_H
#define TOOLS_PURECM_PCAPNG_H

#include "tools/purecm/observation.h"

struct pcapng;

/**
 * pcapng_open() - begin a file
 * @path: made, or made empty; "-" for standard output
 * @ret:  to be given back with pcapng_close()
 *
 * Return: 0; -errno, after a complaint.
 */
int pcapng_open(const char *path, struct pcapng **ret);

/**
 * pcapng_put() - append an observation
 * @comment: for whoever reads the file; NULL for none
 *
 * What cannot be written is told by pcapng_close().
 */
void pcapng_put(struct pcapng *file, const struct observation *observation, const char *comment);

/**
 * pcapng_close() - end the file; NULL is allowed
 *
 * Return: 0; -EIO, after a complaint, if not all of it could be written.
 */
int pcapng_close(struct pcapng *file);

#endif
