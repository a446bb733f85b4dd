/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/path/subnet.c: requests to the subnet administrator through a cmportd that only records them,
 * and cancelled requests.
 */
#include <errno.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "lib/engine/session.h"
#include "lib/path/subnet.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

static struct subnet_ask ask;

static void leave(void)
{
	struct portd_record drop;
	bool is_said;

	engine_lock();
	is_said = subnet_drop(&ask, &drop);
	engine_unlock();
	if (is_said)
		subnet_send(&drop);
}

/* Another thread cancels before the second request is sent. */
static void leave_first(const struct portd_record *record)
{
	if (record->type != PORTD_SA_ASK)
		return;
	cmportd.meanwhile = NULL;
	leave();
}

static bool joined(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)of;
	(void)err;
	(void)answer;
	return false;
}

/* As a group does: requests the record of its broadcast group first, then its own. */
static bool continues(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)err;
	(void)answer;
	sa_msg_init(&of->msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	of->done = joined;
	return true;
}

static void begin(void)
{
	struct portd_record record;

	rig_begin();
	engine_lock();
	sa_msg_init(&ask.msg, SA_METHOD_GET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	ask.done = continues;
	subnet_ask(engine_held(), &ask, rig.port, &record);
	engine_unlock();
	subnet_send(&record);
}

FIXTURE(begin, NULL);

static void send_answer(void)
{
	struct portd_sa_told told = { .ask_id = ask.ask_id };

	subnet_answered(&told);
}

TEST(request_is_sent_once)
{
	send_answer();
	ck_assert_uint_eq(cmportd.n_said, 2);
	ck_assert_int_eq(cmportd.said[1].type, PORTD_SA_ASK);
	ck_assert_uint_eq(cmportd.said[1].sa_ask.ask_id, ask.ask_id);
}

TEST(membership_dropped_before_its_request_is_dropped_after_it)
{
	cmportd.meanwhile = leave_first;
	send_answer();
	ck_assert_int_eq(cmportd.said[cmportd.n_said - 2].type, PORTD_SA_ASK);
	ck_assert_int_eq(cmportd.said[cmportd.n_said - 1].type, PORTD_SA_DROP);
	ck_assert_uint_eq(cmportd.said[cmportd.n_said - 1].sa_drop.ask_id,
			  cmportd.said[cmportd.n_said - 2].sa_ask.ask_id);
}

TEST(request_dropped_after_sending_is_dropped_once)
{
	leave();
	ck_assert_uint_eq(cmportd.n_said, 2);
	ck_assert_int_eq(cmportd.said[1].type, PORTD_SA_DROP);
}

/* A lookup frees its memory in this call, so the request must not be read after it. */
static bool is_freed(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)err, (void)answer;
	memset(of, UINT8_MAX, sizeof(*of));
	return false;
}

TEST(request_that_ends_is_not_used_afterwards)
{
	static struct subnet_ask freed;

	memset(&freed, UINT8_MAX, sizeof(freed));
	ask.done = is_freed;
	send_answer();
	ck_assert_uint_eq(cmportd.n_said, 1);
	ck_assert_mem_eq(&ask, &freed, sizeof(freed));
}

/* --- requests that cannot be sent ------------------------------------------- */

static unsigned int n_done;
static int done_err;

static bool note_end(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)of, (void)answer;
	n_done++;
	done_err = err;
	return false;
}

static void ask_again(int send_err)
{
	struct portd_record record;

	leave();
	cmportd.send_err = send_err;
	ask.done = note_end;
	engine_lock();
	subnet_ask(engine_held(), &ask, rig.port, &record);
	engine_unlock();
	subnet_send(&record);
}

/* Nobody would answer it: cmportd has not read for longer than a send waits. */
TEST(request_that_is_lost_times_out)
{
	ask_again(-EAGAIN);
	ck_assert_uint_eq(n_done, 1);
	ck_assert_int_eq(done_err, -ETIMEDOUT);
	leave(); /* it has ended */
	ck_assert_int_ne(cmportd.said[cmportd.n_said - 1].type, PORTD_SA_DROP);
}

TEST(request_to_a_cmportd_that_is_gone_waits_for_the_next_one)
{
	ask_again(-EPIPE);
	ck_assert_uint_eq(n_done, 0);
	cmportd.send_err = 0;
	subnet_resend(session_client());
	ck_assert_uint_eq(fake_cmportd_last(PORTD_SA_ASK)->sa_ask.ask_id, ask.ask_id);
	ck_assert_uint_eq(n_done, 0);
}

/* --- many requests at a time ------------------------------------------------ */

#define MANY 10000

static struct subnet_ask others[MANY];
static struct subnet_ask *last;

static void last_answer(void)
{
	const struct portd_sa_told told = { .ask_id = last->ask_id, .left = 1 };

	subnet_answered(&told);
}

static bool note(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)of, (void)err, (void)answer;
	return false;
}

/* Instructions of the response to the last of @n requests, @first of which exist before. */
static unsigned long steps_of_response(int first, int n)
{
	struct portd_record record;
	int i;

	engine_lock();
	for (i = first; i < n; i++) {
		last = &others[i];
		sa_msg_init(&last->msg, SA_METHOD_GET_TABLE, SA_ATTR_PATH_RECORD, 0, 0);
		last->done = note;
		subnet_ask(engine_held(), last, rig.port, &record);
	}
	engine_unlock();
	return steps_of(last_answer);
}

TEST(response_costs_no_more_with_ten_thousand_requests)
{
	unsigned long few = steps_of_response(0, 10), many = steps_of_response(10, MANY);

	ck_assert_uint_le(many, few + few / 10);
}
