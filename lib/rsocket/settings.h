/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an administrator sets for all sockets of a host: files of one number each in
 * /etc/rdma/rsocket, as for the stock library, read at the first socket of the process.
 */
#ifndef LIB_RSOCKET_SETTINGS_H
#define LIB_RSOCKET_SETTINGS_H

#include <stdint.h>

struct settings {
	uint32_t polling_us;  /* polling_time: look for so long before sleeping */
	int wake_up_ms;	      /* wake_up_interval: look at least so often while sleeping */
	uint32_t sq_size;     /* sqsize_default: sends under way */
	uint32_t rq_size;     /* rqsize_default: receives under way */
	uint32_t inline_size; /* inline_default: bytes that are sent inside a work request */
	uint32_t recv_bytes;  /* mem_default: receive buffer */
	uint32_t send_bytes;  /* wmem_default: send buffer */
	uint32_t iomap_size;  /* iomap_size: buffers that a peer may name */
};

/** settings() - Return: the settings, read at the first call; any thread. */
const struct settings *settings(void);

#endif
