/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that requests the state gets that of all clients that its user may see, and of no
 * others.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/portd/server/asks/asks.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	 (&scene_alice)
#define bob	 (&scene_bob)
#define STRANGER (geteuid() + 1)

static const struct portd_record stat_all = { .type = PORTD_STAT };

/* Return: the next record of a type for a client; the test ends if there is none. */
static struct portd_record next_of(struct rig_client *client, enum portd_type type)
{
	struct portd_record record;

	do
		ck_assert_msg(rig_next(client, &record), "no %s", portd_type_str(type));
	while (record.type != type);
	return record;
}

static unsigned int n_records_of(struct rig_client *client, enum portd_type type)
{
	struct portd_record record;
	unsigned int n = 0;

	while (rig_next(client, &record))
		n += record.type == type;
	return n;
}

/* A query of Bob's client. Return: its number. */
static uint32_t ask_for_all(void)
{
	ck_assert_int_eq(rig_ask(bob, &stat_all), 0);
	return bob->reply.first;
}

static struct portd_record id_row(uint32_t ask_id)
{
	struct portd_record row = { .type = PORTD_STAT_ID };

	row.stat_id.row.ask_id = ask_id;
	row.stat_id.local_comm_id = 0xabc;
	row.stat_id.port = alice->handle;
	return row;
}

static void answer_with_row(const struct portd_record *row)
{
	ck_assert(rig_send_record(alice, row));
	rig_settle();
}

FIXTURE(scene_set_up, scene_tear_down);

TEST(every_client_is_queried_with_the_same_number)
{
	uint32_t ask_id = ask_for_all();

	ck_assert_uint_eq(bob->reply.count, 2);
	ck_assert_uint_eq(next_of(alice, PORTD_STAT_ASK).stat_ask.ask_id, ask_id);
	ck_assert_uint_eq(next_of(bob, PORTD_STAT_ASK).stat_ask.ask_id, ask_id);
}

TEST(rows_of_a_client_are_forwarded_with_its_process)
{
	struct portd_record row = id_row(ask_for_all());
	struct portd_stat_id got;

	row.stat_row.client = 77;
	answer_with_row(&row);
	got = next_of(bob, PORTD_STAT_ID).stat_id;
	ck_assert_uint_eq(got.row.client, 0);
	ck_assert_uint_eq(got.local_comm_id, 0xabc);
	ck_assert_uint_eq(got.port, alice->handle);
}

TEST(the_reply_has_the_number_of_queried_clients)
{
	struct portd_stat_process process;

	scene_connect(alice, 1);
	ask_for_all();
	process = next_of(bob, PORTD_STAT_PROCESS).stat_process;
	ck_assert_uint_eq(process.pid, (uint32_t)getpid());
	ck_assert_uint_eq(process.n_conns, 1);
	ck_assert_uint_eq(next_of(bob, PORTD_STAT_END).stat_row.client, PORTD_STAT_ITSELF);
}

TEST(an_ordinary_user_gets_no_processes_of_others)
{
	rig_server()->client[1]->uid = STRANGER;
	ask_for_all();
	ck_assert_uint_eq(bob->reply.count, 1); /* the row of bob */
	ck_assert_uint_eq(n_records_of(alice, PORTD_STAT_ASK), 0);
}

TEST(rows_for_an_unauthorised_client_are_dropped)
{
	struct portd_record row = id_row(ask_for_all());

	rig_server()->client[1]->uid = STRANGER;
	answer_with_row(&row);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
}

TEST(an_ordinary_user_gets_own_processes)
{
	rig_server()->client[0]->uid = rig_server()->client[1]->uid = STRANGER;
	ask_for_all();
	ck_assert_uint_eq(bob->reply.count, 2);
}

TEST(only_root_gets_orphans)
{
	scene_connect(alice, 1);
	rig_leave(alice);
	rig_settle();
	ask_for_all();
	ck_assert_uint_eq(next_of(bob, PORTD_STAT_ID).stat_row.client, PORTD_STAT_ITSELF);
	rig_server()->client[1]->uid = STRANGER;
	rig_pass(100);
	ask_for_all();
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
}

/* --- quotas -------------------------------------------------------------- */

static const struct portd_record stat_quotas = { .type = PORTD_STAT,
						 .stat = { .pid = PORTD_STAT_QUOTAS } };

static struct portd_stat_quota quota_row(const char *name)
{
	struct portd_record record;

	do
		record = next_of(bob, PORTD_STAT_QUOTA);
	while (strcmp(record.stat_quota.name, name) != 0);
	return record.stat_quota;
}

TEST(quotas_are_reported_with_their_use)
{
	struct portd_stat_quota row;

	scene_connect(bob, 1);
	rig_server()->options.quotas.is[QUOTA_USER_CONNS] = 17;
	ck_assert_int_eq(rig_ask(bob, &stat_quotas), 0);
	ck_assert_uint_eq(bob->reply.count, 0);
	row = quota_row("user-clients");
	ck_assert_uint_eq(row.uid, 0);
	ck_assert_uint_eq(row.has, 2);
	row = quota_row("user-conns");
	ck_assert_uint_eq(row.has, 1);
	ck_assert_uint_eq(row.limit, 17);
	row = quota_row("host-rate");
	ck_assert_uint_eq(row.uid, PORTD_QUOTA_EACH);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_END), 1);
}

TEST(a_reached_quota_is_marked)
{
	rig_server()->client[1]->user->was_refused = 1u << QUOTA_USER_PORTS;
	ck_assert_int_eq(rig_ask(bob, &stat_quotas), 0);
	ck_assert_uint_eq(quota_row("user-clients").was_reached, 0);
	ck_assert_uint_eq(quota_row("user-ports").was_reached, 1);
}

TEST(an_ordinary_user_gets_no_quotas_of_others)
{
	rig_server()->client[1]->uid = STRANGER;
	ck_assert_int_eq(rig_ask(bob, &stat_quotas), 0);
	ck_assert_uint_eq(quota_row("user-rate").uid, PORTD_QUOTA_EACH); /* the first record */
}

TEST(a_single_process_can_be_queried)
{
	const struct portd_record of_other = { .type = PORTD_STAT, .stat = { .pid = 1 } };

	ck_assert_int_eq(rig_ask(bob, &of_other), 0);
	ck_assert_uint_eq(bob->reply.count, 0);
	ck_assert_uint_eq(n_records_of(alice, PORTD_STAT_ASK), 0);
}

TEST(unrequested_rows_are_dropped)
{
	struct portd_record row = id_row(1);

	answer_with_row(&row);
	row = id_row(0);
	answer_with_row(&row);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
	ck_assert(!rig_is_disconnected(alice));
}

/* `purecm stat` would take them for cmportd's own: it does not have that client. */
TEST(rows_of_a_later_client_are_dropped)
{
	struct portd_record row = id_row(ask_for_all());
	struct rig_client carol;

	rig_join(&carol);
	ck_assert(rig_send_record(&carol, &row));
	rig_settle();
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
	rig_pass(100);
	row = id_row(ask_for_all());
	ck_assert(rig_send_record(&carol, &row));
	rig_settle();
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 1);
}

TEST(rows_of_an_unqueried_process_are_dropped)
{
	const struct portd_record of_other = { .type = PORTD_STAT, .stat = { .pid = 1 } };
	struct portd_record row, end = { .type = PORTD_STAT_END };

	ck_assert_int_eq(rig_ask(bob, &of_other), 0);
	row = id_row(bob->reply.first);
	end.stat_end.row.ask_id = bob->reply.first;
	n_records_of(bob, PORTD_STAT_END);
	answer_with_row(&row);
	answer_with_row(&end);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
	answer_with_row(&end);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_END), 0);
}

TEST(rows_of_an_earlier_query_are_dropped)
{
	struct portd_record row = id_row(ask_for_all());

	rig_pass(100);
	ask_for_all();
	answer_with_row(&row);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
}

TEST(rows_for_an_ended_client_are_dropped)
{
	struct portd_record row = id_row(ask_for_all());

	rig_leave(bob);
	rig_settle();
	rig_join(bob);
	answer_with_row(&row);
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
}

TEST(an_unopened_port_in_a_row_is_dropped)
{
	struct portd_record row = id_row(ask_for_all());

	row.stat_id.port = 63;
	answer_with_row(&row);
	ck_assert_uint_eq(next_of(bob, PORTD_STAT_ID).stat_id.port, PORTD_STAT_NO_PORT);
}

TEST(frequent_queries_are_delayed)
{
	ask_for_all();
	ck_assert_int_eq(rig_ask(bob, &stat_all), EBUSY);
	rig_pass(20);
	ck_assert_int_eq(rig_ask(bob, &stat_all), 0);
}

/* Return: a counter of port 1 that cmportd has sent to Bob; 0 if it has not. */
static uint64_t reported_count(uint16_t client, enum portd_stat_counter what, enum cm_attr attr)
{
	struct portd_record record;
	uint64_t value = 0;

	while (rig_next(bob, &record))
		if (record.type == PORTD_STAT_COUNT && record.stat_row.client == client &&
		    record.stat_count.what == what &&
		    record.stat_count.message == attr - CM_ATTR_REQ)
			value = record.stat_count.value;
	return value;
}

TEST(sent_messages_of_a_port_are_counted_by_kind)
{
	scene_sends(alice, scene_req(alice, 1));
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_PASSING, PORTD_COUNT_SENT, CM_ATTR_REQ), 1);
}

TEST(received_messages_of_a_port_are_counted_by_kind)
{
	scene_connect(alice, 1);
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_PASSING, PORTD_COUNT_RECEIVED, CM_ATTR_REP), 1);
}

TEST(refused_messages_of_a_client_are_counted_by_kind)
{
	scene_sends(alice, scene_req(bob, 1));
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_PASSING, PORTD_COUNT_FORBIDDEN, CM_ATTR_REQ),
			  1);
}

TEST(messages_through_umad_are_counted_by_kind)
{
	rig_set_sender_refusal(-EAGAIN);
	scene_sends(alice, scene_req(alice, 1));
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_PASSING, PORTD_COUNT_BY_UMAD, CM_ATTR_REQ), 1);
}

TEST_LOOP(peers_that_the_fast_path_reaches_and_does_not_reach_are_counted, 0, 2)
{
	static const enum portd_stat_counter what[] = { PORTD_COUNT_FAST_PEERS,
							PORTD_COUNT_LOST_PEERS };
	const enum cm_attr none = (enum cm_attr)(CM_ATTR_REQ + CM_TALLY_NONE);

	rig_probe(&(struct mad_sender_score){ .n_reached = 3, .n_lost = 4 });
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_PASSING, what[_i], none), 3 + (uint64_t)_i);
}

TEST(unconnected_answers_are_counted_at_the_port_and_for_cmportd)
{
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_PASSING, PORTD_COUNT_ANSWERED, CM_ATTR_REQ), 1);
	rig_pass(20);
	ask_for_all();
	ck_assert_uint_eq(reported_count(PORTD_STAT_ITSELF, PORTD_COUNT_SENT, CM_ATTR_REJ), 1);
}

TEST(a_visiting_client_gets_no_comm_ids_and_no_query)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct rig_client visitor = { .control = rig_dial(), .data = -1, .page_fd = -1 };
	struct portd_record row;

	hello.hello.visits = 1;
	ck_assert_int_eq(rig_ask(&visitor, &hello), 0);
	ck_assert_uint_eq(visitor.reply.count, 0);
	ask_for_all();
	ck_assert_uint_eq(bob->reply.count, 2);
	row = id_row(bob->reply.first);
	ck_assert(rig_send_record(&visitor, &row));
	rig_settle();
	ck_assert_uint_eq(n_records_of(bob, PORTD_STAT_ID), 0);
	close(visitor.control);
	rig_settle();
}

/* It never reads, which must not affect others. */
TEST(a_querying_client_that_does_not_read_loses_rows)
{
	struct portd_record row = id_row(ask_for_all());
	unsigned int i;

	rig_server()->client[1]->uid = STRANGER;
	rig_server()->client[0]->uid = STRANGER;
	for (i = 0; i < 40000; i++) {
		rig_send_record(alice, &row);
		if (i % 100 == 0)
			rig_settle();
		if (i % 1000 == 0)
			rig_pass(10);
	}
	rig_pass(1000);
	ck_assert_uint_eq(rig_server()->client[1]->n_backlog, BACKLOG_MAX);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
}
