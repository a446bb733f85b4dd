/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses a REQ or SIDR_REQ: peer and path, and the part that is passed to the program. IP CM
 * service: IBTA vol. 1, annex A11.
 */
#ifndef LIB_CONN_REQUEST_H
#define LIB_CONN_REQUEST_H

#include "lib/id/id.h"

/* A request of the IP CM service (annex A11). */
struct request {
	struct cm_conn *conn;
	const struct cm_msg *msg; /* REQ or SIDR_REQ */
	const uint8_t *data;	  /* its private data, beginning with the CMA header */
	enum ibv_qp_type qp_type; /* 0: one that no queue pair has */
	union addr src;		  /* peer */
	union addr dst;		  /* local */
	struct path path;
	struct path alternate; /* .gid.verbs is NULL if the request has none */
	uint8_t header_bytes;  /* size of the CMA header, 0 if absent */
};

/** request_of() - parse message, private data and queue pair type; looks nothing up. */
struct request request_of(struct cm_conn *conn, const struct cm_msg *msg);

/**
 * request_locate() - find the addresses of both ends, and the path between them
 *
 * The addresses in the message must be true: the local one belongs to the interface that received
 * the request, and the route back to the peer leaves through it.
 *
 * Return: 0; -EINVAL or the -errno of a lookup: refuse the request.
 */
int request_locate(struct request *request);

/** request_is_lookup() - true for SIDR_REQ, false for REQ */
static inline bool request_is_lookup(const struct request *request)
{
	return request->msg->hdr.attr_id == CM_ATTR_SIDR_REQ;
}

/** request_fill_event() - fill in an event with its private data and parameters. */
void request_fill_event(const struct request *request, struct event *event);

#endif
