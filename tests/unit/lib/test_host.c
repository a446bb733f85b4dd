/* SPDX-License-Identifier: BSD-2-Clause */
/* Records from cmportd, and state for the next one: lib/engine/cmportd.c. */
#include "lib/device/device_list.h"
#include "lib/engine/cmportd.h"

#include "lib/engine/engine.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define TRY_AGAIN_MS 500

static unsigned int n_received, n_gone, n_resends, n_forgets, n_resumed;

static void count_gone(struct port *port)
{
	ck_assert_ptr_eq(port, rig.port);
	n_gone++;
}

static void count_received(const struct portd_record *record)
{
	(void)record;
	n_received++;
}

static void count_resend(struct portd_client *to)
{
	(void)to;
	n_resends++;
}

static void ignore_sleep(struct portd_client *client)
{
	(void)client;
}

static struct cm_time never(void)
{
	return CM_TIME_NEVER;
}

static void count_forget(void)
{
	n_forgets++;
}

static void count_resumed(void)
{
	n_resumed++;
}

static const struct cmportd_upcalls above = {
	.port_gone = count_gone,
	.receive = count_received,
	.resend = count_resend,
	.before_sleep = ignore_sleep,
	.deadline = never,
	.forget = count_forget,
	.resumed = count_resumed,
};

static void set_up(void)
{
	cmportd_set_upcalls(&above);
	rig_begin();
}

FIXTURE(set_up, NULL);

static void receive_message(const struct portd_record *record)
{
	fake_cmportd_send(record);
	engine_turn(0);
}

static void receive_mad(uint8_t handle)
{
	struct portd_record record = { .type = PORTD_MAD, .mad.port = handle };
	struct cm_msg dreq;

	cm_msg_init(&dreq, CM_ATTR_DREQ, 1); /* without a connection: answered with DREP */
	cm_msg_encode(&dreq, record.mad.mad);
	receive_message(&record);
}

static struct port second_port(void)
{
	return (struct port){ .device = rig.device,
			      .port_num = 2,
			      .handle = -1,
			      .shown_handle = &rig.device->handle,
			      .refs = 1 };
}

static void end_cmportd(void)
{
	cmportd.has_ended = true;
	receive_message(&(struct portd_record){ .type = PORTD_STAT_QUOTA });
}

TEST(message_for_an_open_port_reaches_the_core)
{
	receive_mad(FAKE_HANDLE);
	fake_cmportd_message(CM_ATTR_DREP);
}

TEST(answers_are_sent_after_all_messages_of_cmportd)
{
	receive_mad(FAKE_HANDLE);
	ck_assert_uint_eq(cmportd.n_left, 1);
}

TEST(message_for_an_unknown_port_is_dropped)
{
	receive_mad(FAKE_HANDLE + 1);
	receive_mad(UINT8_MAX);
	ck_assert_uint_eq(cmportd.n_said, 0);
}

TEST(removed_port_is_reported_to_the_upcalls)
{
	receive_message(&(struct portd_record){ .type = PORTD_GONE, .gone.port = FAKE_HANDLE });
	ck_assert_uint_eq(n_gone, 1);
}

TEST(port_gets_the_defaults_of_cmportd)
{
	receive_message(&(struct portd_record){ .type = PORTD_PORT_TOS,
						.port_tos = { .port = FAKE_HANDLE, .tos = 104 } });
	ck_assert_uint_eq(port_tos(rig.port), 104);
	ck_assert_uint_eq(n_received, 0);
}

TEST(records_without_a_mad_go_to_the_upcalls)
{
	receive_message(&(struct portd_record){ .type = PORTD_STAT_ASK });
	ck_assert_uint_eq(n_received, 1);
}

TEST(closed_port_gets_no_messages)
{
	cmportd_close_port(rig.port);
	receive_mad(FAKE_HANDLE);
	ck_assert_uint_eq(cmportd.n_said, 0);
	ck_assert_int_eq(rig.port->handle, -1);
}

static unsigned int n_resumed;

/* Before it is there again, the thread that resumes uses the list of devices. */
static int resume_with_devices(void)
{
	n_resumed++;
	device_list_lock();
	device_list_unlock();
	cmportd.open_err = 0;
	return 0;
}

TEST(port_is_opened_by_the_next_cmportd)
{
	struct port *port;

	ck_assert_int_eq(device_port_open(rig.device, 1, &port), 0);
	cmportd_close_port(port);
	port_put(port);
	cmportd.open_err = -EPIPE;
	cmportd.awaited = resume_with_devices;
	ck_assert_int_eq(device_port_open(rig.device, 1, &port), 0);
	ck_assert_uint_eq(n_resumed, 1);
	port_put(port);
}

TEST(port_that_cmportd_refuses_is_not_open)
{
	struct port port = second_port();

	cmportd.open_err = -EBUSY;
	ck_assert_int_eq(cmportd_open_port(&port), -EBUSY);
	ck_assert_int_eq(port.handle, -1);
}

TEST(events_of_a_device_are_known_while_the_port_opened_last_is_open)
{
	struct port port = second_port();
	unsigned int first = device_events(rig.device);

	ck_assert_uint_ne(first, 0);
	ck_assert_int_eq(cmportd_open_port(&port), 0);
	ck_assert_uint_ne(device_events(rig.device), 0);
	ck_assert_uint_ne(device_events(rig.device), first);
	cmportd_close_port(rig.port);
	ck_assert_uint_ne(device_events(rig.device), 0);
	cmportd_close_port(&port);
	ck_assert_uint_eq(device_events(rig.device), 0);
}

/* --- the next cmportd ------------------------------------------------------------ */

TEST(next_cmportd_gets_the_state_of_the_upcalls)
{
	end_cmportd();
	cmportd_before_sleep();
	ck_assert_uint_eq(n_forgets, 1);
	ck_assert_uint_eq(n_resends, 1);
}

TEST(next_cmportd_gets_connections)
{
	struct id *id = rig_connected();

	end_cmportd();
	cmportd_before_sleep();
	ck_assert_uint_eq(fake_cmportd_last(PORTD_TRACK)->tracked.local_comm_id,
			  id->conn->local_comm_id);
}

TEST(ports_may_have_each_others_handles_at_the_next_cmportd)
{
	struct port port = second_port();

	ck_assert_int_eq(cmportd_open_port(&port), 0);
	ck_assert_int_eq(port.handle, FAKE_HANDLE + 1);
	end_cmportd();
	cmportd.swaps_handles = true;
	cmportd_before_sleep();
	ck_assert_int_eq(port.handle, FAKE_HANDLE);
	ck_assert_int_eq(rig.port->handle, FAKE_HANDLE + 1);
	ck_assert_ptr_eq(cmportd_find_port(FAKE_HANDLE), &port);
	ck_assert_ptr_eq(cmportd_find_port(FAKE_HANDLE + 1), rig.port);
}

TEST(messages_of_the_next_cmportd_are_received)
{
	end_cmportd();
	cmportd_before_sleep();
	receive_mad(FAKE_HANDLE);
	fake_cmportd_message(CM_ATTR_DREP);
}

TEST(missing_cmportd_is_tried_again_later)
{
	cmportd.resume_err = -ECONNREFUSED;
	end_cmportd();
	cmportd_before_sleep();
	ck_assert_uint_eq(cmportd_deadline().ns, rig.now_ns + TRY_AGAIN_MS * CM_NS_PER_MS);
	cmportd.resume_err = 0;
	cmportd_before_sleep();
	ck_assert_uint_eq(n_resends, 0);
	ck_assert_uint_eq(n_resumed, 0);
	rig.now_ns += TRY_AGAIN_MS * CM_NS_PER_MS;
	cmportd_before_sleep();
	ck_assert_uint_eq(n_resends, 1);
	ck_assert_uint_eq(n_resumed, 1);
	ck_assert(cmportd_deadline().ns == CM_TIME_NEVER.ns);
}

/* --- comm ids ---------------------------------------------------------------------- */

TEST(sufficient_comm_ids_cause_no_request)
{
	cmportd_before_sleep();
	ck_assert_uint_eq(cmportd.n_leases, 0);
}

TEST(more_comm_ids_are_leased_before_they_run_out)
{
	struct outbox box;
	struct cm_conn *conn;

	outbox_init(&box);
	engine_lock();
	for (unsigned int i = 0; i < FAKE_N_IDS - 8000; i++) {
		conn = cm_core_conn_new(&engine_held()->core, NULL);
		engine_step(engine_held(), &box, conn, CM_CALL_DESTROY, NULL);
	}
	engine_unlock();
	cmportd_before_sleep();
	ck_assert_uint_eq(cmportd.n_leases, 1);
	ck_assert_uint_gt(cm_core_ids_left(&engine_held()->core), FAKE_N_IDS);
}
