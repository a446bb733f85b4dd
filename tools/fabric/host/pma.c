/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agents of an InfiniBand subnet. Each host answers for its ports from
 * their counters (wire/counters.h); the host of the subnet administrator answers for the switch,
 * whose ports have received what the host at the other end of the link has sent. A packet that a
 * fault loses is an error at the switch port that would have received it.
 */
#include "tools/fabric/host/pma.h"

#include <arpa/inet.h>
#include <infiniband/umad_types.h>
#include <string.h>

#include "tools/fabric/host/smi.h"
#include "tools/fabric/wire/device.h"

#define CLASS_VERSION	1
#define PORT_COUNTERS	0x0012
#define EXTENDED	0x001d
#define ALL_PORTS	0xff
#define CAN_SELECT_ALL	0x0100 /* of ClassPortInfo's capability mask */
#define HAS_EXTENDED	0x0200
#define ANSWER_TIME	18     /* 4.096 us * 2^18 */
#define BAD_VERSION	0x0004 /* statuses, IBTA vol. 1, 13.4.7 */
#define BAD_METHOD	0x0008
#define BAD_ATTRIBUTE	0x000c
#define BAD_VALUE	0x001c
#define N_ROWS		(sizeof(rows) / sizeof(rows[0]))
#define N_SUBJECTS	(FAB_PORTS + 1 + FAB_SWITCH_PORTS_MAX)
#define OCTETS_PER_DATA 4

/* 16.1.3: the common header is followed by 40 reserved bytes. */
struct pma_mad {
	struct umad_hdr head;
	uint8_t reserved[40];
	uint8_t data[192];
};

/*
 * The counters of two attributes, 16.1.3.5 and 16.1.4.11. A counter of both is set in each
 * separately. Not here are two of four bits, local link integrity and buffer overrun errors: 0.
 */
static const struct row {
	uint16_t attribute;
	uint8_t select; /* bit of CounterSelect */
	uint8_t at, bytes;
	enum pma_counter counter;
} rows[] = {
	{ PORT_COUNTERS, 0, 4, 2, PMA_symbol_error },
	{ PORT_COUNTERS, 1, 6, 1, PMA_link_error_recovery },
	{ PORT_COUNTERS, 2, 7, 1, PMA_link_downed },
	{ PORT_COUNTERS, 3, 8, 2, PMA_port_rcv_errors },
	{ PORT_COUNTERS, 4, 10, 2, PMA_port_rcv_remote_physical_errors },
	{ PORT_COUNTERS, 5, 12, 2, PMA_port_rcv_switch_relay_errors },
	{ PORT_COUNTERS, 6, 14, 2, PMA_port_xmit_discards },
	{ PORT_COUNTERS, 7, 16, 1, PMA_port_xmit_constraint_errors },
	{ PORT_COUNTERS, 8, 17, 1, PMA_port_rcv_constraint_errors },
	{ PORT_COUNTERS, 11, 22, 2, PMA_VL15_dropped },
	{ PORT_COUNTERS, 12, 24, 4, PMA_port_xmit_data },
	{ PORT_COUNTERS, 13, 28, 4, PMA_port_rcv_data },
	{ PORT_COUNTERS, 14, 32, 4, PMA_port_xmit_packets },
	{ PORT_COUNTERS, 15, 36, 4, PMA_port_rcv_packets },
	{ EXTENDED, 0, 8, 8, PMA_port_xmit_data },
	{ EXTENDED, 1, 16, 8, PMA_port_rcv_data },
	{ EXTENDED, 2, 24, 8, PMA_port_xmit_packets },
	{ EXTENDED, 3, 32, 8, PMA_port_rcv_packets },
	{ EXTENDED, 4, 40, 8, PMA_unicast_xmit_packets },
	{ EXTENDED, 5, 48, 8, PMA_unicast_rcv_packets },
	{ EXTENDED, 6, 56, 8, PMA_multicast_xmit_packets },
	{ EXTENDED, 7, 64, 8, PMA_multicast_rcv_packets },
};

/*
 * What a counter had in total when it was set to 0; our ports, then those of the switch. The loop
 * has one thread.
 */
static uint64_t base[N_SUBJECTS][N_ROWS];

/* --- totals --------------------------------------------------------------- */

static void total_of_port(const struct fab_port_counters *port, uint64_t ret[PMA_N_COUNTERS])
{
	const uint64_t *n = port->n;

	memset(ret, 0, PMA_N_COUNTERS * sizeof(ret[0]));
	ret[PMA_link_downed] = n[FAB_LINK_DOWNED];
	ret[PMA_port_xmit_discards] = n[FAB_XMIT_DISCARDS];
	ret[PMA_port_xmit_data] = n[FAB_XMIT_OCTETS] / OCTETS_PER_DATA;
	ret[PMA_port_rcv_data] = n[FAB_RCV_OCTETS] / OCTETS_PER_DATA;
	ret[PMA_port_xmit_packets] = n[FAB_XMIT_PACKETS];
	ret[PMA_port_rcv_packets] = n[FAB_RCV_PACKETS];
	ret[PMA_unicast_xmit_packets] = n[FAB_XMIT_PACKETS] - n[FAB_XMIT_MULTICAST];
	ret[PMA_unicast_rcv_packets] = n[FAB_RCV_PACKETS] - n[FAB_RCV_MULTICAST];
	ret[PMA_multicast_xmit_packets] = n[FAB_XMIT_MULTICAST];
	ret[PMA_multicast_rcv_packets] = n[FAB_RCV_MULTICAST];
}

/* The counters of the other end of a port's link. */
static void total_of_link(const struct fab_port_counters *port, uint64_t ret[PMA_N_COUNTERS])
{
	const uint64_t *n = port->n;
	struct fab_port_counters other = { .n = {
						   [FAB_LINK_DOWNED] = n[FAB_LINK_DOWNED],
						   [FAB_XMIT_OCTETS] = n[FAB_RCV_OCTETS],
						   [FAB_XMIT_PACKETS] = n[FAB_RCV_PACKETS],
						   [FAB_XMIT_MULTICAST] = n[FAB_RCV_MULTICAST],
						   [FAB_RCV_OCTETS] = n[FAB_XMIT_OCTETS],
						   [FAB_RCV_PACKETS] = n[FAB_XMIT_PACKETS],
						   [FAB_RCV_MULTICAST] = n[FAB_XMIT_MULTICAST],
					   } };

	total_of_port(&other, ret);
	ret[PMA_port_rcv_errors] = n[FAB_XMIT_LOST];
}

static void total_of_switch_port(const struct host *host, const struct smi_subnet *subnet,
				 unsigned int number, uint64_t ret[PMA_N_COUNTERS])
{
	const struct smi_end *end = smi_end_at(subnet, number);
	struct fab_port_counters port;
	struct fab_counters *of_slots;

	memset(ret, 0, PMA_N_COUNTERS * sizeof(ret[0]));
	if (!end || fab_counters_open(&host->folder, end->host, &of_slots))
		return;
	fab_counters_sum(of_slots, end->number, &port);
	fab_counters_close(of_slots);
	total_of_link(&port, ret);
}

static void total_of_own_port(const struct host *host, unsigned int number,
			      uint64_t ret[PMA_N_COUNTERS])
{
	struct fab_port_counters port;

	fab_counters_sum(host->counters, (uint8_t)number, &port);
	total_of_port(&port, ret);
}

/* --- values since they were set -------------------------------------------- */

/* A total that is below the base is that of a host that has ended and begun anew. */
static uint64_t value_of(uint64_t total, uint64_t *its_base)
{
	if ((int64_t)(total - *its_base) < 0)
		*its_base = 0;
	return total - *its_base;
}

void pma_read(const struct host *host, uint8_t port_num, uint64_t ret[PMA_N_COUNTERS])
{
	uint64_t total[PMA_N_COUNTERS];
	size_t i;

	total_of_own_port(host, port_num, total);
	memset(ret, 0, PMA_N_COUNTERS * sizeof(ret[0]));
	for (i = 0; i < N_ROWS; i++) /* the extended ones are last */
		ret[rows[i].counter] = value_of(total[rows[i].counter], &base[port_num - 1][i]);
}

static uint64_t most_of(const struct row *row)
{
	return row->bytes == sizeof(uint64_t) ? UINT64_MAX : (UINT64_C(1) << 8 * row->bytes) - 1;
}

static uint64_t get_number(const uint8_t *at, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

static void put_number(uint8_t *at, unsigned int bytes, uint64_t value)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* --- requests --------------------------------------------------------------- */

/* Where a request came to: a host's port, or the switch. */
struct place {
	const struct host *host;
	const struct smi_subnet *subnet; /* of the switch, or NULL */
	unsigned int n_ports;
};

static unsigned int subject_of(const struct place *place, unsigned int port)
{
	return place->subnet ? FAB_PORTS + port : port - 1;
}

static void total_at(const struct place *place, unsigned int port, uint64_t ret[PMA_N_COUNTERS])
{
	if (place->subnet)
		total_of_switch_port(place->host, place->subnet, port, ret);
	else
		total_of_own_port(place->host, port, ret);
}

/* 16.1.3.5: a counter stops at its largest value. */
static void add_port(const struct place *place, unsigned int port, uint16_t attribute,
		     uint8_t *data)
{
	uint64_t total[PMA_N_COUNTERS], value, before;
	uint64_t *its_base = base[subject_of(place, port)];
	const struct row *row;
	size_t i;

	total_at(place, port, total);
	for (i = 0; i < N_ROWS; i++) {
		row = &rows[i];
		if (row->attribute != attribute)
			continue;
		before = get_number(data + row->at, row->bytes);
		value = value_of(total[row->counter], &its_base[i]);
		if (value > most_of(row) - before)
			value = most_of(row) - before;
		put_number(data + row->at, row->bytes, before + value);
	}
}

static void set_port(const struct place *place, unsigned int port, uint16_t attribute,
		     const uint8_t *data)
{
	uint64_t select = get_number(data + 2, 2);
	uint64_t total[PMA_N_COUNTERS];
	const struct row *row;
	size_t i;

	total_at(place, port, total);
	for (i = 0; i < N_ROWS; i++) {
		row = &rows[i];
		if (row->attribute == attribute && select >> row->select & 1)
			base[subject_of(place, port)][i] = total[row->counter] -
							   get_number(data + row->at, row->bytes);
	}
}

/* A switch has port 0, which has no link. */
static unsigned int carry_out(const struct place *place, const struct umad_hdr *head,
			      uint8_t data[192])
{
	unsigned int port, first = place->subnet ? 0 : 1, selected = data[1];
	uint16_t attribute = ntohs(head->attr_id);
	uint8_t answer[192] = { [1] = data[1] };

	if (selected != ALL_PORTS && (selected < first || selected > place->n_ports))
		return BAD_VALUE;
	for (port = first; port <= place->n_ports; port++) {
		if (selected != ALL_PORTS && selected != port)
			continue;
		if (head->method == UMAD_METHOD_SET)
			set_port(place, port, attribute, data);
		add_port(place, port, attribute, answer);
	}
	memcpy(data, answer, sizeof(answer));
	return 0;
}

static unsigned int answer(const struct place *place, struct pma_mad *mad)
{
	struct umad_class_port_info info = {
		.base_ver = 1,
		.class_ver = CLASS_VERSION,
		.cap_mask = htons(CAN_SELECT_ALL | HAS_EXTENDED),
		.cap_mask2_resp_time = htonl(ANSWER_TIME),
	};
	uint16_t attribute = ntohs(mad->head.attr_id);
	bool is_set = mad->head.method == UMAD_METHOD_SET;

	if (mad->head.class_version != CLASS_VERSION)
		return BAD_VERSION;
	if (attribute == PORT_COUNTERS || attribute == EXTENDED)
		return carry_out(place, &mad->head, mad->data);
	if (attribute != UMAD_ATTR_CLASS_PORT_INFO)
		return BAD_ATTRIBUTE;
	if (is_set) /* traps are not sent, so nobody can be their receiver */
		return BAD_METHOD;
	memset(mad->data, 0, sizeof(mad->data));
	memcpy(mad->data, &info, sizeof(info));
	return 0;
}

bool pma_received(struct host *host, uint8_t port_num, uint16_t dlid,
		  const struct ib_user_mad *head, const uint8_t mad[FAB_MAD_BYTES])
{
	static struct smi_subnet subnet; /* large */
	struct place place = { .host = host, .n_ports = host->n_ports };
	struct pma_mad request;

	memcpy(&request, mad, sizeof(request));
	if (fab_port_is_roce(&host->page->port[port_num - 1]) ||
	    request.head.mgmt_class != UMAD_CLASS_PERF_MGMT ||
	    (request.head.method != UMAD_METHOD_GET && request.head.method != UMAD_METHOD_SET))
		return false;
	if (dlid == SMI_LID_SWITCH) {
		smi_read_subnet(host, host->page->port[port_num - 1].subnet, &subnet);
		place.subnet = &subnet;
		place.n_ports = smi_switch_ports(&subnet);
	}
	request.head.status = htons((uint16_t)answer(&place, &request));
	request.head.method = UMAD_METHOD_GET_RESP;
	gsi_send_from(host, port_num, dlid, head, (const uint8_t *)&request);
	return true;
}
