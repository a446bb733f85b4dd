/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A room of lib/ alone: an engine without its thread, the fake cmportd, the fake device with one
 * RoCE port, a channel that does not block, and time that stands still until the test moves it.
 * What the engine would call above it are functions that count, unless the test brings its own.
 *
 * Tests run in a process each: what a rig leaves is nobody's.
 */
#ifndef TESTS_UNIT_LIB_RIG_H
#define TESTS_UNIT_LIB_RIG_H

#include <errno.h>
#include <string.h>

#include "lib/device/device.h"
#include "lib/engine/engine.h"
#include "tests/unit/lib/fake_cmportd.h"
#include "tests/unit/lib/fake_id.h"

#define RIG_REPORTS_MAX 8
#define RIG_OWN_IP	0xc0000201 /* 192.0.2.1 */
#define RIG_PEER_IP	0xc0000202
#define RIG_PORT	7471 /* of the listener, ours or the peer's */
#define RIG_PEER_QPN	0x123
#define RIG_PEER_ID	0x77 /* the peer's comm id */

struct rig {
	struct channel *channel;
	struct device *device;
	struct port *port;  /* of the device, open at the fake cmportd */
	uint64_t now_ns;    /* what the clock says; 0: the true time */
	bool has_no_memory; /* for ids and events */

	unsigned int n_reps; /* of the peer: each has a queue pair and a comm id of its own */

	/* What the engine told the upcalls above. */
	struct cm_report report[RIG_REPORTS_MAX];
	unsigned int n_reports, n_expired, n_looked, n_neighbours, n_interfaces;
};

extern struct rig rig;

/** rig_begin() - all of it; rig_begin_with() has upcalls of the test above the engine. */
void rig_begin(void);
void rig_begin_with(const struct engine_upcalls *upcalls);

/* rig_reporting - the upcalls of conn/ that make events of what the engine tells them. */
extern const struct engine_upcalls rig_reporting;

/** rig_own() - an address of this host; rig_peer() - of the other one. */
union addr rig_own(uint16_t port);
union addr rig_peer(uint16_t port);

/** rig_id() - an id that the engine knows, without a device. */
struct id *rig_id(enum rdma_port_space ps, enum id_state state);

/** rig_on_device() - an id on the device, bound to rig_own(FAKE_FIRST_PORT). */
struct id *rig_on_device(enum rdma_port_space ps, enum id_state state);

/** rig_routed() - an id in ROUTE_RESOLVED, to rig_peer(RIG_PORT). */
struct id *rig_routed(enum rdma_port_space ps);

/** rig_connected() - an active id whose connection is ESTABLISHED; events were taken. */
struct id *rig_connected(void);

/** rig_listener() - an id that listens on rig_own(RIG_PORT). */
struct id *rig_listener(int backlog);

/** rig_requested() - the id of a request that a listener got; its event was taken. */
struct id *rig_requested(uint32_t comm_id);

/** rig_receive() - a message of the peer arrives at the port. */
void rig_receive(const struct cm_msg *msg);

/** rig_rep() - the peer's answer to our last REQ. */
struct cm_msg rig_rep(void);

/** rig_rtu() - the peer confirms that the connection of an id is ready. */
struct cm_msg rig_rtu(const struct id *id);

/** rig_dreq() - the peer ends the connection of an id. */
struct cm_msg rig_dreq(const struct id *id);

/** rig_req() - the peer's request for a connection to rig_own(RIG_PORT). */
struct cm_msg rig_req(uint32_t comm_id);

/** rig_request() - it arrives. */
void rig_request(uint32_t comm_id);

/** rig_next() - the next event of the channel, to be acknowledged; NULL if there is none. */
struct rdma_cm_event *rig_next(void);

/** rig_expect() - the next event is this one; it is acknowledged. */
void rig_expect(enum rdma_cm_event_type type, int status);

/** rig_expect_nothing() - no event waits. */
void rig_expect_nothing(void);

/** rig_expect_state() - an id's state; rig_expect_conn() - its connection's. */
void rig_expect_state(const struct id *id, enum id_state state);
void rig_expect_conn(const struct id *id, enum cm_state state);

/* rig_expect_errno() - a public call has returned -1 with this errno. */
#define rig_expect_errno(call, err)                                               \
	do {                                                                      \
		ck_assert_int_eq((call), -1);                                     \
		ck_assert_str_eq(strerrorname_np(errno), strerrorname_np((err))); \
	} while (0)

#endif
