/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory by librpma: "rpma server ADDRESS PORT" offers memory, "rpma client ADDRESS PORT"
 * writes into it, flushes, and reads it back. The client prints "the same" if what it read is what
 * it wrote.
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 8192
#define HALF  (BYTES / 2)

static const int USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
			 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "rpma: %s: %s\n", what, rpma_err_2str(err));
	exit(1);
}

static void await_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	check(rpma_conn_next_event(conn, &event), "next event");
	if (event == wanted)
		return;
	fprintf(stderr, "rpma: %s, not %s\n", rpma_utils_conn_event_2str(event),
		rpma_utils_conn_event_2str(wanted));
	exit(1);
}

static void await_completion(struct rpma_conn *conn)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	check(rpma_conn_get_cq(conn, &cq), "get cq");
	check(rpma_cq_wait(cq), "wait for a completion");
	check(rpma_cq_get_wc(cq, 1, &wc, NULL), "get a completion");
	if (wc.status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "rpma: completion with status %d\n", (int)wc.status);
	exit(1);
}

static struct rpma_peer *peer_of(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context;
	struct rpma_peer *peer;

	check(rpma_utils_get_ibv_context(address, type, &context), "find the device");
	check(rpma_peer_new(context, &peer), "new peer");
	return peer;
}

static void serve(const char *address, const char *port)
{
	struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_conn_private_data descriptor = { 0 };
	struct rpma_mr_local *memory;
	struct rpma_conn_req *request;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	size_t n;

	check(rpma_mr_reg(peer, aligned_alloc(4096, BYTES), BYTES, USAGE, &memory), "register");
	check(rpma_mr_get_descriptor_size(memory, &n), "size of the descriptor");
	descriptor.ptr = calloc(1, n);
	descriptor.len = (uint8_t)n;
	check(rpma_mr_get_descriptor(memory, descriptor.ptr), "descriptor");
	check(rpma_ep_listen(peer, address, port, &ep), "listen");
	check(rpma_ep_next_conn_req(ep, NULL, &request), "next request");
	check(rpma_conn_req_connect(&request, &descriptor, &conn), "accept");
	await_event(conn, RPMA_CONN_ESTABLISHED);
	await_event(conn, RPMA_CONN_CLOSED);
	rpma_conn_disconnect(conn);
	check(rpma_conn_delete(&conn), "delete the connection");
	check(rpma_ep_shutdown(&ep), "stop listening");
	check(rpma_mr_dereg(&memory), "deregister");
	check(rpma_peer_delete(&peer), "delete the peer");
}

static void use_memory(struct rpma_conn *conn, struct rpma_mr_local *own, char *bytes)
{
	struct rpma_conn_private_data descriptor;
	struct rpma_mr_remote *remote;
	int i;

	check(rpma_conn_get_private_data(conn, &descriptor), "private data");
	check(rpma_mr_remote_from_descriptor(descriptor.ptr, descriptor.len, &remote), "decode");
	for (i = 0; i < HALF; i++)
		bytes[i] = (char)(i * 7 + 1);
	check(rpma_write(conn, remote, 0, own, 0, HALF, RPMA_F_COMPLETION_ON_ERROR, NULL), "write");
	check(rpma_flush(conn, remote, 0, HALF, RPMA_FLUSH_TYPE_VISIBILITY,
			 RPMA_F_COMPLETION_ALWAYS, NULL),
	      "flush");
	await_completion(conn);
	check(rpma_read(conn, own, HALF, remote, 0, HALF, RPMA_F_COMPLETION_ALWAYS, NULL), "read");
	await_completion(conn);
	check(rpma_mr_remote_delete(&remote), "forget the remote memory");
}

static void call(const char *address, const char *port)
{
	struct rpma_peer *peer = peer_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	char *bytes = aligned_alloc(4096, BYTES);
	struct rpma_conn_req *request;
	struct rpma_mr_local *own;
	struct rpma_conn *conn;

	check(rpma_mr_reg(peer, bytes, BYTES, USAGE, &own), "register");
	check(rpma_conn_req_new(peer, address, port, NULL, &request), "new request");
	check(rpma_conn_req_connect(&request, NULL, &conn), "connect");
	await_event(conn, RPMA_CONN_ESTABLISHED);
	use_memory(conn, own, bytes);
	check(rpma_conn_disconnect(conn), "disconnect");
	await_event(conn, RPMA_CONN_CLOSED);
	check(rpma_conn_delete(&conn), "delete the connection");
	check(rpma_mr_dereg(&own), "deregister");
	check(rpma_peer_delete(&peer), "delete the peer");
	puts(memcmp(bytes, bytes + HALF, HALF) ? "different" : "the same");
	free(bytes);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: rpma server|client ADDRESS PORT\n");
		return 2;
	}
	if (strcmp(argv[1], "server") == 0)
		serve(argv[2], argv[3]);
	else
		call(argv[2], argv[3]);
	return 0;
}
