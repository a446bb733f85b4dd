/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services that the subnet administrator knows: a server that registers itself there, as programs
 * do by libibumad, and clients that find it with RAI_SA and connect. Run by programs.py on a soft
 * fabric.
 *
 *   service offer NAME PORT N GID...   N records for each GID; serves one connection at the first
 *   service list NAME                  rdma_getaddrinfo()
 *   service find NAME                  also rdma_create_ep(), rdma_connect()
 *   service resolve NAME GID           rdma_resolve_addrinfo() of an id that is bound to the GID
 *   service cancel NAME                from another thread, while the administrator does not
 *   respond
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/ib.h>
#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <rdma/rdma_cma.h>

#define RECORD_BYTES 176
#define NAME_AT	     48
#define ALL_OF_IT    0x57 /* component mask: id, GID, P_Key, lease, name */
#define TRIES	     3000 /* 700 records take 59 s on a machine with a load of 20 */
#define READY	     "all are offered"
#define PAUSE_MS     100

static struct ibv_qp_init_attr queues = {
	.qp_type = IBV_QPT_RC,
	.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
};

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "service: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* IBTA vol. 1, annex A11, as librdmacm has it for RDMA_PS_IB. */
static uint64_t service_id(unsigned int port)
{
	return (uint64_t)RDMA_PS_IB << 16 | port;
}

static struct sockaddr_ib address(const char *gid, unsigned int port)
{
	struct sockaddr_ib ib = { .sib_family = AF_IB,
				  .sib_pkey = htobe16(0xffff),
				  .sib_sid = htobe64(service_id(port)),
				  .sib_sid_mask = port ? UINT64_MAX : 0 };

	if (inet_pton(AF_INET6, gid, &ib.sib_addr) != 1)
		die(gid);
	if (!port)
		ib.sib_sid = 0;
	return ib;
}

/* --- the server ---------------------------------------------------------- */

/* The access to the subnet administrator. */
struct access {
	int fd;
	uint32_t agent;
	uint16_t sm_lid;
};

static struct access open_access(void)
{
	struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_ADM,
				      .mgmt_class_version = UMAD_SA_CLASS_VERSION };
	struct access to;
	umad_port_t port;

	if (umad_init() || umad_get_port("fab0", 1, &port))
		die("umad_get_port");
	to.sm_lid = (uint16_t)port.sm_lid;
	to.fd = umad_open_port("fab0", 1);
	if (to.fd < 0 || umad_register2(to.fd, &attr, &to.agent))
		die("umad");
	return to;
}

static void register_service(const struct access *to, const char *name,
			     const struct sockaddr_ib *at)
{
	struct {
		struct ib_user_mad head;
		struct umad_sa_packet packet;
	} umad = { .packet = { .sm_key = { 0 } } };
	int bytes = sizeof(umad.packet);
	uint16_t pkey = 0xffff;
	static uint32_t tid;

	umad_set_addr(&umad, to->sm_lid, 1, 0, (int)0x80010000);
	umad.packet.mad_hdr = (struct umad_hdr){ .base_version = 1,
						 .mgmt_class = UMAD_CLASS_SUBN_ADM,
						 .class_version = UMAD_SA_CLASS_VERSION,
						 .method = UMAD_METHOD_SET,
						 .tid = htobe64(++tid),
						 .attr_id = htons(UMAD_SA_ATTR_SERVICE_REC) };
	umad.packet.comp_mask = htobe64(ALL_OF_IT);
	memcpy(umad.packet.data, &at->sib_sid, 8);
	memcpy(umad.packet.data + 8, &at->sib_addr, 16);
	memcpy(umad.packet.data + 24, &pkey, 2);
	memset(umad.packet.data + 28, 0xff, 4);
	snprintf((char *)umad.packet.data + NAME_AT, 64, "%s", name);
	if (umad_send(to->fd, (int)to->agent, &umad, bytes, 50, 1000) ||
	    umad_recv(to->fd, &umad, &bytes, 60000) < 0 || umad_status(&umad) ||
	    umad.packet.mad_hdr.status)
		die("ServiceRecord");
}

static void offer(const char *name, unsigned int port, unsigned int n, char **gids)
{
	struct sockaddr_ib at = address(gids[0], port);
	struct rdma_addrinfo info = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = AF_IB,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_IB,
		.ai_src_len = sizeof(at),
		.ai_src_addr = (struct sockaddr *)&at,
	};
	const struct access to = open_access();
	struct rdma_cm_id *listener, *id;
	struct sockaddr_ib record;
	unsigned int i;

	if (rdma_create_ep(&listener, &info, NULL, &queues) || rdma_listen(listener, 1))
		die("rdma_listen");
	for (; *gids; gids++)
		for (i = 0; i < n; i++) {
			record = address(*gids, port + i);
			register_service(&to, name, &record);
		}
	record = address(gids[-1], port + n);
	register_service(&to, READY, &record);
	close(to.fd);
	printf("offered\n");
	fflush(stdout);
	if (rdma_get_request(listener, &id) || rdma_accept(id, NULL))
		die("rdma_accept");
	printf("served\n");
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

/* --- clients ------------------------------------------------------------- */

static unsigned int print_list(const struct rdma_addrinfo *info)
{
	const struct sockaddr_ib *at;
	char text[INET6_ADDRSTRLEN];
	unsigned int n = 0;

	for (; info; info = info->ai_next, n++) {
		at = (const struct sockaddr_ib *)(const void *)info->ai_dst_addr;
		if (n < 3)
			printf("at %s, service id 0x%llx, P_Key 0x%x\n",
			       inet_ntop(AF_INET6, &at->sib_addr, text, sizeof(text)),
			       (unsigned long long)be64toh(at->sib_sid), be16toh(at->sib_pkey));
	}
	return n;
}

/* The server may not be registered yet, and the administrator may be busy. */
static struct rdma_addrinfo *wait_for(const char *name)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };
	struct rdma_addrinfo *info = NULL;
	int i, rc = -1;

	for (i = 0; i < TRIES && rc; i++) {
		rc = rdma_getaddrinfo(NULL, name, &hints, &info);
		if (rc && (rc != -1 || (errno != ENOENT && errno != ETIMEDOUT)))
			break;
		if (rc)
			poll(NULL, 0, PAUSE_MS);
	}
	if (rc)
		die("rdma_getaddrinfo");
	return info;
}

static struct rdma_addrinfo *look_for(const char *name)
{
	rdma_freeaddrinfo(wait_for(READY));
	return wait_for(name);
}

static void list(const char *name)
{
	struct rdma_addrinfo *info = look_for(name);

	printf("%u found\n", print_list(info));
	rdma_freeaddrinfo(info);
}

static void find(const char *name)
{
	struct rdma_addrinfo *info = look_for(name);
	struct rdma_cm_id *id;

	printf("%u found\n", print_list(info));
	if (rdma_create_ep(&id, info, NULL, &queues))
		die("rdma_create_ep");
	if (rdma_connect(id, NULL))
		die("rdma_connect");
	printf("connected\n");
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(info);
}

static void resolve(const char *name, const char *gid)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };
	struct sockaddr_ib at = address(gid, 0);
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	rdma_freeaddrinfo(look_for(name));
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_IB) ||
	    rdma_bind_addr(id, (struct sockaddr *)&at))
		die("rdma_bind_addr");
	if (!rdma_resolve_addrinfo(id, NULL, "nobody", &hints) || errno != ENOENT)
		die("a service that is not there");
	if (rdma_resolve_addrinfo(id, NULL, name, &hints) || rdma_query_addrinfo(id, &info))
		die("rdma_resolve_addrinfo");
	printf("%u resolved\n", print_list(info));
	if (rdma_resolve_route(id, 2000) || rdma_create_qp(id, NULL, &queues) ||
	    rdma_connect(id, NULL))
		die("rdma_connect");
	printf("connected\n");
	rdma_freeaddrinfo(info);
	rdma_destroy_ep(id);
}

static void *ask_in_vain(void *name)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };
	struct rdma_addrinfo *info;

	rdma_getaddrinfo(NULL, name, &hints, &info);
	return NULL;
}

static void cancel(char *name)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };
	struct rdma_addrinfo *info;
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, ask_in_vain, name))
		die("pthread_create");
	poll(NULL, 0, PAUSE_MS);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	printf("%s\n", result == PTHREAD_CANCELED ? "canceled" : "not canceled");
	if (!rdma_getaddrinfo(NULL, name, &hints, &info) || errno != ETIMEDOUT)
		die("and again");
	printf("timed out\n");
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";

	if (!strcmp(verb, "offer") && argc > 5)
		offer(argv[2], (unsigned int)atoi(argv[3]), (unsigned int)atoi(argv[4]), argv + 5);
	else if (!strcmp(verb, "list"))
		list(argv[2]);
	else if (!strcmp(verb, "find"))
		find(argv[2]);
	else if (!strcmp(verb, "resolve") && argc == 4)
		resolve(argv[2], argv[3]);
	else if (!strcmp(verb, "cancel"))
		cancel(argv[2]);
	else
		return 2;
	return 0;
}
