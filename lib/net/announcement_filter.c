/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter of announcements, which the kernel runs, for the socket that wakes this process. It
 * passes:
 *
 * - neighbours that this process has looked up or asked for, and those that failed, as that can
 *   change routes;
 * - interfaces that it has looked up;
 * - all interfaces and addresses if it asked for them.
 *
 * Without it every process would be woken whenever a neighbour of any other is confirmed, several
 * times a minute, and when a container starts.
 *
 * Classic BPF, which needs no privileges. Neighbours are compared by the last byte of the address,
 * so that others may pass, too. All pass if there are too many to compare, or if the kernel refuses
 * the filter.
 */
#include "lib/net/internal.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define NEIGHS_MAX 64 /* compared one after the other */
#define LINKS_MAX  16 /* likewise */
#define STEPS_MAX  (NEIGHS_MAX + LINKS_MAX + 32)

/* A message about a neighbour; its address is the first attribute. */
struct neigh_msg {
	struct nlmsghdr hdr;
	struct ndmsg neigh;
	struct rtattr attr;
	uint8_t addr[16];
};

/* A message about an interface. */
struct link_msg {
	struct nlmsghdr hdr;
	struct ifinfomsg link;
};

static struct {
	bool neigh[UINT8_MAX + 1]; /* by the last byte of an address */
	unsigned int n_neighs;
	uint32_t link[LINKS_MAX];
	unsigned int n_links; /* more than LINKS_MAX: all are wanted */
	bool all_interfaces;
} wanted;

static int socket_fd = -1; /* -1: not open; no filter is set then */

struct program {
	struct sock_filter step[STEPS_MAX];
	uint8_t n;
};

/* --- the instructions ------------------------------------------------------- */

static void append_step(struct program *program, uint16_t code, uint32_t k)
{
	program->step[program->n++] = (struct sock_filter)BPF_STMT(code, k);
}

/* Jumps ahead by @t or @f steps. */
static void append_jump(struct program *program, uint16_t code, uint32_t k, uint8_t t, uint8_t f)
{
	program->step[program->n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_K | code, k, t, f);
}

/* What is loaded is in network byte order to the filter. */
static void append_load(struct program *program, uint16_t size, size_t offset)
{
	append_step(program, BPF_LD | BPF_ABS | size, (uint32_t)offset);
}

static void append_verdict(struct program *program, bool pass)
{
	append_step(program, BPF_RET | BPF_K, pass ? UINT32_MAX : 0);
}

/* A step that passes the message if what is loaded has this value. */
static void append_pass_if(struct program *program, uint16_t code, uint32_t value)
{
	append_jump(program, code, value, 0, 1);
	append_verdict(program, true);
}

/* --- the program ------------------------------------------------------------ */

static void append_link_check(struct program *program)
{
	unsigned int i, n = wanted.n_links;

	if (wanted.all_interfaces || n > LINKS_MAX) {
		append_verdict(program, true);
		return;
	}
	append_load(program, BPF_W, offsetof(struct link_msg, link.ifi_index));
	for (i = 0; i < n; i++)
		append_jump(program, BPF_JEQ, htonl(wanted.link[i]), (uint8_t)(n - i), 0);
	append_verdict(program, false);
	append_verdict(program, true);
}

/* Loads the last byte of an address that is the first attribute, and passes other messages. */
static void append_load_last_byte(struct program *program)
{
	append_load(program, BPF_B, offsetof(struct neigh_msg, neigh.ndm_family));
	append_jump(program, BPF_JEQ, AF_INET, 2, 0);
	append_jump(program, BPF_JEQ, AF_INET6, 1, 0);
	append_verdict(program, false); /* a bridge's table */
	append_load(program, BPF_H, offsetof(struct neigh_msg, attr.rta_type));
	append_jump(program, BPF_JEQ, htons(NDA_DST), 1, 0);
	append_verdict(program, true);
	append_load(program, BPF_B, offsetof(struct neigh_msg, neigh.ndm_family));
	append_jump(program, BPF_JEQ, AF_INET, 5, 0);
	append_load(program, BPF_B, offsetof(struct neigh_msg, addr[0]));
	append_jump(program, BPF_JEQ, 0xff, 0, 1);
	append_verdict(program, false); /* multicast: no next hop */
	append_load(program, BPF_B, offsetof(struct neigh_msg, addr[15]));
	append_step(program, BPF_JMP | BPF_JA, 1);
	append_load(program, BPF_B, offsetof(struct neigh_msg, addr[3]));
}

static void append_neigh_check(struct program *program)
{
	unsigned int i, left = wanted.n_neighs;

	if (left > NEIGHS_MAX) {
		append_verdict(program, true);
		return;
	}
	append_load(program, BPF_H, offsetof(struct neigh_msg, neigh.ndm_state));
	append_pass_if(program, BPF_JSET, htons(NUD_FAILED));
	append_load_last_byte(program);
	for (i = 0; i <= UINT8_MAX; i++)
		if (wanted.neigh[i])
			append_jump(program, BPF_JEQ, i, (uint8_t)left--, 0);
	append_verdict(program, false);
	append_verdict(program, true);
}

static void write_program(struct program *program)
{
	struct program link = { .n = 0 };

	append_link_check(&link);
	append_load(program, BPF_H, offsetof(struct nlmsghdr, nlmsg_type));
	append_jump(program, BPF_JEQ, htons(RTM_NEWNEIGH), (uint8_t)(link.n + 4), 0);
	append_jump(program, BPF_JEQ, htons(RTM_DELNEIGH), (uint8_t)(link.n + 3), 0);
	append_jump(program, BPF_JEQ, htons(RTM_NEWLINK), 2, 0);
	append_jump(program, BPF_JEQ, htons(RTM_DELLINK), 1, 0);
	append_verdict(program, wanted.all_interfaces); /* addresses */
	memcpy(program->step + program->n, link.step, link.n * sizeof(link.step[0]));
	program->n += link.n;
	append_neigh_check(program);
}

void net_filter_attach(int fd)
{
	struct program program = { .n = 0 };
	struct sock_fprog filter = { .filter = program.step };
	int unused = 0;

	socket_fd = fd;
	write_program(&program);
	filter.len = program.n;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

/* --- what is wanted ----------------------------------------------------------- */

void net_announcements_want(const struct net_ip *ip)
{
	bool *is = &wanted.neigh[ip->bytes[net_ip_bytes(ip) - 1]];

	if (*is)
		return;
	*is = true;
	if (++wanted.n_neighs <= NEIGHS_MAX + 1)
		net_filter_attach(socket_fd);
}

void net_announcements_want_link(unsigned int ifindex)
{
	unsigned int i;

	for (i = 0; i < wanted.n_links && i < LINKS_MAX; i++)
		if (wanted.link[i] == ifindex)
			return;
	if (wanted.n_links > LINKS_MAX)
		return;
	if (wanted.n_links < LINKS_MAX)
		wanted.link[wanted.n_links] = ifindex;
	wanted.n_links++;
	net_filter_attach(socket_fd);
}

void net_watch_interfaces(void)
{
	net_reenter();
	if (!wanted.all_interfaces) {
		wanted.all_interfaces = true;
		net_filter_attach(socket_fd);
	}
	net_leave();
}

void net_filter_forget(void)
{
	memset(&wanted, 0, sizeof(wanted));
}
