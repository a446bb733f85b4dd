/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two clients of the rig, a peer, and connections between them. Messages are compared as text:
 * "REJ(REQ) 8, DREQ". Usually Alice's client follows the rules, and Bob's does not.
 */
#ifndef TESTS_UNIT_PORTD_SCENE_H
#define TESTS_UNIT_PORTD_SCENE_H

#include "tests/unit/portd/rig.h"
#include "tests/unit/portd/talk.h"
#include "tests/unit/test.h"

#define SCENE_PEER	 7 /* a host, see rig_peer() */
#define SCENE_PEER_QPN	 0x222
#define SCENE_PEER_GUID	 UINT64_C(0x0b0b)
#define SCENE_ADDR	 "10.0.0.1" /* of this host */
#define SCENE_OTHER_ADDR "10.0.0.2"

extern struct rig_client scene_alice;
extern struct rig_client scene_bob;

/** scene_set_up() - a rig in a folder of the test's own, with both clients joined. */
void scene_set_up(void);

void scene_tear_down(void);

/** scene_wire() - messages sent since the last call, valid until the next one. */
const char *scene_wire(void);

/** scene_delivered() - messages that a client got since the last call, valid until the next one. */
const char *scene_delivered(struct rig_client *client);

/** scene_receive() - deliver a message of the peer, and settle. */
void scene_receive(struct cm_msg msg);

/** scene_sends() - send a message from a client to the peer. */
void scene_sends(struct rig_client *client, struct cm_msg msg);

/** scene_tracked() - the state of a connection in cmportd: "ESTABLISHED", "none". */
const char *scene_tracked(uint32_t local_comm_id);

/** scene_req() - a client's REQ for its connection number @n, from 1. */
struct cm_msg scene_req(const struct rig_client *client, uint32_t n);

/** scene_rep() - a client's answer to the peer's REQ. */
struct cm_msg scene_rep(const struct rig_client *client, uint32_t n, uint32_t remote_comm_id);

/** scene_peer_req() - a REQ of the peer to RIG_SERVICE at an address of this host. */
struct cm_msg scene_peer_req(uint32_t comm_id, const char *addr);

/** scene_peer_rep() - the peer's answer to a client's REQ. */
struct cm_msg scene_peer_rep(uint32_t comm_id, uint32_t remote_comm_id);

/** scene_peer_dreq() - a DREQ of the peer for connection number @n of a client. */
struct cm_msg scene_peer_dreq(uint32_t comm_id, const struct rig_client *client, uint32_t n);

/** scene_connect() - establish connection @n of a client; its peer's comm id is 0x700 + n. */
void scene_connect(struct rig_client *client, uint32_t n);

#endif
