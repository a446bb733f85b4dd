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
