/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who looks on sees every message, once, and nobody else is the worse for it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cm/run.h"
#include "tests/unit/portd/scene.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

static const struct portd_record look_on = { .type = PORTD_LOOK_ON };

/* Return: the next SEEN; the test ends if there is none. */
static struct portd_seen next_seen(struct rig_client *client)
{
	struct portd_record record;

	ck_assert(rig_next(client, &record));
	ck_assert_int_eq(record.type, PORTD_SEEN);
	return record.seen;
}

START_TEST(an_onlooker_sees_what_another_sends)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct portd_seen seen;

	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	scene_sends(alice, scene_req(alice, 1));
	seen = next_seen(bob);
	ck_assert_uint_eq(seen.way, PORTD_SENT);
	ck_assert_uint_eq(cm_mad_attr(seen.mad), CM_ATTR_REQ);
	ck_assert_str_eq(seen.device, RIG_DEVICE);
	ck_assert_uint_eq(seen.port_num, 1);
	ck_assert_uint_eq(seen.local_gid.raw[15], RIG_GID);
	ck_assert_uint_eq(seen.pid, (uint32_t)getpid());
	ck_assert_mem_eq(&seen.path.dgid, &peer.dgid, 16);
}
END_TEST

START_TEST(an_onlooker_sees_what_arrives_for_another)
{
	struct portd_seen seen;

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	seen = next_seen(bob);
	ck_assert_uint_eq(seen.way, PORTD_RECEIVED);
	ck_assert_uint_eq(seen.pid, (uint32_t)getpid());
}
END_TEST

START_TEST(an_onlooker_sees_what_is_answered_for_nobody)
{
	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_uint_eq(cm_mad_attr(next_seen(bob).mad), CM_ATTR_REQ);
	ck_assert_uint_eq(cm_mad_attr(next_seen(bob).mad), CM_ATTR_REJ);
}
END_TEST

START_TEST(messages_are_numbered)
{
	uint64_t first;

	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	scene_said(scene_peer_req(0x701, SCENE_ADDR));
	first = next_seen(bob).number;
	ck_assert_uint_eq(next_seen(bob).number, first + 1);
}
END_TEST

START_TEST(who_does_not_look_on_sees_nothing)
{
	scene_sends(alice, scene_req(alice, 1));
	ck_assert_str_eq(scene_handed(bob), "");
}
END_TEST

START_TEST(only_root_and_its_owner_may_look_on)
{
	rig_server()->guest[1]->uid = geteuid() + 1;
	ck_assert_int_eq(rig_ask(bob, &look_on), EPERM);
	scene_sends(alice, scene_req(alice, 1));
	ck_assert_str_eq(scene_handed(bob), "");
}
END_TEST

START_TEST(nobody_looks_on_after_the_last_has_gone)
{
	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	rig_leave(bob);
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_onlookers, 0);
}
END_TEST

/* It never reads; its peers are not to notice. */
START_TEST(an_onlooker_that_does_not_read_loses_messages_and_holds_nobody_up)
{
	uint32_t n;

	ck_assert_int_eq(rig_ask(bob, &look_on), 0);
	for (n = 1; n <= 5000; n++)
		scene_said(scene_peer_req(n, SCENE_ADDR));
	ck_assert_uint_eq(rig_server()->n_seen, 10000);
	ck_assert_uint_le(rig_server()->guest[1]->n_backlog, 1000);
	ck_assert_uint_gt(rig_count(SERVER_COUNT_OVERFLOW), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_said(scene_peer_req(9999, SCENE_ADDR));
	ck_assert_str_eq(scene_handed(alice), "REQ");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("onlook");
	TCase *tcase = scene_tcase("onlook");

	tcase_add_test(tcase, an_onlooker_sees_what_another_sends);
	tcase_add_test(tcase, an_onlooker_sees_what_arrives_for_another);
	tcase_add_test(tcase, an_onlooker_sees_what_is_answered_for_nobody);
	tcase_add_test(tcase, messages_are_numbered);
	tcase_add_test(tcase, who_does_not_look_on_sees_nothing);
	tcase_add_test(tcase, only_root_and_its_owner_may_look_on);
	tcase_add_test(tcase, nobody_looks_on_after_the_last_has_gone);
	tcase_add_test(tcase, an_onlooker_that_does_not_read_loses_messages_and_holds_nobody_up);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
