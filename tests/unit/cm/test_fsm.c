/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/fsm.c, compared with an independent version of the protocol: for every state and input, the
 * next state, the messages and the reports. An input without a row must fail (a call) or have no
 * effect (all others).
 */
#include <errno.h>
#include <string.h>

#include "cm/fsm.h"
#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

struct row {
	enum cm_state from;
	const char *input;
	enum cm_state to;
	const char *sent;
	const char *reported;
};

/* clang-format off */
static const struct row rows[] = {
	{ CM_IDLE, "local REQ",         CM_REQ_SENT,     "REQ",               "" },
	{ CM_IDLE, "local destroy",     RIG_GONE,        "",                  "" },
	{ CM_IDLE, "REQ",               CM_IDLE,         "",                  "REQUEST" },
	{ CM_IDLE, "REQ stale",         CM_IDLE,         "",                  "REQUEST" },
	{ CM_IDLE, "DREQ",              CM_IDLE,         "DREP",              "" },

	{ CM_REQ_SENT, "local REJ",     CM_IDLE,         "REJ(other) 28",     "" },
	{ CM_REQ_SENT, "local destroy", RIG_GONE,        "REJ(other) 4",      "" },
	{ CM_REQ_SENT, "REQ",           CM_REQ_SENT,     "",                  "REQUEST" },
	{ CM_REQ_SENT, "REQ stale",     CM_REQ_SENT,     "",                  "REQUEST" },
	{ CM_REQ_SENT, "MRA(REQ)",      CM_MRA_REQ_RCVD, "",                  "" },
	{ CM_REQ_SENT, "REP",           CM_REP_RCVD,     "",                  "RESPONSE" },
	{ CM_REQ_SENT, "REP known",     CM_REQ_SENT,     "",                  "" },
	{ CM_REQ_SENT, "REP stale",     CM_REQ_SENT,     "REJ(REP) 10, DREQ", "" },
	{ CM_REQ_SENT, "REJ",           CM_IDLE,         "",                  "REJECTED" },
	{ CM_REQ_SENT, "REJ 10",        CM_TIMEWAIT,     "",                  "REJECTED" },
	/*
	 * The peer's comm id is not known yet, so the DREQ matches no connection and is confirmed.
	 */
	{ CM_REQ_SENT, "DREQ",          CM_REQ_SENT,     "DREP",              "" },
	{ CM_REQ_SENT, "timer",         CM_REQ_SENT,     "REQ",               "" },
	{ CM_REQ_SENT, "spent",         CM_IDLE,         "",                  "UNREACHABLE -110" },

	{ CM_MRA_REQ_RCVD, "local REJ", CM_IDLE,         "REJ(other) 28",     "" },
	{ CM_MRA_REQ_RCVD, "local destroy", RIG_GONE,    "REJ(other) 4",      "" },
	{ CM_MRA_REQ_RCVD, "REQ",       CM_MRA_REQ_RCVD, "",                  "REQUEST" },
	{ CM_MRA_REQ_RCVD, "REQ stale", CM_MRA_REQ_RCVD, "",                  "REQUEST" },
	{ CM_MRA_REQ_RCVD, "MRA(REQ)",  CM_MRA_REQ_RCVD, "",                  "" },
	{ CM_MRA_REQ_RCVD, "REP",       CM_REP_RCVD,     "",                  "RESPONSE" },
	{ CM_MRA_REQ_RCVD, "REP known", CM_MRA_REQ_RCVD, "",                  "" },
	{ CM_MRA_REQ_RCVD, "REP stale", CM_MRA_REQ_RCVD, "REJ(REP) 10, DREQ", "" },
	{ CM_MRA_REQ_RCVD, "REJ",       CM_IDLE,         "",                  "REJECTED" },
	{ CM_MRA_REQ_RCVD, "REJ 10",    CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_MRA_REQ_RCVD, "DREQ",      CM_MRA_REQ_RCVD, "DREP",              "" },
	{ CM_MRA_REQ_RCVD, "timer",     CM_MRA_REQ_RCVD, "REQ",               "" },
	{ CM_MRA_REQ_RCVD, "spent",     CM_IDLE,         "",                  "UNREACHABLE -110" },

	{ CM_REP_RCVD, "local RTU",     CM_ESTABLISHED,  "RTU",               "" },
	{ CM_REP_RCVD, "local MRA",     CM_MRA_REP_SENT, "",                  "" },
	{ CM_REP_RCVD, "local REJ",     CM_IDLE,         "REJ(REP) 28",       "" },
	{ CM_REP_RCVD, "local destroy", RIG_GONE,        "REJ(REP) 28",       "" },
	{ CM_REP_RCVD, "REQ",           CM_REP_RCVD,     "",                  "" },
	{ CM_REP_RCVD, "REQ stale",     CM_REP_RCVD,     "REJ(REQ) 10",       "" },
	{ CM_REP_RCVD, "REP",           CM_REP_RCVD,     "",                  "" },
	{ CM_REP_RCVD, "REJ",           CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_REP_RCVD, "REJ 10",        CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_REP_RCVD, "REJ 4",         CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_REP_RCVD, "DREQ",          CM_REP_RCVD,     "",                  "" },

	{ CM_MRA_REP_SENT, "local RTU", CM_ESTABLISHED,  "RTU",               "" },
	{ CM_MRA_REP_SENT, "local REJ", CM_IDLE,         "REJ(REP) 28",       "" },
	{ CM_MRA_REP_SENT, "local destroy", RIG_GONE,    "REJ(REP) 28",       "" },
	{ CM_MRA_REP_SENT, "REQ",       CM_MRA_REP_SENT, "",                  "" },
	{ CM_MRA_REP_SENT, "REQ stale", CM_MRA_REP_SENT, "REJ(REQ) 10",       "" },
	{ CM_MRA_REP_SENT, "REP",       CM_MRA_REP_SENT, "MRA(REP)",          "" },
	{ CM_MRA_REP_SENT, "REJ",       CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_MRA_REP_SENT, "REJ 10",    CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_MRA_REP_SENT, "REJ 4",     CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_MRA_REP_SENT, "DREQ",      CM_MRA_REP_SENT, "",                  "" },

	{ CM_REQ_RCVD, "local REP",     CM_REP_SENT,     "REP",               "" },
	{ CM_REQ_RCVD, "local MRA",     CM_MRA_REQ_SENT, "",                  "" },
	{ CM_REQ_RCVD, "local REJ",     CM_IDLE,         "REJ(REQ) 28",       "" },
	{ CM_REQ_RCVD, "local forget",  RIG_GONE,        "",                  "" },
	{ CM_REQ_RCVD, "local destroy", RIG_GONE,        "REJ(REQ) 28",       "" },
	{ CM_REQ_RCVD, "REQ",           CM_REQ_RCVD,     "",                  "" },
	{ CM_REQ_RCVD, "REQ stale",     CM_REQ_RCVD,     "REJ(REQ) 10",       "" },
	{ CM_REQ_RCVD, "REJ",           CM_IDLE,         "",                  "REJECTED" },
	{ CM_REQ_RCVD, "REJ 10",        CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_REQ_RCVD, "REJ 4",         CM_IDLE,         "",                  "REJECTED" },

	{ CM_MRA_REQ_SENT, "local REP", CM_REP_SENT,     "REP",               "" },
	{ CM_MRA_REQ_SENT, "local REJ", CM_IDLE,         "REJ(REQ) 28",       "" },
	{ CM_MRA_REQ_SENT, "local forget",  RIG_GONE,    "",                  "" },
	{ CM_MRA_REQ_SENT, "local destroy", RIG_GONE,    "REJ(REQ) 28",       "" },
	{ CM_MRA_REQ_SENT, "REQ",       CM_MRA_REQ_SENT, "MRA(REQ)",          "" },
	{ CM_MRA_REQ_SENT, "REQ stale", CM_MRA_REQ_SENT, "REJ(REQ) 10",       "" },
	{ CM_MRA_REQ_SENT, "REJ",       CM_IDLE,         "",                  "REJECTED" },
	{ CM_MRA_REQ_SENT, "REJ 10",    CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_MRA_REQ_SENT, "REJ 4",     CM_IDLE,         "",                  "REJECTED" },

	{ CM_REP_SENT, "local notify",  CM_ESTABLISHED,  "",                  "ESTABLISHED" },
	{ CM_REP_SENT, "local REJ",     CM_TIMEWAIT,     "REJ(other) 28",     "" },
	{ CM_REP_SENT, "local destroy", RIG_GONE,        "REJ(other) 28",     "" },
	{ CM_REP_SENT, "REQ",           CM_REP_SENT,     "",                  "" },
	{ CM_REP_SENT, "REQ stale",     CM_REP_SENT,     "REJ(REQ) 10",       "" },
	{ CM_REP_SENT, "MRA(REP)",      CM_MRA_REP_RCVD, "",                  "" },
	{ CM_REP_SENT, "RTU",           CM_ESTABLISHED,  "",                  "ESTABLISHED" },
	{ CM_REP_SENT, "REJ",           CM_IDLE,         "",                  "REJECTED" },
	{ CM_REP_SENT, "REJ 10",        CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_REP_SENT, "REJ 4",         CM_IDLE,         "",                  "REJECTED" },
	{ CM_REP_SENT, "DREQ",          CM_DREQ_RCVD,    "",                  "DISCONNECTED" },
	{ CM_REP_SENT, "timer",         CM_REP_SENT,     "REP",               "" },
	{ CM_REP_SENT, "spent",         CM_IDLE,         "",                  "UNREACHABLE -110" },

	{ CM_MRA_REP_RCVD, "local notify", CM_ESTABLISHED, "",                "ESTABLISHED" },
	{ CM_MRA_REP_RCVD, "local REJ", CM_TIMEWAIT,     "REJ(other) 28",     "" },
	{ CM_MRA_REP_RCVD, "local destroy", RIG_GONE,    "REJ(other) 28",     "" },
	{ CM_MRA_REP_RCVD, "REQ",       CM_MRA_REP_RCVD, "",                  "" },
	{ CM_MRA_REP_RCVD, "REQ stale", CM_MRA_REP_RCVD, "REJ(REQ) 10",       "" },
	{ CM_MRA_REP_RCVD, "MRA(REP)",  CM_MRA_REP_RCVD, "",                  "" },
	{ CM_MRA_REP_RCVD, "RTU",       CM_ESTABLISHED,  "",                  "ESTABLISHED" },
	{ CM_MRA_REP_RCVD, "REJ",       CM_IDLE,         "",                  "REJECTED" },
	{ CM_MRA_REP_RCVD, "REJ 10",    CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_MRA_REP_RCVD, "REJ 4",     CM_IDLE,         "",                  "REJECTED" },
	{ CM_MRA_REP_RCVD, "DREQ",      CM_DREQ_RCVD,    "",                  "DISCONNECTED" },
	{ CM_MRA_REP_RCVD, "timer",     CM_MRA_REP_RCVD, "REP",               "" },
	{ CM_MRA_REP_RCVD, "spent",     CM_IDLE,         "",                  "UNREACHABLE -110" },

	{ CM_ESTABLISHED, "local DREQ", CM_DREQ_SENT,    "DREQ",              "" },
	{ CM_ESTABLISHED, "local destroy", CM_DREQ_SENT, "DREQ",              "" },
	{ CM_ESTABLISHED, "REQ",        CM_ESTABLISHED,  "",                  "" },
	{ CM_ESTABLISHED, "REQ stale",  CM_DREQ_SENT,    "REJ(REQ) 10, DREQ", "" },
	{ CM_ESTABLISHED, "REP",        CM_ESTABLISHED,  "RTU",               "" },
	{ CM_ESTABLISHED, "RTU",        CM_ESTABLISHED,  "",                  "" },
	{ CM_ESTABLISHED, "REJ",        CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_ESTABLISHED, "REJ 10",     CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_ESTABLISHED, "REJ 4",      CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_ESTABLISHED, "DREQ",       CM_DREQ_RCVD,    "",                  "DISCONNECTED" },

	{ CM_DREQ_SENT, "local destroy", CM_DREQ_SENT,   "",                  "" },
	{ CM_DREQ_SENT, "REQ",          CM_DREQ_SENT,    "",                  "" },
	{ CM_DREQ_SENT, "REQ stale",    CM_DREQ_SENT,    "REJ(REQ) 10",       "" },
	{ CM_DREQ_SENT, "REJ",          CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_DREQ_SENT, "REJ 10",       CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_DREQ_SENT, "REJ 4",        CM_TIMEWAIT,     "",                  "REJECTED" },
	{ CM_DREQ_SENT, "DREQ",         CM_DREQ_RCVD,    "",                  "DISCONNECTED" },
	{ CM_DREQ_SENT, "DREP",         CM_TIMEWAIT,     "",                  "DISCONNECTED" },
	{ CM_DREQ_SENT, "timer",        CM_DREQ_SENT,    "DREQ",              "" },
	{ CM_DREQ_SENT, "spent",        CM_TIMEWAIT,     "",                  "DISCONNECTED -110" },

	{ CM_DREQ_RCVD, "local DREP",   CM_TIMEWAIT,     "DREP",              "" },
	{ CM_DREQ_RCVD, "local destroy", RIG_GONE,       "DREP",              "" },
	{ CM_DREQ_RCVD, "REQ",          CM_DREQ_RCVD,    "",                  "" },
	{ CM_DREQ_RCVD, "REQ stale",    CM_DREQ_RCVD,    "REJ(REQ) 10",       "" },
	{ CM_DREQ_RCVD, "DREQ",         CM_DREQ_RCVD,    "",                  "" },
	{ CM_DREQ_RCVD, "DREP",         CM_TIMEWAIT,     "",                  "" },

	{ CM_TIMEWAIT, "local destroy", RIG_GONE,        "",                  "" },
	{ CM_TIMEWAIT, "REQ",           CM_TIMEWAIT,     "",                  "" },
	{ CM_TIMEWAIT, "REQ stale",     CM_TIMEWAIT,     "",                  "REQUEST" },
	{ CM_TIMEWAIT, "DREQ",          CM_TIMEWAIT,     "DREP",              "" },
	{ CM_TIMEWAIT, "timer",         CM_IDLE,         "",                  "TIMEWAIT_EXIT" },
	{ CM_TIMEWAIT, "spent",         CM_IDLE,         "",                  "TIMEWAIT_EXIT" },

	{ CM_IDLE, "local SIDR_REQ",    CM_SIDR_REQ_SENT, "SIDR_REQ",         "" },

	{ CM_SIDR_REQ_SENT, "local destroy", RIG_GONE,   "",                  "" },
	{ CM_SIDR_REQ_SENT, "SIDR_REP", CM_IDLE,         "",                  "ANSWERED" },
	{ CM_SIDR_REQ_SENT, "timer",    CM_SIDR_REQ_SENT, "SIDR_REQ",         "" },
	{ CM_SIDR_REQ_SENT, "spent",    CM_IDLE,         "",                  "UNREACHABLE -110" },
	/* The message comes from another host. */
	{ CM_SIDR_REQ_SENT, "SIDR_REQ", CM_SIDR_REQ_SENT, "",                 "REQUEST" },
	{ CM_SIDR_REQ_SENT, "REQ",      CM_SIDR_REQ_SENT, "",                 "REQUEST" },
	{ CM_SIDR_REQ_SENT, "REQ stale", CM_SIDR_REQ_SENT, "",                "REQUEST" },
	{ CM_SIDR_REQ_SENT, "DREQ",     CM_SIDR_REQ_SENT, "DREP",             "" },

	{ CM_SIDR_REQ_RCVD, "local SIDR_REP", CM_SIDR_REP_SENT, "SIDR_REP 0", "" },
	{ CM_SIDR_REQ_RCVD, "local destroy", RIG_GONE,   "SIDR_REP 2",        "" },
	{ CM_SIDR_REQ_RCVD, "SIDR_REQ", CM_SIDR_REQ_RCVD, "",                 "" },
	{ CM_SIDR_REQ_RCVD, "REQ",      CM_SIDR_REQ_RCVD, "",                 "REQUEST" },
	{ CM_SIDR_REQ_RCVD, "REQ stale", CM_SIDR_REQ_RCVD, "",                "REQUEST" },

	{ CM_SIDR_REP_SENT, "local destroy", RIG_GONE,   "",                  "" },
	{ CM_SIDR_REP_SENT, "SIDR_REQ", CM_SIDR_REP_SENT, "SIDR_REP 0",       "" },
	{ CM_SIDR_REP_SENT, "REQ",      CM_SIDR_REP_SENT, "",                 "REQUEST" },
	{ CM_SIDR_REP_SENT, "REQ stale", CM_SIDR_REP_SENT, "",                "REQUEST" },
};

/* A lookup of the same peer never belongs to a connection, whatever its state is. */
static struct row beside = { .input = "SIDR_REQ", .sent = "", .reported = "REQUEST" };
/* clang-format on */

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct row *row_of(enum cm_state from, const char *input)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (rows[i].from == from && strcmp(rows[i].input, input) == 0)
			return &rows[i];
	if (strcmp(input, beside.input) == 0) {
		beside.from = from;
		beside.to = from;
		return &beside;
	}
	return NULL;
}

static const char *state_name(enum cm_state state)
{
	return state == RIG_GONE ? "gone" : cm_state_str(state);
}

/*
 * A used connection cannot request another one. IDLE on the passive side is the state after the
 * end.
 */
static bool repeats_request(enum cm_state from, bool passive, const char *input)
{
	return from == CM_IDLE && passive &&
	       (!strcmp(input, "local REQ") || !strcmp(input, "local SIDR_REQ"));
}

/* A call changes no counter, and a message without effect changes one. */
static uint64_t sum_of_counters(const struct rig *rig)
{
	uint64_t sum = 0;

	for (int i = 0; i < CM_N_COUNTERS; i++)
		sum += rig->core.count[i];
	return sum;
}

static uint64_t sum_of_received(const struct rig *rig)
{
	uint64_t sum = 0;

	for (int i = CM_ATTR_REQ; i <= CM_ATTR_APR; i++)
		sum += rig->core.received[i];
	return sum;
}

static void do_case(struct rig *rig, enum cm_state from, bool passive, const char *input)
{
	const struct row *row = repeats_request(from, passive, input) ? NULL : row_of(from, input);
	uint64_t counted = sum_of_counters(rig), received = sum_of_received(rig);
	int err = rig_input(rig, input);
	bool refused = !row && input_is_call(input);

	ck_assert_msg(err == (refused ? -EINVAL : 0), "%s in %s returned %d", input,
		      state_name(from), err);
	ck_assert_str_eq(state_name(rig_state(rig)), state_name(row ? row->to : from));
	ck_assert_str_eq(rig_sent(rig), row ? row->sent : "");
	ck_assert_str_eq(rig_reported(rig), row ? row->reported : "");
	counted = sum_of_counters(rig) - counted;
	if (input_is_call(input))
		ck_assert_uint_eq(counted, 0);
	else if (sum_of_received(rig) > received && !rig->out.n_sends && !rig->out.n_reports)
		ck_assert_uint_eq(counted, rig_state(rig) == from);
}

static void do_side(enum cm_state from, bool passive, const char *input)
{
	struct rig rig;

	if (!rig_can_reach(from, passive))
		return;
	rig_init(&rig);
	rig_reach(&rig, from, passive);
	do_case(&rig, from, passive, input);
	rig_fini(&rig);
}

/* One case for each state and input, with or without a row. */
TEST_LOOP(every_input_has_the_effect_of_the_protocol_in_every_state, 0, CM_N_STATES *n_inputs())
{
	enum cm_state from = (enum cm_state)(_i / n_inputs());
	const char *input = input_name(_i % n_inputs());

	do_side(from, false, input);
	do_side(from, true, input);
}

TEST_LOOP(every_row_is_unique_and_has_a_known_input, 0, N_ROWS)
{
	int i = 0;

	ck_assert_ptr_eq(row_of(rows[_i].from, rows[_i].input), &rows[_i]);
	while (strcmp(input_name(i), rows[_i].input) != 0)
		ck_assert_int_lt(++i, n_inputs());
}

/* clang-format off */
/* Intended differences from the kernel's connection manager: its behaviour, and the reason. */
static const struct {
	enum cm_state from;
	const char *input;
	const char *kernel;
	const char *why;
} unlike_kernel[] = {
	{ CM_IDLE, "DREQ",
	  "is silent until the id is destroyed",
	  "a peer whose DREP was lost would repeat its DREQ in vain" },
	{ CM_ESTABLISHED, "local destroy",
	  "sends one DREQ and forgets the connection",
	  "if that is lost the peer never learns; ours is repeated, as an orphan's" },
	{ CM_DREQ_SENT, "local destroy",
	  "stops repeating its DREQ",
	  "as above" },
	{ CM_DREQ_RCVD, "DREP",
	  "reports it, and drops it one layer above",
	  "the disconnection has been reported" },
	{ CM_TIMEWAIT, "REQ",
	  "takes it for a new request",
	  "it is the old one, held up on the way: nobody waits for an answer" },
	{ CM_SIDR_REP_SENT, "SIDR_REQ",
	  "takes it for a new request",
	  "it is the old one, whose answer was lost: one request would become two" },
	{ CM_REQ_RCVD, "local forget",
	  "does the same when a backlog is full",
	  "with us it is a call" },
	{ CM_MRA_REQ_SENT, "local forget",
	  "has no such call",
	  "a listening socket limits half-open connections, and the peer may try again" },
};
/* clang-format on */

TEST_LOOP(every_difference_from_the_kernel_has_its_row, 0,
	  sizeof(unlike_kernel) / sizeof(unlike_kernel[0]))
{
	ck_assert_ptr_nonnull(row_of(unlike_kernel[_i].from, unlike_kernel[_i].input));
	ck_assert_str_ne(unlike_kernel[_i].kernel, "");
	ck_assert_str_ne(unlike_kernel[_i].why, "");
}

static bool walked[CM_N_STATES][CM_N_EVENTS];

static void note(const struct cm_conn *conn, enum cm_state from, enum cm_event why)
{
	ck_assert_uint_eq(conn->state, cm_edge_of(from, why)->to);
	walked[from][why] = true;
}

static void walk(enum cm_state from, bool passive, const char *input)
{
	struct rig rig;

	if (!rig_can_reach(from, passive))
		return;
	rig_init(&rig);
	rig.core.trace = note;
	rig_reach(&rig, from, passive);
	rig_input(&rig, input);
	rig_fini(&rig);
}

TEST(the_rows_walk_every_edge_of_the_table)
{
	for (int i = 0; i < CM_N_STATES * n_inputs(); i++) {
		walk((enum cm_state)(i / n_inputs()), false, input_name(i % n_inputs()));
		walk((enum cm_state)(i / n_inputs()), true, input_name(i % n_inputs()));
	}
	for (int i = 0; i < CM_N_STATES * CM_N_EVENTS; i++) {
		enum cm_state state = (enum cm_state)(i / CM_N_EVENTS);
		enum cm_event event = (enum cm_event)(i % CM_N_EVENTS);

		ck_assert_msg(walked[state][event] == !!cm_edge_of(state, event)->act,
			      "no row walks %s in %s", cm_event_str(event), cm_state_str(state));
	}
}

/* Return: the message that a call sends, or 0. */
static uint16_t attr_of(enum cm_event call)
{
	static const uint16_t attrs[CM_N_EVENTS] = {
		[CM_CALL_REQ] = CM_ATTR_REQ,
		[CM_CALL_REP] = CM_ATTR_REP,
		[CM_CALL_SIDR_REQ] = CM_ATTR_SIDR_REQ,
		[CM_CALL_SIDR_REP] = CM_ATTR_SIDR_REP,
	};

	return attrs[call];
}

/* Steps without guards: the table alone. */
static void step_alone(struct rig *rig, enum cm_event event)
{
	const struct cm_edge *edge = cm_edge_of(rig->conn->state, event);
	struct cm_args args = { .port = &rig->port, .path = &rig->path };
	struct cm_msg in = rig_msg(rig, CM_ATTR_REQ), out = rig_msg(rig, CM_ATTR_REQ);
	struct cm_context ctx = {
		.core = &rig->core, .now = rig->now, .msg = &in, .out = &rig->out, .args = &args
	};
	struct cm_conn before;

	rig->conn->port = &rig->port; /* as for all connections that are found by a message */
	before = *rig->conn;
	if (attr_of(event)) {
		args.msg = &out;
		out.hdr.attr_id = attr_of(event);
	}
	rig->out.n_sends = 0;
	rig->out.n_reports = 0;
	if (edge->act) {
		ck_assert_int_eq(cm_step(rig->conn, event, &ctx), 0);
		ck_assert_uint_eq(rig->conn->state, edge->to);
		return;
	}
	ck_assert_int_eq(cm_step(rig->conn, event, &ctx), -EINVAL);
	ck_assert_mem_eq(rig->conn, &before, sizeof(before));
	ck_assert_uint_eq(rig->out.n_sends + rig->out.n_reports, 0);
}

/* A reader of captures has the record of a connection, but no core. */
TEST_LOOP(a_record_moves_as_its_connection_would, 0, CM_N_STATES *CM_N_EVENTS)
{
	enum cm_state state = (enum cm_state)(_i / CM_N_EVENTS);
	enum cm_event event = (enum cm_event)(_i % CM_N_EVENTS);
	const struct cm_edge *edge = cm_edge_of(state, event);
	struct cm_record record = { .state = (uint8_t)state, .local_comm_id = 7 };

	ck_assert_int_eq(cm_record_step(&record, event), edge->act != 0);
	ck_assert_uint_eq(record.state, edge->act ? edge->to : state);
	ck_assert_uint_eq(record.local_comm_id, 7);
}

TEST_LOOP(a_step_has_an_action_or_refuses_and_moves_nothing, 0, CM_N_STATES *CM_N_EVENTS)
{
	enum cm_state state = (enum cm_state)(_i / CM_N_EVENTS);
	struct rig rig;

	rig_init(&rig);
	rig_reach(&rig, state, !rig_can_reach(state, false));
	step_alone(&rig, (enum cm_event)(_i % CM_N_EVENTS));
	rig_fini(&rig);
}

TEST(every_state_and_event_has_a_name)
{
	for (int i = 0; i < CM_N_STATES; i++)
		ck_assert_str_ne(cm_state_str((enum cm_state)i), "?");
	for (int i = 0; i < CM_N_EVENTS; i++)
		ck_assert_str_ne(cm_event_str((enum cm_event)i), "?");
	ck_assert_str_eq(cm_state_str(CM_N_STATES), "?");
	ck_assert_str_eq(cm_event_str(CM_N_EVENTS), "?");
}
