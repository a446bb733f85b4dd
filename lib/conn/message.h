/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds the messages of rdma_connect(), rdma_accept() and rdma_reject() from a program's
 * parameters, after defaults and limits.
 *
 * Functions that fail do not build a message: with -EINVAL if the private data is too long for it.
 */
#ifndef LIB_CONN_MESSAGE_H
#define LIB_CONN_MESSAGE_H

#include "lib/id/id.h"

/* Parameters to send, after defaults and limits. */
struct conn_params {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qpn;
	uint8_t joined[UINT8_MAX]; /* private_data, if not all of it is the program's */
};

/**
 * conn_params_init() - apply defaults and the limits of both sides
 * @param:          the program's, or NULL for the maximum of both sides
 * @peer_responder: RDMA READs that the peer's request lets this side serve, 0xff for no limit
 * @peer_initiator: RDMA READs that the peer serves, 0xff for no limit
 * @params:         filled in; points to @param's private data, must not be copied
 *
 * Return: 0; -EINVAL for more than the device supports in RDMA_PS_TCP, or too much private data.
 */
int conn_params_init(const struct id *id, const struct rdma_conn_param *param,
		     uint8_t peer_responder, uint8_t peer_initiator, struct conn_params *params);

/** message_req() - build a REQ, IBTA vol. 1, 12.6.5. Return: 0; -ENOENT: no such P_Key; -EINVAL. */
int message_req(const struct id *id, const struct conn_params *params, struct cm_msg *msg);

/** message_sidr_req() - build a SIDR_REQ, IBTA vol. 1, 12.11. Return: as message_req(). */
int message_sidr_req(const struct id *id, const struct conn_params *params, struct cm_msg *msg);

/** message_rep() - build a REP, IBTA vol. 1, 12.6.8. Return: 0 or -EINVAL. */
int message_rep(const struct id *id, const struct conn_params *params, struct cm_msg *msg);

/** message_sidr_rep() - build a SIDR_REP that accepts. Return: 0 or -EINVAL. */
int message_sidr_rep(struct id *id, const struct conn_params *params, struct cm_msg *msg);

/** message_rej() - build a REJ; the core fills in the rejected message. Return: 0 or -EINVAL. */
int message_rej(enum cm_rej_reason reason, const void *data, uint8_t bytes, struct cm_msg *msg);

/** message_sidr_reject() - build a SIDR_REP that rejects. Return: 0 or -EINVAL. */
int message_sidr_reject(const void *data, uint8_t bytes, struct cm_msg *msg);

#endif
