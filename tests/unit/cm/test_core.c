/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/core.c: comm ids, memory, ports, services, counters.
 */
#include <malloc.h>
#include <string.h>

#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

static struct rig rig;

static void set_up(void)
{
	rig_init(&rig);
}

static void tear_down(void)
{
	rig_fini(&rig);
}

/* --- comm ids ------------------------------------------------------------ */

static uint32_t next_id(struct cm_core *core)
{
	return cm_core_conn_new(core, NULL)->local_comm_id;
}

FIXTURE(set_up, tear_down);

TEST(comm_ids_are_unique)
{
	struct hash_node *link, *after;

	for (int i = 0; i < 10000; i++)
		next_id(&rig.core);
	ck_assert_uint_eq(rig.core.by_local.table.n_nodes, 10000);
	hash_for_each_safe (link, after, &rig.core.by_local.table) {
		struct cm_node *node = container_of(link, struct cm_node, link);

		ck_assert_ptr_eq(cm_index_find(&rig.core.by_local, &node->key), node);
	}
}

TEST(comm_id_is_never_0)
{
	rig.core.ids.next = rig.core.ids.mask;
	ck_assert_uint_ne(next_id(&rig.core), 0);
	ck_assert_uint_eq(rig.core.ids.next, rig.core.ids.mask + 2);
}

TEST(comm_ids_wrap)
{
	rig.core.ids.next = UINT32_MAX;
	ck_assert_uint_eq(next_id(&rig.core), UINT32_MAX ^ rig.core.ids.mask);
	ck_assert_uint_eq(next_id(&rig.core), 0 ^ rig.core.ids.mask);
}

TEST(comm_id_in_use_is_skipped_after_the_wrap)
{
	uint32_t first = next_id(&rig.core);

	rig.core.ids.next = 0;
	ck_assert_uint_ne(next_id(&rig.core), first);
}

TEST(comm_id_of_a_destroyed_connection_is_not_reused_soon)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < 10000; i++) {
		rig_reach(&rig, CM_IDLE, false);
		if (i)
			ck_assert_uint_eq(rig.comm_id ^ rig.core.ids.mask, last + 1);
		last = rig.comm_id ^ rig.core.ids.mask;
		rig_call(&rig, CM_CALL_DESTROY);
	}
}

TEST(comm_ids_of_two_cores_differ)
{
	struct cm_core other;

	ck_assert_int_eq(cm_core_init(&other, 0x5eee), 0);
	ck_assert_uint_gt((next_id(&rig.core) ^ next_id(&other)) >> 16, 0);
	cm_core_fini(&other);
}

/* --- memory -------------------------------------------------------------- */

/* As after a failed cm_core_reserve(). */
static void receive_without_memory(const struct cm_msg *msg)
{
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	cm_core_input(&rig.core, &rig.port, &rig.path, mad, sizeof(mad), rig.now, &rig.out);
}

TEST(req_without_memory_is_dropped_and_may_be_retransmitted)
{
	struct cm_msg msg = rig_msg(&rig, CM_ATTR_REQ);

	receive_without_memory(&msg);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_NO_MEMORY], 1);
	ck_assert_str_eq(rig_sent(&rig), "");
	rig_deliver(&rig, &msg);
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
}

TEST(existing_connection_steps_without_memory)
{
	struct cm_msg msg;

	rig_reach(&rig, CM_REP_SENT, true);
	msg = rig_msg(&rig, CM_ATTR_RTU);
	ck_assert_uint_eq(rig.core.n_spare, 0);
	receive_without_memory(&msg);
	ck_assert_str_eq(rig_reported(&rig), "ESTABLISHED");
}

TEST(reserve_makes_room_in_each_index)
{
	size_t n_buckets = rig.core.by_local.table.n_buckets;

	for (int i = 0; i < 300; i++)
		ck_assert_ptr_nonnull(cm_core_conn_new(&rig.core, &rig));
	ck_assert_uint_gt(rig.core.by_local.table.n_buckets, n_buckets);
	n_buckets = rig.core.by_local.table.n_buckets;
	ck_assert_uint_eq(rig.core.by_remote.table.n_buckets, n_buckets);
	ck_assert_uint_eq(rig.core.by_qpn.table.n_buckets, n_buckets);
	ck_assert_uint_eq(rig.core.peers.table.n_buckets, n_buckets);
}

static unsigned int count_spare(void)
{
	return (unsigned int)list_length(&rig.core.spare);
}

TEST(memory_of_a_connection_is_reused)
{
	for (int i = 0; i < 1000; i++) {
		rig_reach(&rig, CM_TIMEWAIT, i & 1);
		rig_call(&rig, CM_CALL_DESTROY);
	}
	ck_assert_uint_eq(rig.core.n_conns, 0);
	ck_assert_uint_le(rig.core.n_spare, 2);
	ck_assert_uint_eq(rig.core.n_spare, count_spare());
}

TEST(memory_of_many_connections_is_freed)
{
	struct cm_conn *conn[200];

	for (int i = 0; i < 200; i++)
		conn[i] = cm_core_conn_new(&rig.core, NULL);
	for (int i = 0; i < 200; i++)
		cm_core_call(&rig.core, conn[i], CM_CALL_DESTROY, NULL, rig.now, &rig.out);
	ck_assert_uint_eq(rig.core.n_conns, 0);
	ck_assert_uint_eq(rig.core.n_spare, 64);
	ck_assert_uint_eq(rig.core.n_spare, count_spare());
}

/* Connections in every state are freed; the address sanitizer detects leaks. */
TEST_LOOP(core_frees_connections_in_every_state, 0, 2 * CM_N_STATES)
{
	if (rig_can_reach((enum cm_state)(_i / 2), _i & 1))
		rig_reach(&rig, (enum cm_state)(_i / 2), _i & 1);
	cm_core_fini(&rig.core);
	ck_assert_int_eq(cm_core_init(&rig.core, 1), 0);
}

/* --- ports --------------------------------------------------------------- */

static void forget(struct cm_conn *conn, void *arg)
{
	unsigned int *n = arg;

	ck_assert_ptr_eq(conn->owner, &rig);
	++*n;
}

TEST(connections_of_a_removed_port_send_nothing)
{
	unsigned int n = 0, expected = 0;

	for (int i = 0; i < 2 * CM_N_STATES; i++) {
		enum cm_state state = (enum cm_state)(i / 2);

		rig.peer_comm_id++;
		rig.peer_qpn++;
		if (state == CM_IDLE || !rig_can_reach(state, i & 1))
			continue;
		rig_reach(&rig, state, i & 1);
		expected++;
	}
	cm_core_port_gone(&rig.core, &rig.port, forget, &n);
	ck_assert_uint_eq(n, expected);
	ck_assert_uint_eq(rig.core.n_conns, 0);
	ck_assert_uint_eq(rig.core.by_remote.table.n_nodes + rig.core.by_qpn.table.n_nodes, 0);
	ck_assert_uint_eq(rig.core.peers.table.n_nodes, 0);
	ck_assert_uint_eq(rig.port.requests.out, 0);
	ck_assert_uint_eq(cm_core_deadline(&rig.core).ns, UINT64_MAX);
}

TEST(orphans_of_a_removed_port_are_not_reported)
{
	unsigned int n = 0;

	rig_reach(&rig, CM_ESTABLISHED, false);
	rig_call(&rig, CM_CALL_DESTROY);
	cm_core_port_gone(&rig.core, &rig.port, forget, &n);
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(rig.core.n_conns, 0);
}

TEST(other_ports_keep_their_connections)
{
	struct mad_gid gid = { .raw = { 1 } };
	struct cm_port other;
	unsigned int n = 0;

	cm_port_init(&other, 1, &gid);
	rig_reach(&rig, CM_ESTABLISHED, false);
	cm_core_port_gone(&rig.core, &other, forget, &n);
	ck_assert_uint_eq(n, 0);
	rig_input(&rig, "DREQ");
	ck_assert_str_eq(rig_reported(&rig), "DISCONNECTED");
}

/* --- counters, services -------------------------------------------------- */

TEST(malformed_message_is_from_no_peer)
{
	const uint8_t malformed[MAD_BYTES] = { 0 };

	rig_reach(&rig, CM_ESTABLISHED, false);
	rig_input(&rig, "DREQ");
	ck_assert(rig.out.is_known);
	cm_core_input(&rig.core, &rig.port, &rig.path, malformed, sizeof(malformed), rig.now,
		      &rig.out);
	ck_assert(!rig.out.is_known);
}

TEST(messages_are_counted_by_kind)
{
	rig_reach(&rig, CM_TIMEWAIT, false);
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_REQ], 1);
	ck_assert_uint_eq(rig.core.received[CM_ATTR_REP], 1);
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_RTU], 1);
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_DREQ], 1);
	ck_assert_uint_eq(rig.core.received[CM_ATTR_DREP], 1);
	ck_assert_uint_eq(rig.core.received[CM_ATTR_REQ], 0);
}

TEST(messages_of_the_passive_side_are_counted_by_kind)
{
	rig_reach(&rig, CM_ESTABLISHED, true);
	ck_assert_uint_eq(rig.core.received[CM_ATTR_REQ], 1);
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_REP], 1);
	ck_assert_uint_eq(rig.core.received[CM_ATTR_RTU], 1);
}

TEST(retransmissions_are_counted_separately)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	rig_input(&rig, "spent");
	ck_assert_uint_eq(rig.core.sent[CM_ATTR_REQ], 1);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_RETRIED], 15);
}

static uint64_t tally(enum cm_counter counter, enum cm_attr attr)
{
	return rig.port.tally.count[counter][attr - CM_ATTR_REQ];
}

TEST(a_port_counts_its_messages_by_kind)
{
	const struct cm_tally *of = &rig.port.tally;

	rig_reach(&rig, CM_ESTABLISHED, true);
	ck_assert_uint_eq(of->received[CM_ATTR_REQ - CM_ATTR_REQ], 1);
	ck_assert_uint_eq(of->sent[CM_ATTR_REP - CM_ATTR_REQ], 1);
	ck_assert_uint_eq(of->received[CM_ATTR_RTU - CM_ATTR_REQ], 1);
	ck_assert_uint_eq(of->sent[CM_ATTR_REQ - CM_ATTR_REQ], 0);
}

TEST(a_port_counts_queued_messages_once_they_are_sent)
{
	rig_reach(&rig, CM_DREQ_SENT, false);
	ck_assert_uint_eq(rig.port.tally.sent[CM_ATTR_REQ - CM_ATTR_REQ], 1);
	ck_assert_uint_eq(rig.port.tally.sent[CM_ATTR_DREQ - CM_ATTR_REQ], 1);
}

TEST(a_port_counts_retransmissions_by_kind)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	rig_input(&rig, "spent");
	ck_assert_uint_eq(tally(CM_COUNT_RETRIED, CM_ATTR_REQ), 15);
	ck_assert_uint_eq(rig.port.tally.sent[CM_ATTR_REQ - CM_ATTR_REQ], 1);
}

TEST(a_port_counts_duplicates_by_kind)
{
	rig_reach(&rig, CM_REP_SENT, true);
	rig_input(&rig, "REQ");
	ck_assert_uint_eq(tally(CM_COUNT_DUPLICATE, CM_ATTR_REQ), 1);
	ck_assert_uint_eq(tally(CM_COUNT_DUPLICATE, CM_ATTR_REP), 0);
}

TEST(a_port_counts_dropped_messages_by_kind)
{
	rig_reach(&rig, CM_ESTABLISHED, false);
	rig_input(&rig, "DREP");
	ck_assert_uint_eq(tally(CM_COUNT_UNEXPECTED, CM_ATTR_DREP), 1);
}

TEST(invalid_mad_has_a_counter_of_its_own)
{
	static const uint8_t none[MAD_BYTES];

	cm_core_input(&rig.core, &rig.port, &rig.path, none, sizeof(none), rig.now, &rig.out);
	ck_assert_uint_eq(rig.port.tally.count[CM_COUNT_MALFORMED][CM_TALLY_NONE], 1);
}

TEST(a_connection_counts_its_retransmissions)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	ck_assert_uint_eq(rig.conn->n_repeated, 0);
	rig_input(&rig, "timer");
	ck_assert_uint_eq(rig.conn->n_repeated, 1);
}

TEST(count_of_retransmissions_saturates)
{
	rig_reach(&rig, CM_REQ_SENT, false);
	rig.conn->n_repeated = UINT16_MAX - 1;
	rig_input(&rig, "timer");
	rig_input(&rig, "timer");
	ck_assert_uint_eq(rig.conn->n_repeated, UINT16_MAX);
}

static const struct {
	enum cm_state state;
	bool passive;
	const char *input;
} duplicates[] = {
	{ CM_MRA_REQ_RCVD, false, "MRA(REQ)" }, { CM_REP_RCVD, false, "REP" },
	{ CM_MRA_REP_SENT, false, "REP" },	{ CM_REQ_RCVD, true, "REQ" },
	{ CM_MRA_REQ_SENT, true, "REQ" },	{ CM_REP_SENT, true, "REQ" },
	{ CM_MRA_REP_RCVD, true, "REQ" },	{ CM_MRA_REP_RCVD, true, "MRA(REP)" },
	{ CM_ESTABLISHED, true, "REQ" },	{ CM_ESTABLISHED, true, "RTU" },
	{ CM_DREQ_RCVD, true, "DREQ" },
};

TEST_LOOP(duplicates_are_counted, 0, sizeof(duplicates) / sizeof(duplicates[0]))
{
	rig_reach(&rig, duplicates[_i].state, duplicates[_i].passive);
	rig_input(&rig, duplicates[_i].input);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_DUPLICATE], 1);
	ck_assert_uint_eq(rig.core.count[CM_COUNT_UNEXPECTED], 0);
}

TEST(unexpected_message_is_counted)
{
	rig_reach(&rig, CM_ESTABLISHED, false);
	rig_input(&rig, "DREP");
	ck_assert_uint_eq(rig.core.count[CM_COUNT_UNEXPECTED], 1);
}

TEST(service_of_two_listeners_outlives_one)
{
	struct cm_service second = { 0 };

	ck_assert_int_eq(cm_core_serve(&rig.core, &second, RIG_SERVICE), 0);
	cm_core_unserve(&rig.core, &rig.service);
	rig_input(&rig, "REQ");
	ck_assert_str_eq(rig_reported(&rig), "REQUEST");
	cm_core_unserve(&rig.core, &second);
}

/* --- first and last bucket ----------------------------------------------- */

static void forget_one(struct cm_conn *conn, void *n)
{
	(void)conn;
	++*(int *)n;
}

/* One connection, in the first or in the last bucket; the table has its minimum size. */
static void fill_bucket(struct cm_core *core, bool last)
{
	size_t bucket = last ? core->by_local.table.n_buckets - 1 : 0;
	struct cm_conn *conn = cm_core_conn_new(core, &rig);

	while (!core->by_local.table.bucket[bucket]) {
		cm_core_call(core, conn, CM_CALL_DESTROY, NULL, rig.now, &rig.out);
		conn = cm_core_conn_new(core, &rig);
	}
	conn->port = &rig.port;
}

TEST_LOOP(first_and_last_bucket_are_searched, 0, 2)
{
	int seen = 0;

	fill_bucket(&rig.core, _i);
	cm_core_walk(&rig.core, forget_one, &seen);
	ck_assert_int_eq(seen, 1);
	cm_core_port_gone(&rig.core, &rig.port, forget_one, &seen);
	ck_assert_int_eq(seen, 2);
	ck_assert_uint_eq(rig.core.n_conns, 0);
}

#ifdef __GLIBC__ /* reports allocated bytes */
TEST(memory_of_many_connections_is_returned_to_the_heap)
{
	size_t before = 0;
	int seen = 0;

	for (int round = 0; round < 100; round++) {
		if (round == 1)
			before = mallinfo2().uordblks;
		for (int i = 0; i < 300; i++)
			cm_core_conn_new(&rig.core, &rig)->port = &rig.port;
		cm_core_port_gone(&rig.core, &rig.port, forget_one, &seen);
	}
	ck_assert_int_eq(seen, 100 * 300);
	ck_assert_uint_le(mallinfo2().uordblks, before + 300 * sizeof(struct cm_conn));
}
#endif
