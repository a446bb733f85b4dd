/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Anonymization: replaces each address by another one, always the same, in messages and in text, so
 * that output shown to strangers can still be followed.
 */
#ifndef TOOLS_PURECM_MASK_H
#define TOOLS_PURECM_MASK_H

#include <stdio.h>

#include "tools/purecm/observation.h"

struct mask;

/** mask_new() - start without addresses, for mask_free(). Return: NULL on ENOMEM. */
struct mask *mask_new(void);

/** mask_free() - free a mask; NULL is allowed */
void mask_free(struct mask *mask);

/**
 * mask_observation() - replace the addresses and GUIDs of a message, and clear the private data of
 * programs
 *
 * IPv4 addresses are replaced from 198.18.0.0/15, others from 2001:db8::/32; link-local ones stay
 * link-local. Ports, LIDs, queue pair numbers and comm ids are kept.
 *
 * Return: false if the message cannot be masked, and must not be shown.
 */
bool mask_observation(struct mask *mask, struct observation *observation);

/** mask_text() - print text with its addresses and GUIDs replaced */
void mask_text(struct mask *mask, const char *text, FILE *out);

#endif
