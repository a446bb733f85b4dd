/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of rdma_getaddrinfo() for every combination of a list of nodes, services and hints: one
 * line for the call, one for each field of each result. A program of its own: linked once, run with
 * either library, the outputs must be the same. Queries no name server, only the lab's /etc/hosts;
 * needs an RDMA device. RAI_SA is left out: the stock library we compare with is older.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

#ifndef AF_IB
#define AF_IB 27
#endif

/* As defined by the system call interface: the installed header differs between versions. */
struct gid_address {
	uint16_t family;
	uint16_t pkey;
	uint32_t flowinfo;
	uint8_t gid[16];
	uint8_t sid[8];
	uint8_t sid_mask[8];
	uint64_t scope_id;
};

static const char *const nodes[] = {
	NULL, "192.0.2.1",  "127.0.0.1",	"0.0.0.0", "2001:db8::1",  "::1",
	"::", "fe80::1%lo", "::ffff:192.0.2.1", "1.2",	   "not-a-number", "",
};

static const char *const services[] = { NULL, "7471", "0", "65535", "70000", "no-such-service" };

static const int flags[] = {
	RAI_NUMERICHOST,
	RAI_NUMERICHOST | RAI_PASSIVE,
	RAI_NUMERICHOST | RAI_NOROUTE,
	RAI_NUMERICHOST | RAI_FAMILY,
	RAI_NUMERICHOST | RAI_FAMILY | RAI_PASSIVE,
};
static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6, AF_IB, AF_UNIX };
static const int qp_types[] = { 0, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_RECV };
static const int port_spaces[] = { 0, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB };

static void print_hex(const uint8_t *bytes, size_t n)
{
	while (n--)
		printf("%02x", *bytes++);
}

static void print_gid_address(const struct gid_address *gid)
{
	printf(" pkey %04x flowinfo %08x scope %llu gid ", ntohs(gid->pkey), ntohl(gid->flowinfo),
	       (unsigned long long)gid->scope_id);
	print_hex(gid->gid, sizeof(gid->gid));
	printf(" sid ");
	print_hex(gid->sid, sizeof(gid->sid));
	printf(" mask ");
	print_hex(gid->sid_mask, sizeof(gid->sid_mask));
	printf("\n");
}

static void print_addr(const char *what, const struct sockaddr *sa, socklen_t bytes)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	printf("  %s: %u bytes", what, bytes);
	if (!sa) {
		printf(", none\n");
	} else if (sa->sa_family == AF_IB && bytes >= sizeof(struct gid_address)) {
		print_gid_address((const void *)sa);
	} else if (getnameinfo(sa, bytes, host, sizeof(host), port, sizeof(port),
			       NI_NUMERICHOST | NI_NUMERICSERV)) {
		printf(" family %d\n", sa->sa_family);
	} else {
		printf(" family %d %s port %s\n", sa->sa_family, host, port);
	}
}

static void print_result(const struct rdma_addrinfo *rai)
{
	printf("  flags %#x family %d qp_type %d port_space %#x\n", rai->ai_flags, rai->ai_family,
	       rai->ai_qp_type, rai->ai_port_space);
	print_addr("src", rai->ai_src_addr, rai->ai_src_len);
	print_addr("dst", rai->ai_dst_addr, rai->ai_dst_len);
	printf("  src name %s dst name %s route %zu %s connect %zu %s\n",
	       rai->ai_src_canonname ? rai->ai_src_canonname : "-",
	       rai->ai_dst_canonname ? rai->ai_dst_canonname : "-", rai->ai_route_len,
	       rai->ai_route ? "set" : "NULL", rai->ai_connect_len,
	       rai->ai_connect ? "set" : "NULL");
}

static void ask(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *list = NULL;
	int n = 0;
	int rc;

	printf("node %s service %s", node ? node : "NULL", service ? service : "NULL");
	if (hints)
		printf(" flags %#x family %d qp_type %d port_space %#x src %u dst %u\n",
		       hints->ai_flags, hints->ai_family, hints->ai_qp_type, hints->ai_port_space,
		       hints->ai_src_len, hints->ai_dst_len);
	else
		printf(" no hints\n");
	errno = 0;
	rc = rdma_getaddrinfo(node, service, hints, &list);
	/* -1 is also EAI_BADFLAGS; only errno distinguishes them. */
	printf("  returned %d errno %d\n", rc, rc == -1 ? errno : 0);
	if (rc)
		return;
	for (const struct rdma_addrinfo *rai = list; rai; rai = rai->ai_next, n++)
		print_result(rai);
	printf("  results %d\n", n);
	rdma_freeaddrinfo(list);
}

/*
 * A GID is written as an IPv6 address. Given anything else, stock reads a struct sockaddr_in6 out
 * of a shorter address and returns what lies behind it; purecm returns EAI_ADDRFAMILY.
 */
static bool comparable(const char *node, const struct rdma_addrinfo *hints)
{
	if (hints->ai_family != AF_IB || !(hints->ai_flags & RAI_FAMILY))
		return true;
	return node && strchr(node, ':');
}

static void ask_with_all_hints(const char *node, const char *service)
{
	struct rdma_addrinfo hints = { 0 };

	for (size_t f = 0; f < N(flags); f++) {
		for (size_t a = 0; a < N(families); a++) {
			for (size_t q = 0; q < N(qp_types); q++) {
				for (size_t p = 0; p < N(port_spaces); p++) {
					hints.ai_flags = flags[f];
					hints.ai_family = families[a];
					hints.ai_qp_type = qp_types[q];
					hints.ai_port_space = port_spaces[p];
					if (comparable(node, &hints))
						ask(node, service, &hints);
				}
			}
		}
	}
}

/* Addresses in the hints: copied or not. */
static void ask_with_addresses(const char *node, int ai_flags)
{
	struct sockaddr_in src = { .sin_family = AF_INET, .sin_port = htons(1) };
	struct sockaddr_in dst = { .sin_family = AF_INET, .sin_port = htons(2) };
	struct rdma_addrinfo hints = { .ai_flags = ai_flags | RAI_NUMERICHOST };

	src.sin_addr.s_addr = htonl(0xc0000203);
	dst.sin_addr.s_addr = htonl(0xc0000204);
	hints.ai_src_addr = (struct sockaddr *)&src;
	hints.ai_src_len = sizeof(src);
	ask(node, NULL, &hints);
	hints.ai_dst_addr = (struct sockaddr *)&dst;
	hints.ai_dst_len = sizeof(dst);
	ask(node, NULL, &hints);
	hints.ai_src_addr = NULL;
	hints.ai_src_len = 0;
	ask(node, NULL, &hints);
}

/* Cases that the tables above omit: names, and meaningless values. */
static const char *const names[] = { "localhost", "a", "b", "192.0.2.1", "::1", NULL };
static const int odd_flags[] = {
	0,	    RAI_PASSIVE, RAI_NOROUTE, RAI_DNS,	       RAI_DNS | RAI_PASSIVE | RAI_NOROUTE,
	RAI_FAMILY, 0x40,	 0x00800000,  (int)0x80000000, RAI_NUMERICHOST | RAI_DNS,
};
static const int odd_qp_types[] = {
	0, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_DRIVER, 1, -1
};
static const int odd_port_spaces[] = { 0, RDMA_PS_TCP, 0x1234, 1, -1 };

static void ask_with_odd_hints(const char *node, const char *service)
{
	struct rdma_addrinfo hints = { 0 };

	for (size_t f = 0; f < N(odd_flags); f++) {
		for (size_t a = 0; a < N(families); a++) {
			hints = (struct rdma_addrinfo){ .ai_flags = odd_flags[f],
							.ai_family = families[a] };
			ask(node, service, &hints);
		}
	}
	for (size_t q = 0; q < N(odd_qp_types); q++) {
		for (size_t p = 0; p < N(odd_port_spaces); p++) {
			hints = (struct rdma_addrinfo){ .ai_qp_type = odd_qp_types[q],
							.ai_port_space = odd_port_spaces[p] };
			ask(node, service, &hints);
		}
	}
}

int main(void)
{
	for (size_t n = 0; n < N(names); n++) {
		ask_with_odd_hints(names[n], NULL);
		ask_with_odd_hints(names[n], "7471");
		ask(names[n], "http", NULL);
		ask(names[n], NULL, NULL);
	}
	for (size_t n = 0; n < N(nodes); n++) {
		for (size_t s = 0; s < N(services); s++)
			ask_with_all_hints(nodes[n], services[s]);
		ask_with_addresses(nodes[n], 0);
		ask_with_addresses(nodes[n], RAI_PASSIVE);
	}
	ask(NULL, NULL, NULL);
	ask("192.0.2.1", NULL, NULL);
	ask("192.0.2.1", "7471", NULL);
	ask("::1", "7471", NULL);
	ask(NULL, "7471", NULL);
	return 0;
}
