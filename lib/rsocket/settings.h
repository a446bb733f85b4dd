/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The administrator's settings for all sockets of a host: files of one number each in
 * /etc/rdma/rsocket, as for the stock library, read at the first socket of the process.
 */
#ifndef LIB_RSOCKET_SETTINGS_H
#define LIB_RSOCKET_SETTINGS_H

#include <stdint.h>

struct settings {
	uint32_t polling_us;  /* polling_time: polling before sleeping */
	int wake_up_ms;	      /* wake_up_interval: maximum sleep */
	uint32_t sq_size;     /* sqsize_default: of the send queue */
	uint32_t rq_size;     /* rqsize_default: of the receive queue */
	uint32_t inline_size; /* inline_default: maximum size of inline sends */
	uint32_t recv_bytes;  /* mem_default: receive buffer */
	uint32_t send_bytes;  /* wmem_default: send buffer */
	uint32_t iomap_size;  /* iomap_size: buffers that a peer may map */
};

/** settings() - the settings, read at the first call; any thread */
const struct settings *settings(void);

#endif
