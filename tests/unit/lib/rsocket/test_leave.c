/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of stream sockets whose peer does not acknowledge, over a device in memory.
 */
#include <errno.h>
#include <rdma/rsocket.h>
#include <sched.h>
#include <string.h>

#include "lib/rsocket/leave.h"
#include "tests/unit/lib/rsocket/pair.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

#define SILENT 257 /* one too many */

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
static void send_text(int fd, const char *text)
{
	ck_assert_int_eq(rsend(fd, text, strlen(text), MSG_DONTWAIT), strlen(text));
}

/* Stock waits forever for the completion of its last message. */
TEST(rshutdown_hang_it_ends_when_the_peer_is_gone)
{
	wire_hold(pair.end[0]->id->qp, true);
	send_text(pair.fd[0], "never sent");
	wire_cut(pair.end[0]->id->qp);
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
}
END_TEST

static bool is_leaving(struct stream *s)
{
	bool is_over;

	service_lock();
	is_over = leave_is_over(s);
	service_unlock();
	return !is_over;
}

static void await_leaving(struct stream *s)
{
	while (is_leaving(s))
		sched_yield();
}

TEST(a_peer_that_acknowledges_late_gets_all_of_it_from_the_service_thread)
{
	char got[32];

	wire_hold(pair.end[0]->id->qp, true);
	send_text(pair.fd[0], "sent later");
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
	ck_assert(is_leaving(pair.end[0]));
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_RDWR), 0);
	wire_hold(pair.end[0]->id->qp, false);
	await_leaving(pair.end[0]);
	ck_assert_int_eq(rrecv(pair.fd[1], got, sizeof(got), MSG_DONTWAIT), 10);
	ck_assert_mem_eq(got, "sent later", 10);
	ck_assert_int_eq(rrecv(pair.fd[1], got, sizeof(got), MSG_DONTWAIT), 0);
}
END_TEST

TEST(unacknowledging_peer_is_given_up)
{
	struct stream *s = pair.end[0];
	char byte;

	wire_hold(s->id->qp, true);
	send_text(pair.fd[0], "never sent");
	ck_assert_int_eq(rshutdown(pair.fd[0], SHUT_WR), 0);
	ck_assert(is_leaving(s));
	/* The test does not wait that long. */
	service_lock();
	service_expire_in(&s->leave, 1);
	service_unlock();
	await_leaving(s);
	ck_assert_int_eq(rrecv(pair.fd[0], &byte, 1, 0), -1);
	ck_assert_int_eq(errno, ETIMEDOUT);
}
END_TEST

/* They use memory and descriptors unknown to the program. */
TEST(oldest_of_many_unacknowledging_peers_is_given_up)
{
	struct pair silent[SILENT];

	for (int i = 0; i < SILENT; i++) {
		ck_assert_int_eq(is_leaving(pair.end[0]), i > 0);
		silent[i] = i ? pair_make(pair_small()) : pair;
		wire_hold(silent[i].end[0]->id->qp, true);
		send_text(silent[i].fd[0], "never sent");
		ck_assert_int_eq(rshutdown(silent[i].fd[0], SHUT_RDWR), 0);
	}
	ck_assert(!is_leaving(pair.end[0]));
	for (int i = 1; i < SILENT; i++) {
		ck_assert(is_leaving(silent[i].end[0]));
		wire_hold(silent[i].end[0]->id->qp, false);
		await_leaving(silent[i].end[0]);
		pair_free(&silent[i]);
	}
}
END_TEST

/* As in a program that ends without rclose(), but not by the end that has its lock. */
TEST(what_open_sockets_have_not_sent_is_sent_at_exit)
{
	char got[32];

	wire_hold(pair.end[0]->id->qp, true);
	send_text(pair.fd[0], "sent at exit");
	pthread_mutex_lock(&pair.end[1]->base.lock);
	leave_all();
	pthread_mutex_unlock(&pair.end[1]->base.lock);
	ck_assert(is_leaving(pair.end[0]));
	wire_hold(pair.end[0]->id->qp, false);
	await_leaving(pair.end[0]);
	ck_assert_int_eq(rrecv(pair.fd[1], got, sizeof(got), MSG_DONTWAIT), 12);
	ck_assert_int_eq(rrecv(pair.fd[1], got, sizeof(got), MSG_DONTWAIT), 0);
}
END_TEST
