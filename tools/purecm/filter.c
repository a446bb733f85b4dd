/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing and application of filter options. */
#include "tools/purecm/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/purecm/reading.h"

#define FILTER_GROUP 10
#define LIST_BYTES   256
#define PORT_MAX     0xffff

enum key {
	KEY_PEER = 'p',
	KEY_SERVICE = 's',
	KEY_MESSAGE = 'm',
	KEY_OUTCOME = 'o',
	KEY_CONNECTION = 'c',
};

/* clang-format off */
static const struct argp_option option_table[] = {
	{ NULL, 0, NULL, 0, "What is shown:", FILTER_GROUP },
	{ "peer", KEY_PEER, "ADDRESS", 0,
	  "connections that have this address, or `lid N', at an end", FILTER_GROUP },
	{ "service", KEY_SERVICE, "PORT", 0,
	  "connections to a port, or to a service id (0x...)", FILTER_GROUP },
	{ "message", KEY_MESSAGE, "NAME,...", 0, "REQ, MRA, REJ and so on; SA", FILTER_GROUP },
	{ "outcome", KEY_OUTCOME, "WORD,...", 0,
	  "connections that end so: failed, closed, established, rejected, unanswered, "
	  "unconfirmed, gave-up, unclosed, resolved, probed, fragment", FILTER_GROUP },
	{ "connection", KEY_CONNECTION, "N", 0, "the one that is shown as #N", FILTER_GROUP },
	{ 0 },
};
/* clang-format on */

static int parse_peer(struct filter *filter, const char *text)
{
	struct mad_gid gid;
	unsigned int lid;
	uint8_t ip[4];

	if (sscanf(text, "lid %u", &lid) == 1 && lid && lid <= UINT16_MAX)
		gid = observation_gid_of_lid((uint16_t)lid);
	else if (inet_pton(AF_INET, text, ip) == 1)
		gid = observation_gid_of_ip4(ip);
	else if (inet_pton(AF_INET6, text, gid.raw) != 1)
		return -EINVAL;
	filter->peer = gid;
	filter->has_peer = true;
	return 0;
}

static int parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return errno || *end || end == text || *text == '-' || *ret > max ? -EINVAL : 0;
}

static int add_message(struct filter *filter, const char *name)
{
	uint16_t attr;

	if (strcasecmp(name, "SA") == 0) {
		filter->has_sa = true;
		return 0;
	}
	for (attr = CM_ATTR_REQ; attr <= CM_ATTR_APR; attr++) {
		if (strcasecmp(name, cm_msg_layout(attr)->name) == 0) {
			filter->messages |= 1u << (attr - CM_ATTR_REQ);
			return 0;
		}
	}
	return -EINVAL;
}

static uint32_t failed_outcomes(void)
{
	uint32_t outcomes = 0;
	struct flow flow = { .number = 0 };

	for (flow.outcome = 0; flow.outcome < FLOW_N_OUTCOMES; flow.outcome++) {
		if (flow_has_failed(&flow))
			outcomes |= 1u << flow.outcome;
	}
	return outcomes;
}

static int add_outcome(struct filter *filter, const char *word)
{
	enum flow_outcome outcome;

	if (strcmp(word, "failed") == 0) {
		filter->outcomes |= failed_outcomes();
		return 0;
	}
	for (outcome = 0; outcome < FLOW_N_OUTCOMES; outcome++) {
		if (strcmp(word, flow_outcome_word(outcome)) == 0) {
			filter->outcomes |= 1u << outcome;
			return 0;
		}
	}
	return -EINVAL;
}

static void parse_list(struct argp_state *state, const char *list,
		       int (*add)(struct filter *filter, const char *word), const char *what)
{
	char copy[LIST_BYTES], *word, *rest = NULL;

	if (strlen(list) >= sizeof(copy))
		argp_error(state, "%s: the list is too long", what);
	strncpy(copy, list, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = '\0';
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (add(state->input, word))
			argp_error(state, "there is no %s %s; --help lists them", what, word);
	}
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct filter *filter = state->input;
	uint64_t number;

	switch (key) {
	case KEY_PEER:
		if (parse_peer(filter, value))
			argp_error(state, "--peer: %s is no IP address, GID or `lid N'", value);
		return 0;
	case KEY_SERVICE:
		if (parse_number(value, UINT64_MAX, &filter->service))
			argp_error(state, "--service: %s is no port and no service id", value);
		filter->has_service = true;
		return 0;
	case KEY_MESSAGE:
		parse_list(state, value, add_message, "message");
		return 0;
	case KEY_OUTCOME:
		parse_list(state, value, add_outcome, "outcome");
		return 0;
	case KEY_CONNECTION:
		if (parse_number(value, UINT32_MAX, &number) || !number)
			argp_error(state, "--connection: %s is no number of a connection", value);
		filter->connection = (uint32_t)number;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp filter_argp = { .options = option_table, .parser = parse_option };

/* clang-format off */
const struct argp_child reading_and_filter[] = {
	{ &reading_argp, 0, NULL, 0 },
	{ &filter_argp, 0, NULL, 0 },
	{ 0 }
};
/* clang-format on */

static bool is_at_an_end(const struct flow *flow, const struct mad_gid *gid)
{
	return memcmp(flow_gid(flow, FLOW_ACTIVE), gid, sizeof(*gid)) == 0 ||
	       memcmp(flow_gid(flow, FLOW_PASSIVE), gid, sizeof(*gid)) == 0;
}

static bool is_service(const struct flow *flow, uint64_t service)
{
	if (service > PORT_MAX)
		return flow->service_id == service;
	return cma_service_is_ip(flow->service_id) && (flow->service_id & PORT_MAX) == service;
}

bool filter_takes_flow(const struct filter *filter, const struct flow *flow)
{
	if (filter->connection && flow->number != filter->connection)
		return false;
	if (filter->has_peer && !is_at_an_end(flow, &filter->peer))
		return false;
	return !filter->has_service || is_service(flow, filter->service);
}

bool filter_takes_outcome(const struct filter *filter, enum flow_outcome outcome)
{
	return !filter->outcomes || filter->outcomes >> outcome & 1;
}

bool filter_takes_message(const struct filter *filter, const struct cm_msg *msg)
{
	if (!filter->messages)
		return !filter->has_sa;
	return filter->messages >> (msg->hdr.attr_id - CM_ATTR_REQ) & 1;
}

bool filter_takes_other(const struct filter *filter, const struct observation *observation)
{
	if (filter->connection || filter->has_service || filter->outcomes)
		return false;
	if ((filter->messages || filter->has_sa) &&
	    !(filter->has_sa && !observation_is_cm(observation)))
		return false;
	return !filter->has_peer ||
	       memcmp(&observation->src, &filter->peer, sizeof(filter->peer)) == 0 ||
	       memcmp(&observation->dst, &filter->peer, sizeof(filter->peer)) == 0;
}
