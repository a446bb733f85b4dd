/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the kernel's tracer: see kernel_event.h. Seen on Linux 6.1, 6.12 and 7.2.
 */
#include "tools/purecm/kernel_event.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/tally.h"

#define NS_PER_S 1000000000u

/* Parses "10.77.0.2:59173", "[fd77::2]:59173"; "(einval)" while the id has no address. */
static bool parse_end(const char *text, struct kernel_end *ret)
{
	char addr[INET6_ADDRSTRLEN];
	uint8_t ip4[4];
	unsigned int port = 0;

	*ret = (struct kernel_end){ .port = 0 };
	if (sscanf(text, "[%45[^]]]:%u", addr, &port) >= 1) {
		addr[strcspn(addr, "%")] = '\0'; /* the interface of a link-local address */
		ret->port = (uint16_t)port;
		return inet_pton(AF_INET6, addr, ret->gid.raw) == 1;
	}
	if (sscanf(text, "%45[0-9.]:%u", addr, &port) < 1 || inet_pton(AF_INET, addr, ip4) != 1)
		return false;
	ret->gid = observation_gid_of_ip4(ip4);
	ret->port = (uint16_t)port;
	return true;
}

/*
 * Parses " rping-281 [000] ..... 73.228609: NAME: ". Return: the rest; NULL if it does not match.
 */
static const char *parse_head(const char *line, struct kernel_event *ret)
{
	const char *cpu = strstr(line, " ["), *name, *time, *pid;
	unsigned long s, us;

	*ret = (struct kernel_event){ .status = 0 };
	name = cpu ? strstr(cpu, ": ") : NULL;
	if (!name)
		return NULL;
	for (time = name; time > line && strchr("0123456789.", time[-1]); time--)
		;
	for (pid = cpu; pid > line && *pid == ' '; pid--)
		;
	while (pid > line && pid[-1] >= '0' && pid[-1] <= '9')
		pid--;
	if (sscanf(time, "%lu.%lu", &s, &us) != 2 || sscanf(name, ": %31[a-z_]:", ret->name) != 1)
		return NULL;
	ret->time_ns = s * NS_PER_S + us * 1000;
	ret->pid = (uint32_t)strtoul(pid, NULL, 10);
	return name + strlen(": ") + strlen(ret->name);
}

/* Return: false for a MAD of another class. */
static bool parse_mad(const char *text, struct kernel_event *ret)
{
	const char *class = strstr(text, " class "), *tid = strstr(text, " tid "), *lid;

	ret->way = strcmp(ret->name, "ib_mad_ib_send_mad") == 0 ? WAY_OUT : WAY_IN;
	lid = strstr(text, ret->way == WAY_OUT ? " dlid " : " slid ");
	if (lid)
		ret->lid = (unsigned int)strtoul(lid + strlen(" dlid "), NULL, 16);
	return class && tid && strtoul(class + strlen(" class "), NULL, 16) == MAD_CLASS_CM &&
	       sscanf(tid, " tid %" SCNx64 " attr_id %x", &ret->tid, &ret->attr) == 2 &&
	       cm_tally_kind((uint16_t)ret->attr) != CM_TALLY_NONE;
}

static void parse_icm(const char *text, struct kernel_event *ret)
{
	const char *reason = strstr(text, " reason=");

	ret->is_icm = true;
	ret->is_of_request = strstr(text, " state=REQ_RCVD");
	if (reason)
		sscanf(reason, " reason=%31[A-Z_]", ret->word);
}

bool kernel_event_parse(const char *line, struct kernel_event *ret)
{
	const char *text = parse_head(line, ret), *at;
	char ends[2][64];

	if (!text)
		return false;
	if (strcmp(ret->name, "ib_mad_ib_send_mad") == 0 ||
	    strcmp(ret->name, "ib_mad_recv_done_handler") == 0)
		return parse_mad(text, ret);
	if (strncmp(ret->name, "icm_", 4) == 0) {
		parse_icm(text, ret);
		return true;
	}
	text = strncmp(ret->name, "cm_", 3) == 0 ? strstr(text, " cm.id=") : NULL;
	if (!text || sscanf(text, " cm.id=%*u src=%63s dst=%63s", ends[0], ends[1]) != 2)
		return false;
	ret->has_ends = parse_end(ends[0], &ret->ends[0]) && parse_end(ends[1], &ret->ends[1]) &&
			ret->ends[1].port;
	at = strstr(text, " qp_num=");
	if (at)
		sscanf(at, " qp_num=%u", &ret->qpn);
	at = strstr(text, " tos=");
	if (at)
		sscanf(at, " tos=%*u %31[A-Z_] (%*u/%d)", ret->word, &ret->status);
	return true;
}
