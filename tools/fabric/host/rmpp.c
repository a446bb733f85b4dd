/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP: see rmpp.h. The sender resumes after the last acknowledged segment, so the receiver does
 * not keep segments that arrive out of order.
 */
#include "tools/fabric/host/rmpp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/umad_sa.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DATA_BYTES    (FAB_MAD_BYTES - RMPP_HEADERS_BYTES)
#define SA_BYTES      20 /* size of the SA header, which counts as payload of each segment */
#define TYPE_DATA     1
#define TYPE_ACK      2
#define ACTIVE	      1
#define FIRST	      2
#define LAST	      4
#define WINDOW	      64
#define MESSAGE_MAX   (RMPP_HEADERS_BYTES + RMPP_DATA_MAX)
#define RESEND_NS     UINT64_C(50000000)
#define RESENDS	      40
#define OF_PEER_MAX   32 /* exchanges that a peer has begun, in each direction */
#define OF_ALL_MAX    256
#define REMEMBERED_NS UINT64_C(5000000000) /* in case an acknowledgement is lost */

struct exchange {
	struct list link;
	struct conn *from; /* of a message that a program sends */
	uint8_t port_num;
	struct ib_user_mad head;
	uint64_t deadline_ns;
	uint32_t n_segments, window_end;
	uint32_t n_sent, n_acked, tries; /* sending */
	bool is_complete;		 /* receiving: the message has been delivered */
	size_t bytes, room;
	uint8_t *message; /* at least a MAD */
};

static struct umad_sa_packet packet_of(const uint8_t *mad)
{
	struct umad_sa_packet packet;

	memcpy(&packet, mad, sizeof(packet));
	return packet;
}

bool rmpp_is_active(const uint8_t mad[FAB_MAD_BYTES])
{
	struct umad_sa_packet packet = packet_of(mad);

	return packet.mad_hdr.mgmt_class == UMAD_CLASS_SUBN_ADM &&
	       packet.rmpp_hdr.rmpp_rtime_flags & ACTIVE;
}

static bool is_same_exchange(const struct umad_sa_packet *a, const struct umad_sa_packet *b)
{
	return a->mad_hdr.tid == b->mad_hdr.tid &&
	       (a->mad_hdr.method & ~UMAD_METHOD_RESP_MASK) ==
		       (b->mad_hdr.method & ~UMAD_METHOD_RESP_MASK);
}

static bool is_same_peer(const struct ib_user_mad *a, const struct ib_user_mad *b)
{
	return a->addr.lid == b->addr.lid && a->addr.grh_present == b->addr.grh_present &&
	       (!a->addr.grh_present || memcmp(a->addr.gid, b->addr.gid, sizeof(a->addr.gid)) == 0);
}

/*
 * What peers begin is bounded, for each and for all.
 *
 * Return: the oldest exchange, which has to give way to another of @head's peer; or NULL.
 */
static struct exchange *find_surplus(struct list *exchanges, const struct ib_user_mad *head)
{
	struct exchange *ex, *of_peer = NULL, *of_all = NULL;
	unsigned int n = 0, n_of_peer = 0;

	list_for_each_entry (ex, exchanges, link) {
		if (ex->from)
			continue;
		if (!n++)
			of_all = ex;
		if (is_same_peer(&ex->head, head) && !n_of_peer++)
			of_peer = ex;
	}
	if (n_of_peer >= OF_PEER_MAX)
		return of_peer;
	return n >= OF_ALL_MAX ? of_all : NULL;
}

static struct exchange *find_exchange(struct list *exchanges, uint8_t port_num,
				      const struct ib_user_mad *head,
				      const struct umad_sa_packet *packet)
{
	struct umad_sa_packet theirs;
	struct exchange *ex;

	list_for_each_entry (ex, exchanges, link) {
		theirs = packet_of(ex->message);
		if (ex->port_num == port_num && is_same_exchange(&theirs, packet) &&
		    is_same_peer(&ex->head, head))
			return ex;
	}
	return NULL;
}

static void end_exchange(struct exchange *ex)
{
	list_remove(&ex->link);
	free(ex->message);
	free(ex);
}

/* Return: the exchange, at the end of @exchanges; NULL if there is no memory. */
static struct exchange *begin_exchange(struct host *host, struct list *exchanges, uint8_t port_num,
				       const struct ib_user_mad *head, const uint8_t *message,
				       size_t bytes)
{
	struct exchange *ex = calloc(1, sizeof(*ex));

	if (!ex)
		return NULL;
	ex->room = bytes < FAB_MAD_BYTES ? FAB_MAD_BYTES : bytes;
	ex->message = calloc(1, ex->room);
	if (!ex->message) {
		free(ex);
		return NULL;
	}
	memcpy(ex->message, message, bytes);
	ex->port_num = port_num;
	ex->head = *head;
	ex->window_end = 1;
	list_append(exchanges, &ex->link);
	agents_tick(host);
	return ex;
}

/* --- sending ------------------------------------------------------------- */

static size_t bytes_in(const struct exchange *sending, uint32_t segment)
{
	size_t left = sending->bytes - RMPP_HEADERS_BYTES - (segment - 1) * (size_t)DATA_BYTES;

	return left < DATA_BYTES ? left : DATA_BYTES;
}

/* The first segment has the length of all, the last its own. */
static uint32_t payload_of(const struct exchange *sending, uint32_t segment)
{
	if (segment == 1)
		return (uint32_t)(sending->n_segments * SA_BYTES + sending->bytes -
				  RMPP_HEADERS_BYTES);
	return segment == sending->n_segments ? SA_BYTES + (uint32_t)bytes_in(sending, segment) : 0;
}

static int send_segment(struct host *host, const struct exchange *sending, uint32_t segment)
{
	struct umad_sa_packet packet = packet_of(sending->message);

	memset(packet.data, 0, sizeof(packet.data));
	memcpy(packet.data,
	       sending->message + RMPP_HEADERS_BYTES + (segment - 1) * (size_t)DATA_BYTES,
	       bytes_in(sending, segment));
	packet.rmpp_hdr = (struct umad_rmpp_hdr){
		.rmpp_version = UMAD_RMPP_VERSION,
		.rmpp_type = TYPE_DATA,
		.rmpp_rtime_flags = (uint8_t)(ACTIVE | (segment == 1 ? FIRST : 0) |
					      (segment == sending->n_segments ? LAST : 0)),
		.seg_num = htonl(segment),
		.paylen_newwin = htonl(payload_of(sending, segment)),
	};
	return gsi_send(host, sending->port_num, &sending->head, (const uint8_t *)&packet);
}

static int send_window(struct host *host, struct exchange *sending)
{
	int err = 0;

	sending->deadline_ns = clock_ns() + RESEND_NS;
	while (!err && sending->n_sent < sending->n_segments &&
	       sending->n_sent < sending->window_end)
		err = send_segment(host, sending, ++sending->n_sent);
	return err;
}

int rmpp_send(struct host *host, uint8_t port_num, struct conn *from,
	      const struct ib_user_mad *head, const uint8_t *message, size_t bytes)
{
	size_t data_bytes = bytes - RMPP_HEADERS_BYTES;
	struct umad_sa_packet packet;
	struct exchange *surplus;
	struct exchange *sending;
	int err;

	if (bytes < RMPP_HEADERS_BYTES || bytes > MESSAGE_MAX)
		return EINVAL;
	memcpy(&packet, message, RMPP_HEADERS_BYTES);
	if (find_exchange(&host->rmpp_sendings, port_num, head, &packet))
		return 0; /* a retransmitted request; the response is being sent */
	surplus = from ? NULL : find_surplus(&host->rmpp_sendings, head);
	if (surplus)
		end_exchange(surplus);
	sending = begin_exchange(host, &host->rmpp_sendings, port_num, head, message, bytes);
	if (!sending)
		return ENOMEM;
	sending->from = from;
	sending->bytes = bytes;
	sending->n_segments = data_bytes ? (uint32_t)((data_bytes - 1) / DATA_BYTES) + 1 : 1;
	err = send_window(host, sending);
	if (err)
		end_exchange(sending);
	return err;
}

/* Types other than ACK and DATA end the exchange: STOP, ABORT. */
static void take_reply(struct host *host, struct exchange *sending,
		       const struct umad_sa_packet *packet)
{
	uint32_t segment = ntohl(packet->rmpp_hdr.seg_num);
	uint32_t window_end = ntohl(packet->rmpp_hdr.paylen_newwin);

	if (packet->rmpp_hdr.rmpp_type != TYPE_ACK || segment > sending->n_sent ||
	    window_end < segment) {
		end_exchange(sending);
		return;
	}
	if (segment < sending->n_acked)
		return;
	if (segment > sending->n_acked)
		sending->tries = 0;
	sending->n_acked = segment;
	sending->window_end = window_end;
	if (segment == sending->n_segments)
		end_exchange(sending);
	else
		send_window(host, sending);
}

static void resend(struct host *host, struct exchange *sending)
{
	if (sending->tries++ < RESENDS) {
		sending->n_sent = sending->n_acked;
		send_window(host, sending);
		return;
	}
	if (sending->from)
		agents_give_back(host, sending->from, &sending->head, sending->message);
	end_exchange(sending);
}

/* --- receiving ----------------------------------------------------------- */

/* The first segment is kept, because it identifies the exchange. */
static struct exchange *begin_receiving(struct host *host, uint8_t port_num,
					const struct ib_user_mad *head, const uint8_t *mad)
{
	struct exchange *surplus = find_surplus(&host->rmpp_receivings, head);
	struct exchange *receiving =
		begin_exchange(host, &host->rmpp_receivings, port_num, head, mad, FAB_MAD_BYTES);

	if (surplus)
		end_exchange(surplus);
	if (receiving)
		receiving->bytes = RMPP_HEADERS_BYTES;
	return receiving;
}

/* As the kernel does: acknowledges all segments received without gaps. */
static void acknowledge(struct host *host, struct exchange *receiving)
{
	struct umad_sa_packet packet = packet_of(receiving->message);

	memset(packet.data, 0, sizeof(packet.data));
	packet.mad_hdr.method ^= UMAD_METHOD_RESP_MASK;
	receiving->window_end = receiving->n_segments + WINDOW;
	packet.rmpp_hdr = (struct umad_rmpp_hdr){
		.rmpp_version = UMAD_RMPP_VERSION,
		.rmpp_type = TYPE_ACK,
		.rmpp_rtime_flags = ACTIVE,
		.seg_num = htonl(receiving->n_segments),
		.paylen_newwin = htonl(receiving->window_end),
	};
	gsi_send(host, receiving->port_num, &receiving->head, (const uint8_t *)&packet);
}

static bool append(struct exchange *receiving, const uint8_t *data, size_t bytes)
{
	size_t room = receiving->room;
	uint8_t *message;

	if (receiving->bytes + bytes > room) {
		room = 2 * room + FAB_MAD_BYTES;
		room = room < MESSAGE_MAX ? room : MESSAGE_MAX;
		message = receiving->bytes + bytes <= room ? realloc(receiving->message, room)
							   : NULL;
		if (!message)
			return false;
		receiving->message = message;
		receiving->room = room;
	}
	memcpy(receiving->message + receiving->bytes, data, bytes);
	receiving->bytes += bytes;
	return true;
}

/* Return: number of valid data bytes, or -1 for an inconsistent header. */
static int bytes_of_segment(const struct umad_sa_packet *packet)
{
	uint32_t payload = ntohl(packet->rmpp_hdr.paylen_newwin);

	if (!(packet->rmpp_hdr.rmpp_rtime_flags & LAST))
		return DATA_BYTES;
	if (payload < SA_BYTES || payload > SA_BYTES + DATA_BYTES)
		return -1;
	return (int)payload - SA_BYTES;
}

static void take_segment(struct host *host, struct exchange *receiving,
			 const struct umad_sa_packet *packet)
{
	bool is_last = packet->rmpp_hdr.rmpp_rtime_flags & LAST;
	int bytes = bytes_of_segment(packet);

	receiving->deadline_ns = clock_ns() + REMEMBERED_NS;
	if (receiving->is_complete ||
	    ntohl(packet->rmpp_hdr.seg_num) != receiving->n_segments + 1) {
		acknowledge(host, receiving);
		return;
	}
	if (bytes < 0 || !append(receiving, packet->data, (size_t)bytes)) {
		end_exchange(receiving);
		return;
	}
	receiving->n_segments++;
	if (is_last || receiving->n_segments == receiving->window_end)
		acknowledge(host, receiving);
	if (!is_last)
		return;
	receiving->is_complete = true;
	agents_receive(host, receiving->port_num, &receiving->head, receiving->message,
		       receiving->bytes);
}

bool rmpp_input(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		const uint8_t mad[FAB_MAD_BYTES])
{
	struct umad_sa_packet packet = packet_of(mad);
	struct exchange *receiving, *sending;

	if (!rmpp_is_active(mad))
		return false;
	if (packet.rmpp_hdr.rmpp_type != TYPE_DATA) {
		sending = find_exchange(&host->rmpp_sendings, port_num, head, &packet);
		if (sending)
			take_reply(host, sending, &packet);
		return sending;
	}
	receiving = find_exchange(&host->rmpp_receivings, port_num, head, &packet);
	if (!receiving && !agents_assembles(host, port_num, mad))
		return false;
	if (!receiving && packet.rmpp_hdr.seg_num == htonl(1))
		receiving = begin_receiving(host, port_num, head, mad);
	if (receiving)
		take_segment(host, receiving, &packet);
	return true;
}

/* --- time ---------------------------------------------------------------- */

bool rmpp_expire(struct host *host, uint64_t now_ns)
{
	struct exchange *ex;

	list_for_each_entry_safe (ex, &host->rmpp_sendings, link)
		if (ex->deadline_ns <= now_ns)
			resend(host, ex);
	list_for_each_entry_safe (ex, &host->rmpp_receivings, link)
		if (ex->deadline_ns <= now_ns)
			end_exchange(ex);
	return !list_is_empty(&host->rmpp_sendings) || !list_is_empty(&host->rmpp_receivings);
}

static void forget_in(struct list *exchanges, const struct conn *from)
{
	struct exchange *ex;

	list_for_each_entry_safe (ex, exchanges, link)
		if (!from || ex->from == from)
			end_exchange(ex);
}

void rmpp_forget(struct host *host, const struct conn *from)
{
	forget_in(&host->rmpp_sendings, from);
	forget_in(&host->rmpp_receivings, from);
}
