/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter of announcements, which the kernel runs: of neighbours only those pass that this process
 * has looked up or asked for, and those that failed, as that can change routes. Without it every
 * process would be woken whenever a neighbour of any other is confirmed, several times a minute.
 *
 * Classic BPF, which needs no privileges. It compares the last byte of the address, so that other
 * neighbours may pass, too. If there are too many bytes, or the kernel refuses the filter, all
 * announcements pass.
 */
#include "lib/net/internal.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define WANTED_MAX 64 /* compared one after the other */
#define CHECKS	   16 /* instructions before that */

/* A message about a neighbour; its address is the first attribute. */
struct neigh_msg {
	struct nlmsghdr hdr;
	struct ndmsg neigh;
	struct rtattr attr;
	uint8_t addr[16];
};

#define LOAD_BYTE(field)    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct neigh_msg, field))
#define LOAD_HALF(field)    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct neigh_msg, field))
#define IF_IS(value, t, f)  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (t), (f))
#define IF_HAS(value, t, f) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (value), (t), (f))
#define PASS		    UINT32_MAX

static struct {
	bool is[UINT8_MAX + 1]; /* by the last byte of an address */
	unsigned int n;
} wanted;

/* Return: the number of instructions. What is loaded is in network byte order to the filter. */
static unsigned short write_program(struct sock_filter *program)
{
	const uint8_t pass = (uint8_t)(CHECKS + wanted.n + 1);
	const struct sock_filter checks[CHECKS] = {
		LOAD_HALF(hdr.nlmsg_type),
		IF_IS(htons(RTM_NEWNEIGH), 1, 0),
		IF_IS(htons(RTM_DELNEIGH), 0, pass - 3),
		LOAD_HALF(neigh.ndm_state),
		IF_HAS(htons(NUD_FAILED), pass - 5, 0),
		LOAD_BYTE(neigh.ndm_family),
		IF_IS(AF_INET, 2, 0),
		IF_IS(AF_INET6, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0), /* a bridge's table */
		LOAD_HALF(attr.rta_type),
		IF_IS(htons(NDA_DST), 0, pass - 11),
		LOAD_BYTE(neigh.ndm_family),
		IF_IS(AF_INET6, 2, 0),
		LOAD_BYTE(addr[3]),
		BPF_STMT(BPF_JMP | BPF_JA, 1),
		LOAD_BYTE(addr[15]),
	};
	unsigned int i, n = CHECKS;

	memcpy(program, checks, sizeof(checks));
	for (i = 0; i <= UINT8_MAX; i++) {
		if (!wanted.is[i])
			continue;
		program[n] = (struct sock_filter)IF_IS(i, (uint8_t)(pass - n - 1), 0);
		n++;
	}
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, PASS);
	return (unsigned short)n;
}

void net_filter_attach(int fd)
{
	struct sock_filter program[CHECKS + WANTED_MAX + 2];
	struct sock_fprog filter = { .filter = program };
	int unused = 0;

	if (wanted.n <= WANTED_MAX) {
		filter.len = write_program(program);
		if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
			return;
	}
	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

void net_filter_want(int fd, const struct net_ip *ip)
{
	bool *is = &wanted.is[ip->bytes[net_ip_bytes(ip) - 1]];

	if (*is)
		return;
	*is = true;
	wanted.n++;
	if (wanted.n <= WANTED_MAX + 1)
		net_filter_attach(fd);
}

void net_filter_forget(void)
{
	memset(&wanted, 0, sizeof(wanted));
}
