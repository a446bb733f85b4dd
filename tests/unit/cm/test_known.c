/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/demux.c: messages that certainly come from the peer of a connection, so that they prove facts
 * about the peer (cm_effects.is_known).
 */
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

static bool is_known(struct cm_msg msg)
{
	rig_deliver(&rig, &msg);
	return rig.out.is_known;
}

/* clang-format off */
static const struct known {
	enum cm_state state;
	bool passive;
	enum cm_attr attr;
} known[] = {
	{ CM_REQ_SENT,    false, CM_ATTR_MRA },
	{ CM_REQ_SENT,    false, CM_ATTR_REJ },
	{ CM_REQ_SENT,    false, CM_ATTR_REP },
	{ CM_REP_RCVD,    false, CM_ATTR_REP },
	{ CM_REP_SENT,    true,  CM_ATTR_RTU },
	{ CM_ESTABLISHED, true,  CM_ATTR_DREQ },
	{ CM_DREQ_SENT,   false, CM_ATTR_DREP },
	{ CM_TIMEWAIT,    false, CM_ATTR_DREQ },
};
/* clang-format on */

FIXTURE(set_up, tear_down);

TEST_LOOP(a_message_with_the_ids_and_the_address_of_a_connection_is_known, 0,
	  sizeof(known) / sizeof(known[0]))
{
	rig_reach(&rig, known[_i].state, known[_i].passive);
	ck_assert(is_known(rig_msg(&rig, known[_i].attr)));
}

TEST_LOOP(the_same_message_from_another_address_is_not_known, 0, sizeof(known) / sizeof(known[0]))
{
	struct cm_msg msg;

	rig_reach(&rig, known[_i].state, known[_i].passive);
	msg = rig_msg(&rig, known[_i].attr);
	rig.path.dgid.raw[15] ^= 1;
	ck_assert(!is_known(msg));
}

TEST(a_message_with_another_id_of_either_side_is_not_known)
{
	struct cm_msg msg;

	rig_reach(&rig, CM_ESTABLISHED, true);
	msg = rig_msg(&rig, CM_ATTR_DREQ);
	msg.dreq.local_comm_id++;
	ck_assert(!is_known(msg));
	msg = rig_msg(&rig, CM_ATTR_DREQ);
	msg.dreq.remote_comm_id++;
	ck_assert(!is_known(msg));
}

/* It names one id, which any host can choose. */
TEST_LOOP(a_duplicate_request_is_not_known, CM_ATTR_SIDR_REQ, CM_ATTR_SIDR_REQ + 1)
{
	struct cm_msg msg = rig_msg(&rig, _i);

	ck_assert(!is_known(msg));
	ck_assert(!is_known(msg));
}

TEST(a_rep_with_another_id_than_the_first_is_not_known)
{
	struct cm_msg rep;

	rig_reach(&rig, CM_REP_RCVD, false);
	rep = rig_msg(&rig, CM_ATTR_REP);
	rep.rep.local_comm_id++;
	ck_assert(!is_known(rep));
}
