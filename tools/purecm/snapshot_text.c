/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the parts of a snapshot: see snapshot.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "cm/conn.h"
#include "tools/purecm/observation.h"
#include "tools/purecm/snapshot.h"

const char *snapshot_port_str(const struct snapshot *snapshot, uint8_t port, char buf[PLACE_BYTES])
{
	const struct snapshot_port *known = &snapshot->port[port % PORTD_PORTS_MAX];

	if (port >= PORTD_PORTS_MAX || !known->is_known)
		snprintf(buf, PLACE_BYTES, "-");
	else
		snprintf(buf, PLACE_BYTES, "%s/%u", known->device, known->port_num);
	return buf;
}

const char *snapshot_id_state(const struct portd_stat_id *id)
{
	static const char *const names[] = {
#define X(name) #name,
		PORTD_ID_STATES(X)
#undef X
	};

	return id->id_state < sizeof(names) / sizeof(names[0]) ? names[id->id_state] : "-";
}

const char *snapshot_conn_state(const struct portd_stat_id *id)
{
	static const char *const of_qp[] = { "QP RESET", "QP INIT", "QP RTR", "QP RTS",
					     "QP SQD",	 "QP SQE",  "QP ERR" };
	unsigned int qp_state = id->conn_state - SNAPSHOT_QP_STATE;

	if (qp_state < sizeof(of_qp) / sizeof(of_qp[0]))
		return of_qp[qp_state];
	return id->conn_state < CM_N_STATES ? cm_state_str((enum cm_state)id->conn_state) : "-";
}

/* --- addresses ----------------------------------------------------------- */

static bool is_zero(const uint8_t addr[16])
{
	static const uint8_t zero[16];

	return memcmp(addr, zero, sizeof(zero)) == 0;
}

static const char *place_str(uint8_t family, const uint8_t addr[16], uint16_t port,
			     char buf[PLACE_BYTES])
{
	char text[INET6_ADDRSTRLEN];

	if (family == 4)
		snprintf(buf, PLACE_BYTES, "%s:%u",
			 inet_ntop(AF_INET, addr + 12, text, sizeof(text)), port);
	else
		snprintf(buf, PLACE_BYTES, "[%s]:%u", inet_ntop(AF_INET6, addr, text, sizeof(text)),
			 port);
	return buf;
}

const char *snapshot_local(const struct portd_stat_id *id, char buf[PLACE_BYTES])
{
	if (!id->family || (is_zero(id->local_addr) && !id->local_port))
		return strcpy(buf, "-");
	return place_str(id->family, id->local_addr, id->local_port, buf);
}

const char *snapshot_peer(const struct portd_stat_id *id, char buf[PLACE_BYTES])
{
	bool is_named = id->family && !is_zero(id->peer_addr);

	if (is_named)
		return place_str(id->family, id->peer_addr, id->peer_port, buf);
	if (is_zero(id->peer_gid.raw))
		return strcpy(buf, "-");
	return who_str(&id->peer_gid, buf);
}

const char *snapshot_space(uint16_t ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return "TCP";
	case RDMA_PS_UDP:
		return "UDP";
	case RDMA_PS_IB:
		return "IB";
	case RDMA_PS_IPOIB:
		return "IPoIB";
	}
	return "?";
}

/* --- counters ------------------------------------------------------------ */

const char *snapshot_message(unsigned int kind)
{
	return kind < CM_TALLY_NONE ? cm_msg_layout((uint16_t)(CM_ATTR_REQ + kind))->name : "none";
}

static const char *const counters[] = {
#define X(name, text) #name,
	PORTD_STAT_COUNTERS(X)
#undef X
};

const char *snapshot_counter(unsigned int what)
{
	static char name[32];
	size_t i;

	if (what >= PORTD_N_COUNTERS)
		return NULL;
	for (i = 0; counters[what][i]; i++)
		name[i] = counters[what][i] == '_' ? '-' : (char)tolower(counters[what][i]);
	name[i] = '\0';
	return name;
}

bool snapshot_is_gauge(unsigned int what)
{
	return what == PORTD_COUNT_FAST_PEERS || what == PORTD_COUNT_LOST_PEERS;
}

/* --- filters --------------------------------------------------------------- */

/* clang-format off */
const struct command_option snapshot_options[] = {
	{ "pid", 'p', "PID", "of this process only",
	  COMMAND_NUMBER_AT(snapshot_filter, pid, 1, INT32_MAX) },
	{ "state", 0, "STATE,...",
	  "only ids whose own state, or whose connection's, is one of these: LISTEN, ESTABLISHED",
	  COMMAND_TEXT_AT(snapshot_filter, states) },
	{ "port", 0, "PORT", "only ids that have this port, or whose peer has it",
	  COMMAND_NUMBER_AT(snapshot_filter, port, 1, UINT16_MAX) },
	{ "peer", 0, "ADDRESS", "only ids whose peer has this address",
	  COMMAND_TEXT_AT(snapshot_filter, peer) },
	{ 0 },
};
/* clang-format on */

/* Return: whether a list has a state; "QP RTS" is also RTS. */
static bool has_state(const char *states, const char *state)
{
	const size_t skip = strncmp(state, "QP ", 3) == 0 ? 3 : 0, n = strlen(state + skip);

	for (; states; states = strchr(states, ',')) {
		states += *states == ',';
		if (strncasecmp(states, state + skip, n) == 0 && (!states[n] || states[n] == ','))
			return true;
	}
	return false;
}

static bool is_state(const char *word)
{
	struct portd_stat_id row = { .id_state = 0 };
	unsigned int i;

	for (i = 0; i < PORTD_STAT_NONE; i++) {
		row.id_state = row.conn_state = (uint8_t)i;
		if (has_state(word, snapshot_id_state(&row)) ||
		    has_state(word, snapshot_conn_state(&row)))
			return true;
	}
	return false;
}

void snapshot_check(const void *input, struct argp_state *state)
{
	const struct snapshot_filter *filter = input;
	const char *word = filter->states;
	struct mad_gid gid;

	for (; word; word = strchr(word, ',')) {
		word += *word == ',';
		if (!is_state(word))
			argp_error(state, "--state: there is no state %s", word);
	}
	if (filter->peer && observation_parse_gid(filter->peer, &gid))
		argp_error(state, "--peer: %s is no IP address or GID", filter->peer);
}

static bool is_taken(const struct snapshot_filter *filter, const struct portd_stat_id *id)
{
	struct mad_gid wanted, peer = id->peer_gid;

	if (id->family == 4)
		peer = observation_gid_of_ip4(id->peer_addr + 12);
	else if (id->family)
		memcpy(peer.raw, id->peer_addr, sizeof(peer.raw));
	return (!filter->states || has_state(filter->states, snapshot_id_state(id)) ||
		has_state(filter->states, snapshot_conn_state(id))) &&
	       (!filter->port || id->local_port == filter->port || id->peer_port == filter->port) &&
	       (!filter->peer || (!observation_parse_gid(filter->peer, &wanted) &&
				  memcmp(&wanted, &peer, sizeof(peer)) == 0));
}

void snapshot_select(struct snapshot *snapshot, const struct snapshot_filter *filter)
{
	size_t i, n = 0;

	if (!filter->states && !filter->port && !filter->peer)
		return;
	for (i = 0; i < snapshot->n_ids; i++) {
		if (is_taken(filter, &snapshot->id[i]))
			snapshot->id[n++] = snapshot->id[i];
	}
	snapshot->n_ids = n;
	snapshot->n_counts = 0;
}
