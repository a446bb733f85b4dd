/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection that another core takes over to end it: in each state its peer must get the messages
 * that its own core would have sent.
 */
#include <string.h>

#include "tests/unit/cm/rig.h"
#include "tests/unit/cm/text.h"
#include "tests/unit/test.h"

static struct rig rig;

/* The adopting core: that of another process, with another handle of the same port. */
static struct cm_core heir;
static struct cm_port heirs_port;
static struct cm_effects heard; /* of the adopting core's latest step */

static void set_up(void)
{
	rig_init(&rig);
	ck_assert_int_eq(cm_core_init(&heir, 0xadd), 0);
	cm_port_init(&heirs_port, RIG_OUR_GUID, &rig.port.gid0);
}

static void tear_down(void)
{
	cm_core_fini(&heir);
	rig_fini(&rig);
}

static struct cm_conn *adopt(void)
{
	struct cm_record record = cm_conn_record(rig.conn);

	return cm_core_adopt(&heir, &record, &heirs_port, NULL);
}

static const char *end(struct cm_conn *conn)
{
	static char text[CM_SENDS_MAX * 32];

	ck_assert_int_eq(cm_core_call(&heir, conn, CM_CALL_DESTROY, NULL, rig.now, &heard), 0);
	return text_of_sends(&heard, text, sizeof(text));
}

static void heir_receives(enum cm_attr attr)
{
	struct cm_msg msg = rig_msg(&rig, attr);
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(&msg, mad);
	cm_core_reserve(&heir);
	cm_core_input(&heir, &heirs_port, &rig.path, mad, sizeof(mad), rig.now, &heard);
}

/* --- each state ---------------------------------------------------------- */

static const struct {
	enum cm_state state;
	bool passive;
} alive[] = {
	{ CM_REQ_SENT, false },	    { CM_MRA_REQ_RCVD, false }, { CM_REP_RCVD, false },
	{ CM_MRA_REP_SENT, false }, { CM_REQ_RCVD, true },	{ CM_MRA_REQ_SENT, true },
	{ CM_REP_SENT, true },	    { CM_MRA_REP_RCVD, true },	{ CM_ESTABLISHED, false },
	{ CM_ESTABLISHED, true },   { CM_DREQ_RCVD, false },	{ CM_DREQ_RCVD, true },
};

#define N_ALIVE (sizeof(alive) / sizeof(alive[0]))

static void reach(int i)
{
	rig_reach(&rig, alive[i].state, alive[i].passive);
}

FIXTURE(set_up, tear_down);

TEST_LOOP(adopted_connection_keeps_its_state, 0, N_ALIVE)
{
	reach(_i);
	ck_assert_str_eq(cm_state_str(adopt()->state), cm_state_str(alive[_i].state));
}

TEST_LOOP(adopted_connection_sends_the_messages_of_its_own_core, 0, N_ALIVE)
{
	struct cm_conn *conn;

	reach(_i);
	conn = adopt();
	rig_call(&rig, CM_CALL_DESTROY);
	end(conn);
	ck_assert_uint_eq(heard.n_sends, 1);
	ck_assert_uint_eq(rig.out.n_sends, 1);
	ck_assert_mem_eq(heard.send[0].mad, rig.out.send[0].mad, MAD_BYTES);
}

TEST_LOOP(adopted_connection_sends_to_its_peer, 0, N_ALIVE)
{
	reach(_i);
	end(adopt());
	ck_assert_ptr_eq(heard.send[0].port, &heirs_port);
	ck_assert_mem_eq(&heard.send[0].path, &rig.path, sizeof(rig.path));
}

TEST_LOOP(adopted_connection_reports_nothing_at_its_end, 0, N_ALIVE)
{
	reach(_i);
	end(adopt());
	ck_assert_uint_eq(heard.n_reports, 0);
}

TEST_LOOP(no_timer_runs_for_an_adopted_connection, 0, N_ALIVE)
{
	reach(_i);
	adopt();
	ck_assert_uint_eq(cm_core_deadline(&heir).ns, UINT64_MAX);
}

static const struct {
	enum cm_state state;
	bool passive;
} over[] = {
	{ CM_IDLE, false },
	{ CM_IDLE, true },
	{ CM_TIMEWAIT, false },
	{ CM_TIMEWAIT, true },
};

TEST_LOOP(ended_connection_is_not_adopted, 0, sizeof(over) / sizeof(over[0]))
{
	rig_reach(&rig, over[_i].state, over[_i].passive);
	ck_assert_int_eq(cm_core_reserve(&heir), 0);
	ck_assert_ptr_null(adopt());
	ck_assert_uint_eq(heir.n_conns, 0);
}

TEST(unsent_request_is_not_adopted)
{
	rig.core.out_max = 0;
	rig_reach(&rig, CM_REQ_SENT, false);
	ck_assert_ptr_null(adopt());
}

TEST(outstanding_dreq_is_sent_again)
{
	rig_reach(&rig, CM_DREQ_SENT, false);
	ck_assert_str_eq(end(adopt()), "DREQ");
}

/* --- until the end ------------------------------------------------------- */

TEST(adopted_dreq_is_retransmitted_until_answered)
{
	rig_reach(&rig, CM_ESTABLISHED, false);
	end(adopt());
	rig.now = cm_core_deadline(&heir);
	ck_assert(cm_core_expire(&heir, rig.now, &heard));
	ck_assert_uint_eq(heard.n_sends, 1);
	heir_receives(CM_ATTR_DREP);
	ck_assert_uint_eq(heir.n_conns, 0);
}

TEST(dreq_of_the_peer_is_answered_after_adoption)
{
	rig_reach(&rig, CM_ESTABLISHED, false);
	end(adopt());
	heir_receives(CM_ATTR_DREQ);
	ck_assert_uint_eq(heard.n_sends, 1);
	ck_assert_uint_eq(heir.n_conns, 0);
}

TEST(rejected_request_is_freed)
{
	rig_reach(&rig, CM_REQ_RCVD, true);
	end(adopt());
	ck_assert_uint_eq(heir.n_conns + heir.by_remote.table.n_nodes + heir.by_qpn.table.n_nodes,
			  0);
}

/* --- ids ----------------------------------------------------------------- */

TEST(adopted_connection_keeps_its_comm_id)
{
	rig_reach(&rig, CM_ESTABLISHED, true);
	ck_assert_uint_eq(adopt()->local_comm_id, rig.comm_id);
}

TEST(comm_id_in_use_is_not_adopted)
{
	rig_reach(&rig, CM_ESTABLISHED, true);
	adopt();
	ck_assert_ptr_null(adopt());
	ck_assert_uint_eq(heir.n_conns, 1);
}

TEST(unnamed_connection_gets_a_comm_id)
{
	struct cm_record record;

	rig_reach(&rig, CM_REQ_RCVD, true);
	record = cm_conn_record(rig.conn);
	record.local_comm_id = 0;
	ck_assert_uint_ne(cm_core_adopt(&heir, &record, &heirs_port, NULL)->local_comm_id, 0);
}

TEST(adopted_connection_is_known_by_its_peer)
{
	rig_reach(&rig, CM_ESTABLISHED, true);
	adopt();
	heir_receives(CM_ATTR_REQ);
	ck_assert_uint_eq(heir.count[CM_COUNT_DUPLICATE], 1);
}

TEST_LOOP(record_of_an_adopted_connection_is_unchanged, 0, N_ALIVE)
{
	struct cm_record before, after;

	reach(_i);
	before = cm_conn_record(rig.conn);
	after = cm_conn_record(adopt());
	ck_assert_int_eq(after.active, before.active);
	ck_assert_uint_eq(after.local_comm_id, before.local_comm_id);
	ck_assert_uint_eq(after.remote_comm_id, before.remote_comm_id);
	ck_assert_uint_eq(after.remote_ca_guid, before.remote_ca_guid);
	ck_assert_uint_eq(after.local_qpn, before.local_qpn);
	ck_assert_uint_eq(after.remote_qpn, before.remote_qpn);
	ck_assert_uint_eq(after.tid, before.tid);
	ck_assert_uint_eq(after.packet_life_time, before.packet_life_time);
	ck_assert_uint_eq(after.local_ack_timeout, before.local_ack_timeout);
	ck_assert_mem_eq(&after.path.dgid, &before.path.dgid, sizeof(after.path.dgid));
}

/* A retransmitted lookup must not be taken for another one. */
TEST(adopted_lookup_is_known_by_its_peer)
{
	rig_reach(&rig, CM_SIDR_REQ_RCVD, true);
	adopt();
	heir_receives(CM_ATTR_SIDR_REQ);
	ck_assert_uint_eq(heir.count[CM_COUNT_DUPLICATE], 1);
}

TEST(unanswered_request_is_known_by_no_peer)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	adopt();
	ck_assert_uint_eq(heir.by_remote.table.n_nodes + heir.by_qpn.table.n_nodes, 0);
}

TEST(adopted_connection_has_the_given_owner)
{
	struct cm_record record;

	rig_reach(&rig, CM_ESTABLISHED, true);
	record = cm_conn_record(rig.conn);
	ck_assert_ptr_eq(cm_core_adopt(&heir, &record, &heirs_port, &rig)->owner, &rig);
}

/* --- all states ---------------------------------------------------------- */

static void count(struct cm_conn *conn, void *arg)
{
	unsigned int *n = arg;

	ck_assert_uint_ne(conn->local_comm_id, 0);
	(*n)++;
}

TEST(walk_visits_each_connection_once)
{
	unsigned int n = 0;

	for (int i = 0; i < 100; i++)
		cm_core_conn_new(&heir, NULL);
	cm_core_walk(&heir, count, &n);
	ck_assert_uint_eq(n, 100);
}

static void destroy(struct cm_conn *conn, void *arg)
{
	(void)arg;
	cm_core_call(&heir, conn, CM_CALL_DESTROY, NULL, rig.now, &heard);
}

TEST(walk_survives_destruction_of_the_visited_connection)
{
	for (int i = 0; i < 100; i++)
		cm_core_conn_new(&heir, NULL);
	cm_core_walk(&heir, destroy, NULL);
	ck_assert_uint_eq(heir.n_conns, 0);
}
