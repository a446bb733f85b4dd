/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A folder of lib/ alone: an engine without its thread, the fake cmportd, the fake device with one
 * RoCE port, a non-blocking channel, and a clock that the test advances. The engine's upcalls are
 * counted, unless the test sets its own.
 *
 * Each test runs in a process of its own, so a rig is not freed.
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
#define RIG_PORT	7471 /* of the listener, here or at the peer */
#define RIG_PEER_QPN	0x123
#define RIG_PEER_ID	0x77 /* the peer's comm id */

struct rig {
	struct channel *channel;
	struct device *device;
	struct port *port;  /* of the device, open at the fake cmportd */
	uint64_t now_ns;    /* the time of the clock; 0: the real time */
	bool has_no_memory; /* for ids and events */

	unsigned int n_reps; /* of the peer: each has a queue pair and a comm id of its own */

	/* Counts of the upcalls. */
	struct cm_report report[RIG_REPORTS_MAX];
	unsigned int n_reports, n_expired, n_looked, n_neighbours, n_interfaces;
};

extern struct rig rig;

/** rig_begin() - set up everything; rig_begin_with() sets the test's own upcalls. */
void rig_begin(void);
void rig_begin_with(const struct engine_upcalls *upcalls);

/* rig_reporting - the upcalls of conn/, which make events of reports. */
extern const struct engine_upcalls rig_reporting;

/** rig_own() - an address of this host; rig_peer() - one of the peer. */
union addr rig_own(uint16_t port);
union addr rig_peer(uint16_t port);

/** rig_id() - an id in the engine's list, without a device. */
struct id *rig_id(enum rdma_port_space ps, enum id_state state);

/** rig_on_device() - an id on the device, bound to rig_own(FAKE_FIRST_PORT). */
struct id *rig_on_device(enum rdma_port_space ps, enum id_state state);

/** rig_routed() - an id in ROUTE_RESOLVED, to rig_peer(RIG_PORT). */
struct id *rig_routed(enum rdma_port_space ps);

/** rig_connected() - an active id whose connection is ESTABLISHED; its events were taken. */
struct id *rig_connected(void);

/** rig_listener() - an id that listens on rig_own(RIG_PORT). */
struct id *rig_listener(int backlog);

/** rig_requested() - the id of a listener's request; its event was taken. */
struct id *rig_requested(uint32_t comm_id);

/** rig_receive() - deliver a message of the peer to the port. */
void rig_receive(const struct cm_msg *msg);

/** rig_rep() - a REP of the peer to the latest REQ. */
struct cm_msg rig_rep(void);

/** rig_rtu() - an RTU of the peer for an id's connection. */
struct cm_msg rig_rtu(const struct id *id);

/** rig_dreq() - a DREQ of the peer for an id's connection. */
struct cm_msg rig_dreq(const struct id *id);

/** rig_req() - a REQ of the peer to rig_own(RIG_PORT). */
struct cm_msg rig_req(uint32_t comm_id);

/** rig_request() - deliver it. */
void rig_request(uint32_t comm_id);

/** rig_lookup() - a SIDR_REQ of the peer to rig_own(RIG_PORT). */
struct cm_msg rig_lookup(uint32_t request_id);

/** rig_next() - the next event of the channel, to be acknowledged; NULL if there is none. */
struct rdma_cm_event *rig_next(void);

/** rig_expect() - check and acknowledge the next event. */
void rig_expect(enum rdma_cm_event_type type, int status);

/** rig_expect_nothing() - check that no event is queued. */
void rig_expect_nothing(void);

/** rig_expect_state() - check an id's state; rig_expect_conn() - its connection's. */
void rig_expect_state(const struct id *id, enum id_state state);
void rig_expect_conn(const struct id *id, enum cm_state state);

/* rig_expect_errno() - check that a public call has returned -1 with this errno. */
#define rig_expect_errno(call, err)                                               \
	do {                                                                      \
		ck_assert_int_eq((call), -1);                                     \
		ck_assert_str_eq(strerrorname_np(errno), strerrorname_np((err))); \
	} while (0)

#endif
