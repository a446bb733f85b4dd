/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/conn/stat_rows.c: the report of a process about its ids, to a cmportd that reads when the
 * test lets it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/conn/stat_rows.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define ASK_ID	  77
#define MANY	  1000 /* ids, which need several datagrams */
#define AHEAD_MS  5
#define LISTENING 7174

static struct id *new_id(void)
{
	return rig_id(RDMA_PS_TCP, ID_IDLE);
}

FIXTURE(rig_begin, NULL);

TEST(process_without_a_query_sends_nothing)
{
	stat_send_rows(NULL);
	ck_assert_uint_eq(cmportd.n_datagrams, 0);
	ck_assert(stat_deadline().ns == CM_TIME_NEVER.ns);
}

TEST(report_without_ids_has_an_end)
{
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	ck_assert_uint_eq(cmportd.n_said, 1);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_STAT_END)->stat_end.n_rows, 0);
	ck_assert_uint_eq(cmportd.said[0].stat_row.ask_id, ASK_ID);
}

TEST(report_has_state_and_address_of_an_id)
{
	struct id *id = new_id();
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(LISTENING) };
	const struct portd_stat_id *told;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&id->claim.local, &addr, sizeof(addr));
	id->state = ID_LISTEN;
	id->n_requests = 4;
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	told = &fake_cmportd_last(PORTD_STAT_ID)->stat_id;
	ck_assert_uint_eq(told->id_state, ID_LISTEN);
	ck_assert_uint_eq(told->conn_state, PORTD_STAT_NONE);
	ck_assert_uint_eq(told->port, PORTD_STAT_NO_PORT);
	ck_assert_uint_eq(told->ps, RDMA_PS_TCP);
	ck_assert_uint_eq(told->family, 4);
	ck_assert_uint_eq(told->local_port, LISTENING);
	ck_assert_mem_eq(told->local_addr + 12, &addr.sin_addr, 4);
	ck_assert_uint_eq(told->n_requests, 4);
	ck_assert_uint_lt(told->age_ms, 60000);
}

TEST(report_has_nonzero_counters_with_their_port)
{
	const struct portd_stat_count *told;

	rig.port->cm.tally.count[CM_COUNT_ALIEN][CM_ATTR_DREQ - CM_ATTR_REQ] = 9;
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_COUNT), 1);
	told = &fake_cmportd_last(PORTD_STAT_COUNT)->stat_count;
	ck_assert_uint_eq(told->port, FAKE_HANDLE);
	ck_assert_uint_eq(told->what, PORTD_COUNT_ALIEN);
	ck_assert_uint_eq(told->message, CM_ATTR_DREQ - CM_ATTR_REQ);
	ck_assert_uint_eq(told->value, 9);
}

TEST(every_counter_fits)
{
	memset(&rig.port->cm.tally, 1, sizeof(rig.port->cm.tally));
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_COUNT),
			  (CM_N_COUNTERS + 2) * CM_TALLY_KINDS);
}

TEST(report_releases_its_ports)
{
	unsigned int before = rig.port->refs;

	stat_asked(ASK_ID);
	ck_assert_uint_eq(rig.port->refs, before);
}

TEST(many_ids_need_several_datagrams)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		new_id();
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_ID), MANY);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_STAT_END)->stat_end.n_rows, MANY);
	ck_assert_uint_gt(cmportd.n_datagrams, 2);
}

TEST(rows_without_room_are_sent_later_and_once)
{
	new_id();
	cmportd.n_busy = 2;
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	ck_assert_uint_eq(cmportd.n_said, 0);
	ck_assert_uint_le(stat_deadline().ns, clock_now().ns + AHEAD_MS * CM_NS_PER_MS);
	stat_send_rows(NULL);
	stat_send_rows(NULL);
	stat_send_rows(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_ID), 1);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_END), 1);
	ck_assert(stat_deadline().ns == CM_TIME_NEVER.ns);
}

TEST(report_is_a_snapshot_of_the_time_of_the_query)
{
	cmportd.n_busy = 1;
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	new_id();
	stat_send_rows(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_ID), 0);
}

TEST(later_query_replaces_the_earlier)
{
	stat_asked(ASK_ID);
	stat_asked(ASK_ID + 1);
	stat_send_rows(NULL);
	ck_assert_uint_eq(fake_cmportd_count(PORTD_STAT_END), 1);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_STAT_END)->stat_row.ask_id, ASK_ID + 1);
}

TEST(query_of_an_ended_client_is_dropped)
{
	cmportd.try_err = -EPIPE;
	stat_asked(ASK_ID);
	stat_send_rows(NULL);
	ck_assert(stat_deadline().ns == CM_TIME_NEVER.ns);
}
