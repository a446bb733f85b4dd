/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short packets to a program that polls (tools/fabric/wire/ring.h): they need no system call, keep
 * their order among datagrams, and wake a program that polls no more. Runs on a host of a soft
 * fabric: tests/fabric/meson.build.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/fabric/direct_rig.h"
#include "tests/unit/test.h"

#define OUTSTANDING 8
#define MESSAGES    2000
#define ENOUGH	    16 /* of messages without a system call */

/* Unlike rig_wait() it never sleeps. */
static struct ibv_wc poll_for_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static void send_bytes(struct rig *rig, uint32_t bytes, uint32_t imm)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_SEND_WITH_IMM, &sge, bytes);

	wr.imm_data = imm;
	rig_post(&rig->a, &wr);
}

static void poll_in_vain(struct ibv_cq *cq, unsigned int n)
{
	struct ibv_wc wc;

	while (n--)
		ck_assert_int_eq(ibv_poll_cq(cq, 1, &wc), 0);
}

/* Return: number of datagrams. */
static unsigned int exchange_one(struct rig *rig)
{
	unsigned int before = n_packets;

	poll_in_vain(rig->b.cq, 32);
	rig_receive(&rig->b, 0, 64);
	send_bytes(rig, 64, 0);
	poll_for_one(rig->b.cq);
	poll_for_one(rig->a.cq);
	return n_packets - before;
}

/* The thread takes packets back at times, on a busy machine. */
static void exchange_until_without_calls(struct rig *rig)
{
	unsigned int n = 0;

	while (n < ENOUGH)
		n = exchange_one(rig) ? 0 : n + 1;
}

TEST(messages_to_a_poller_need_no_system_calls)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ 0 });
	exchange_until_without_calls(&rig);
	rig_close(&rig);
}

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

/* A thread that sends while this one polls. */
struct sender {
	struct rig *rig;
	atomic_uint n_wanted; /* how many, of all */
};

static void *send_when_wanted(void *arg)
{
	static const uint32_t bytes[] = { 8, 64, 1900, 0, 3000, 8, 40000, 8, 8, 8, 2000 };
	struct sender *sender = arg;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		while (sender->n_wanted <= i)
			sched_yield();
		send_bytes(sender->rig, bytes[i % (sizeof(bytes) / sizeof(bytes[0]))], i);
	}
	return NULL;
}

static void start_sender(struct sender *sender, struct rig *rig, pthread_t *ret)
{
	sender->rig = rig;
	ck_assert_int_eq(pthread_create(ret, NULL, send_when_wanted, sender), 0);
}

/* A lost or overtaken packet of an unreliable connection would be a lost message. */
TEST_LOOP(packets_in_memory_and_datagrams_keep_their_order, 0, 2)
{
	struct sender sender = { .n_wanted = 0 };
	pthread_t thread;
	struct rig rig;
	uint32_t i;

	rig_open(&rig, &(struct rig_config){ .type = types[_i] });
	start_sender(&sender, &rig, &thread);
	poll_in_vain(rig.b.cq, 300);
	for (i = 0; i < OUTSTANDING; i++)
		rig_receive(&rig.b, i, 40000);
	sender.n_wanted = OUTSTANDING;
	for (i = 0; i < MESSAGES; i++) {
		ck_assert_uint_eq(poll_for_one(rig.b.cq).imm_data, i);
		rig_receive(&rig.b, i, 40000);
		sender.n_wanted++;
		if (i % 2)
			poll_for_one(rig.a.cq);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_close(&rig);
}

TEST(message_wakes_a_program_that_polls_no_more)
{
	struct pollfd event = { .events = POLLIN };
	struct sender sender = { .n_wanted = 0 };
	struct ibv_cq *cq;
	pthread_t thread;
	struct rig rig;
	void *context;
	uint32_t i;

	rig_open(&rig, &(struct rig_config){ 0 });
	start_sender(&sender, &rig, &thread);
	event.fd = rig.channel->fd;
	for (i = 0; i < MESSAGES; i++) {
		rig_receive(&rig.b, i, 40000);
		poll_in_vain(rig.b.cq, 300);
		sender.n_wanted++;
		ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 0), 0);
		ck_assert_int_eq(poll(&event, 1, 20000), 1);
		ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		poll_for_one(rig.b.cq);
		poll_for_one(rig.a.cq);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_close(&rig);
}
