/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients ask of the subnet administrator through cmportd, and who is a member of what when
 * they go.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/portd/proto/lease.h"
#include "mad/sa/agent.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/rig.h"
#include "tests/unit/portd/rig_subnet.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define JOIN_MASK UINT64_C(0x130c7)

static struct rig_client carol, dave;

static void set_up(void)
{
	folder_make();
	rig_is_infiniband();
	rig_set_up(socket_path);
	rig_join(&carol);
	rig_join(&dave);
}

static struct portd_record question(const struct rig_client *client, uint32_t ask_id,
				    uint8_t method, uint16_t attr)
{
	return (struct portd_record){
		.type = PORTD_SA_ASK,
		.sa_ask = {.port = client->handle,
			    .method = method,
			    .attr = attr,
			    .ask_id = ask_id,
			    .timeout_ms = 2000,
			    .comp_mask = SA_PATH_DGID}
	};
}

static void tell(struct rig_client *client, const struct portd_record *record)
{
	ck_assert(rig_tell(client, record));
	rig_settle();
}

static void ask_path(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record = question(client, ask_id, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	record.sa_ask.record[23] = 9; /* of the DGID */
	tell(client, &record);
}

static void join_group(struct rig_client *client, uint32_t ask_id, uint32_t group)
{
	struct portd_record record =
		question(client, ask_id, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD);

	record.sa_ask.comp_mask = JOIN_MASK;
	record.sa_ask.record[0] = 0xff;
	memcpy(record.sa_ask.record + 12, &group, sizeof(group)); /* of the MGID */
	record.sa_ask.record[31] = 0x66;			  /* a port GID that is not ours */
	record.sa_ask.record[48] = SA_JOIN_FULL;
	tell(client, &record);
}

static void join(struct rig_client *client, uint32_t ask_id)
{
	join_group(client, ask_id, 0);
}

static void drop(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record = { .type = PORTD_SA_DROP, .sa_drop = { .ask_id = ask_id } };

	tell(client, &record);
}

static void revalidate(struct rig_client *client)
{
	struct portd_record record = {
		.type = PORTD_SA_REVALIDATE,
		.sa_revalidate = {.port = client->handle, .dgid = { { [15] = 9 } }}
	};

	tell(client, &record);
}

/* Return: the error that it was told; -1 if nothing. */
static int told(struct rig_client *client, uint32_t ask_id)
{
	struct portd_record record;

	if (!rig_next(client, &record))
		return -1;
	ck_assert_int_eq(record.type, PORTD_SA_TOLD);
	ck_assert_uint_eq(record.sa_told.ask_id, ask_id);
	return record.sa_told.error;
}

FIXTURE(set_up, rig_tear_down);

TEST(answer_comes_back)
{
	struct portd_record record;

	ask_path(&carol, 5);
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_sa_answers(0, 0, 0x1234);
	ck_assert(rig_next(&carol, &record));
	ck_assert_uint_eq(record.sa_told.ask_id, 5);
	ck_assert_uint_eq(record.sa_told.error, 0);
	ck_assert_uint_eq(record.sa_told.record[40], 0x12);
	ck_assert_uint_eq(record.sa_told.record[41], 0x34);
}

TEST(two_clients_ask_once)
{
	ask_path(&carol, 5);
	ask_path(&dave, 5);
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_sa_answers(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), 0);
	ck_assert_int_eq(told(&dave, 5), 0);
	ask_path(&dave, 6);
	ck_assert_int_eq(told(&dave, 6), 0);
	ck_assert_uint_eq(rig_n_asked(), 1);
}

TEST(silence_is_told)
{
	ask_path(&carol, 5);
	for (int i = 0; i < 11; i++)
		rig_pass(200);
	ck_assert_int_eq(told(&carol, 5), ETIMEDOUT);
	ck_assert_uint_eq(rig_n_asked(), 10);
	ck_assert_int_eq(rig_wait_ms(), -1);
}

TEST(refusal_is_told)
{
	ask_path(&carol, 5);
	rig_sa_answers(0, 0x300, 0);
	ck_assert_int_eq(told(&carol, 5), EINVAL);
}

TEST(another_administrator_is_asked_at_once)
{
	ask_path(&carol, 5);
	rig_port_event(IBV_EVENT_SM_CHANGE, 77);
	ck_assert_uint_eq(rig_n_asked(), 2);
}

static uint32_t n_events(const struct rig_client *client)
{
	off_t at = offsetof(struct lease_page, n_events) + client->handle * sizeof(uint32_t);
	uint32_t n;

	ck_assert_int_eq(pread(client->page_fd, &n, sizeof(n), at), sizeof(n));
	return n;
}

TEST(events_of_the_port_are_counted_on_the_pages_of_its_clients)
{
	uint32_t before = n_events(&carol);

	ck_assert_uint_gt(before, 0); /* it has opened the port */
	rig_port_event(IBV_EVENT_PKEY_CHANGE, 1);
	ck_assert_uint_eq(n_events(&carol), before + 1);
	rig_port_event(IBV_EVENT_GID_CHANGE, 1);
	ck_assert_uint_eq(n_events(&carol), before + 2);
	rig_port_event(IBV_EVENT_QP_LAST_WQE_REACHED, 1); /* is not of a port */
	ck_assert_uint_eq(n_events(&carol), before + 2);
}

TEST(revalidation_queries_a_path_anew)
{
	ask_path(&carol, 5);
	rig_sa_answers(0, 0, 7);
	revalidate(&dave);
	ask_path(&dave, 6);
	ck_assert_uint_eq(rig_n_asked(), 2);
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

TEST(membership_is_of_our_port_whatever_a_client_says)
{
	join(&carol, 5);
	ck_assert_uint_eq(rig_asked(0)->member.port_gid.raw[15], 1);
}

TEST(the_last_client_that_goes_leaves_the_group)
{
	join(&carol, 5);
	join(&dave, 6);
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_sa_answers(0, 0, 0xc001);
	ck_assert_int_eq(told(&carol, 5), 0);
	ck_assert_int_eq(told(&dave, 6), 0);
	rig_leave(&carol);
	rig_settle();
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_leave(&dave);
	rig_settle();
	ck_assert_uint_eq(rig_n_asked(), 2);
	ck_assert_uint_eq(rig_asked(1)->hdr.method, SA_METHOD_DELETE);
}

TEST(dropped_membership_is_left)
{
	join(&carol, 5);
	rig_sa_answers(0, 0, 0xc001);
	drop(&carol, 4);
	ck_assert_uint_eq(rig_n_asked(), 1);
	drop(&carol, 5);
	ck_assert_uint_eq(rig_asked(1)->hdr.method, SA_METHOD_DELETE);
}

TEST(lost_membership_is_told)
{
	join(&carol, 5);
	rig_sa_answers(0, 0, 0xc001);
	ck_assert_int_eq(told(&carol, 5), 0);
	rig_port_event(IBV_EVENT_CLIENT_REREGISTER, 1);
	rig_sa_answers(1, 0, 0xc002);
	ck_assert_int_eq(told(&carol, 5), ENETRESET);
}

TEST_LOOP(what_would_change_the_subnet_is_refused, 0, 5)
{
	static const struct {
		uint8_t method;
		uint16_t attr;
	} forbidden[] = {
		{SA_METHOD_SET,	 SA_ATTR_SERVICE_RECORD },
		{ SA_METHOD_SET,	 SA_ATTR_PATH_RECORD    },
		{ SA_METHOD_DELETE,    SA_ATTR_MCMEMBER_RECORD},
		{ SA_METHOD_GET_TABLE, SA_ATTR_PATH_RECORD	   },
		{ SA_METHOD_GET,	 0x11		      }
	};
	struct portd_record record = question(&carol, 5, forbidden[_i].method, forbidden[_i].attr);

	tell(&carol, &record);
	ck_assert_int_eq(told(&carol, 5), EPERM);
	ck_assert_uint_eq(rig_n_asked(), 0);
}

TEST(table_is_told_record_by_record)
{
	struct portd_record record =
		question(&carol, 5, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD);
	unsigned int i;

	tell(&carol, &record);
	ck_assert_uint_eq(rig_asked(0)->hdr.method, SA_METHOD_GET_TABLE);
	rig_sa_lists(0, 300);
	for (i = 0; i < 300; i++) {
		ck_assert(rig_next(&carol, &record));
		ck_assert_uint_eq(record.sa_told.ask_id, 5);
		ck_assert_uint_eq(record.sa_told.error, 0);
		ck_assert_uint_eq(record.sa_told.left, 299 - i);
		ck_assert_uint_eq(record.sa_told.record[6] << 8 | record.sa_told.record[7], i);
	}
	ck_assert_int_eq(told(&carol, 5), -1);
}

TEST_LOOP(table_that_is_empty_or_too_long_is_an_error, 0, 2)
{
	struct portd_record record =
		question(&carol, 5, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD);

	tell(&carol, &record);
	rig_sa_lists(0, _i ? 1025 : 0);
	ck_assert_int_eq(told(&carol, 5), _i ? E2BIG : ENOENT);
	ck_assert_int_eq(told(&carol, 5), -1);
}

TEST(port_that_was_not_opened_is_refused)
{
	struct portd_record record = question(&carol, 5, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	record.sa_ask.port = 63;
	tell(&carol, &record);
	ck_assert_int_eq(told(&carol, 5), ENODEV);
}

TEST(questions_of_one_client_are_limited)
{
	for (uint32_t i = 0; i < 1024; i++)
		ask_path(&carol, i);
	ck_assert_int_eq(told(&carol, 0), -1);
	ask_path(&carol, 2000);
	ck_assert_int_eq(told(&carol, 2000), EPERM);
	ask_path(&dave, 1);
	rig_sa_answers(0, 0, 7);
	ck_assert_int_eq(told(&dave, 1), 0);
}

static void ask_path_to(struct rig_client *client, uint32_t ask_id, uint8_t host)
{
	struct portd_record record = question(client, ask_id, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	record.sa_ask.timeout_ms = 600000;
	record.sa_ask.record[23] = host; /* of the DGID */
	tell(client, &record);
}

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

TEST(question_that_comes_again_after_a_restart_is_answered_once)
{
	struct portd_record again = question(&carol, 5, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	again.sa_ask.port = 63; /* the handle that the cmportd before had given */
	ask_path(&carol, 5);
	tell(&carol, &again);
	ck_assert_int_eq(told(&carol, 5), -1);
	rig_sa_answers(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), 0);
	ck_assert_int_eq(told(&carol, 5), -1);
}

TEST(questions_of_two_clients_may_have_the_same_id)
{
	ask_path(&carol, 5);
	ask_path(&dave, 5);
	drop(&carol, 5);
	rig_sa_answers(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), -1);
	ck_assert_int_eq(told(&dave, 5), 0);
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

/* --- what a message may name there --------------------------------------- */

static const struct way {
	const char *what;
	struct mad_path path;
	bool may;
} ways[] = {
	{"as the library",		    { .dlid = 5 },				   true },
	{ "a service level",		     { .dlid = 5, .sl = 15 },		      true },
	{ "no such service level",	   { .dlid = 5, .sl = 16 },		    false},
	{ "a P_Key index",		   { .dlid = 5, .pkey_index = RIG_PKEYS - 1 }, true },
	{ "no such P_Key index",		 { .dlid = 5, .pkey_index = RIG_PKEYS },	 false},
	{ "what is beside the flow label", { .grh = true, .flow_label = 0x100000 },    false},
};

TEST_LOOP(the_way_of_a_message_is_one_that_the_port_has, 0, sizeof(ways) / sizeof(ways[0]))
{
	struct cm_msg req = scene_req(&carol, 1);
	struct rig_sent sent;
	struct cm_msg msg;

	rig_send(&carol, &ways[_i].path, &req);
	ck_assert_msg(rig_sent(&sent, &msg) == ways[_i].may, "%s", ways[_i].what);
}
