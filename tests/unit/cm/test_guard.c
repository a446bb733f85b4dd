/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/guard.c with two connections in plain variables instead of a core's table: the connection that
 * a message names, and its event.
 */
#include <string.h>

#include "cm/guard.h"
#include "tests/unit/test.h"

#define NEW_ID	  0x11 /* its REQ is not answered yet */
#define OLD_ID	  0x22 /* it is established */
#define PEERS_NEW 0x33 /* the peer's comm ids */
#define PEERS_OLD 0x44
#define NEW_QPN	  0x55
#define OLD_QPN	  0x66
#define PEERS_QPN 0x77 /* of the established connection */
#define PEER_GUID UINT64_C(0x0b0b0b0b0b0b0b0b)
#define NOBODY	  0x99

static const struct mad_path to_peer = { .grh = true, .dgid = { .raw = { [15] = 2 } } };
static const struct mad_path to_stranger = { .grh = true, .dgid = { .raw = { [15] = 3 } } };

static struct cm_record unanswered, established;
static struct cm_found found;

static void set_up(void)
{
	unanswered = (struct cm_record){ .local_comm_id = NEW_ID, .local_qpn = NEW_QPN };
	unanswered.path = to_peer;
	established = (struct cm_record){ .local_comm_id = OLD_ID,
					  .remote_comm_id = PEERS_OLD,
					  .local_qpn = OLD_QPN,
					  .remote_qpn = PEERS_QPN,
					  .remote_ca_guid = PEER_GUID };
	established.path = to_peer;
}

/* --- the table ----------------------------------------------------------- */

static struct cm_record *by_local(const struct cm_arrival *in, uint32_t local_comm_id)
{
	(void)in;
	if (local_comm_id == NEW_ID)
		return &unanswered;
	return local_comm_id == OLD_ID ? &established : NULL;
}

static struct cm_record *by_remote(const struct cm_arrival *in, uint64_t guid, uint32_t id)
{
	(void)in;
	return guid == PEER_GUID && id == PEERS_OLD ? &established : NULL;
}

static struct cm_record *by_qpn(const struct cm_arrival *in, uint64_t guid, uint32_t qpn)
{
	(void)in;
	return guid == PEER_GUID && qpn == PEERS_QPN ? &established : NULL;
}

static const struct cm_lookups lookups = { by_local, by_remote, by_qpn };

static enum cm_event ask(const struct mad_path *path, const struct cm_msg *msg)
{
	const struct cm_arrival in = { &lookups, NULL, msg, path->dgid };

	return cm_guard(&in, &found);
}

/* --- messages of one peer ------------------------------------------------ */

static struct cm_msg msg_of(enum cm_attr attr, uint32_t local, uint32_t remote)
{
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 0x7777);
	msg.rtu.local_comm_id = local;
	if (attr != CM_ATTR_REQ && attr != CM_ATTR_SIDR_REQ && attr != CM_ATTR_SIDR_REP)
		msg.rtu.remote_comm_id = remote;
	if (attr == CM_ATTR_REQ)
		msg.req.local_ca_guid = PEER_GUID;
	if (attr == CM_ATTR_REP)
		msg.rep.local_ca_guid = PEER_GUID;
	if (attr == CM_ATTR_SIDR_REQ)
		msg.sidr_req.service_id =
			PEER_GUID; /* a lookup has it at the same place of the record */
	return msg;
}

/*
 * The value besides the ids of a message: the queue pair of a REQ, REP or DREQ, the message that a
 * MRA or REJ answers; and the reason of a REJ.
 */
static const struct {
	enum cm_attr attr;
	uint32_t local, remote, value, reason;
	enum cm_event event;
	struct cm_record *record, *stale;
	enum cm_counter why;
} cases[] = {
#define SAYS(name, local, remote, value, reason) CM_ATTR_##name, local, remote, value, reason
#define MEANS(event, record)			 CM_##event, record, NULL, 0
#define NOTHING(record, why)			 CM_NO_EVENT, record, NULL, CM_COUNT_##why
	/* clang-format off */
	{ SAYS(REQ, PEERS_NEW, 0, 0x1, 0), MEANS(RX_REQ, NULL) },
	{ SAYS(REQ, PEERS_OLD, 0, 0x1, 0), MEANS(RX_REQ_DUP, &established) },
	{ SAYS(REQ, PEERS_OLD, 0, PEERS_QPN, 0), MEANS(RX_REQ_DUP, &established) },
	{ SAYS(REQ, PEERS_NEW, 0, PEERS_QPN, 0), CM_RX_REQ, NULL, &established, 0 },
	{ SAYS(REP, PEERS_NEW, NEW_ID, 0x1, 0), MEANS(RX_REP, &unanswered) },
	{ SAYS(REP, PEERS_NEW, NEW_ID, PEERS_QPN, 0), CM_RX_REP_STALE, &unanswered, &established, 0 },
	{ SAYS(REP, PEERS_OLD, NEW_ID, 0x1, 0), NOTHING(&unanswered, UNKNOWN) },
	{ SAYS(REP, PEERS_OLD, OLD_ID, 0x1, 0), MEANS(RX_REP_DUP, &established) },
	{ SAYS(REP, PEERS_NEW, OLD_ID, 0x1, 0), NOTHING(&established, UNKNOWN) },
	{ SAYS(REP, PEERS_NEW, NOBODY, 0x1, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(RTU, PEERS_OLD, OLD_ID, 0, 0), MEANS(RX_RTU, &established) },
	{ SAYS(RTU, PEERS_NEW, OLD_ID, 0, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(RTU, PEERS_OLD, NOBODY, 0, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(MRA, PEERS_NEW, NEW_ID, CM_ANSWERED_REQ, 0), MEANS(RX_MRA_REQ, &unanswered) },
	{ SAYS(MRA, PEERS_OLD, OLD_ID, CM_ANSWERED_REQ, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(MRA, PEERS_OLD, OLD_ID, CM_ANSWERED_REP, 0), MEANS(RX_MRA_REP, &established) },
	{ SAYS(MRA, PEERS_OLD, OLD_ID, 2, 0), NOTHING(&established, UNEXPECTED) },
	{ SAYS(MRA, PEERS_NEW, OLD_ID, 2, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(REJ, PEERS_NEW, NEW_ID, CM_ANSWERED_REQ, 28), MEANS(RX_REJ, &unanswered) },
	{ SAYS(REJ, 0, NEW_ID, CM_ANSWERED_REQ, 10), MEANS(RX_REJ_STALE, &unanswered) },
	{ SAYS(REJ, PEERS_OLD, OLD_ID, CM_ANSWERED_REQ, 28), NOTHING(NULL, UNKNOWN) },
	{ SAYS(REJ, PEERS_OLD, OLD_ID, CM_ANSWERED_REP, 28), MEANS(RX_REJ, &established) },
	{ SAYS(REJ, PEERS_OLD, NOBODY, CM_ANSWERED_REP, 4), MEANS(RX_REJ, &established) },
	{ SAYS(REJ, PEERS_NEW, NEW_ID, CM_ANSWERED_REQ, 4), NOTHING(NULL, UNKNOWN) },
	{ SAYS(DREQ, PEERS_OLD, OLD_ID, OLD_QPN, 0), MEANS(RX_DREQ, &established) },
	{ SAYS(DREQ, PEERS_OLD, OLD_ID, NEW_QPN, 0), NOTHING(&established, UNKNOWN) },
	{ SAYS(DREQ, PEERS_NEW, OLD_ID, OLD_QPN, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(DREP, PEERS_OLD, OLD_ID, 0, 0), MEANS(RX_DREP, &established) },
	{ SAYS(DREP, PEERS_OLD, NEW_ID, 0, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(SIDR_REQ, PEERS_NEW, 0, 0, 0), MEANS(RX_SIDR_REQ, NULL) },
	{ SAYS(SIDR_REQ, PEERS_OLD, 0, 0, 0), MEANS(RX_SIDR_REQ_DUP, &established) },
	{ SAYS(SIDR_REP, NEW_ID, 0, 0, 0), MEANS(RX_SIDR_REP, &unanswered) },
	{ SAYS(SIDR_REP, NOBODY, 0, 0, 0), NOTHING(NULL, UNKNOWN) },
	{ SAYS(LAP, PEERS_OLD, OLD_ID, 0, 0), NOTHING(NULL, UNSUPPORTED) },
	{ SAYS(APR, PEERS_OLD, OLD_ID, 0, 0), NOTHING(NULL, UNSUPPORTED) },
	/* clang-format on */
};

#define N_CASES ((int)(sizeof(cases) / sizeof(cases[0])))

static struct cm_msg message_of_case(int i)
{
	struct cm_msg msg = msg_of(cases[i].attr, cases[i].local, cases[i].remote);

	if (cases[i].attr == CM_ATTR_REQ)
		msg.req.local_qpn = cases[i].value;
	if (cases[i].attr == CM_ATTR_REP)
		msg.rep.local_qpn = cases[i].value;
	if (cases[i].attr == CM_ATTR_DREQ)
		msg.dreq.remote_qpn = cases[i].value;
	if (cases[i].attr == CM_ATTR_MRA)
		msg.mra.message = (uint8_t)cases[i].value;
	if (cases[i].attr == CM_ATTR_REJ) {
		msg.rej.message = (uint8_t)cases[i].value;
		msg.rej.reason = (uint16_t)cases[i].reason;
		memset(msg.rej.ari, 0x0b, sizeof(uint64_t)); /* PEER_GUID */
	}
	return msg;
}

FIXTURE(set_up, NULL);

TEST_LOOP(message_is_one_event_of_one_connection, 0, N_CASES)
{
	struct cm_msg msg = message_of_case(_i);
	enum cm_event event = ask(&to_peer, &msg);

	ck_assert_str_eq(cm_event_str(event), cm_event_str(cases[_i].event));
	ck_assert_ptr_eq(found.record, cases[_i].record);
	ck_assert_ptr_eq(found.stale, cases[_i].stale);
	if (event == CM_NO_EVENT)
		ck_assert_int_eq(found.why, cases[_i].why);
}

/* Messages of another host find nothing here by its own ids: the lookups ensure that. */
/* A connection found by the peer's ids has that peer; one found by our ids must be compared. */
TEST_LOOP(message_of_another_host_with_our_id_is_dropped, 0, 6)
{
	static const enum cm_attr attrs[] = { CM_ATTR_REP, CM_ATTR_RTU,	 CM_ATTR_MRA,
					      CM_ATTR_REJ, CM_ATTR_DREQ, CM_ATTR_DREP };
	struct cm_msg msg = msg_of(attrs[_i], PEERS_OLD, OLD_ID);

	ck_assert_int_eq(ask(&to_stranger, &msg), CM_NO_EVENT);
	ck_assert_ptr_null(found.record);
	ck_assert_int_eq(found.why, CM_COUNT_ALIEN);
}

TEST(lookup_is_answered_by_its_destination_only)
{
	struct cm_msg msg = msg_of(CM_ATTR_SIDR_REP, NEW_ID, 0);

	ck_assert_int_eq(ask(&to_stranger, &msg), CM_NO_EVENT);
	ck_assert_int_eq(found.why, CM_COUNT_ALIEN);
}

/* --- the sender's events ------------------------------------------------- */

TEST_LOOP(each_message_belongs_to_one_call, 0, 11)
{
	static const struct {
		enum cm_attr attr;
		enum cm_event call;
	} calls[] = {
		{ CM_ATTR_REQ, CM_CALL_REQ },		{ CM_ATTR_MRA, CM_CALL_MRA },
		{ CM_ATTR_REJ, CM_CALL_REJ },		{ CM_ATTR_REP, CM_CALL_REP },
		{ CM_ATTR_RTU, CM_CALL_RTU },		{ CM_ATTR_DREQ, CM_CALL_DREQ },
		{ CM_ATTR_DREP, CM_CALL_DREP },		{ CM_ATTR_SIDR_REQ, CM_CALL_SIDR_REQ },
		{ CM_ATTR_SIDR_REP, CM_CALL_SIDR_REP }, { CM_ATTR_LAP, CM_NO_EVENT },
		{ CM_ATTR_APR, CM_NO_EVENT },
	};
	struct cm_msg msg = msg_of(calls[_i].attr, PEERS_OLD, OLD_ID);

	ck_assert_int_eq(cm_call_of(&msg), calls[_i].call);
}
