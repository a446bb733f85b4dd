/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection by AF_IB addresses, with selectable partition, service id and its mask,
 * port space and path. Prints the attributes of its queue pair, and transfers a message each way.
 * Run by programs.py on a soft fabric.
 *
 *   end [-k PKEY] [-S SID] [-m MASK] [-P tcp|ib] GID                      waits for a request
 *   end [-k PKEY] [-S SID] [-m MASK] [-P tcp|ib] [-r BITS [-H HOPS]] GID PEER_GID
 *                                                                         asks
 *
 * -r BITS: no route is asked for, but given by RDMA_OPTION_IB_PATH, with these path bits at both
 * ends (the LIDs are port LIDs of two hosts with one port, LMC as the own port's), and beside it an
 * alternate one. Its hop limit is HOPS, else 0.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define TEXT_BYTES 32
#define TIMEOUT_MS 2000
#define PATH_SL	   3
#define LID_A	   1 /* of host a, before path bits; the other one is that of b */

static struct options {
	uint16_t pkey;
	uint64_t sid, mask;
	enum rdma_port_space ps;
	int path_bits; /* -1: the route is resolved */
	uint8_t hops;
} options = { 0xffff, (uint64_t)RDMA_PS_TCP << 16 | 7000, UINT64_MAX, RDMA_PS_TCP, -1, 0 };

static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static char room[TEXT_BYTES];

__attribute__((noreturn)) static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_ib address(const char *gid)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB, .sib_pkey = htobe16(options.pkey) };

	if (inet_pton(AF_INET6, gid, &ib.sib_addr) != 1)
		die(gid);
	return ib;
}

static void make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	mr = rdma_reg_msgs(id, room, sizeof(room));
	if (!mr || rdma_post_recv(id, NULL, room, sizeof(room), mr))
		die("rdma_post_recv");
}

static void show_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr qp;
	uint16_t pkey;

	if (ibv_query_qp(id->qp, &qp, IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_PATH_MTU, &init) ||
	    ibv_query_pkey(id->verbs, qp.port_num, qp.pkey_index, &pkey))
		die("ibv_query_qp");
	printf("queue pair: dlid 0x%x bits %u sl %u mtu %u pkey 0x%x grh %u hops %u, "
	       "alternate dlid 0x%x bits %u timeout %u\n",
	       qp.ah_attr.dlid, qp.ah_attr.src_path_bits, qp.ah_attr.sl, 128u << qp.path_mtu,
	       be16toh(pkey), qp.ah_attr.is_global, qp.ah_attr.grh.hop_limit, qp.alt_ah_attr.dlid,
	       qp.alt_ah_attr.src_path_bits, qp.alt_timeout);
}

static void await(int (*next)(struct rdma_cm_id *, struct ibv_wc *), const char *what)
{
	struct ibv_wc wc;

	if (next(id, &wc) != 1 || wc.status)
		die(what);
}

static int next_recv(struct rdma_cm_id *of, struct ibv_wc *wc)
{
	return rdma_get_recv_comp(of, wc);
}

static int next_send(struct rdma_cm_id *of, struct ibv_wc *wc)
{
	return rdma_get_send_comp(of, wc);
}

static void send_text(const char *text)
{
	snprintf(room, sizeof(room), "%s", text);
	if (rdma_post_send(id, NULL, room, sizeof(room), mr, 0))
		die("rdma_post_send");
	await(next_send, "not sent");
}

static void receive_text(void)
{
	await(next_recv, "nothing came");
	printf("heard: %s\n", room);
	if (rdma_post_recv(id, NULL, room, sizeof(room), mr))
		die("rdma_post_recv");
}

/* --- the two ends -------------------------------------------------------- */

static void bind_to(struct rdma_cm_id *to, const char *gid, bool with_service)
{
	struct sockaddr_ib ib = address(gid);

	if (with_service) {
		ib.sib_sid = htobe64(options.sid);
		ib.sib_sid_mask = htobe64(options.mask);
	}
	if (rdma_bind_addr(to, (struct sockaddr *)&ib))
		die("rdma_bind_addr");
}

static void answer(const char *gid)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_id *listener;

	if (rdma_create_id(NULL, &listener, NULL, options.ps))
		die("rdma_create_id");
	bind_to(listener, gid, true);
	if (rdma_listen(listener, 1))
		die("rdma_listen");
	printf("service 0x%llx\n",
	       (unsigned long long)be64toh(
		       ((struct sockaddr_ib *)rdma_get_local_addr(listener))->sib_sid));
	if (rdma_get_request(listener, &id))
		die("rdma_get_request");
	printf("private data: %u bytes, \"%s\"\n", id->event->param.conn.private_data_len,
	       (const char *)id->event->param.conn.private_data);
	make_qp();
	if (rdma_accept(id, &param))
		die("rdma_accept");
	show_qp();
	receive_text();
	send_text("and the same to you");
	receive_text();
	rdma_disconnect(id);
	printf("end\n");
}

static struct ibv_path_data path_to(struct rdma_cm_id *of, uint32_t flags, uint8_t bits)
{
	struct ibv_path_data data = { .flags = flags };
	struct ibv_port_attr port;

	if (ibv_query_port(of->verbs, of->port_num, &port))
		die("ibv_query_port");
	data.path.sgid = of->route.addr.addr.ibaddr.sgid;
	data.path.dgid = of->route.addr.addr.ibaddr.dgid;
	data.path.slid = htobe16(port.lid + bits);
	/* Return: the other of the two. */
	data.path.dlid = htobe16(((LID_A + 2) << port.lmc) - port.lid + bits);
	data.path.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE;
	data.path.flowlabel_hoplimit = htobe32(options.hops);
	data.path.pkey = htobe16(options.pkey);
	data.path.qosclass_sl = htobe16(PATH_SL);
	data.path.mtu = IBV_MTU_1024;
	data.path.packetlifetime = 10;
	return data;
}

static void set_path(void)
{
	struct ibv_path_data data[] = {
		path_to(id, IBV_PATH_FLAG_ALTERNATE | IBV_PATH_FLAG_BIDIRECTIONAL, 0),
		path_to(id, IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
			(uint8_t)options.path_bits),
	};
	struct rdma_cm_event *event;

	if (rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, sizeof(data)))
		die("rdma_set_option");
	/* The option completes nothing, so no event is taken from a synchronous id. */
	if (rdma_get_cm_event(id->channel, &event) || rdma_ack_cm_event(event))
		die("rdma_get_cm_event");
}

static void ask(const char *gid, const char *peer)
{
	static const char hello[92] = "ninety-two bytes"; /* the maximum of AF_IB */
	struct rdma_conn_param param = { .private_data = hello,
					 .private_data_len = sizeof(hello),
					 .rnr_retry_count = 7,
					 .retry_count = 2 };
	struct sockaddr_ib to = address(peer);

	to.sib_sid = htobe64(options.sid);
	to.sib_sid_mask = htobe64(options.mask);
	if (rdma_create_id(NULL, &id, NULL, options.ps))
		die("rdma_create_id");
	bind_to(id, gid, false);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, TIMEOUT_MS))
		die("rdma_resolve_addr");
	if (options.path_bits >= 0)
		set_path();
	else if (rdma_resolve_route(id, TIMEOUT_MS))
		die("rdma_resolve_route");
	make_qp();
	if (rdma_connect(id, &param))
		die("rdma_connect");
	show_qp();
	send_text("to whom it may concern");
	receive_text();
	send_text("thank you");
	rdma_disconnect(id);
	printf("end\n");
}

static bool parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "k:S:m:P:r:H:")) != -1) {
		if (option == 'k')
			options.pkey = (uint16_t)strtoul(optarg, NULL, 0);
		else if (option == 'S')
			options.sid = strtoull(optarg, NULL, 0);
		else if (option == 'm')
			options.mask = strtoull(optarg, NULL, 0);
		else if (option == 'P')
			options.ps = strcmp(optarg, "ib") == 0 ? RDMA_PS_IB : RDMA_PS_TCP;
		else if (option == 'r')
			options.path_bits = atoi(optarg);
		else if (option == 'H')
			options.hops = (uint8_t)atoi(optarg);
		else
			return false;
	}
	return argc - optind == 1 || argc - optind == 2;
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv))
		return 2;
	setlinebuf(stdout);
	if (argc - optind == 1)
		answer(argv[optind]);
	else
		ask(argv[optind], argv[optind + 1]);
	rdma_dereg_mr(mr);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return 0;
}
