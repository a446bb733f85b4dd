/* SPDX-License-Identifier: BSD-2-Clause */
/* Stream sockets over a device in memory: data, end, and peers that violate the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/rsocket/connecting.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/select.h"
#include "lib/sync/sync.h"
#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

static struct pair pair;

static void set_up(void)
{
	wire_begin();
	pair = pair_make(pair_small());
}

static void tear_down(void)
{
	pair_free(&pair);
	wire_end();
}

FIXTURE(set_up, tear_down);

static short events_of(int fd, short wanted)
{
	struct pollfd poll = { .fd = fd, .events = wanted };

	ck_assert_int_ge(rpoll(&poll, 1, 0), 0);
	return poll.revents;
}

static void send_text(int fd, const char *text)
{
	ck_assert_int_eq(rsend(fd, text, strlen(text), MSG_DONTWAIT), strlen(text));
}

static void expect_text(int fd, const char *text, int flags)
{
	char got[64] = { 0 };

	ck_assert_int_eq(rrecv(fd, got, sizeof(got), MSG_DONTWAIT | flags), strlen(text));
	ck_assert_str_eq(got, text);
}

/* --- data ---------------------------------------------------------------- */

TEST(sent_data_is_received)
{
	send_text(pair.fd[0], "there");
	expect_text(pair.fd[1], "there", 0);
	send_text(pair.fd[1], "and back");
	expect_text(pair.fd[0], "and back", 0);
}
END_TEST

TEST(peeking_leaves_the_data)
{
	send_text(pair.fd[0], "twice");
	expect_text(pair.fd[1], "twice", MSG_PEEK);
	expect_text(pair.fd[1], "twice", 0);
	ck_assert_int_eq(rrecv(pair.fd[1], &(char){ 0 }, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

TEST(data_is_dropped_without_a_buffer)
{
	send_text(pair.fd[0], "dropped");
	ck_assert_int_eq(rrecv(pair.fd[1], NULL, 1000, MSG_TRUNC), 7);
	send_text(pair.fd[0], "kept");
	expect_text(pair.fd[1], "kept", 0);
}
END_TEST

TEST(iovecs_are_gathered_and_scattered)
{
	char first[3] = { 0 }, second[8] = { 0 };
	struct iovec out[] = { { (char[]){ "ab" }, 2 }, { NULL, 0 }, { (char[]){ "cdef" }, 4 } };
	struct iovec in[] = { { first, 2 }, { second, 7 } };

	ck_assert_int_eq(rwritev(pair.fd[0], out, 3), 6);
	ck_assert_int_eq(rreadv(pair.fd[1], in, 2), 6);
	ck_assert_str_eq(first, "ab");
	ck_assert_str_eq(second, "cdef");
}
END_TEST

TEST(a_full_buffer_takes_no_more_until_it_is_read)
{
	static char data[65536];
	ssize_t n = rsend(pair.fd[0], data, sizeof(data), MSG_DONTWAIT);

	ck_assert_int_eq(n, 4096);
	ck_assert_int_eq(events_of(pair.fd[0], POLLOUT), 0);
	ck_assert_int_eq(rsend(pair.fd[0], data, 1, MSG_DONTWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(rrecv(pair.fd[1], data, 2048, 0), 2048);
	ck_assert_int_eq(events_of(pair.fd[0], POLLOUT), POLLOUT);
}
END_TEST

TEST(credits_are_returned_for_small_messages)
{
	for (int i = 0; i < 1000; i++) {
		ck_assert_int_eq(rsend(pair.fd[0], "x", 1, MSG_DONTWAIT), 1);
		ck_assert_int_eq(rrecv(pair.fd[1], &(char){ 0 }, 1, MSG_DONTWAIT), 1);
	}
}
END_TEST

TEST(send_without_credit_waits)
{
	int n = 0;

	while (rsend(pair.fd[0], "x", 1, MSG_DONTWAIT) == 1)
		n++;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(n, 16);
}
END_TEST

static struct stream_sizes sizes_of(uint32_t queue, uint32_t ring_bytes)
{
	struct stream_sizes sizes = pair_small();

	sizes.sq_size = sizes.rq_size = queue;
	sizes.send_bytes = sizes.recv_bytes = ring_bytes;
	return sizes;
}

static void pair_of(struct stream_sizes sizes)
{
	pair_free(&pair);
	pair = pair_make(sizes);
}

TEST(a_completion_covers_many_messages)
{
	uint32_t n_before;

	pair_of(sizes_of(100, 65536));
	n_before = pair.end[0]->n_sent;
	for (int i = 0; i < 60; i++)
		ck_assert_int_eq(rsend(pair.fd[0], "x", 1, MSG_DONTWAIT), 1);
	ck_assert_uint_eq(pair.end[0]->n_sent - n_before, 5);
}
END_TEST

static const struct {
	uint32_t queue, ring_bytes, inline_bytes, bytes;
} full[] = { { 16, 4096, 64, 1 },    { 16, 2048, 0, 1000 },  { 100, 2048, 0, 1 },
	     { 100, 2048, 0, 2048 }, { 100, 65536, 0, 500 }, { 100, 65536, 64, 1 } };

TEST_LOOP(full_queue_is_usable_after_completions, 0, sizeof(full) / sizeof(full[0]))
{
	struct stream_sizes sizes = sizes_of(full[_i].queue, full[_i].ring_bytes);
	char data[2048] = { 0 };
	int n = 0;

	sizes.inline_size = full[_i].inline_bytes;
	pair_of(sizes);
	wire_hold(pair.end[0]->id->qp, true);
	for (int round = 0; round < 5; round++) {
		while (rsend(pair.fd[0], data, full[_i].bytes, MSG_DONTWAIT) > 0)
			n++;
		ck_assert_int_eq(events_of(pair.fd[0], POLLOUT), 0);
		wire_hold(pair.end[0]->id->qp, false);
		while (rrecv(pair.fd[1], data, sizeof(data), MSG_DONTWAIT) > 0)
			;
		ck_assert_int_eq(events_of(pair.fd[0], POLLOUT), POLLOUT);
		wire_hold(pair.end[0]->id->qp, true);
	}
	ck_assert_int_ge(n, 5);
	wire_hold(pair.end[0]->id->qp, false);
}
END_TEST

TEST(shutdown_completes_earlier_messages)
{
	pair_of(sizes_of(100, 65536));
	send_text(pair.fd[0], "the last");
	wire_hold(pair.end[0]->id->qp, true);
	pthread_mutex_lock(&pair.end[0]->base.lock);
	ck_assert_int_eq(stream_apply(pair.end[0], STREAM_EV_SHUT_WR, 0), 0);
	pthread_mutex_unlock(&pair.end[0]->base.lock);
	ck_assert_uint_gt(pair.end[0]->n_sent, 0);
	wire_hold(pair.end[0]->id->qp, false);
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_WR), 0);
	ck_assert_uint_eq(pair.end[0]->n_sent, 0);
}
END_TEST

static bool is_over; /* atomic */

/* Each byte a while after the previous one was read. */
static void *send_slowly(void *unused)
{
	struct rsock *peer = &pair.end[1]->base;
	bool is_read;

	(void)unused;
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&peer->lock);
		stream_progress(peer);
		is_read = !pair.end[1]->in.unread;
		pthread_mutex_unlock(&peer->lock);
		usleep(1000);
		if (is_read)
			send_text(pair.fd[0], "x");
	}
	return NULL;
}

TEST(receive_of_all_data_ends_after_the_time_of_its_option)
{
	const struct timeval soon = { .tv_usec = 100000 };
	char got[500];
	pthread_t thread;

	ck_assert_int_eq(rsetsockopt(pair.fd[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, send_slowly, NULL), 0);
	ck_assert_int_lt(rrecv(pair.fd[1], got, sizeof(got), MSG_WAITALL), (int)sizeof(got));
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}
END_TEST

/* --- the end ------------------------------------------------------------- */

TEST(after_a_shutdown_the_rest_is_read_and_then_the_end)
{
	send_text(pair.fd[0], "last");
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_WR), 0);
	expect_text(pair.fd[1], "last", 0);
	ck_assert_int_eq(rrecv(pair.fd[1], &(char){ 0 }, 1, 0), 0);
	send_text(pair.fd[1], "still");
	expect_text(pair.fd[0], "still", 0);
}
END_TEST

TEST(sending_after_the_peers_end_is_a_reset)
{
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
	ck_assert_int_eq(rrecv(pair.fd[1], &(char){ 0 }, 1, 0), 0);
	ck_assert_int_eq(rsend(pair.fd[1], "x", 1, 0), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	ck_assert_int_eq(events_of(pair.fd[1], POLLIN), POLLIN | POLLHUP);
}
END_TEST

TEST(both_may_shut_down_at_once)
{
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
	ck_assert_int_eq(rshutdown(pair.fd[1], SHUT_RDWR), 0);
	ck_assert_int_eq(rshutdown(pair.fd[1], SHUT_RDWR), 0);
}
END_TEST

TEST(a_cut_cable_is_reported_once)
{
	int error = 0;
	socklen_t bytes = sizeof(error);

	wire_hold(pair.end[0]->id->qp, true);
	send_text(pair.fd[0], "never sent");
	wire_cut(pair.end[0]->id->qp);
	ck_assert_int_eq(events_of(pair.fd[0], POLLIN) & POLLERR, POLLERR);
	ck_assert_int_eq(rgetsockopt(pair.fd[0], SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	ck_assert_int_eq(error, EIO);
	ck_assert_int_eq(rgetsockopt(pair.fd[0], SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
	ck_assert_int_eq(error, 0);
}
END_TEST

/* --- polling ------------------------------------------------------------- */

/* Stock loops forever if there are events, but none of the requested ones. */
TEST(rpoll_infinite_loop_rpoll_ends_at_its_timeout)
{
	struct pollfd poll = { .fd = pair.fd[1], .events = POLLPRI };

	send_text(pair.fd[0], "not asked for");
	ck_assert_int_eq(rpoll(&poll, 1, 50), 0);
}
END_TEST

TEST(rpoll_reports_an_unrequested_hang_up)
{
	struct pollfd poll = { .fd = pair.fd[1], .events = 0 };

	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
	ck_assert_int_eq(rpoll(&poll, 1, -1), 1);
	ck_assert_int_eq(poll.revents, POLLHUP);
}
END_TEST

/* An edge-triggered program learns of the end with the last data, or never. */
TEST(rpoll_reports_the_end_before_the_data_is_read)
{
	send_text(pair.fd[0], "last");
	ck_assert_int_eq(events_of(pair.fd[1], POLLIN | POLLRDHUP), POLLIN);
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_WR), 0);
	ck_assert_int_eq(events_of(pair.fd[1], POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	ck_assert_int_eq(events_of(pair.fd[1], POLLIN), POLLIN);
}
END_TEST

TEST(rselect_is_rpoll)
{
	struct timeval soon = { .tv_usec = 1000 };
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(pair.fd[1], &in);
	FD_SET(pair.fd[0], &out);
	ck_assert_int_eq(rselect(64, &in, &out, NULL, &soon), 1);
	ck_assert(!FD_ISSET(pair.fd[1], &in) && FD_ISSET(pair.fd[0], &out));
}
END_TEST

/* A program may subtract more than there is. The largest one is no short one either. */
TEST(timeout_of_rselect_is_checked_as_that_of_select)
{
	struct timeval negative[] = { { -1, 0 }, { 0, -1 } };
	const struct timeval longest = { INT64_MAX, 0 }, long_one = { INT64_MAX / 1000 + 2, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(pair.fd[1], &in);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(rselect(64, &in, NULL, NULL, &negative[i]), -1);
		ck_assert_int_eq(errno, EINVAL);
	}
	ck_assert_int_eq(select_timeout_ms(&longest), INT32_MAX);
	ck_assert_int_eq(select_timeout_ms(&long_one), INT32_MAX);
}
END_TEST

/* --- keepalives ---------------------------------------------------------- */

static void set_keepalive(int on)
{
	int idle_s = 1;

	ck_assert_int_eq(rsetsockopt(pair.fd[0], IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(int)),
			 0);
	ck_assert_int_eq(rsetsockopt(pair.fd[0], SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(int)), 0);
}

static uint32_t n_under_way(struct stream *s)
{
	uint32_t n;

	pthread_mutex_lock(&s->base.lock);
	n = s->n_sent;
	pthread_mutex_unlock(&s->base.lock);
	return n;
}

/* Return: seconds until a keepalive is sent, rounded up. */
static int left_s(const struct stream *s)
{
	uint64_t at_ns;

	service_lock();
	at_ns = s->keepalive.timer.deadline.ns;
	service_unlock();
	return (int)((at_ns - clock_ns() + 999999999) / 1000000000);
}

TEST(keepalive_is_sent_after_its_time_and_not_read_by_the_peer)
{
	struct stream *s = pair.end[0];
	uint32_t n_before = n_under_way(s);
	int quiet_fd = eventfd(0, EFD_CLOEXEC);

	service_lock();
	ck_assert_int_eq(service_add(&s->cm, quiet_fd), 0);
	service_unlock();
	wire_hold(pair.end[0]->id->qp, true);
	set_keepalive(1);
	ck_assert_int_eq(left_s(s), 1);
	/* The test does not wait that long. */
	service_lock();
	service_expire_in(&s->keepalive, 1);
	service_unlock();
	while (n_under_way(s) == n_before)
		sched_yield();
	ck_assert_uint_eq(n_under_way(s), n_before + 1);
	set_keepalive(0);
	service_lock();
	service_remove(&s->cm);
	service_unlock();
	close(quiet_fd);
	wire_hold(pair.end[0]->id->qp, false);
	ck_assert_int_eq(events_of(pair.fd[1], POLLIN), 0);
	send_text(pair.fd[0], "still there");
	expect_text(pair.fd[1], "still there", 0);
}
END_TEST

/* A call may be in progress while another thread closes the socket. */
TEST(a_closed_socket_is_not_served_again)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rsock *rs;

	ck_assert_int_eq(stream_new(wire_id(), AF_INET, NULL, (struct stream **)&rs), 0);
	rs->ops->close(rs);
	ck_assert_int_eq(rs->ops->connect(rs, (struct sockaddr *)&to, sizeof(to)), -EBADF);
	ck_assert_int_eq(rs->ops->listen(rs, 1), -EBADF);
	ck_assert_int_eq(stream_of(rs)->cm.watch.fd, -1);
	wire_id_free(stream_of(rs)->id);
	rsock_unhold(rs);
}
END_TEST

/* Otherwise the service thread would use freed memory. */
TEST(unaccepted_socket_ends_with_its_keepalive)
{
	struct stream *child = pair.end[0];
	struct stream listener;

	list_init(&listener.pending);
	list_init(&listener.ready);
	rsock_init(&listener.base, &stream_ops);
	set_keepalive(1);
	ck_assert(cm_timer_is_armed(&child->keepalive.timer));
	list_append(&listener.ready, &child->sibling);
	listener.n_ready = 1;
	rsock_get(&child->base);
	service_lock();
	listen_end(&listener);
	service_unlock();
	ck_assert(!cm_timer_is_armed(&child->keepalive.timer));
}
END_TEST

int __real_sync_complete(struct id *id, int cancel_state);
int __wrap_sync_complete(struct id *id, int cancel_state);

static struct rdma_cm_event *next_event; /* of an id */
static bool has_events;

int __wrap_sync_complete(struct id *id, int cancel_state)
{
	if (!has_events)
		return __real_sync_complete(id, cancel_state);
	id->pub.event = next_event;
	next_event = NULL;
	return id->pub.event ? 0 : -EAGAIN;
}

/* The request goes on: it is sent again. */
TEST(a_bond_that_fails_over_ends_no_connection_in_the_making)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_ADDR_CHANGE };
	struct stream *s = pair.end[0];

	s->state = STREAM_CONNECTING;
	next_event = &event;
	has_events = true;
	service_lock();
	connect_readable(&s->cm);
	service_unlock();
	has_events = false;
	s->id->event = NULL;
	ck_assert_int_eq(s->state, STREAM_CONNECTING);
	s->state = STREAM_OPEN;
}
END_TEST

/* --- buffers that the peer writes into ----------------------------------- */

TEST(riowrite_writes_to_the_peers_buffer)
{
	char memory[4096] = { 0 };

	ck_assert_int_eq(riomap(pair.fd[1], memory, sizeof(memory), PROT_WRITE, 0, 100), 100);
	send_text(pair.fd[1], "mapped");
	expect_text(pair.fd[0], "mapped", 0);
	ck_assert_uint_eq(riowrite(pair.fd[0], "hello", 6, 110, 0), 6);
	ck_assert_str_eq(memory + 10, "hello");
	ck_assert_uint_eq(riowrite(pair.fd[0], memory, 4096, 100 + 4000, 0), 96);
	ck_assert_int_eq(riounmap(pair.fd[1], memory, sizeof(memory)), 0);
	ck_assert_int_eq(riounmap(pair.fd[1], memory, sizeof(memory)), -1);
	ck_assert_int_eq(errno, EINVAL);
	send_text(pair.fd[1], "unmapped");
	expect_text(pair.fd[0], "unmapped", 0);
	ck_assert_uint_eq(riowrite(pair.fd[0], "hello", 6, 110, 0), 0);
}
END_TEST

#define LONG_BYTES (1ULL << 32) /* one more than an entry can hold */

TEST(mapping_longer_than_an_entry_holds_can_be_written)
{
	char *memory = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(riomap(pair.fd[1], memory, LONG_BYTES, PROT_WRITE, 0, 0), 0);
	send_text(pair.fd[1], "mapped");
	expect_text(pair.fd[0], "mapped", 0);
	ck_assert_uint_eq(riowrite(pair.fd[0], "hello", 6, LONG_BYTES / 2, 0), 6);
	ck_assert_str_eq(memory + LONG_BYTES / 2, "hello");
	ck_assert_int_eq(riounmap(pair.fd[1], memory, LONG_BYTES), 0);
	send_text(pair.fd[1], "unmapped");
	munmap(memory, LONG_BYTES);
}
END_TEST

/* A failed riomap() takes no slot of the peer's table. */
TEST(a_negative_offset_is_refused)
{
	static char memory[4096];

	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(riomap(pair.fd[0], memory, sizeof(memory), PROT_WRITE, 0, -2), -1);
		ck_assert_int_eq(errno, EINVAL);
	}
	ck_assert_int_eq(riounmap(pair.fd[0], memory, sizeof(memory)), -1);
}
END_TEST

TEST(entries_beyond_the_peers_table_are_refused)
{
	static char memory[5][4096];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(riomap(pair.fd[0], memory[i], 4096, PROT_WRITE, 0, i), i);
	ck_assert_int_eq(riomap(pair.fd[0], memory[4], 4096, PROT_WRITE, 0, 4), -1);
	ck_assert_int_eq(errno, ENOMEM);
	/* Nor is there room when nothing can be sent any more: so it is with stock. */
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_WR), 0);
	ck_assert_int_eq(riomap(pair.fd[0], memory[4], 4096, PROT_WRITE, 0, 4), -1);
	ck_assert_int_eq(errno, ENOMEM);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(riounmap(pair.fd[0], memory[i], 4096), 0);
}
END_TEST

/* Otherwise the peer would write to memory that is no longer registered, which breaks the
 * connection. */
TEST(reused_entry_that_is_unmapped_before_it_is_sent_is_cleared)
{
	static char memory[5][4096];

	for (int i = 0; i < 4; i++)
		riomap(pair.fd[1], memory[i], 4096, PROT_WRITE, 0, i * 4096);
	send_text(pair.fd[1], "mapped");
	expect_text(pair.fd[0], "mapped", 0);
	ck_assert_int_eq(riounmap(pair.fd[1], memory[2], 4096), 0);
	ck_assert_int_eq(riomap(pair.fd[1], memory[4], 4096, PROT_WRITE, 0, 2 * 4096), 2 * 4096);
	ck_assert_int_eq(riounmap(pair.fd[1], memory[4], 4096), 0);
	send_text(pair.fd[1], "unmapped");
	expect_text(pair.fd[0], "unmapped", 0);
	ck_assert_uint_eq(riowrite(pair.fd[0], "hello", 6, 2 * 4096, 0), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(riounmap(pair.fd[1], memory[i], 4096), i == 2 ? -1 : 0);
}
END_TEST

TEST(unmapped_entry_can_be_reused_before_its_removal_is_sent)
{
	static char memory[5][4096];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(riomap(pair.fd[1], memory[i], 4096, PROT_WRITE, 0, i * 4096),
				 i * 4096);
	send_text(pair.fd[1], "mapped");
	expect_text(pair.fd[0], "mapped", 0);
	ck_assert_int_eq(riounmap(pair.fd[1], memory[2], 4096), 0);
	ck_assert_int_eq(riomap(pair.fd[1], memory[4], 4096, PROT_WRITE, 0, 2 * 4096), 2 * 4096);
	send_text(pair.fd[1], "again");
	expect_text(pair.fd[0], "again", 0);
	ck_assert_uint_eq(riowrite(pair.fd[0], "hello", 6, 2 * 4096, 0), 6);
	ck_assert_str_eq(memory[4], "hello");
	ck_assert_str_eq(memory[2], "");
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(riounmap(pair.fd[1], memory[i], 4096), i == 2 ? -1 : 0);
	send_text(pair.fd[1], "unmapped");
}
END_TEST

TEST(tcp_info_has_the_state_and_is_truncated_to_the_buffer)
{
	struct tcp_info info = { .tcpi_state = 0 };
	socklen_t bytes = sizeof(info);
	uint8_t state[2] = { 0, 99 };

	ck_assert_int_eq(rgetsockopt(pair.fd[0], IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
	ck_assert_uint_eq(bytes, sizeof(info));
	ck_assert_uint_eq(info.tcpi_state, TCP_ESTABLISHED);
	bytes = 1;
	ck_assert_int_eq(rgetsockopt(pair.fd[0], IPPROTO_TCP, TCP_INFO, state, &bytes), 0);
	ck_assert(bytes == 1 && state[0] == TCP_ESTABLISHED && state[1] == 99);
}
END_TEST

/* --- a socket that moves to a relay ---------------------------------------- */

/* Return: errno of a receive that waits. */
static void *receive_some(void *ret_errno)
{
	char got[8];

	*(int *)ret_errno = rrecv(pair.fd[1], got, sizeof(got), 0) < 0 ? errno : 0;
	return NULL;
}

/* The relay may have received what came before, and the program not have it yet. */
TEST(a_reader_that_waits_for_another_gets_nothing_after_the_move)
{
	struct stream *s = pair.end[1];
	bool is_waiting = false;
	pthread_t thread;
	int error = 0;

	pthread_mutex_lock(&s->base.lock);
	s->recv_token.is_taken = true;
	pthread_mutex_unlock(&s->base.lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, receive_some, &error), 0);
	while (!is_waiting) {
		pthread_mutex_lock(&s->base.lock);
		is_waiting = s->recv_token.n_waiting;
		pthread_mutex_unlock(&s->base.lock);
		sched_yield();
	}
	ck_assert_int_eq(rfcntl(pair.fd[1], RSOCK_MOVE), 0);
	send_text(pair.fd[0], "later");
	pthread_mutex_lock(&s->base.lock);
	stream_progress(&s->base);
	ck_assert_int_eq(s->in.unread, 5);
	token_give(&s->recv_token);
	pthread_mutex_unlock(&s->base.lock);
	pthread_join(thread, NULL);
	ck_assert_int_eq(error, EBADF);
	expect_text(pair.fd[1], "later", RSOCK_TAKE);
}
END_TEST

/* --- peers that violate the protocol ------------------------------------- */

static const struct {
	const char *what;
	uint32_t message;
} lies[] = {
	{ "data that was not promised room", 0x00000000 + 4097 },
	{ "data of no bytes", 0x00000000 },
	{ "an operation that does not exist", 0x20000001 },
	{ "another one", 0xa0000001 },
	{ "what is local only", 0x40000001 },
	{ "credit beyond its queue", 0x80000000 + 17 },
	{ "credit that goes backwards", 0x80000000 + 15 },
	{ "a buffer beyond the table", 0xc0000000 + 4 },
	{ "an unknown control message", 0xe0000003 },
};

TEST_LOOP(protocol_violation_ends_the_connection, 0, sizeof(lies) / sizeof(lies[0]))
{
	struct pair other = pair_make(pair_small());

	wire_inject(pair.end[0]->id->qp, lies[_i].message);
	ck_assert_int_eq(events_of(pair.fd[0], POLLIN) & POLLERR, POLLERR);
	ck_assert_int_eq(rrecv(pair.fd[0], &(char){ 0 }, 1, 0), -1);
	ck_assert_int_eq(errno, ECONNRESET);
	ck_assert_int_eq(rsend(pair.fd[0], "x", 1, 0), -1);
	/* Other connections are not affected. */
	send_text(other.fd[0], "fine");
	expect_text(other.fd[1], "fine", 0);
	pair_free(&other);
}
END_TEST

TEST(half_granted_twice_is_a_protocol_violation)
{
	struct rs_entry entry = { .addr = 1, .key = 1, .bytes = 2048 };

	pair.end[0]->memory.table[0] = entry;
	wire_inject(pair.end[0]->id->qp, rs_message(RS_OP_SGL, 16));
	ck_assert_int_eq(events_of(pair.fd[0], POLLIN) & POLLERR, POLLERR);
}
END_TEST

#define FLOOD 100000

/* Otherwise the polling thread would hold the socket's lock as long as the peer sends. */
TEST(flooding_peer_is_limited_per_call)
{
	struct stream_sizes sizes = pair_small();
	struct stream *s;

	sizes.rq_size = 128;
	pair_free(&pair);
	pair = pair_make(sizes);
	s = pair.end[1];
	wire_flood(s->id->qp, rs_message(RS_OP_CTRL, RS_CTRL_KEEPALIVE), FLOOD);
	pthread_mutex_lock(&s->base.lock);
	stream_progress(&s->base);
	pthread_mutex_unlock(&s->base.lock);
	ck_assert_uint_gt(wire_flood_left(s->id->qp), FLOOD / 2);
	send_text(pair.fd[0], "honest");
	while (!(events_of(pair.fd[1], POLLIN) & POLLIN))
		;
	expect_text(pair.fd[1], "honest", 0);
	wire_flood(s->id->qp, 0, 0);
	events_of(pair.fd[1], POLLIN);
}
END_TEST
