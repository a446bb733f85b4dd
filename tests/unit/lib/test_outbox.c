/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a step, sent to cmportd: lib/engine/outbox.c and session.c. */
#include "lib/engine/outbox.h"

#include "lib/engine/session.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

static struct outbox box;

static void set_up(void)
{
	rig_begin();
	outbox_init(&box);
}

FIXTURE(set_up, NULL);

/* A message is identified by its first byte. */
static void put(uint8_t first)
{
	struct cm_send *send = &box.send[box.n++];

	*send = (struct cm_send){ .port = &port_get(rig.port)->cm };
	send->mad[0] = first;
}

static void put_closed(uint32_t comm_id)
{
	box.closed[box.n_closed++].local_comm_id = comm_id;
}

TEST(messages_are_sent_in_order)
{
	put(1);
	put(2);
	outbox_flush(&box);
	ck_assert_uint_eq(cmportd.n_left, 2);
	ck_assert_uint_eq(cmportd.n_sends, 1);
	ck_assert_uint_eq(cmportd.said[0].mad.mad[0], 1);
	ck_assert_uint_eq(cmportd.said[1].mad.mad[0], 2);
}

TEST(flushed_box_is_empty_and_holds_no_port)
{
	unsigned int before = rig.port->refs;

	put(1);
	outbox_flush(&box);
	ck_assert_uint_eq(box.n, 0);
	ck_assert_uint_eq(rig.port->refs, before);
}

TEST(empty_box_sends_nothing)
{
	outbox_flush(&box);
	ck_assert_uint_eq(cmportd.n_sends, 0);
}

TEST(comm_id_is_closed_after_its_last_message)
{
	put_closed(77);
	put(1);
	outbox_flush(&box);
	ck_assert_str_eq(portd_type_str(cmportd.said[0].type), "MAD");
	ck_assert_str_eq(portd_type_str(cmportd.said[1].type), "CLOSE");
	ck_assert_uint_eq(cmportd.said[1].close.local_comm_id, 77);
}

TEST(box_is_empty_after_a_failure_to_send)
{
	put(1);
	cmportd.send_err = -EPIPE;
	outbox_flush(&box);
	ck_assert_uint_eq(box.n, 0);
}

TEST(message_for_a_port_that_cmportd_lost_is_dropped)
{
	put(1);
	rig.port->handle = -1;
	outbox_flush(&box);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

TEST(held_messages_are_sent_on_release)
{
	put(1);
	outbox_hold(&box, false);
	put(2);
	outbox_hold(&box, false);
	ck_assert_uint_eq(cmportd.n_left, 0);
	outbox_release();
	ck_assert_uint_eq(cmportd.n_left, 2);
	ck_assert_uint_eq(cmportd.n_sends, 1);
}

TEST(retransmission_is_marked)
{
	put(1);
	outbox_hold(&box, false);
	put(2);
	outbox_hold(&box, true);
	ck_assert(!cmportd.said[0].mad.again);
	ck_assert(cmportd.said[1].mad.again);
}

/* --- comm ids freed by a step ----------------------------------------------------- */

static void release(uint32_t comm_id, struct port *port)
{
	struct cm_conn conn = { .local_comm_id = comm_id };

	conn.port = port ? &port->cm : NULL;
	session_note_released(NULL, &conn);
}

TEST(released_comm_ids_are_sent_with_messages)
{
	release(1, rig.port);
	release(2, rig.port);
	session_take_closed(&box);
	ck_assert_uint_eq(box.n_closed, 2);
	ck_assert_uint_eq(box.closed[1].local_comm_id, 2);
	session_take_closed(&box);
	ck_assert_uint_eq(box.n_closed, 2);
}

TEST(comm_id_without_a_port_is_not_closed)
{
	release(1, NULL);
	session_take_closed(&box);
	ck_assert_uint_eq(box.n_closed, 0);
}

TEST(excess_comm_ids_are_closed_at_once)
{
	for (uint32_t i = 0; i <= OUTBOX_CLOSED_MAX; i++)
		release(i, rig.port);
	session_take_closed(&box);
	ck_assert_uint_eq(box.n_closed, OUTBOX_CLOSED_MAX);
	ck_assert_uint_eq(fake_cmportd_last(PORTD_CLOSE)->close.local_comm_id, OUTBOX_CLOSED_MAX);
}
