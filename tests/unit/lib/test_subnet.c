/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/path/subnet.c: questions to the subnet administrator through a cmportd that only takes note,
 * and those who lose interest while their question is on its way.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "lib/engine/host.h"
#include "lib/path/subnet.h"

#define SENT_MAX 8

struct portd_client *__wrap_link_client(void);
int __wrap_portd_put_data(struct portd_client *client, const struct portd_record *record);

static int cmportd; /* its address stands for a connection */
static struct portd_record sent[SENT_MAX];
static unsigned int n_sent;
static bool leaves_first; /* another thread's word is faster */
static struct subnet_ask ask;
static struct port port;

struct portd_client *__wrap_link_client(void)
{
	return (struct portd_client *)&cmportd;
}

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

int __wrap_portd_put_data(struct portd_client *client, const struct portd_record *record)
{
	(void)client;
	if (leaves_first && record->type == PORTD_SA_ASK) {
		leaves_first = false;
		leave();
	}
	ck_assert_uint_lt(n_sent, SENT_MAX);
	sent[n_sent++] = *record;
	return 0;
}

static void joined(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)of;
	(void)err;
	(void)answer;
}

/* As a group does: the record of its broadcast group first, then its own. */
static void goes_on(struct subnet_ask *of, int err, const struct sa_msg *answer)
{
	(void)err;
	(void)answer;
	sa_msg_init(&of->msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	of->done = joined;
	of->asks_again = true;
}

static void begin(void)
{
	struct portd_record record;

	memset(&ask, 0, sizeof(ask));
	n_sent = 0;
	leaves_first = false;
	list_init(&engine_lock()->subnet_asks);
	sa_msg_init(&ask.msg, SA_METHOD_GET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	ask.done = goes_on;
	subnet_ask(engine_held(), &ask, &port, &record);
	engine_unlock();
	subnet_send(&record);
}

static void tell(void)
{
	struct portd_sa_told told = { .ask_id = ask.ask_id };

	subnet_told(&told);
}

START_TEST(question_that_nobody_drops_is_sent_once)
{
	begin();
	tell();
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_int_eq(sent[1].type, PORTD_SA_ASK);
	ck_assert_uint_eq(sent[1].sa_ask.ask_id, ask.ask_id);
}
END_TEST

START_TEST(membership_dropped_before_its_question_left_is_dropped_after_it)
{
	begin();
	leaves_first = true;
	tell();
	ck_assert_int_eq(sent[n_sent - 2].type, PORTD_SA_ASK);
	ck_assert_int_eq(sent[n_sent - 1].type, PORTD_SA_DROP);
	ck_assert_uint_eq(sent[n_sent - 1].sa_drop.ask_id, sent[n_sent - 2].sa_ask.ask_id);
}
END_TEST

START_TEST(question_dropped_after_it_left_is_dropped_once)
{
	begin();
	leave();
	ck_assert_uint_eq(n_sent, 2);
	ck_assert_int_eq(sent[1].type, PORTD_SA_DROP);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("subnet");
	TCase *tests = tcase_create("cmportd takes note");
	SRunner *runner;
	int n_failed;

	tcase_add_test(tests, question_that_nobody_drops_is_sent_once);
	tcase_add_test(tests, membership_dropped_before_its_question_left_is_dropped_after_it);
	tcase_add_test(tests, question_dropped_after_it_left_is_dropped_once);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
