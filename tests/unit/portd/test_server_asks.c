/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user who sends as many requests to the subnet administrator as possible: others do not wait,
 * and the work is charged to that user. The user's clients are Mallory's.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "mad/sa/agent.h"
#include "tests/unit/portd/askers.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

FIXTURE(askers_set_up, rig_tear_down);
/* Return: the user in cmportd. */
static const struct user *join_as_mallory(struct rig_client *client)
{
	const struct server *server = rig_server();

	rig_client_as_user(61001);
	rig_join(client);
	return server->client[server->block_owner[client->first >> ID_BLOCK_SHIFT]]->user;
}

/* The administrator does not answer Mallory's requests, which stay until they time out. */
TEST(requests_of_one_user_do_not_delay_those_of_another)
{
	struct rig_client mallory;
	unsigned int n;

	join_as_mallory(&mallory);
	for (n = 1; n <= 100; n++)
		ask_path_to(&mallory, n, (uint8_t)n);
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX);
	ask_path_to(&carol, 1, 200);
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX + 1);
	ask_path_to(&carol, 2, 100); /* a waiting request of Mallory's */
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX + 2);
}

/* They wait for the administrator otherwise, which may be busy. */
TEST(a_path_that_one_user_cancels_is_cached_for_others)
{
	struct rig_client mallory;

	join_as_mallory(&mallory);
	ask_path(&carol, 5);
	rig_answer_by_sa(0, 0, 7);
	revalidate(&mallory);
	ask_path(&carol, 6);
	ck_assert_uint_eq(rig_n_asked(), 1);
	ask_path(&mallory, 1);
	ck_assert_uint_eq(rig_n_asked(), 2);
	rig_pass(1);
	rig_answer_by_sa(1, 0, 8); /* cached from now on */
	ask_path(&mallory, 2);
	ask_path(&carol, 7);
	ck_assert_uint_eq(rig_n_asked(), 2);
}

static void revalidate_by_carol(void)
{
	revalidate(&carol);
}

TEST(cancelling_a_path_takes_constant_time)
{
	unsigned long none, some;

	revalidate_by_carol();
	none = steps_of(revalidate_by_carol);
	ask_path(&carol, 5);
	rig_answer_by_sa(0, 0, 7);
	some = steps_of(revalidate_by_carol);
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

/* All clients have made the same request. Return: CPU time until all have the result, in us. */
static unsigned int list_services(void)
{
	clock_t begin = clock();

	rig_list_by_sa(rig_n_asked() - 1, TABLE);
	return (unsigned int)((clock() - begin) * 1000000 / CLOCKS_PER_SEC);
}

static unsigned int count_reported(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record;
	unsigned int n = 0;

	while (rig_next(client, &record))
		n += record.type == PORTD_SA_TOLD && record.sa_told.ask_id == ask_id;
	return n;
}

TEST(a_turn_sends_few_records_of_a_table)
{
	struct rig_client mallory[2];
	const struct user *user;
	unsigned int i, us, n_turns;
	uint64_t turn_no;
	double taken;

	rig_client_as_user(61001);
	for (i = 0; i < 2; i++) {
		rig_join(&mallory[i]);
		ask_for_tables(&mallory[i], 4);
	}
	user = rig_server()->client[2]->user;
	taken = user->rate.taken;
	turn_no = rig_server()->turn_no;
	us = list_services();
	n_turns = (unsigned int)(rig_server()->turn_no - turn_no);
	taken = user->rate.taken - taken;
	printf("%u records: %u us, %u turns, %.0f messages\n", 8 * TABLE, us, n_turns, taken);
	fflush(stdout);
	ck_assert_uint_eq(count_reported(&mallory[0], 1), TABLE);
	ck_assert_uint_eq(count_reported(&mallory[1], 4), TABLE);
	ck_assert_uint_eq(user->n_asks, 0);
	ck_assert(taken >= 8 * TABLE);
	ck_assert_uint_ge(n_turns, 8 * TABLE / USER_TURN);
}

/* It is disconnected, and its requests get no result. */
TEST(tables_are_not_sent_to_a_client_that_does_not_read)
{
	struct rig_client mallory;
	const struct user *user;
	double taken;
	unsigned int us;

	user = join_as_mallory(&mallory);
	ask_for_tables(&mallory, 1000);
	taken = user->rate.taken;
	us = list_services();
	printf("1,000 equal queries for a table of %u: %u us\n", TABLE, us);
	fflush(stdout);
	ck_assert(rig_is_disconnected(&mallory));
	ck_assert(user->rate.taken - taken > 1000);
	ck_assert(user->rate.taken - taken < 100 * TABLE);
}

/* It is cancelled after some clients have the result. */
TEST(cancelled_table_is_not_sent_further)
{
	struct portd_record drop = { .type = PORTD_SA_DROP, .sa_drop = { .ask_id = 1 } };
	struct rig_client mallory;

	join_as_mallory(&mallory);
	ask_for_tables(&mallory, 9);
	ck_assert(rig_send_record(&mallory, &drop));
	list_services();
	ck_assert_uint_eq(count_reported(&mallory, 1), 0);
	ck_assert_uint_eq(rig_server()->client[2]->n_asks, 0);
}

/* Joins and leaves until refused. Return: how often that was possible. */
static uint32_t join_and_leave(struct rig_client *client, uint32_t n_max)
{
	uint32_t n = 0;

	do {
		join_group(client, n, n);
		drop(client, n);
	} while (told(client, n) < 0 && ++n < n_max);
	return n;
}

/* The administrator does not answer. */
TEST(groups_left_at_once_leave_room_for_others)
{
	uint32_t *quotas = rig_server()->options.quotas.is;
	struct rig_client mallory;
	uint32_t n;

	quotas[QUOTA_USER_RATE] = 1000000;
	join_as_mallory(&mallory);
	n = join_and_leave(&mallory, SA_GROUPS_MAX + 100);
	join_group(&carol, 1, SA_GROUPS_MAX + 200);
	ck_assert_int_eq(told(&carol, 1), -1);
	ck_assert_uint_eq(rig_n_asked(), SA_TURN_OUT_MAX + 1);
	printf("one user joins and leaves %u groups, another joins one\n", n);
}

TEST(groups_being_left_count_in_a_users_quota)
{
	struct rig_client mallory;

	join_as_mallory(&mallory);
	rig_server()->client[2]->user->n_leaving += ASKS_MAX - SA_TURN_OUT_MAX / 2;
	ck_assert_uint_eq(join_and_leave(&mallory, SA_TURN_OUT_MAX), SA_TURN_OUT_MAX / 2);
	rig_pass(2001); /* the joins have timed out */
	ck_assert_uint_eq(join_and_leave(&mallory, 1), 0);
	rig_pass(SA_LEAVE_MS + 1);
	ck_assert_uint_eq(join_and_leave(&mallory, 1), 1);
}

TEST(a_user_is_kept_until_all_groups_are_left)
{
	struct rig_client mallory, erin;

	join_as_mallory(&mallory);
	join(&mallory, 1);
	rig_answer_by_sa(0, 0, 0xc001);
	rig_leave(&mallory);
	rig_pass(300);
	rig_client_as_user(61002);
	rig_join(&erin); /* charges of users who paused are dropped */
	ck_assert_uint_eq(rig_server()->users.n, 3);
	rig_pass(600);
	rig_join(&erin);
	ck_assert_uint_eq(rig_server()->users.n, 2);
}

/* Otherwise nobody else could join a group. */
TEST(memberships_of_one_user_leave_room_for_others)
{
	ck_assert_uint_gt(SA_GROUPS_MAX, 2 * ASKS_MAX);
}

#define N_QUESTIONS 1000
#define UNKNOWN	    5000

/* A user's frequent or invalid requests are charged to that user only. */
TEST(each_client_of_a_shared_request_has_its_own_timeout)
{
	struct rig_client mallory;
	struct portd_record hasty;

	join_as_mallory(&mallory);
	hasty = question(&mallory, 1, SA_METHOD_GET, SA_ATTR_PATH_RECORD);
	hasty.sa_ask.record[23] = 9; /* as ask_path() */
	hasty.sa_ask.timeout_ms = 1;
	tell(&mallory, &hasty);
	ask_path(&carol, 5);
	rig_pass(10);
	ck_assert_int_eq(told(&mallory, 1), ETIMEDOUT);
	ck_assert_int_eq(told(&carol, 5), -1);
	rig_answer_by_sa(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), 0);
}

TEST(a_refused_join_fails_no_other_users_join)
{
	struct rig_client mallory;
	struct portd_record wrong;

	join_as_mallory(&mallory);
	wrong = question(&mallory, 1, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD);
	wrong.sa_ask.record[0] = 0xff; /* as join(), but with one component */
	wrong.sa_ask.record[48] = SA_JOIN_FULL;
	wrong.sa_ask.comp_mask = SA_MEMBER_MGID;
	tell(&mallory, &wrong);
	join(&carol, 5);
	rig_answer_by_sa(0, 0x200, 0);
	ck_assert_int_eq(told(&mallory, 1), EINVAL);
	ck_assert_int_eq(told(&carol, 5), -1);
	rig_answer_by_sa(1, 0, 0xc001);
	ck_assert_int_eq(told(&carol, 5), 0);
}

TEST(disconnecting_costs_in_proportion_to_the_requests)
{
	struct rig_client mallory, guest;
	const struct user *user;
	double taken;
	uint32_t n;

	rig_client_as_user(61001);
	rig_join(&guest);
	rig_join(&mallory);
	for (n = 1; n <= N_QUESTIONS; n++)
		join_group(&mallory, n, n);
	user = rig_server()->client[2]->user;
	taken = user->rate.taken;
	rig_leave(&mallory);
	printf("to leave with %u joins costs %.0f messages\n", N_QUESTIONS,
	       user->rate.taken - taken);
	fflush(stdout);
	ck_assert(user->rate.taken - taken >= N_QUESTIONS);
	ck_assert_uint_eq(user->n_asks, 0);
}

static void drop_unknown(void)
{
	drop(&carol, UNKNOWN);
}

TEST(a_request_is_cancelled_in_constant_time)
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
