/* SPDX-License-Identifier: BSD-2-Clause */
/* All inputs of the connection on a rig: see inputs.h. */
#include "tests/unit/cm/inputs.h"
#include "tests/unit/test.h"

#include <string.h>

#define OTHER_COMM_ID 0x70009999
#define OTHER_QPN     0x000999

static void plain(struct rig *rig, int attr)
{
	struct cm_msg msg = rig_msg(rig, attr);

	rig_deliver(rig, &msg);
}

/* A new connection with the queue pair of the one under test. */
static void req_stale(struct rig *rig, int unused)
{
	struct cm_msg msg = rig_msg(rig, CM_ATTR_REQ);

	(void)unused;
	msg.req.local_comm_id++;
	rig_deliver(rig, &msg);
}

/* The REP of another, established connection. */
static void rep_known(struct rig *rig, int unused)
{
	struct cm_msg msg = rig_msg(rig, CM_ATTR_REP);

	(void)unused;
	rig_establish_other(rig, OTHER_COMM_ID, OTHER_QPN);
	msg.rep.local_comm_id = OTHER_COMM_ID;
	rig_deliver(rig, &msg);
}

/* A REP with the queue pair of another, established connection. */
static void rep_stale(struct rig *rig, int unused)
{
	struct cm_msg msg = rig_msg(rig, CM_ATTR_REP);

	(void)unused;
	rig_establish_other(rig, OTHER_COMM_ID, OTHER_QPN);
	msg.rep.local_comm_id++;
	msg.rep.local_qpn = OTHER_QPN;
	rig_deliver(rig, &msg);
}

static void mra(struct rig *rig, int answered)
{
	struct cm_msg msg = rig_msg(rig, CM_ATTR_MRA);

	msg.mra.message = (uint8_t)answered;
	rig_deliver(rig, &msg);
}

static void rej(struct rig *rig, int reason)
{
	struct cm_msg msg = rig_msg(rig, CM_ATTR_REJ);

	msg.rej.reason = (uint16_t)reason;
	rig_deliver(rig, &msg);
}

/*
 * The peer gives up: it knows our comm id of the REP no better than we know its comm id of the REQ.
 */
static void rej_timeout(struct rig *rig, int unused)
{
	struct cm_msg msg = rig_msg(rig, CM_ATTR_REJ);

	(void)unused;
	msg.rej.remote_comm_id = 0;
	msg.rej.message = CM_ANSWERED_OTHER;
	msg.rej.reason = CM_REJ_TIMEOUT;
	msg.rej.ari_bytes = 8;
	memset(msg.rej.ari, RIG_PEER_GUID & 0xff, 8);
	rig_deliver(rig, &msg);
}

static void timer(struct rig *rig, int unused)
{
	(void)unused;
	rig_timer(rig);
}

/* No answer arrives until something gives up. */
static void spent(struct rig *rig, int unused)
{
	enum cm_state state = rig_state(rig);
	int n = 0;

	(void)unused;
	while (rig_timer(rig) && rig_state(rig) == state)
		ck_assert_int_lt(n++, 100);
}

static const struct {
	const char *name;
	void (*happen)(struct rig *rig, int arg); /* NULL: a call, whose verb is arg */
	int arg;
} inputs[] = {
	{ "local REQ", NULL, CM_CALL_REQ },
	{ "local REP", NULL, CM_CALL_REP },
	{ "local RTU", NULL, CM_CALL_RTU },
	{ "local REJ", NULL, CM_CALL_REJ },
	{ "local MRA", NULL, CM_CALL_MRA },
	{ "local DREQ", NULL, CM_CALL_DREQ },
	{ "local DREP", NULL, CM_CALL_DREP },
	{ "local notify", NULL, CM_CALL_ESTABLISH },
	{ "local SIDR_REQ", NULL, CM_CALL_SIDR_REQ },
	{ "local SIDR_REP", NULL, CM_CALL_SIDR_REP },
	{ "local forget", NULL, CM_CALL_FORGET },
	{ "local destroy", NULL, CM_CALL_DESTROY },
	{ "REQ", plain, CM_ATTR_REQ },
	{ "REQ stale", req_stale, 0 },
	{ "MRA(REQ)", mra, CM_ANSWERED_REQ },
	{ "MRA(REP)", mra, CM_ANSWERED_REP },
	{ "MRA(other)", mra, CM_ANSWERED_OTHER },
	{ "REP", plain, CM_ATTR_REP },
	{ "REP known", rep_known, 0 },
	{ "REP stale", rep_stale, 0 },
	{ "RTU", plain, CM_ATTR_RTU },
	{ "REJ", rej, CM_REJ_CONSUMER },
	{ "REJ 10", rej, CM_REJ_STALE_CONNECTION },
	{ "REJ 4", rej_timeout, 0 },
	{ "DREQ", plain, CM_ATTR_DREQ },
	{ "DREP", plain, CM_ATTR_DREP },
	{ "SIDR_REQ", plain, CM_ATTR_SIDR_REQ },
	{ "SIDR_REP", plain, CM_ATTR_SIDR_REP },
	{ "timer", timer, 0 },
	{ "spent", spent, 0 },
};

int n_inputs(void)
{
	return sizeof(inputs) / sizeof(inputs[0]);
}

const char *input_name(int i)
{
	return inputs[i].name;
}

bool input_is_call(const char *name)
{
	return strncmp(name, "local ", 6) == 0;
}

int rig_input(struct rig *rig, const char *name)
{
	int i = 0;

	while (strcmp(inputs[i].name, name) != 0)
		ck_assert_msg(++i < n_inputs(), "no input is called %s", name);
	if (!inputs[i].happen)
		return rig_call(rig, (enum cm_event)inputs[i].arg);
	inputs[i].happen(rig, inputs[i].arg);
	return 0;
}
