/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request for a connection or a lookup, read: what the REQ or SIDR_REQ says of peer and path, and
 * what of it the program is shown. IP CM service: IBTA vol. 1, annex A11.
 */
#ifndef LIB_CONN_REQUEST_H
#define LIB_CONN_REQUEST_H

#include "lib/id/id.h"

/* A request, as the IP CM service (annex A11) sees it. */
struct request {
	struct cm_conn *conn;
	const struct cm_msg *msg; /* REQ or SIDR_REQ */
	const uint8_t *data;	  /* its private data, the CMA header first */
	enum ibv_qp_type qp_type;
	union addr src; /* the peer */
	union addr dst; /* us */
	struct path path;
	struct path alternate; /* .gid.verbs is NULL if the request names none */
	uint8_t header_bytes;  /* of the CMA header: 0 where there is none */
};

/** request_of() - what needs no look at this host: message, private data, queue pair type. */
struct request request_of(struct cm_conn *conn, const struct cm_msg *msg);

/**
 * request_locate() - the addresses of both ends, and the path between them
 *
 * The addresses that the message names must be true: ours one of the interface that the request
 * came to, and the way back to the peer must leave through it.
 *
 * Return: 0; -EINVAL or the errno of a look-up: to be refused.
 */
int request_locate(struct request *request);

/** request_is_lookup() - SIDR_REQ, not REQ */
static inline bool request_is_lookup(const struct request *request)
{
	return request->msg->hdr.attr_id == CM_ATTR_SIDR_REQ;
}

/** request_show() - fill an event with its private data and parameters. */
void request_show(const struct request *request, struct event *event);

#endif
