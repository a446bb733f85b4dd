/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values that a client may not set in a message: lib/portd/server/routing/fields.c, row by row. For
 * the sender and the connection of a message, see test_server_lies.c.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "mad/cma_hdr.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	  (&scene_alice)
#define bob	  (&scene_bob)

#define ELSEWHERE 2

static void is_sent_with(struct rig_client *client, const struct mad_path *path,
			 const struct cm_msg *msg)
{
	struct portd_record record = { .type = PORTD_MAD,
				       .mad = { .port = client->handle, .path = *path } };

	rig_encode(&record.mad, msg);
	rig_send_record(client, &record);
	rig_settle();
}

/* --- the path ------------------------------------------------------------ */

static const struct way {
	const char *what;
	struct mad_path path;
	bool may;
} ways[] = {
	{ "as the library", { .grh = true }, true },
	{ "a priority", { .grh = true, .sl = 7 }, true },
	{ "no such priority", { .grh = true, .sl = 8 }, false },
	{ "a P_Key index", { .grh = true, .pkey_index = 1 }, false },
	{ "no GRH", { .grh = false }, false },
	{ "a GID index", { .grh = true, .sgid_index = 3 }, true },
	{ "no GID of the port", { .grh = true, .sgid_index = RIG_NO_GID }, false },
	{ "a type of service", { .grh = true, .traffic_class = 0xff }, true },
	{ "a flow label", { .grh = true, .flow_label = 0xfffff }, true },
	{ "what is beside the flow label", { .grh = true, .flow_label = 0x100000 }, false },
};

FIXTURE(scene_set_up, scene_tear_down);

TEST_LOOP(request_has_a_permitted_path, 0, sizeof(ways) / sizeof(ways[0]))
{
	struct mad_path path = ways[_i].path;
	struct cm_msg req = scene_req(bob, 1);

	path.dgid = rig_peer(SCENE_PEER).dgid;
	is_sent_with(bob, &path, &req);
	ck_assert_msg(strcmp(scene_wire(), ways[_i].may ? "REQ" : "") == 0, "%s", ways[_i].what);
	ck_assert_uint_eq(rig_count(PORTD_COUNT_FORBIDDEN), !ways[_i].may);
}

/*
 * An answer takes the path of its request, which its sender states, except for the GID, which is
 * the connection's.
 */
TEST_LOOP(answer_has_a_permitted_path, 0, sizeof(ways) / sizeof(ways[0]))
{
	const bool may = ways[_i].may || ways[_i].path.sgid_index == RIG_NO_GID;
	struct mad_path path = ways[_i].path;
	struct cm_msg rep = scene_rep(bob, 1, 0x701);

	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	path.dgid = rig_peer(SCENE_PEER).dgid;
	is_sent_with(bob, &path, &rep);
	ck_assert_msg(strcmp(scene_wire(), may ? "REP" : "") == 0, "%s", ways[_i].what);
}

TEST(the_path_of_a_connection_is_not_changed)
{
	struct cm_msg lap = talk_msg_of(CM_ATTR_LAP, bob->first + 1, 0x701);
	struct mad_path path = rig_peer(SCENE_PEER);

	scene_connect(bob, 1);
	scene_wire();
	is_sent_with(bob, &path, &lap);
	ck_assert_str_eq(scene_wire(), "");
}

/* A container may not use the address of the host. */
TEST(gid_of_cmportds_namespace_is_refused_for_other_namespaces)
{
	struct mad_path path = rig_peer(SCENE_PEER);
	struct rig_client carol;
	struct cm_msg req;

	rig_client_from(ELSEWHERE);
	rig_join(&carol);
	req = scene_req(&carol, 1);
	is_sent_with(&carol, &path, &req);
	ck_assert_str_eq(scene_wire(), "");
	rig_move_gid_elsewhere(5);
	is_sent_with(&carol, &path, &req);
	ck_assert_str_eq(scene_wire(), "REQ");
}

/* Nor with an answer to a connection that it may have lost, to any host. */
TEST(answer_without_a_connection_has_a_gid_of_its_namespace)
{
	struct mad_path path = rig_peer(SCENE_PEER);
	struct rig_client carol;
	struct cm_msg drep;

	rig_client_from(ELSEWHERE);
	rig_join(&carol);
	drep = talk_msg_of(CM_ATTR_DREP, carol.first + 1, 0x701);
	is_sent_with(&carol, &path, &drep);
	ck_assert_str_eq(scene_wire(), "");
	path.sgid_index = RIG_NO_GID;
	is_sent_with(bob, &path,
		     &(struct cm_msg[]){ talk_msg_of(CM_ATTR_DREP, bob->first + 1, 0x701) }[0]);
	ck_assert_str_eq(scene_wire(), "");
	rig_move_gid_elsewhere(5);
	path.sgid_index = 0;
	is_sent_with(&carol, &path, &drep);
	ck_assert_str_eq(scene_wire(), "DREP");
}

/* --- the path in a REQ --------------------------------------------------- */

/* The peer's queue pair would send data to a third host. */
TEST(a_request_names_the_gid_that_it_is_sent_from)
{
	struct cm_msg req = scene_req(bob, 1);

	req.req.primary.local_gid = rig_peer(9).dgid;
	req.req.primary.remote_gid = rig_peer(SCENE_PEER).dgid;
	scene_sends(bob, req);
	ck_assert_str_eq(scene_wire(), "");
}

TEST(a_request_names_the_gid_that_it_is_sent_to)
{
	struct cm_msg req = scene_req(bob, 1);

	req.req.primary.local_gid = rig_gid();
	req.req.primary.remote_gid = rig_peer(9).dgid;
	scene_sends(bob, req);
	ck_assert_str_eq(scene_wire(), "");
}

TEST(a_request_over_roce_has_no_alternate_path)
{
	struct cm_msg req = scene_req(bob, 1);

	req.req.alternate.local_gid = rig_peer(9).dgid;
	scene_sends(bob, req);
	ck_assert_str_eq(scene_wire(), "");
}

/* --- the header of the IP CM service ------------------------------------- */

static struct cm_msg req_from_peer(struct rig_client *client, const struct cma_hdr *hdr)
{
	struct cm_msg req = scene_req(client, 1);

	wire_encode(&cma_hdr_layout, hdr, req.req.private_data);
	return req;
}

static uint16_t bind_any(struct rig_client *client)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };

	record.claim.local_port = 0;
	ck_assert_int_eq(rig_ask(client, &record), 0);
	return client->reply.port;
}

static struct cma_hdr header(uint16_t port)
{
	struct cma_hdr hdr = { .ip_version = 6, .src_port = port };
	const struct mad_gid gid = rig_gid();

	memcpy(hdr.src_addr, gid.raw, sizeof(gid.raw));
	return hdr;
}

TEST(a_request_comes_from_a_port_of_its_client)
{
	const struct cma_hdr hdr = header(bind_any(bob));

	scene_sends(alice, req_from_peer(alice, &hdr));
	ck_assert_str_eq(scene_wire(), "");
	scene_sends(bob, req_from_peer(bob, &hdr));
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(a_leased_port_is_a_port_of_its_client)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = 1 } };
	struct cma_hdr hdr;

	ck_assert_int_eq(rig_ask(bob, &lease), 0);
	hdr = header(bob->reply.port);
	scene_sends(alice, req_from_peer(alice, &hdr));
	ck_assert_str_eq(scene_wire(), "");
	scene_sends(bob, req_from_peer(bob, &hdr));
	ck_assert_str_eq(scene_wire(), "REQ");
}

TEST(a_request_comes_from_an_address_of_this_host)
{
	struct cma_hdr hdr = header(bind_any(bob));

	hdr.src_addr[3] = 1;
	scene_sends(bob, req_from_peer(bob, &hdr));
	ck_assert_str_eq(scene_wire(), "");
	hdr = (struct cma_hdr){ .ip_version = 4, .src_port = hdr.src_port };
	memcpy(hdr.src_addr + 12, "\x0a\x01\x02\x03", 4);
	scene_sends(bob, req_from_peer(bob, &hdr));
	ck_assert_str_eq(scene_wire(), "");
}

/* Only to itself: another peer would take it for its own address. */
TEST(a_request_from_the_loopback_address_stays_on_this_host)
{
	struct cma_hdr hdr = { .ip_version = 4, .src_port = bind_any(bob) };
	struct mad_path path = rig_peer(SCENE_PEER);
	struct cm_msg req;

	memcpy(hdr.src_addr + 12, "\x7f\0\0\x01", 4);
	req = req_from_peer(bob, &hdr);
	scene_sends(bob, req);
	ck_assert_str_eq(scene_wire(), "");
	path.dgid = rig_gid();
	is_sent_with(bob, &path, &req);
	ck_assert_str_eq(scene_wire(), "REQ");
}

/* The listener would take it for a request of AF_IB. */
TEST(request_without_a_header_is_not_checked)
{
	const struct cma_hdr hdr = { .cma_version = 1 };

	scene_sends(bob, req_from_peer(bob, &hdr));
	ck_assert_str_eq(scene_wire(), "REQ");
}
