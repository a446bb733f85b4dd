/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two clients and a peer: see scene.h.
 */
#include "tests/unit/portd/scene.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "mad/cma_hdr.h"
#include "tests/unit/cm/text.h"
#include "tests/unit/portd/folder.h"

#define TEXT_BYTES 512
#define QPN(n)	   (0x100 + (n))

struct rig_client scene_alice;
struct rig_client scene_bob;

void scene_set_up(void)
{
	folder_make();
	rig_set_up(socket_path);
	rig_join(&scene_alice);
	rig_join(&scene_bob);
}

void scene_tear_down(void)
{
	rig_tear_down();
}

/* --- recorded messages --------------------------------------------------- */

static void append(char text[TEXT_BYTES], const struct cm_msg *msg)
{
	size_t used = strlen(text);
	char item[32];

	snprintf(text + used, TEXT_BYTES - used, "%s%s", used ? ", " : "",
		 text_of_msg(msg, item, sizeof(item)));
}

const char *scene_wire(void)
{
	static char text[TEXT_BYTES];
	struct rig_sent sent;
	struct cm_msg msg;

	text[0] = '\0';
	while (rig_sent(&sent, &msg))
		append(text, &msg);
	return text;
}

const char *scene_delivered(struct rig_client *client)
{
	static char text[TEXT_BYTES];
	struct cm_msg msg;

	text[0] = '\0';
	while (rig_next_msg(client, &msg))
		append(text, &msg);
	return text;
}

void scene_receive(struct cm_msg msg)
{
	struct mad_path from = rig_peer(SCENE_PEER);

	rig_arrive(&from, &msg);
}

void scene_sends(struct rig_client *client, struct cm_msg msg)
{
	struct mad_path to = rig_peer(SCENE_PEER);

	rig_send(client, &to, &msg);
}

const char *scene_tracked(uint32_t local_comm_id)
{
	const struct tracked *tracked = tracker_of_local(rig_server()->tracker, local_comm_id);

	return tracked ? cm_state_str((enum cm_state)tracked->is.state) : "none";
}

/* --- messages ------------------------------------------------------------ */

struct cm_msg scene_req(const struct rig_client *client, uint32_t n)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REQ, client->first + n, 0);

	msg.req.local_ca_guid = RIG_GUID;
	msg.req.local_qpn = QPN(n);
	msg.req.service_id = cma_service_id(RDMA_PS_TCP, RIG_SERVICE);
	return msg;
}

struct cm_msg scene_rep(const struct rig_client *client, uint32_t n, uint32_t remote_comm_id)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REP, client->first + n, remote_comm_id);

	msg.rep.local_ca_guid = RIG_GUID;
	msg.rep.local_qpn = QPN(n);
	return msg;
}

struct cm_msg scene_peer_req(uint32_t comm_id, const char *addr)
{
	struct cma_hdr hdr = { .ip_version = 4, .src_port = 1 };
	struct cm_msg msg = talk_msg_of(CM_ATTR_REQ, comm_id, 0);

	inet_pton(AF_INET, addr, hdr.dst_addr + 12);
	wire_encode(&cma_hdr_layout, &hdr, msg.req.private_data);
	msg.req.local_ca_guid = SCENE_PEER_GUID;
	msg.req.local_qpn = SCENE_PEER_QPN + comm_id;
	msg.req.service_id = cma_service_id(RDMA_PS_TCP, RIG_SERVICE);
	return msg;
}

struct cm_msg scene_peer_rep(uint32_t comm_id, uint32_t remote_comm_id)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_REP, comm_id, remote_comm_id);

	msg.rep.local_ca_guid = SCENE_PEER_GUID;
	msg.rep.local_qpn = SCENE_PEER_QPN + comm_id;
	return msg;
}

struct cm_msg scene_peer_dreq(uint32_t comm_id, const struct rig_client *client, uint32_t n)
{
	struct cm_msg msg = talk_msg_of(CM_ATTR_DREQ, comm_id, client->first + n);

	msg.dreq.remote_qpn = QPN(n);
	return msg;
}

void scene_connect(struct rig_client *client, uint32_t n)
{
	uint32_t comm_id = 0x700 + n;

	scene_sends(client, scene_req(client, n));
	scene_receive(scene_peer_rep(comm_id, client->first + n));
	scene_sends(client, talk_msg_of(CM_ATTR_RTU, client->first + n, comm_id));
	ck_assert_str_eq(scene_wire(), "REQ, RTU");
	ck_assert_str_eq(scene_delivered(client), "REP");
	ck_assert_str_eq(scene_tracked(client->first + n), "ESTABLISHED");
}
