/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a device context, which does the work of a device: it handles received packets,
 * checks timers while sends are unacknowledged, and sends packets that had to wait.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/completion.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/guard.h"
#include "tools/fabric/verbs/held.h"
#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/poller.h"
#include "tools/fabric/verbs/tick.h"
#include "tools/fabric/verbs/transport.h"

#define FULL_MEMBER  0x8000
#define PKEY_MASK    0x7fff

#define CATCH_UP_MAX 64 /* batches: an end, should peers send faster than we receive */

/* --- packets ------------------------------------------------------------- */

/* IBTA vol. 1, 10.9.3: the same partition, with at least one full member. */
static bool pkey_matches(uint16_t a, uint16_t b)
{
	return (a & PKEY_MASK) == (b & PKEY_MASK) && ((a | b) & FULL_MEMBER);
}

static bool may_receive(const struct fab_qp *qp, const struct fab_packet *packet)
{
	const struct fab_port *port;

	if (qp->attr.qp_state < IBV_QPS_RTR || qp->attr.qp_state == IBV_QPS_ERR)
		return false;
	if (packet->port_num && packet->port_num != qp->attr.port_num)
		return false;
	port = &context_of(qp)->device->page->port[qp->attr.port_num - 1];
	return port->state == IBV_PORT_ACTIVE &&
	       pkey_matches(port->pkey[qp->attr.pkey_index], packet->pkey);
}

static bool is_from_peer(const struct fab_qp *qp, const struct fab_packet *packet)
{
	const struct ibv_ah_attr *av = &qp->attr.ah_attr;

	if (packet->src_qpn != qp->attr.dest_qp_num)
		return false;
	if (!av->is_global)
		return packet->slid == av->dlid;
	return memcmp(&packet->sgid, &av->grh.dgid, sizeof(packet->sgid)) == 0 &&
	       memcmp(&packet->dgid, &qp->sgid, sizeof(packet->dgid)) == 0;
}

/* XRC splits RC into a requester and a responder. */
static bool has_responder(const struct fab_qp *qp)
{
	return qp->init.qp_type != IBV_QPT_XRC_SEND;
}

static bool has_requester(const struct fab_qp *qp)
{
	return qp->init.qp_type != IBV_QPT_XRC_RECV;
}

/* A17.9.2: a router on the path is congested. Read responses are slowed down by their requester. */
static void handle_ecn_mark(struct fab_qp *qp, const struct fab_packet *packet)
{
	if (packet->op == FAB_OP_SEND || packet->op == FAB_OP_WRITE)
		ack_congestion(qp);
	else if (packet->op == FAB_OP_READ_RESPONSE)
		requester_slow_down(qp);
}

/*
 * The rights are checked again, because a packet was accepted before the turn was read. IBTA vol.
 * 1, 9.7.4.1.5.
 */
static void grant_if_allowed(struct fab_qp *qp, const struct fab_packet *packet)
{
	uint32_t turn = __atomic_load_n(&context_of(qp)->device->page->turn, __ATOMIC_ACQUIRE);
	bool is_read = packet->op == FAB_OP_READ;
	unsigned int access = is_read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	const struct fab_mr *mr;

	if (packet->service == FAB_SERVICE_XRC || !packet->dma_bytes || turn & 1 ||
	    (!is_read && (packet->flags & (FAB_LAST | FAB_IMM)) != FAB_LAST) ||
	    !(qp->attr.qp_access_flags & access) || !may_receive(qp, packet))
		return;
	mr = memory_find_remote(qp, 0, packet->rkey, packet->remote_addr, packet->dma_bytes,
				access);
	if (mr && !mr->is_window && !(mr->access & IBV_ACCESS_ON_DEMAND))
		grant_publish(qp, packet, mr, turn);
}

static void deliver_to_qp(struct fab_qp *qp, const struct fab_packet *packet, const void *payload)
{
	bool is_datagram = packet->op == FAB_OP_DATAGRAM;

	if ((packet->service != service_of(qp) && packet->op != FAB_OP_CNP) ||
	    !may_receive(qp, packet))
		return;
	if (is_datagram) {
		datagram_receive(qp, packet, payload);
		return;
	}
	if (!is_from_peer(qp, packet))
		return;
	if ((packet->traffic_class & FAB_ECN_MASK) == FAB_ECN_CE)
		handle_ecn_mark(qp, packet);
	switch ((enum fab_op)packet->op) {
	case FAB_OP_SEND:
	case FAB_OP_WRITE:
	case FAB_OP_READ:
	case FAB_OP_COMPARE_SWAP:
	case FAB_OP_FETCH_ADD:
	case FAB_OP_ATOMIC_WRITE:
	case FAB_OP_FLUSH:
	case FAB_OP_UNKNOWN:
		if (has_responder(qp))
			responder_receive(qp, packet, payload);
		if (packet->service == FAB_SERVICE_UC)
			grant_advance(qp);
		if ((packet->op == FAB_OP_WRITE || packet->op == FAB_OP_READ) &&
		    context_of(qp)->grants)
			grant_if_allowed(qp, packet);
		return;
	case FAB_OP_READ_RESPONSE:
	case FAB_OP_ATOMIC_RESPONSE:
	case FAB_OP_ACK:
	case FAB_OP_NAK:
		if (has_requester(qp))
			requester_receive(qp, packet, payload);
		return;
	case FAB_OP_CNP:
		requester_slow_down(qp);
		return;
	case FAB_OP_DATAGRAM:
	case FAB_OP_EVENT:
		return;
	}
}

static void fail_all(struct fab_context *context)
{
	uint32_t i;

	context->is_removed = true;
	for (i = 0; i < FAB_SLOT_QPS; i++)
		if (context->qp[i])
			qp_enter_error(context->qp[i], -1);
}

static void handle_event(struct fab_context *context, const struct fab_packet *packet)
{
	struct ibv_async_event event = { .event_type = packet->syndrome };

	event.element.port_num = packet->port_num;
	if (event.event_type == IBV_EVENT_DEVICE_FATAL)
		fail_all(context);
	context_report_event(context, &event);
}

void context_deliver(struct fab_context *context, const struct fab_packet *packet,
		     const void *payload)
{
	struct fab_qp *qp;

	if (packet->dest_qpn >> FAB_SLOT_SHIFT != context->slot)
		return;
	qp = context->qp[packet->dest_qpn % FAB_SLOT_QPS];
	if (qp)
		deliver_to_qp(qp, packet, payload);
}

/* The host sends events to the socket that receives packets. */
static void handle_bytes(struct fab_context *context, size_t n)
{
	const struct fab_packet *packet = (const struct fab_packet *)context->buffer;

	if (n >= sizeof(*packet) && packet->magic == FAB_MAGIC && packet->op == FAB_OP_EVENT)
		handle_event(context, packet);
	else
		context->carrier->receive(context, n, context_deliver);
}

/* Return: false if there was nothing. */
static bool take_from_slot(struct fab_context *context)
{
	ssize_t n = recv(context->fd, context->buffer, FAB_BUFFER_BYTES, MSG_DONTWAIT);

	if (n >= 0)
		handle_bytes(context, (size_t)n);
	return n >= 0;
}

enum progress context_progress(struct fab_context *context, bool by_socket)
{
	const struct carrier *carrier = context->carrier;
	bool some, more = by_socket;
	unsigned int i;

	if (!context->has_thread)
		return PROGRESS_NONE;
	context->has_answer = false;
	some = grants_take_packets(context, context_deliver);
	if (!some && !by_socket)
		return PROGRESS_NONE;
	for (i = 0; i < carrier->batch && more && !context->has_answer; i++)
		more = carrier->take ? carrier->take(context, context_deliver)
				     : take_from_slot(context);
	responder_end_turn(context);
	if (!list_is_empty(&context->deferred))
		tick_start(context);
	/*
	 * The rest of a long response is sent by the thread, whichever thread handled the request.
	 */
	if (!list_is_empty(&context->unacked))
		eventfd_write(context->wake_fd, 1);
	if (context->carrier->flush)
		context->carrier->flush(context);
	if (more)
		return PROGRESS_MORE;
	return some || i > 1 ? PROGRESS_DONE : PROGRESS_NONE;
}

void context_catch_up(struct fab_context *context)
{
	unsigned int i;

	for (i = 0; i < CATCH_UP_MAX && context_progress(context, true); i++)
		continue;
}

/* --- the thread ---------------------------------------------------------- */

/* Return: PROGRESS_NONE if they are left to the program. */
static enum progress progress_unless_left(struct fab_context *context)
{
	bool is_left = poller_has_packets(context);
	uint32_t events = is_left ? 0 : EPOLLIN;

	if (context->packets.events != events)
		loop_change(&context->loop, &context->packets, events);
	if (is_left && list_is_empty(&context->unacked))
		return PROGRESS_NONE;
	return context_progress(context, true);
}

static void take_packets(struct fab_context *context, bool have_come)
{
	enum progress progress;

	do {
		pthread_mutex_lock(&context->lock);
		progress = progress_unless_left(context);
		if (progress != PROGRESS_NONE && have_come)
			poller_thread_took(context);
		pthread_mutex_unlock(&context->lock);
	} while (progress == PROGRESS_MORE);
}

static void packets_ready(struct watch *watch)
{
	take_packets(container_of(watch, struct fab_context, packets), true);
}

/*
 * If packets have another socket, this one receives events, and packets forwarded by other
 * processes.
 */
static void slot_ready(struct watch *watch)
{
	struct fab_context *context = container_of(watch, struct fab_context, slot_packets);
	unsigned int i;

	pthread_mutex_lock(&context->lock);
	for (i = 0; i < context->carrier->batch && take_from_slot(context); i++)
		continue;
	pthread_mutex_unlock(&context->lock);
	packets_ready(&context->packets);
}

void context_expire(struct fab_context *context)
{
	uint64_t now_ns = carrier_now_ns(context);
	struct fab_qp *qp;
	bool some = false;

	ack_ticked(context);
	held_ticked(context);
	list_for_each_entry_safe (qp, &context->active, active) {
		requester_timer(qp, now_ns);
		some = some || qp->sq.deadline_ns;
	}
	if (!some && !poller_has_packets(context) && list_is_empty(&context->deferred) &&
	    !context->held)
		tick_stop(context);
}

static void timer_ticked(struct watch *watch)
{
	struct fab_context *context = container_of(watch, struct fab_context, timer);
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&context->lock);
	poller_ticked(context);
	pthread_mutex_unlock(&context->lock);
	take_packets(context, false); /* on a busy CPU, the awaited packets may have arrived */
	pthread_mutex_lock(&context->lock);
	context_expire(context);
	context_unlock(context);
}

/* There is more to send than the program's own thread has sent; or the context is closing. */
static void wakeup_ready(struct watch *watch)
{
	struct fab_context *context = container_of(watch, struct fab_context, wake);
	eventfd_t count;

	eventfd_read(watch->fd, &count);
	packets_ready(&context->packets);
}

static void *run_thread(void *arg)
{
	struct fab_context *context = arg;

	fab_grants_declare_alive(context->grants);
	while (!__atomic_load_n(&context->is_ending, __ATOMIC_ACQUIRE))
		loop_turn(&context->loop, -1);
	return NULL;
}

static int watch_all(struct fab_context *context)
{
	struct loop *loop = &context->loop;
	int err = loop_init(loop), fd = -1;

	if (!err)
		err = loop_watch(loop, &context->wake, context->wake_fd, EPOLLIN, wakeup_ready);
	if (!err)
		err = loop_watch(loop, &context->timer, context->timer_fd, EPOLLIN, timer_ticked);
	if (!err)
		fd = context->carrier->open(context);
	if (fd < 0)
		return err ? err : fd;
	err = loop_watch(loop, &context->packets, fd, EPOLLIN, packets_ready);
	if (!err && fd != context->fd)
		err = loop_watch(loop, &context->slot_packets, context->fd, EPOLLIN, slot_ready);
	return err;
}

static int open_all(struct fab_context *context)
{
	int err;

	context->qp = calloc(FAB_SLOT_QPS, sizeof(struct fab_qp *));
	context->buffer = malloc(FAB_BUFFER_BYTES);
	context->scratch = malloc(FAB_FRAGMENT_BYTES);
	if (!context->qp || !context->buffer || !context->scratch)
		return -ENOMEM;
	context->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	context->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	context->fd = fab_folder_take_slot(&context->device->folder, &context->slot);
	if (context->fd < 0)
		return context->fd;
	err = fab_counters_open(&context->device->folder, context->device->folder.host,
				&context->of_slots);
	if (err)
		return err;
	context->counters = &context->of_slots[context->slot];
	udp_capture_open(&context->capture, context->device->folder.dir);
	return watch_all(context);
}

/* The thread blocks all signals, which are the program's, but those of its own accesses. */
static int start_thread(struct fab_context *context)
{
	sigset_t all, before;
	int err;

	guard_install();
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&context->thread, NULL, run_thread, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	context->has_thread = !err;
	return -err;
}

static void close_all(struct fab_context *context)
{
	char path[FAB_PATH_BYTES];

	if (context->fd >= 0) {
		fab_folder_slot(&context->device->folder, context->device->folder.host,
				context->slot, path);
		unlink(path);
		fab_folder_grants(&context->device->folder, context->device->folder.host,
				  context->slot, path);
		unlink(path);
	}
	loop_fini(&context->loop);
	fd_close(&context->fd);
	fd_close(&context->timer_fd);
	fd_close(&context->wake_fd);
	context->is_ticking = false;
	context->poller = (struct fab_poller){ 0 };
	context->carrier->close(context);
	udp_capture_close(&context->capture);
	fab_counters_close(context->of_slots);
	context->of_slots = context->counters = NULL;
	free(context->qp);
	free(context->buffer);
	free(context->scratch);
	context->qp = NULL;
	context->buffer = NULL;
	context->scratch = NULL;
	context->slot = 0;
}

static void empty_list(struct list *head)
{
	while (!list_is_empty(head))
		list_remove(head->next);
}

static void renew_lock(struct ibv_cq *cq)
{
	if (cq)
		pthread_mutex_init(&to_cq(cq)->poll_lock, NULL);
}

/*
 * The numbers of queue pairs are the parent's, and so is the work that they had begun. A thread of
 * the parent may hold their locks.
 */
static void give_up_pairs(struct fab_context *context)
{
	struct fab_qp *qp;
	unsigned int i;

	for (i = 0; i < FAB_SLOT_QPS; i++) {
		qp = context->qp[i];
		if (!qp)
			continue;
		qp_drop_message(qp);
		qp->attr.qp_state = IBV_QPS_ERR;
		pthread_mutex_init(&qp->batch_lock, NULL);
		renew_lock(from_qp(qp)->send_cq);
		renew_lock(from_qp(qp)->recv_cq);
	}
}

void context_leave_to_parent(struct fab_context *context)
{
	if (!context->has_thread)
		return;
	context->has_thread = false;
	held_show(context);
	give_up_pairs(context);
	empty_list(&context->active);
	fd_close(&context->fd);
	close_all(context);
}

int context_start(struct fab_context *context)
{
	int err;

	if (context->has_thread)
		return 0;
	err = open_all(context);
	if (!err)
		err = start_thread(context);
	if (err)
		close_all(context);
	return err;
}

void context_stop(struct fab_context *context)
{
	if (!context->has_thread)
		return;
	__atomic_store_n(&context->is_ending, true, __ATOMIC_RELEASE);
	eventfd_write(context->wake_fd, 1);
	pthread_join(context->thread, NULL);
	context->has_thread = false;
	close_all(context);
}
