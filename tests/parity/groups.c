/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups for scenarios: see groups.h. */
#include "groups.h"

#include <arpa/inet.h>

#define LINE_MAX_BYTES 256

struct sockaddr *group(const struct scene *s, unsigned int number)
{
	char text[INET6_ADDRSTRLEN];

	if (s->family == AF_INET)
		snprintf(text, sizeof(text), "239.%u.%u.%u", 64 + number, s->port >> 8,
			 s->port & 0xff);
	else
		snprintf(text, sizeof(text), "ff0e::%x:%x", s->port, number);
	return numeric(text, 0);
}

/* As /proc/net/igmp writes an address: the bytes as a number of this host. */
static void proc_text(const struct sockaddr *addr, char *text, size_t size)
{
	const struct sockaddr_in6 *v6 = (const void *)addr;
	int i;

	if (addr->sa_family == AF_INET) {
		snprintf(text, size, "%08X",
			 ((const struct sockaddr_in *)(const void *)addr)->sin_addr.s_addr);
		return;
	}
	for (i = 0; i < 16; i++)
		snprintf(text + 2 * i, size - 2 * (size_t)i, "%02x", v6->sin6_addr.s6_addr[i]);
}

bool is_member(const struct scene *s, unsigned int number)
{
	FILE *file = fopen(s->family == AF_INET ? "/proc/net/igmp" : "/proc/net/igmp6", "re");
	char line[LINE_MAX_BYTES], text[40];
	bool found = false;

	if (!file)
		give_up("/proc: %s", strerror(errno));
	proc_text(group(s, number), text, sizeof(text));
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, text);
	fclose(file);
	return found;
}

void show_member(const struct scene *s, unsigned int number)
{
	SAY("  member of group %u: %d", number, is_member(s, number));
}

void await_no_member(const struct scene *s, unsigned int number)
{
	int i;

	for (i = 0; is_member(s, number); i++) {
		if (i == PATIENCE_MS)
			give_up("still a member of group %u", number);
		pause_ms(1);
	}
}

struct rdma_cm_join_mc_attr_ex send_only(struct sockaddr *group)
{
	return (struct rdma_cm_join_mc_attr_ex){
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = group,
	};
}

struct rdma_cm_id *bound_datagram_id(struct scene *s, const char *label)
{
	struct rdma_cm_id *id = open_id(s, label, RDMA_PS_UDP);

	if (rdma_bind_addr(id, at(&s->self, 0)))
		give_up("rdma_bind_addr: %s", strerror(errno));
	return id;
}
