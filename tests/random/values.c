/* SPDX-License-Identifier: BSD-2-Clause */
/* What the words of scripts stand for: addresses, port spaces, parameters, queue pairs. */
#include <arpa/inet.h>

#include "player.h"

#define MAPPED_AT 10 /* of a GID: two bytes of ones, and then an IPv4 address */

struct sockaddr_storage host_addresses[4];
uint16_t base_port;

/* Return: the port field of an address of IPv4 or IPv6, which is at the same place in both. */
static in_port_t *port_in(struct sockaddr_storage *addr)
{
	return &((struct sockaddr_in *)addr)->sin_port;
}

/* Return: the last byte of an address of IPv4 or IPv6. */
static uint8_t *last_byte(struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? (uint8_t *)&((struct sockaddr_in *)addr)->sin_addr + 3
					  : &((struct sockaddr_in6 *)addr)->sin6_addr.s6_addr[15];
}

static bool parse(const char *text, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = AF_INET;
	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)addr)->sin_addr) == 1)
		return true;
	addr->ss_family = AF_INET6;
	return inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)addr)->sin6_addr) == 1;
}

void parse_hosts(char **texts)
{
	int i;

	for (i = 0; i < 4; i++) {
		if (!parse(texts[i], &host_addresses[i])) {
			fprintf(stderr, "player: %s is not an address\n", texts[i]);
			exit(2);
		}
	}
}

static bool find(const char *name, struct sockaddr_storage *addr)
{
	static const char *const names[] = { "self4", "self6", "peer4", "peer6", "none4", "none6" };
	static const char *const others[][2] = {
		{ "any4", "0.0.0.0" },	  { "any6", "::" },	      { "lo4", "127.0.0.1" },
		{ "lo6", "::1" },	  { "group4", "239.77.1.1" }, { "other4", "239.77.1.2" },
		{ "group6", "ff0e::77" },
	};
	size_t i;

	for (i = 0; i < 6; i++) {
		if (strcmp(name, names[i]))
			continue;
		*addr = host_addresses[i < 4 ? i : i - 2];
		if (i >= 4) /* on the network, but no host has it */
			*last_byte(addr) = 77;
		return true;
	}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(name, others[i][0]))
			return parse(others[i][1], addr);
	return false;
}

/* The GID of a host, and the service of a port. */
static void make_ib(const char *host, uint16_t port, enum rdma_port_space ps,
		    struct sockaddr_storage *addr)
{
	struct sockaddr_ib *ib = (void *)addr;
	uint8_t *gid = (void *)&ib->sib_addr;
	struct sockaddr_storage inet;

	ib->sib_family = AF_IB;
	ib->sib_pkey = htons(0xffff);
	ib->sib_sid = htobe64((uint64_t)ps << 16 | port);
	ib->sib_sid_mask = htobe64(port ? UINT64_MAX : ~0xffffull);
	if (!find(host, &inet) || inet.ss_family != AF_INET || !strcmp(host, "any4"))
		return;
	gid[MAPPED_AT] = gid[MAPPED_AT + 1] = 0xff;
	memcpy(gid + MAPPED_AT + 2, &((struct sockaddr_in *)&inet)->sin_addr, 4);
}

struct sockaddr *address_of(const char *host, const char *port, enum rdma_port_space ps)
{
	static struct sockaddr_storage buffers[4];
	static size_t next;
	struct sockaddr_storage *addr = &buffers[next++ % 4];
	uint16_t number = *port == 'p' ? base_port + atoi(port + 1) : atoi(port);

	if (!strcmp(host, "-"))
		return NULL;
	memset(addr, 0, sizeof(*addr));
	if (!strncmp(host, "ib:", 3))
		make_ib(host + 3, number, ps, addr);
	else if (find(host, addr))
		*port_in(addr) = htons(number);
	else
		addr->ss_family = 99;
	return (void *)addr;
}

enum rdma_port_space space_of(const char *word)
{
	return !strcmp(word, "tcp")	? RDMA_PS_TCP
	       : !strcmp(word, "udp")	? RDMA_PS_UDP
	       : !strcmp(word, "ipoib") ? RDMA_PS_IPOIB
	       : !strcmp(word, "ib")	? RDMA_PS_IB
					: 77;
}

/* Words: null, or letters: d data, D as much as fits, X more, z no reads, f as many as there can
 * be, m more than any device has, r nine retries. */
struct rdma_conn_param *param_of(const char *word)
{
	static struct rdma_conn_param param;
	static uint8_t data[256];
	static uint32_t n_qpns;

	if (!strcmp(word, "null"))
		return NULL;
	memset(data, 'd', sizeof(data));
	param = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = strchr(word, 'd')	? 5
				    : strchr(word, 'D') ? 56
				    : strchr(word, 'X') ? 220
							: 0,
		.responder_resources = 1,
		.initiator_depth = 1,
		.flow_control = 1,
		.retry_count = strchr(word, 'r') ? 9 : 2,
		.rnr_retry_count = strchr(word, 'r') ? 9 : 3,
		.qp_num = (getpid() % 0x3000 << 8 | (n_qpns++ & 0xff)) + 0x400000,
	};
	if (strchr(word, 'z') || strchr(word, 'f'))
		param.responder_resources = param.initiator_depth = strchr(word, 'z') ? 0 : 0xff;
	if (strchr(word, 'm'))
		param.responder_resources = 200;
	return &param;
}

void queue_pair_of(const char *word, struct ibv_qp_init_attr *attr)
{
	*attr = (struct ibv_qp_init_attr){
		.qp_type = !strcmp(word, "ud")	 ? IBV_QPT_UD
			   : !strcmp(word, "uc") ? IBV_QPT_UC
			   : !strcmp(word, "xs") ? IBV_QPT_XRC_SEND
						 : IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
}
