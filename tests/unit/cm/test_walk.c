/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random sequences of calls, messages, corrupted messages and time. Only assertions and sanitizers
 * can fail here. Then a host that is connected to itself, where every message could be mistaken for
 * the other end's.
 */
#include <string.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

/* A sanitizer makes each run ten times as slow; the plain build has all of them. */
#ifdef __SANITIZE_ADDRESS__
#define N_WALKS 30
#else
#define N_WALKS 300
#endif
#define N_STEPS 200

static const enum cm_attr attrs[] = {
	CM_ATTR_REQ,  CM_ATTR_MRA,  CM_ATTR_REJ,      CM_ATTR_REP,	CM_ATTR_RTU,
	CM_ATTR_DREQ, CM_ATTR_DREP, CM_ATTR_SIDR_REQ, CM_ATTR_SIDR_REP, CM_ATTR_LAP,
};

/* Inverts some bits of a message's body: mostly ids and flags, rarely private data. */
static void receive_broken(struct rig *rig)
{
	struct cm_msg msg = rig_msg(rig, attrs[random() % 10]);
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(&msg, mad);
	for (int n = (int)(random() % 3); n; n--)
		mad[MAD_HDR_BYTES + random() % (random() % 2 ? 12 : CM_BODY_BYTES)] ^=
			(uint8_t)(1 << random() % 8);
	cm_core_reserve(&rig->core);
	cm_core_input(&rig->core, &rig->port, &rig->path, mad, sizeof(mad), rig->now, &rig->out);
}

/*
 * Each report must be about a connection that its caller still has, in a state that matches the
 * report.
 */
static void check_reports(const struct rig *rig)
{
	static const unsigned int states[] = {
		[CM_REPORT_REQUEST] = 1 << CM_REQ_RCVD | 1 << CM_SIDR_REQ_RCVD,
		[CM_REPORT_RESPONSE] = 1 << CM_REP_RCVD,
		[CM_REPORT_ESTABLISHED] = 1 << CM_ESTABLISHED,
		[CM_REPORT_REJECTED] = 1 << CM_IDLE | 1 << CM_TIMEWAIT,
		[CM_REPORT_UNREACHABLE] = 1 << CM_IDLE,
		[CM_REPORT_DISCONNECTED] = 1 << CM_DREQ_RCVD | 1 << CM_TIMEWAIT,
		[CM_REPORT_TIMEWAIT_EXIT] = 1 << CM_IDLE,
		[CM_REPORT_ANSWERED] = 1 << CM_IDLE,
	};

	for (unsigned int i = 0; i < rig->out.n_reports; i++) {
		const struct cm_report *report = &rig->out.report[i];
		struct cm_key key = { .id = report->conn->local_comm_id };

		ck_assert_ptr_eq(cm_index_find(&rig->core.by_local, &key), &report->conn->by_local);
		ck_assert(!report->conn->orphan);
		ck_assert(states[report->kind] >> report->conn->state & 1);
	}
}

/* Two inputs need an established connection; here it may exist already. */
static bool may_happen(const struct rig *rig, const char *input)
{
	if (strcmp(input, "REP known") == 0 || strcmp(input, "REP stale") == 0)
		return false;
	return rig->conn || !input_is_call(input);
}

static void step(struct rig *rig)
{
	const char *input = input_name((int)(random() % n_inputs()));

	if (random() % 4 == 0)
		receive_broken(rig);
	else if (may_happen(rig, input))
		rig_input(rig, input);
	if (!rig->conn && random() % 4 == 0) {
		rig->peer_comm_id += (uint32_t)(random() % 3);
		rig->peer_qpn += (uint32_t)(random() % 3);
		rig_reach(rig, CM_IDLE, false);
	}
	check_reports(rig);
}

TEST_LOOP(core_survives_random_inputs, 0, 8)
{
	for (int walk = 0; walk < N_WALKS; walk++) {
		struct rig rig;

		srandom((unsigned int)(_i * N_WALKS + walk));
		rig_init(&rig);
		rig_reach(&rig, CM_IDLE, false);
		for (int i = 0; i < N_STEPS; i++)
			step(&rig);
		rig_fini(&rig);
	}
}

static void forget(struct cm_conn *conn, void *arg)
{
	(void)conn;
	(void)arg;
}

TEST(port_can_be_removed_in_any_state)
{
	for (int walk = 0; walk < N_WALKS; walk++) {
		struct rig rig;

		srandom((unsigned int)walk);
		rig_init(&rig);
		rig_reach(&rig, CM_REQ_SENT, false);
		for (int i = 0; i < N_STEPS / 4; i++)
			step(&rig);
		cm_core_port_gone(&rig.core, &rig.port, forget, NULL);
		ck_assert_uint_eq(rig.core.by_remote.table.n_nodes, 0);
		ck_assert_uint_eq(rig.core.by_qpn.table.n_nodes, 0);
		ck_assert_uint_eq(rig.port.requests.out, 0);
		ck_assert_uint_eq(cm_core_deadline(&rig.core).ns, UINT64_MAX);
		rig_fini(&rig);
	}
}

/* --- a host connected to itself ------------------------------------------ */

/* The messages of the latest step arrive at once, one at a time. */
static void loop_back(struct rig *rig)
{
	struct cm_effects sent = rig->out;

	for (unsigned int i = 0; i < sent.n_sends; i++) {
		ck_assert_int_eq(cm_core_reserve(&rig->core), 0);
		cm_core_input(&rig->core, &rig->port, &rig->path, sent.send[i].mad, MAD_BYTES,
			      rig->now, &rig->out);
		if (rig->out.n_sends)
			loop_back(rig);
	}
}

/* Return: the passive end; rig.conn is the active one. Both are ESTABLISHED. */
static struct cm_conn *connect_to_self(struct rig *rig)
{
	struct cm_conn *active, *passive;

	rig->path.dgid = rig->port.gid0;
	rig_reach(rig, CM_REQ_SENT, false);
	loop_back(rig);
	ck_assert_str_eq(rig_reported(rig), "REQUEST");
	passive = rig->out.report[0].conn;
	active = rig->conn;
	rig->conn = passive;
	rig->our_qpn++;
	rig_call(rig, CM_CALL_REP);
	loop_back(rig);
	ck_assert_str_eq(rig_reported(rig), "RESPONSE");
	ck_assert_ptr_eq(rig->out.report[0].conn, active);
	rig->conn = active;
	rig_call(rig, CM_CALL_RTU);
	loop_back(rig);
	ck_assert_str_eq(rig_reported(rig), "ESTABLISHED");
	return passive;
}

TEST(host_connects_to_itself)
{
	struct cm_conn *passive;
	struct rig rig;

	rig_init(&rig);
	passive = connect_to_self(&rig);
	ck_assert_str_eq(cm_state_str(rig.conn->state), "ESTABLISHED");
	ck_assert_str_eq(cm_state_str(passive->state), "ESTABLISHED");
	rig_fini(&rig);
}

TEST(host_disconnects_from_itself)
{
	struct cm_conn *passive;
	struct rig rig;

	rig_init(&rig);
	passive = connect_to_self(&rig);
	rig_call(&rig, CM_CALL_DREQ);
	loop_back(&rig);
	ck_assert_ptr_eq(rig.out.report[0].conn, passive);
	cm_core_call(&rig.core, passive, CM_CALL_DREP, NULL, rig.now, &rig.out);
	loop_back(&rig);
	ck_assert_str_eq(rig_reported(&rig), "DISCONNECTED");
	ck_assert_str_eq(cm_state_str(rig.conn->state), "TIMEWAIT");
	ck_assert_str_eq(cm_state_str(passive->state), "TIMEWAIT");
	rig_fini(&rig);
}
