/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake RDMA device of the rig: the functions of mad/umad.h, mad/sender.h and lib/net/hop.h that
 * cmportd calls, with the same names, so that the linker uses these.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/net/gid_table.h"
#include "lib/net/hop.h"
#include "mad/talk.h"
#include "tests/unit/portd/rig.h"
#include "tests/unit/portd/rig_device.h"

struct arrival {
	struct list link;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
	bool is_nonsense;
};

struct fake_port {
	struct mad_port port; /* first */
	uint8_t port_num;
};

struct mad_sender {
	struct mad_port inbox; /* first */
	uint8_t port_num;
	unsigned int n_held; /* the latest recorded ones */
	unsigned int n_failed;
};

static struct list arrivals[RIG_PORTS + 1];	  /* by port_num */
static int arrivals_fd[RIG_PORTS + 1];		  /* counters of the open port */
static struct list beside = { &beside, &beside }; /* of the sender's queue pair of port 1 */
static struct mad_sender *sender_1;
static bool is_armed; /* its descriptor */
static bool hops_are_ready = true;
static uint64_t n_hop_questions;
static int gid_at = -1; /* its index; -1: any; RIG_NO_GID: removed */
static unsigned int elsewhere, foreign_has, foreign_takes, n_foreign_reads;
static int foreign_only = -1; /* netlink socket of the only namespace that has it; -1: all have */
static bool sender_is_ready = true;
static bool has_queued; /* for umad */
static bool sends_fail; /* of the sender, when posted */
static int port_refusal;
static int refusal; /* of the sender */
static bool is_removed;
static unsigned int n_revalidations;
static struct mad_gid came_gid, heard_gid, unanswered_gid;
static uint8_t came_mad[MAD_BYTES];
static uint32_t heard_qpn;
static bool is_probes_answer, probe_is_due;
static struct mad_sender_score score;

static struct {
	struct rig_sent *record;
	unsigned int n;
	unsigned int n_taken;
	unsigned int n_max;
} sent;

/* --- addresses ----------------------------------------------------------- */

int __wrap_gid_by_index(struct ibv_context *verbs, uint8_t port_num, uint32_t gid_index,
			struct gid_entry *ret)
{
	const struct mad_gid gid = rig_gid();

	*ret = (struct gid_entry){ .verbs = verbs, .port_num = port_num, .gid_index = gid_index };
	memcpy(&ret->gid, &gid, sizeof(gid));
	ret->gid.raw[14] = gid_at >= 0 && gid_index != (uint32_t)gid_at; /* another GID */
	if (elsewhere) {
		ret->type = IBV_GID_TYPE_ROCE_V2;
		ret->ifindex = elsewhere;
	}
	return gid_index == RIG_NO_GID ? -ENODEV : 0;
}

int __wrap_gid_by_tag(struct ibv_context *verbs, uint8_t port_num, uint16_t tag,
		      struct gid_entry *ret)
{
	int err = __wrap_gid_by_index(verbs, port_num, gid_at < 0 ? 0 : (uint32_t)gid_at, ret);

	return err || gid_tag(ret) == tag ? err : -ENODEV;
}

void rig_move_gid(uint8_t index)
{
	gid_at = index;
}

struct mad_gid rig_gid(void)
{
	return (struct mad_gid){ .raw[15] = RIG_GID };
}

/* An interface of another network namespace. */

bool __wrap_net_foreign_is_socket(int fd);
int __wrap_net_foreign_read(int fd, struct net_foreign *ret, unsigned int room,
			    unsigned int *ret_datagrams);

void rig_move_gid_elsewhere(unsigned int ifindex)
{
	elsewhere = ifindex;
}

void rig_foreign_add(unsigned int ifindex)
{
	foreign_has = ifindex;
}

void rig_foreign_only(int netlink_fd)
{
	foreign_only = netlink_fd;
}

void rig_foreign_reserve(unsigned int n_datagrams)
{
	foreign_takes = n_datagrams;
}

unsigned int rig_n_foreign_reads(void)
{
	return n_foreign_reads;
}

bool hop_is_here(const struct gid_entry *local)
{
	(void)local;
	return !elsewhere;
}

bool __wrap_net_foreign_is_socket(int fd)
{
	return fd >= 0;
}

int __wrap_net_foreign_read(int fd, struct net_foreign *ret, unsigned int room,
			    unsigned int *ret_datagrams)
{
	(void)room;
	n_foreign_reads++;
	*ret_datagrams = foreign_takes;
	*ret = (struct net_foreign){ .gid.raw = { [15] = RIG_GID }, .ifindex = foreign_has };
	return foreign_has && (foreign_only < 0 || foreign_only == fd) ? 1 : 0;
}

bool hop_is_ready(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid)
{
	(void)verbs;
	(void)port_num;
	(void)sgid_index;
	(void)dgid;
	n_hop_questions++;
	return hops_are_ready;
}

bool hop_is_known(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		  const struct mad_gid *dgid)
{
	(void)verbs;
	(void)port_num;
	(void)sgid_index;
	(void)dgid;
	return hops_are_ready;
}

/* Each peer is on-link. */
void hop_next(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
	      const struct mad_gid *dgid, union addr *ret)
{
	(void)verbs;
	(void)port_num;
	(void)sgid_index;
	memset(ret, 0, sizeof(*ret));
	ret->in6.sin6_family = AF_INET6;
	memcpy(&ret->in6.sin6_addr, dgid, sizeof(*dgid));
}

void hop_revalidate(struct ibv_context *verbs, uint8_t port_num, uint8_t sgid_index,
		    const struct mad_gid *dgid)
{
	(void)verbs;
	(void)port_num;
	(void)sgid_index;
	(void)dgid;
	n_revalidations++;
}

unsigned int rig_n_revalidations(void)
{
	return n_revalidations;
}

uint64_t rig_hop_questions(void)
{
	return n_hop_questions;
}

void rig_set_hops_ready(bool ready)
{
	hops_are_ready = ready;
	sender_is_ready = ready;
}

void rig_set_sender_ready(bool ready)
{
	sender_is_ready = ready;
}

/* --- sent messages ------------------------------------------------------- */

static int record(uint8_t port_num, bool slowly, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES])
{
	struct rig_sent *next;

	if (sent.n == sent.n_max) {
		sent.n_max = sent.n_max ? 2 * sent.n_max : 64;
		sent.record = realloc(sent.record, sent.n_max * sizeof(*sent.record));
		if (!sent.record)
			abort();
	}
	next = &sent.record[sent.n++];
	*next = (struct rig_sent){ .port_num = port_num, .slowly = slowly, .path = *path };
	memcpy(next->mad, mad, MAD_BYTES);
	return 0;
}

unsigned int rig_n_sent(void)
{
	return sent.n - sent.n_taken;
}

bool rig_sent(struct rig_sent *ret, struct cm_msg *ret_msg)
{
	if (rig_n_sent() == 0)
		return false;
	*ret = sent.record[sent.n_taken++];
	if (cm_msg_decode(ret->mad, MAD_BYTES, ret_msg))
		abort(); /* cmportd sends no other messages */
	if (sent.n_taken == sent.n)
		sent.n = sent.n_taken = 0;
	return true;
}

static int take(struct arrival *arrival, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	*path = arrival->path;
	memcpy(mad, arrival->mad, MAD_BYTES);
	list_remove(&arrival->link);
	free(arrival);
	return 0;
}

/* Its descriptor reports an arrival once, and again only after -EAGAIN. */
static int inbox_receive(struct mad_port *port, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	struct arrival *arrival;
	eventfd_t events;

	port->source_qpn = RIG_PEER_QPN;
	eventfd_read(port->fd, &events);
	is_armed = list_is_empty(&beside);
	if (is_armed)
		return -EAGAIN;
	arrival = container_of(beside.next, struct arrival, link);
	if (!arrival->is_nonsense)
		return take(arrival, path, mad);
	take(arrival, path, mad);
	return -ENOMSG;
}

static const struct mad_port_ops inbox_ops = { .receive = inbox_receive };

int mad_sender_open(struct ibv_context *verbs, uint8_t port_num, struct mad_sender **ret)
{
	struct mad_sender *sender = calloc(1, sizeof(*sender));

	(void)verbs;
	if (!sender)
		return -ENOMEM;
	sender->port_num = port_num;
	sender->inbox.ops = &inbox_ops;
	sender->inbox.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (port_num == 1)
		sender_1 = sender;
	is_armed = true;
	*ret = sender;
	return 0;
}

void mad_sender_close(struct mad_sender *sender)
{
	if (sender)
		close(sender->inbox.fd);
	if (sender == sender_1)
		sender_1 = NULL;
	free(sender);
}

int mad_sender_hold(struct mad_sender *sender, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	if (refusal)
		return refusal;
	sender->n_held++;
	return record(sender->port_num, false, path, mad);
}

void rig_set_sender_refusal(int err)
{
	refusal = err;
}

void rig_set_port_taken(bool taken)
{
	rig_set_port_refusal(taken ? -EADDRINUSE : 0);
}

void rig_set_port_refusal(int err)
{
	port_refusal = err;
}

void rig_set_queued(bool has)
{
	has_queued = has;
}

void rig_set_sends_fail(bool fail)
{
	sends_fail = fail;
}

/* Removes the held messages, which are the latest ones in the record. */
void mad_sender_release(struct mad_sender *sender)
{
	if (sends_fail) {
		sender->n_failed += sender->n_held;
		sent.n -= sender->n_held;
	}
	sender->n_held = 0;
}

bool mad_sender_failed(struct mad_sender *sender, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	const struct rig_sent *failed;

	if (!sender->n_failed)
		return false;
	failed = &sent.record[sent.n];
	sender->n_failed--;
	*path = failed->path;
	memcpy(mad, failed->mad, MAD_BYTES);
	return true;
}

enum mad_sender_way mad_sender_try(struct mad_sender *sender, const struct mad_path *path,
				   const uint8_t mad[MAD_BYTES])
{
	if (!sender_is_ready)
		return MAD_SENDER_RESOLVES;
	return mad_sender_hold(sender, path, mad) ? MAD_SENDER_REFUSES : MAD_SENDER_HOLDS;
}

bool mad_sender_is_busy(const struct mad_sender *sender)
{
	(void)sender;
	return true;
}

void mad_sender_forget(struct mad_sender *sender)
{
	(void)sender;
}

struct mad_port *mad_sender_port(struct mad_sender *sender)
{
	return &sender->inbox;
}

bool mad_sender_note_arrival(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn,
			     const uint8_t mad[MAD_BYTES])
{
	(void)sender;
	(void)qpn;
	came_gid = *gid;
	memcpy(came_mad, mad, MAD_BYTES);
	return is_probes_answer;
}

void rig_set_probe_answers(bool it_does)
{
	is_probes_answer = it_does;
}

bool mad_sender_probe(struct mad_sender *sender, struct mad_path *ret, uint8_t ret_mad[MAD_BYTES])
{
	(void)sender;
	if (!probe_is_due)
		return false;
	probe_is_due = false;
	*ret = rig_peer(1);
	mad_probe_write(RIG_PROBE_ID, ret_mad);
	return true;
}

void mad_sender_send_probe(struct mad_sender *sender, const struct mad_path *path,
			   const uint8_t mad[MAD_BYTES])
{
	sender->n_held++;
	record(sender->port_num, false, path, mad);
}

void mad_sender_score(struct mad_sender *sender, struct mad_sender_score *ret)
{
	(void)sender;
	*ret = score;
}

void rig_probe(const struct mad_sender_score *is)
{
	score = *is;
	probe_is_due = is->n_probed;
}

bool rig_last_arrival(struct mad_gid *ret, struct cm_msg *ret_msg)
{
	*ret = came_gid;
	return !cm_msg_decode(came_mad, MAD_BYTES, ret_msg);
}

void mad_sender_note_qpn(struct mad_sender *sender, const struct mad_gid *gid, uint32_t qpn)
{
	(void)sender;
	heard_gid = *gid;
	heard_qpn = qpn;
}

uint32_t rig_last_noted_qpn(struct mad_gid *ret)
{
	*ret = heard_gid;
	return heard_qpn;
}

void mad_sender_unanswered(struct mad_sender *sender, const struct mad_path *path)
{
	(void)sender;
	unanswered_gid = path->dgid;
}

struct mad_gid rig_unanswered(void)
{
	return unanswered_gid;
}

/* --- received messages --------------------------------------------------- */

static struct list *arrivals_at(uint8_t port_num)
{
	if (port_num == 0 || port_num > RIG_PORTS)
		abort();
	if (!arrivals[port_num].next)
		list_init(&arrivals[port_num]);
	return &arrivals[port_num];
}

static int fake_send(struct mad_port *port, const struct mad_path *path,
		     const uint8_t mad[MAD_BYTES])
{
	return record(((struct fake_port *)port)->port_num, true, path, mad);
}

static int fake_receive(struct mad_port *port, struct mad_path *path, uint8_t mad[MAD_BYTES])
{
	struct list *waiting = arrivals_at(((struct fake_port *)port)->port_num);
	eventfd_t one;

	if (is_removed)
		return -ENODEV;
	if (list_is_empty(waiting))
		return -EAGAIN;
	port->source_qpn = 1;
	take(container_of(waiting->next, struct arrival, link), path, mad);
	return eventfd_read(port->fd, &one);
}

static bool fake_has_queued(struct mad_port *port, const struct mad_gid *dgid)
{
	(void)port;
	(void)dgid;
	return has_queued;
}

static void fake_close(struct mad_port *port)
{
	arrivals_fd[((struct fake_port *)port)->port_num] = 0;
	close(port->fd);
	free(port);
}

int umad_port_open(const char *name, uint8_t port_num, struct mad_port **ret,
		   struct umad_owner *ret_who)
{
	static const struct mad_port_ops ops = { fake_send, fake_receive, fake_close,
						 fake_has_queued };
	struct fake_port *fake = calloc(1, sizeof(*fake));

	(void)name;
	(void)ret_who;
	if (!fake)
		return -ENOMEM;
	if (port_refusal) {
		free(fake);
		return port_refusal;
	}
	fake->port.ops = &ops;
	fake->port.fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	fake->port_num = port_num;
	if (fake->port.fd < 0) {
		free(fake);
		return -errno;
	}
	arrivals_fd[port_num] = fake->port.fd;
	*ret = &fake->port;
	return 0;
}

void rig_arrive_bytes(uint8_t port_num, const struct mad_path *from, const uint8_t mad[MAD_BYTES])
{
	struct list *waiting = arrivals_at(port_num);
	struct arrival *arrival;

	if (arrivals_fd[port_num] == 0)
		return; /* no process has the port open: the kernel drops it */
	arrival = calloc(1, sizeof(*arrival));
	if (!arrival)
		abort();
	arrival->path = *from;
	memcpy(arrival->mad, mad, MAD_BYTES);
	list_append(waiting, &arrival->link);
	eventfd_write(arrivals_fd[port_num], 1);
}

void rig_arrive_beside(const struct mad_path *from, const struct cm_msg *msg)
{
	struct arrival *arrival = calloc(1, sizeof(*arrival));

	if (!arrival || !sender_1)
		abort();
	arrival->path = *from;
	arrival->is_nonsense = !msg;
	if (msg)
		cm_msg_encode(msg, arrival->mad);
	list_append(&beside, &arrival->link);
	if (is_armed)
		eventfd_write(sender_1->inbox.fd, 1);
	is_armed = false;
}

void rig_remove_device(void)
{
	is_removed = true;
	eventfd_write(arrivals_fd[1], 1);
}

void rig_device_forget(void)
{
	elsewhere = foreign_has = n_foreign_reads = 0;
	foreign_takes = 1;
	foreign_only = -1;
	struct arrival *arrival;
	uint8_t i;

	list_for_each_entry_safe (arrival, &beside, link)
		free(arrival);
	list_init(&beside);
	for (i = 1; i <= RIG_PORTS; i++) {
		list_for_each_entry_safe (arrival, arrivals_at(i), link)
			free(arrival);
		list_init(&arrivals[i]);
	}
	free(sent.record);
	memset(&sent, 0, sizeof(sent));
	has_queued = false;
	hops_are_ready = true;
	gid_at = -1;
	is_removed = false;
	heard_qpn = 0;
	is_probes_answer = probe_is_due = false;
	score = (struct mad_sender_score){ 0 };
	heard_gid = (struct mad_gid){ 0 };
	unanswered_gid = (struct mad_gid){ 0 };
}
