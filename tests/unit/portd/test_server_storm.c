/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 100,000 requests of 64 hosts within a second, in virtual time: the requests that the listener
 * gets, the effect on others of this host, and the cost of a request.
 */
#include <stdio.h>
#include <time.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	   (&scene_alice)
#define bob	   (&scene_bob)
#define N_REQUESTS 100000
#define N_HOSTS	   64
#define A_MS	   100 /* requests that arrive together */
#define FIRST_HOST 100

struct seen {
	unsigned int n_requests;
	unsigned int n_dreqs;
	unsigned int n_others;
};

static void arrive(unsigned int n)
{
	const struct mad_path from = rig_peer((uint8_t)(FIRST_HOST + n % N_HOSTS));
	struct cm_msg req = scene_peer_req(0x100000 + n, SCENE_ADDR);
	uint8_t mad[MAD_BYTES];

	req.req.local_qpn = 0x1000 + n;
	req.req.local_ca_guid = FIRST_HOST + n % N_HOSTS;
	req.req.primary.remote_gid = rig_gid();
	req.req.primary.local_gid = from.dgid;
	cm_msg_encode(&req, mad);
	rig_arrive_bytes(1, &from, mad);
}

static void look_at(struct rig_client *client, struct seen *seen)
{
	struct portd_record record;
	uint16_t attr;

	while (rig_next(client, &record)) {
		attr = record.type == PORTD_MAD ? cm_mad_attr(record.mad.mad) : 0;
		seen->n_requests += attr == CM_ATTR_REQ;
		seen->n_dreqs += attr == CM_ATTR_DREQ;
		seen->n_others += attr != CM_ATTR_REQ && attr != CM_ATTR_DREQ;
	}
}

static double spent_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

FIXTURE(scene_set_up, scene_tear_down);
TEST(a_listener_gets_a_hundred_thousand_requests_within_a_second)
{
	struct seen of_alice = { 0 }, of_bob = { 0 };
	double begin_s = spent_s();
	unsigned int n;

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_connect(bob, 1);
	look_at(bob, &of_bob);
	for (n = 0; n < N_REQUESTS; n++) {
		arrive(n);
		if (n % A_MS != A_MS - 1)
			continue;
		if (n == N_REQUESTS / 2 + A_MS - 1)
			scene_receive(scene_peer_dreq(0x701, bob, 1));
		rig_pass(1);
		look_at(alice, &of_alice);
		look_at(bob, &of_bob);
	}
	printf("%u requests: %u handed out, %.2f us each\n", N_REQUESTS, of_alice.n_requests,
	       (spent_s() - begin_s) * 1e6 / N_REQUESTS);
	ck_assert_uint_eq(of_alice.n_requests + rig_count(PORTD_COUNT_OVERFLOW), N_REQUESTS);
	ck_assert_uint_ge(of_alice.n_requests, 65536);
	ck_assert_uint_eq(of_alice.n_others, 0);
	ck_assert_uint_eq(of_bob.n_dreqs, 1);
}
