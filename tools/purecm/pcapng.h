/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes pcapng files that tshark can decode. Captured packets stay as they are. A MAD without a
 * packet becomes RoCE v2 over Ethernet; if the first MAD is of InfiniBand, all become ERF records.
 * Each has a comment with the connection and its states.
 */
#ifndef TOOLS_PURECM_PCAPNG_H
#define TOOLS_PURECM_PCAPNG_H

#include "tools/purecm/observation.h"

struct pcapng;

/**
 * pcapng_open() - create a file
 * @path: created or truncated; "-" for standard output
 * @ret:  to be released with pcapng_close()
 *
 * Return: 0; -errno, after an error message.
 */
int pcapng_open(const char *path, struct pcapng **ret);

/**
 * pcapng_put() - append an observation
 * @comment: for readers of the file; NULL for none
 *
 * Write errors are reported by pcapng_close().
 */
void pcapng_put(struct pcapng *file, const struct observation *observation, const char *comment);

/**
 * pcapng_close() - complete the file; NULL is allowed
 *
 * Return: 0; -EIO, after an error message, if any write failed.
 */
int pcapng_close(struct pcapng *file);

#define WRAP_BYTES_MAX 400

/**
 * wrap_mad() - make a packet
 * @link_type:  LINK_ERF: InfiniBand stays InfiniBand; LINK_ETHERNET: everything as RoCE v2
 * @ret_packet: link addresses and the invariant CRC are unknown, and zero
 *
 * Return: size of the packet in bytes.
 */
size_t wrap_mad(const struct observation *observation, enum link_type link_type,
		uint8_t ret_packet[WRAP_BYTES_MAX]);

/** check_sum() - the checksum of IP and ICMP; @n: even */
uint16_t check_sum(const uint8_t *bytes, size_t n);

#endif
