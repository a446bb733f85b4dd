/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user who asks the subnet administrator for all that he can: others do not wait for him, and he
 * pays for the work. Mallory is that user.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "mad/sa/agent.h"
#include "tests/unit/portd/askers.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define RECORD_PRICE_LEAST 0.125

FIXTURE(askers_set_up, rig_tear_down);
TIME_LIMIT_S(60); /* each instruction that is counted is a system call */

/* The administrator does not answer Mallory, whose questions stay until they time out. */
TEST(questions_of_one_user_do_not_keep_those_of_another_waiting)
{
	struct rig_client mallory;
	unsigned int n;

	rig_come_as_user(1001);
	rig_join(&mallory);
	for (n = 1; n <= 100; n++)
		ask_path_to(&mallory, n, (uint8_t)n);
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX);
	ask_path_to(&carol, 1, 200);
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX + 1);
	ask_path_to(&carol, 2, 100); /* a question of Mallory's that waits */
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX + 2);
}

/* They wait for the administrator otherwise, who may be busy. */
TEST(a_path_that_one_user_gives_up_is_known_to_others)
{
	struct rig_client mallory;

	rig_come_as_user(1001);
	rig_join(&mallory);
	ask_path(&carol, 5);
	rig_sa_answers(0, 0, 7);
	revalidate(&mallory);
	ask_path(&carol, 6);
	ck_assert_uint_eq(rig_n_asked(), 1);
	ask_path(&mallory, 1);
	ck_assert_uint_eq(rig_n_asked(), 2);
	rig_pass(1);
	rig_sa_answers(1, 0, 8); /* which everybody knows from now on */
	ask_path(&mallory, 2);
	ask_path(&carol, 7);
	ck_assert_uint_eq(rig_n_asked(), 2);
}

static void carol_revalidates(void)
{
	revalidate(&carol);
}

TEST(to_give_up_a_path_takes_no_walk_over_all)
{
	unsigned long none, some;

	carol_revalidates();
	none = steps_of(carol_revalidates);
	ask_path(&carol, 5);
	rig_sa_answers(0, 0, 7);
	some = steps_of(carol_revalidates);
	printf("to give up a path: %lu instructions, beside what is known %lu\n", none, some);
	ck_assert_uint_le(some, none + none / 10);
}

#define TABLE 1024

static void ask_for_tables(struct rig_client *client, unsigned int n)
{
	struct portd_record record;

	for (; n; n--) {
		record = question(client, n, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD);
		tell(client, &record);
	}
}

/* All have asked the same. Return: how much processor time it takes until all is told, in us. */
static unsigned int list_services(void)
{
	clock_t begin = clock();

	rig_sa_lists(rig_n_asked() - 1, TABLE);
	return (unsigned int)((clock() - begin) * 1000000 / CLOCKS_PER_SEC);
}

static unsigned int count_told(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record;
	unsigned int n = 0;

	while (rig_next(client, &record))
		n += record.type == PORTD_SA_TOLD && record.sa_told.ask_id == ask_id;
	return n;
}

TEST(a_table_costs_by_its_records_and_a_turn_tells_few_of_them)
{
	struct rig_client mallory[2];
	const struct user *user;
	unsigned int i, us, n_turns;
	uint64_t turn_no;
	double tokens;

	rig_come_as_user(1001);
	for (i = 0; i < 2; i++) {
		rig_join(&mallory[i]);
		ask_for_tables(&mallory[i], 8);
	}
	user = rig_server()->client[2]->user;
	tokens = user->rate.tokens;
	turn_no = rig_server()->turn_no;
	us = list_services();
	n_turns = (unsigned int)(rig_server()->turn_no - turn_no);
	tokens -= user->rate.tokens;
	printf("%u records: %u us, %u turns, %.0f messages\n", 16 * TABLE, us, n_turns, tokens);
	fflush(stdout);
	ck_assert_uint_eq(count_told(&mallory[0], 1), TABLE);
	ck_assert_uint_eq(count_told(&mallory[1], 8), TABLE);
	ck_assert_uint_eq(user->n_asks, 0);
	ck_assert(tokens >= 16 * TABLE * RECORD_PRICE_LEAST);
	ck_assert_uint_ge(n_turns, 16 * TABLE * RECORD_PRICE_LEAST / USER_TURN);
}

/* It is disconnected, and what it has asked for is not told any more. */
TEST(tables_are_not_told_to_one_who_does_not_read)
{
	struct rig_client mallory;
	const struct user *user;
	double tokens;
	unsigned int us;

	rig_come_as_user(1001);
	rig_join(&mallory);
	ask_for_tables(&mallory, 1000);
	user = rig_server()->client[2]->user;
	tokens = user->rate.tokens;
	us = list_services();
	printf("1,000 equal queries for a table of %u: %u us\n", TABLE, us);
	fflush(stdout);
	ck_assert(rig_is_disconnected(&mallory));
	ck_assert(tokens - user->rate.tokens > 1000 * RECORD_PRICE_LEAST);
	ck_assert(tokens - user->rate.tokens < 100 * TABLE * RECORD_PRICE_LEAST);
}

/* When some have been told. */
TEST(table_that_is_dropped_is_not_told_on)
{
	struct portd_record drop = { .type = PORTD_SA_DROP, .sa_drop = { .ask_id = 1 } };
	struct rig_client mallory;

	rig_come_as_user(1001);
	rig_join(&mallory);
	ask_for_tables(&mallory, 9);
	ck_assert(rig_tell(&mallory, &drop));
	list_services();
	ck_assert_uint_eq(count_told(&mallory, 1), 0);
	ck_assert_uint_eq(rig_server()->client[2]->n_asks, 0);
}

/* Those that are being left, too: the administrator does not answer. */
TEST(groups_that_a_user_joins_and_leaves_at_once_leave_room_for_others)
{
	uint32_t *quotas = rig_server()->options.quotas.is;
	struct rig_client mallory;
	int err = -1;
	uint32_t n;

	quotas[QUOTA_CLIENT_RATE] = quotas[QUOTA_USER_RATE] = 1000000;
	rig_come_as_user(1001);
	rig_join(&mallory);
	for (n = 1; n <= SA_GROUPS_MAX + 100 && err < 0; n++) {
		join_group(&mallory, n, n);
		drop(&mallory, n);
		err = told(&mallory, n);
	}
	join_group(&carol, 1, SA_GROUPS_MAX + 200);
	printf("one user joins and leaves %u groups, then is told %d, another %d\n", n - 1, err,
	       told(&carol, 1));
	ck_assert_int_eq(err, EPERM);
	ck_assert_uint_le(n, quota_of(&rig_server()->options.quotas, QUOTA_USER_SA) + 2);
}

TEST(a_user_is_known_until_his_groups_are_left)
{
	struct rig_client mallory, erin;

	rig_come_as_user(1001);
	rig_join(&mallory);
	join(&mallory, 1);
	rig_sa_answers(0, 0, 0xc001);
	rig_leave(&mallory);
	rig_pass(300);
	rig_come_as_user(1002);
	rig_join(&erin); /* those who have rested are forgotten */
	ck_assert_uint_eq(rig_server()->users.n, 3);
	rig_pass(600);
	rig_join(&erin);
	ck_assert_uint_eq(rig_server()->users.n, 2);
}

/* Otherwise nobody else could join a group. */
TEST(memberships_of_one_user_leave_room_for_others)
{
	ck_assert_uint_gt(SA_GROUPS_MAX,
			  2 * quota_of(&rig_server()->options.quotas, QUOTA_USER_SA));
}

#define N_QUESTIONS 1000
#define UNKNOWN	    5000

static void drop_unknown(void)
{
	drop(&carol, UNKNOWN);
}

TEST(a_question_is_dropped_without_a_walk_over_the_others)
{
	unsigned long few, many;
	uint32_t i;

	drop_unknown();
	few = steps_of(drop_unknown);
	for (i = 0; i < N_QUESTIONS; i++)
		ask_path(&carol, i);
	drop_unknown();
	many = steps_of(drop_unknown);
	printf("%lu instructions, beside %u questions %lu\n", few, N_QUESTIONS, many);
	ck_assert_uint_le(many, few + N_QUESTIONS / 2);
}
