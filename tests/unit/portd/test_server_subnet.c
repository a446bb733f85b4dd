/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of clients to the subnet administrator through cmportd, and group memberships after
 * their end.
 */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "lib/portd/proto/lease.h"
#include "tests/unit/portd/askers.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

FIXTURE(askers_set_up, rig_tear_down);

TEST(response_reaches_the_client)
{
	struct portd_record record;

	ask_path(&carol, 5);
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_answer_by_sa(0, 0, 0x1234);
	ck_assert(rig_next(&carol, &record));
	ck_assert_uint_eq(record.sa_told.ask_id, 5);
	ck_assert_uint_eq(record.sa_told.error, 0);
	ck_assert_uint_eq(record.sa_told.record[40], 0x12);
	ck_assert_uint_eq(record.sa_told.record[41], 0x34);
}

TEST(request_has_the_default_p_key)
{
	ask_path(&carol, 5);
	ck_assert_uint_eq(rig_asked_with(), 1);
}

TEST(equal_requests_of_two_clients_are_sent_once)
{
	ask_path(&carol, 5);
	ask_path(&dave, 5);
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_answer_by_sa(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), 0);
	ck_assert_int_eq(told(&dave, 5), 0);
	ask_path(&dave, 6);
	ck_assert_int_eq(told(&dave, 6), 0);
	ck_assert_uint_eq(rig_n_asked(), 1);
}

TEST(timeout_is_reported)
{
	ask_path(&carol, 5);
	for (int i = 0; i < 11; i++)
		rig_pass(200);
	ck_assert_int_eq(told(&carol, 5), ETIMEDOUT);
	ck_assert_uint_eq(rig_n_asked(), 10);
	ck_assert_int_eq(rig_wait_ms(), -1);
}

TEST(refusal_is_reported)
{
	ask_path(&carol, 5);
	rig_answer_by_sa(0, 0x300, 0);
	ck_assert_int_eq(told(&carol, 5), EINVAL);
}

TEST(new_administrator_gets_requests_at_once)
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
	rig_port_event(IBV_EVENT_QP_LAST_WQE_REACHED, 1); /* not of a port */
	ck_assert_uint_eq(n_events(&carol), before + 2);
}

TEST(revalidation_queries_a_path_anew)
{
	ask_path(&carol, 5);
	rig_answer_by_sa(0, 0, 7);
	revalidate(&dave);
	ask_path(&dave, 6);
	ck_assert_uint_eq(rig_n_asked(), 2);
}

TEST(membership_has_the_gid_of_our_port)
{
	join(&carol, 5);
	ck_assert_uint_eq(rig_asked(0)->member.port_gid.raw[15], 1);
}

TEST(disconnect_of_the_last_client_leaves_the_group)
{
	join(&carol, 5);
	join(&dave, 6);
	ck_assert_uint_eq(rig_n_asked(), 1);
	rig_answer_by_sa(0, 0, 0xc001);
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
	rig_answer_by_sa(0, 0, 0xc001);
	drop(&carol, 4);
	ck_assert_uint_eq(rig_n_asked(), 1);
	drop(&carol, 5);
	ck_assert_uint_eq(rig_asked(1)->hdr.method, SA_METHOD_DELETE);
}

TEST(lost_membership_is_reported)
{
	join(&carol, 5);
	rig_answer_by_sa(0, 0, 0xc001);
	ck_assert_int_eq(told(&carol, 5), 0);
	rig_port_event(IBV_EVENT_CLIENT_REREGISTER, 1);
	rig_answer_by_sa(1, 0, 0xc002);
	ck_assert_int_eq(told(&carol, 5), ENETRESET);
}

TEST_LOOP(requests_that_change_the_subnet_are_refused, 0, 5)
{
	static const struct {
		uint8_t method;
		uint16_t attr;
	} forbidden[] = { { SA_METHOD_SET, SA_ATTR_SERVICE_RECORD },
			  { SA_METHOD_SET, SA_ATTR_PATH_RECORD },
			  { SA_METHOD_DELETE, SA_ATTR_MCMEMBER_RECORD },
			  { SA_METHOD_GET_TABLE, SA_ATTR_PATH_RECORD },
			  { SA_METHOD_GET, 0x11 } };
	struct portd_record record = question(&carol, 5, forbidden[_i].method, forbidden[_i].attr);

	tell(&carol, &record);
	ck_assert_int_eq(told(&carol, 5), EPERM);
	ck_assert_uint_eq(rig_n_asked(), 0);
}

TEST(table_is_sent_record_by_record)
{
	struct portd_record record =
		question(&carol, 5, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD);
	unsigned int i;

	tell(&carol, &record);
	ck_assert_uint_eq(rig_asked(0)->hdr.method, SA_METHOD_GET_TABLE);
	rig_list_by_sa(0, 300);
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
	rig_list_by_sa(0, _i ? 1025 : 0);
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

TEST(requests_of_one_user_are_limited)
{
	struct rig_client mallory;

	rig_client_as_user(61001);
	rig_join(&mallory);
	for (uint32_t i = 0; i < ASKS_MAX; i++)
		ask_path(&mallory, i);
	ck_assert_int_eq(told(&mallory, 0), -1);
	ask_path(&mallory, ASKS_MAX);
	ck_assert_int_eq(told(&mallory, ASKS_MAX), EDQUOT);
	ask_path(&dave, 1);
	rig_answer_by_sa(0, 0, 7);
	ck_assert_int_eq(told(&dave, 1), 0);
}

TEST(requests_of_root_are_not_limited)
{
	struct rig_client root;

	rig_client_as_user(0);
	rig_join(&root);
	for (uint32_t i = 0; i <= ASKS_MAX; i++)
		ask_path(&root, i);
	ck_assert_int_eq(told(&root, ASKS_MAX), -1);
}

TEST(request_repeated_after_a_restart_is_answered_once)
{
	struct portd_record again = question(&carol, 5, SA_METHOD_GET, SA_ATTR_PATH_RECORD);

	again.sa_ask.port = 63; /* the handle from the previous cmportd */
	ask_path(&carol, 5);
	tell(&carol, &again);
	ck_assert_int_eq(told(&carol, 5), -1);
	rig_answer_by_sa(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), 0);
	ck_assert_int_eq(told(&carol, 5), -1);
}

TEST(requests_of_two_clients_may_have_the_same_id)
{
	ask_path(&carol, 5);
	ask_path(&dave, 5);
	drop(&carol, 5);
	rig_answer_by_sa(0, 0, 7);
	ck_assert_int_eq(told(&carol, 5), -1);
	ck_assert_int_eq(told(&dave, 5), 0);
}

/* --- fields of a message on InfiniBand ----------------------------------- */

static const struct way {
	const char *what;
	struct mad_path path;
	bool may;
} ways[] = {
	{ "as the library", { .dlid = 5 }, true },
	{ "a service level", { .dlid = 5, .sl = 15 }, true },
	{ "no such service level", { .dlid = 5, .sl = 16 }, false },
	{ "a P_Key index", { .dlid = 5, .pkey_index = RIG_PKEYS - 1 }, true },
	{ "no such P_Key index", { .dlid = 5, .pkey_index = RIG_PKEYS }, false },
	{ "what is beside the flow label", { .grh = true, .flow_label = 0x100000 }, false },
};

TEST_LOOP(message_has_a_path_of_its_port, 0, sizeof(ways) / sizeof(ways[0]))
{
	struct cm_msg req = scene_req(&carol, 1);
	struct rig_sent sent;
	struct cm_msg msg;

	rig_send(&carol, &ways[_i].path, &req);
	ck_assert_msg(rig_sent(&sent, &msg) == ways[_i].may, "%s", ways[_i].what);
}
