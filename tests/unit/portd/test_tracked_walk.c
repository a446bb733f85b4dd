/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections beside a real core: a client and its peer act at random, on a wire that
 * loses, duplicates, reorders and corrupts messages, and cmportd gets each message of the client.
 * After each step its tracked connections must agree with the client's core; and at the end,
 * cmportd must send the peer the messages that that core would have sent.
 *
 * In some walks messages also stay in the sockets between client and cmportd for a while, so that
 * they cross. Then the two are compared only when the sockets are empty.
 */
#include <string.h>

#include "tests/unit/portd/model.h"
#include "tests/unit/test.h"

/* A sanitizer makes each run ten times as slow; the plain build has all of them. */
#ifdef __SANITIZE_ADDRESS__
#define N_WALKS 20
#else
#define N_WALKS 200
#endif
#define N_STEPS 300
#define N_LOOPS 4

/* --- comparison ---------------------------------------------------------- */

static const struct tracked *find_tracked(const struct cm_conn *conn)
{
	const struct tracked *tracked = tracker_of_local(model.tracker, conn->local_comm_id);
	struct mad_gid peer = mad_path_peer(&conn->path);

	if (tracked || conn->state == CM_IDLE || !conn->remote_comm_id)
		return tracked;
	return tracker_of_remote(model.tracker, &peer, conn->remote_ca_guid, conn->remote_comm_id);
}

/* There is nothing to end, and maybe no tracked connection. */
static bool is_over(unsigned int state)
{
	return state == CM_IDLE || state == CM_TIMEWAIT || state == CM_SIDR_REQ_SENT;
}

/*
 * A difference that no message shows is irrelevant at the end too: a core that has given up sends
 * nothing more, and cmportd sends once again the message that ends it.
 */
static bool is_as_good(const struct cm_conn *conn, enum cm_state core, unsigned int tracked)
{
	if (core == tracked)
		return true;
	if (core == CM_SIDR_REQ_SENT)
		return is_over(tracked);
	if (core == CM_MRA_REQ_RCVD)
		return tracked == CM_REQ_SENT;
	if (core == CM_MRA_REQ_SENT)
		return tracked == CM_REQ_RCVD;
	if (core == CM_MRA_REP_SENT)
		return tracked == CM_REP_RCVD;
	if (core == CM_MRA_REP_RCVD)
		return tracked == CM_REP_SENT;
	if (core == CM_DREQ_SENT)
		return conn->orphan && tracked == CM_TIMEWAIT;
	return is_over(core) &&
	       (is_over(tracked) || model.has_given_up[conn->local_comm_id % CM_ID_BLOCK]);
}

/*
 * A REQ that is delayed until its connection has been destroyed is new to the core, but still the
 * old one to cmportd, whose DREQ is not answered yet. No side waits for its result.
 */
static bool is_known_ghost[CM_ID_BLOCK];

static bool is_ghost(const struct cm_conn *conn, const struct tracked *tracked)
{
	bool *is_known = &is_known_ghost[conn->local_comm_id % CM_ID_BLOCK];

	if (tracked)
		*is_known = tracked->is.local_comm_id &&
			    tracked->is.local_comm_id != conn->local_comm_id;
	return *is_known;
}

static void compare(struct cm_conn *conn, void *arg)
{
	const struct tracked *tracked = find_tracked(conn);
	enum cm_state state = (enum cm_state)cm_conn_record(conn).state;

	(void)arg;
	if (is_ghost(conn, tracked) || (!tracked && is_over(state)))
		return;
	ck_assert_msg(tracked, "walk %u: 0x%x is in %s, and it is not tracked", model.seed,
		      conn->local_comm_id, cm_state_str(state));
	ck_assert_msg(is_as_good(conn, state, tracked->is.state),
		      "walk %u: 0x%x is in %s, tracked in %s", model.seed, conn->local_comm_id,
		      cm_state_str(state), cm_state_str((enum cm_state)tracked->is.state));
}

/*
 * An answer to the DREQ of a lost connection belongs to no tracked connection; cmportd's router
 * passes it.
 */
static void check_refusal(const struct cm_msg *msg)
{
	struct cm_conn *conn = model_conn(OURS, msg->rtu.local_comm_id);

	if (msg->hdr.attr_id == CM_ATTR_DREP || (conn && is_ghost(conn, find_tracked(conn))))
		return;
	ck_abort_msg("walk %u: a message of 0x%x was refused", model.seed, msg->rtu.local_comm_id);
}

/* --- walks --------------------------------------------------------------- */

static void begin(int loop, int walk, bool crosses)
{
	memset(is_known_ghost, 0, sizeof(is_known_ghost));
	model_begin((unsigned int)(loop * N_WALKS + walk), crosses);
}

static void check(void)
{
	cm_core_walk(&model.side[OURS].core, compare, NULL);
	ck_assert_uint_le(tracker_count(model.tracker, MODEL_CLIENT),
			  model.side[OURS].core.n_conns);
}

TEST_LOOP(tracker_agrees_with_the_core, 0, N_LOOPS)
{
	for (int i = 0; i < N_WALKS; i++) {
		begin(_i, i, false);
		model.refused = check_refusal;
		for (int n = 0; n < N_STEPS; n++) {
			model_step();
			check();
		}
		model_end();
	}
}

/* --- crossing messages --------------------------------------------------- */

static bool is_established(enum who who, uint32_t local_comm_id)
{
	struct cm_conn *conn = model_conn(who, local_comm_id);

	return conn && conn->state == CM_ESTABLISHED;
}

static void compare_established(struct cm_conn *conn, void *arg)
{
	unsigned int *n = arg;

	if (conn->state != CM_ESTABLISHED || !is_established(PEER, conn->remote_comm_id))
		return;
	compare(conn, NULL);
	(*n)++;
}

/*
 * With messages in both directions a tracked connection may be wrong for a while, or for ever if it
 * no longer matters; but not about a connection that continues.
 */
TEST_LOOP(tracker_agrees_with_the_core_after_crossing_messages, 0, N_LOOPS)
{
	unsigned int n = 0;

	for (int i = 0; i < N_WALKS; i++) {
		begin(_i, i, true);
		for (int k = 0; k < N_STEPS; k++)
			model_step();
		model_settle();
		cm_core_walk(&model.side[OURS].core, compare_established, &n);
		model_end();
	}
	ck_assert_uint_gt(n, N_WALKS / 10); /* or there was nothing to compare */
}

/* --- the end of the client ----------------------------------------------- */

static struct cm_core next_core; /* cmportd's */
static struct cm_port next_port;

/* The messages of cmportd for a client that is gone. Return: their number. */
static unsigned int reap(const struct cm_record *tracked, struct cm_effects *ret)
{
	struct cm_conn *conn = cm_core_adopt(&next_core, tracked, &next_port, NULL);

	if (!conn)
		return 0;
	ck_assert_int_eq(cm_core_call(&next_core, conn, CM_CALL_DESTROY, NULL, model.now, ret), 0);
	return ret->n_sends;
}

static struct cm_conn *conn_of(const struct cm_record *tracked)
{
	struct cm_key key = { .gid = mad_path_peer(&tracked->path),
			      .guid = tracked->remote_ca_guid,
			      .id = tracked->remote_comm_id };
	struct cm_node *node;

	if (tracked->local_comm_id)
		return model_conn(OURS, tracked->local_comm_id);
	node = cm_index_find(&model.side[OURS].core.by_remote, &key);
	return node ? container_of(node, struct cm_conn, by_remote) : NULL;
}

/* An unanswered REQ is rejected without a comm id, if cmportd does not know one. */
static void assert_same(const struct cm_send *heirs, const struct cm_send *ours)
{
	uint8_t mad[MAD_BYTES];
	struct cm_msg a, b;

	ck_assert_int_eq(cm_msg_decode(heirs->mad, MAD_BYTES, &a), 0);
	ck_assert_int_eq(cm_msg_decode(ours->mad, MAD_BYTES, &b), 0);
	if (b.hdr.attr_id == CM_ATTR_REJ && a.rej.local_comm_id == 0)
		b.rej.local_comm_id = 0;
	cm_msg_encode(&b, mad);
	ck_assert_msg(memcmp(heirs->mad, mad, MAD_BYTES) == 0, "walk %u: another message than 0x%x",
		      model.seed, b.hdr.attr_id);
	ck_assert_mem_eq(&heirs->path.dgid, &ours->path.dgid, sizeof(struct mad_gid));
}

static unsigned int compare_end(const struct cm_record *tracked)
{
	struct cm_conn *conn = conn_of(tracked);
	enum cm_state state = conn ? conn->state : CM_IDLE;
	struct cm_effects ours, heirs;
	unsigned int n = reap(tracked, &heirs);

	if (is_over(state) || state == CM_DREQ_SENT)
		return 0; /* that DREQ is retransmitted: test_adopt.c */
	ck_assert_int_eq(
		cm_core_call(&model.side[OURS].core, conn, CM_CALL_DESTROY, NULL, model.now, &ours),
		0);
	ck_assert_uint_eq(n, ours.n_sends);
	for (unsigned int i = 0; i < n; i++)
		assert_same(&heirs.send[i], &ours.send[i]);
	return n;
}

TEST_LOOP(cmportd_ends_connections_as_the_client_would, 0, N_LOOPS)
{
	struct cm_record tracked;
	unsigned int n_messages = 0;

	for (int i = 0; i < N_WALKS; i++) {
		begin(_i, i, false);
		ck_assert_int_eq(cm_core_init(&next_core, model.seed), 0);
		cm_port_init(&next_port, MODEL_OUR_GUID, &model.side[OURS].port.gid0);
		for (int n = 0; n < N_STEPS; n++)
			model_step();
		model.side[OURS].core.released = NULL;
		while (tracker_take(model.tracker, MODEL_CLIENT, &tracked))
			n_messages += compare_end(&tracked);
		cm_core_fini(&next_core);
		model_end();
	}
	ck_assert_uint_gt(n_messages, N_WALKS); /* or there was little to compare */
}
