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

/* A lost or overtaken packet of an unreliable connection would be a lost message. */
TEST_LOOP(packets_in_memory_and_datagrams_keep_their_order, 0, 2)
{
	static const uint32_t bytes[] = { 8, 64, 1900, 0, 3000, 8, 40000, 8 };
	uint32_t i, j, n = sizeof(bytes) / sizeof(bytes[0]);
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = types[_i] });
	for (i = 0; i < 400; i++) {
		poll_in_vain(rig.b.cq, 32);
		for (j = 0; j < OUTSTANDING; j++)
			rig_receive(&rig.b, j, 40000);
		for (j = 0; j < OUTSTANDING; j++)
			send_bytes(&rig, bytes[(i * 5 + j * (i % 3)) % n], i * OUTSTANDING + j);
		for (j = 0; j < OUTSTANDING; j++)
			ck_assert_uint_eq(poll_for_one(rig.b.cq).imm_data, i * OUTSTANDING + j);
		for (j = 0; j < OUTSTANDING; j++)
			poll_for_one(rig.a.cq);
	}
	rig_close(&rig);
}

struct sender {
	struct rig *rig;
	atomic_uint n_wanted;
};

static void *send_when_wanted(void *arg)
{
	struct sender *sender = arg;
	unsigned int i;

	for (i = 0; i < 300; i++) {
		while (sender->n_wanted <= i)
			sched_yield();
		send_bytes(sender->rig, 64, i);
		poll_for_one(sender->rig->a.cq);
	}
	return NULL;
}

/* The sender puts its message into memory while the receiver arms its queue. */
TEST(message_wakes_a_program_that_polls_no_more)
{
	struct sender sender = { .n_wanted = 0 };
	struct ibv_cq *cq;
	pthread_t thread;
	struct rig rig;
	void *context;
	unsigned int i;

	rig_open(&rig, &(struct rig_config){ 0 });
	sender.rig = &rig;
	ck_assert_int_eq(pthread_create(&thread, NULL, send_when_wanted, &sender), 0);
	for (i = 0; i < 300; i++) {
		struct pollfd event = { .fd = rig.channel->fd, .events = POLLIN };
		unsigned int j;

		rig_receive(&rig.b, i, 64);
		poll_in_vain(rig.b.cq, 300);
		sender.n_wanted++;
		for (j = 0; j < i; j++)
			__asm__ volatile("" ::: "memory");
		ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 0), 0);
		ck_assert_int_eq(poll(&event, 1, 20000), 1);
		ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		poll_for_one(rig.b.cq);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_close(&rig);
}
