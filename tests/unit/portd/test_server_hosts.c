/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that do not answer, and the users who send to them. Mallory is a user with two clients.
 */
#include "tests/unit/portd/scene.h"
#include "tests/unit/portd/talk.h"
#include "tests/unit/test.h"

#define MALLORY	   1001
#define OTHER_HOST 20 /* a host, see rig_peer() */

static struct rig_client mallory[2];

static void set_up(void)
{
	scene_set_up();
	rig_come_as_user(MALLORY);
	rig_join(&mallory[0]);
	rig_join(&mallory[1]);
}

FIXTURE(set_up, scene_tear_down);

/* As many copies as a datagram takes. Return: how many. */
static unsigned int fill(struct portd_datagram *out, const struct rig_client *client,
			 const struct cm_msg *msg)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = {.port = client->handle, .path = rig_peer(SCENE_PEER)}
	};
	unsigned int n = 0;

	*out = (struct portd_datagram){ .bytes = 0 };
	rig_encode(&record.mad, msg);
	while (portd_put(out, &record))
		n++;
	return n;
}

static void send_datagrams(const struct rig_client *client, const struct cm_msg *msg,
			   unsigned int n_messages)
{
	struct portd_datagram out;
	const unsigned int n_each = fill(&out, client, msg);

	for (; n_messages >= n_each; n_messages -= n_each) {
		rig_put(client->data, out.data, out.bytes, NULL, 0);
		rig_settle();
	}
}

TEST(a_host_that_does_not_answer_delays_no_requests_of_its_user_to_another)
{
	const struct mad_path other = rig_peer(OTHER_HOST);
	struct cm_msg to_silent = scene_req(&mallory[0], 1), req = scene_req(&mallory[1], 1);
	struct rig_sent sent;
	struct cm_msg msg;

	send_datagrams(&mallory[0], &to_silent, UNANSWERED_MAX + 100);
	scene_wire();
	rig_send(&mallory[1], &other, &req);
	ck_assert(rig_sent(&sent, &msg));
	ck_assert_mem_eq(&sent.path.dgid, &other.dgid, sizeof(other.dgid));
}
