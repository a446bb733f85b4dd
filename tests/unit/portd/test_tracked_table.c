/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many tracked connections, their memory, and allocation failures; and reports of a client about
 * its connections. Linked with malloc, calloc and realloc wrapped, so that they can fail.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/portd/server/ledger/tracked.h"
#include "tests/unit/portd/tracked_put.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define ME    1
#define OTHER 2
#define PORT  7

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

/* Check itself allocates, so allocations fail only in the code under test. */
static bool is_out_of_memory;

void *__wrap_malloc(size_t bytes)
{
	return is_out_of_memory ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return is_out_of_memory ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return is_out_of_memory ? NULL : __real_realloc(old, bytes);
}

static struct tracker *tracker;
static const struct mad_path to_peer = { .grh = true, .dgid = { .raw = { [15] = 2 } } };

static void set_up(void)
{
	tracker = tracker_new(0x5eed);
	ck_assert_ptr_nonnull(tracker);
}

static void tear_down(void)
{
	tracker_free(tracker);
}

/* An established connection with numbers derived from one. */
static struct cm_record record_numbered(uint32_t n)
{
	return (struct cm_record){ .state = CM_ESTABLISHED,
				   .handle = PORT,
				   .local_comm_id = n,
				   .remote_comm_id = 0x70000000 + n,
				   .remote_qpn = n,
				   .remote_ca_guid = 0xb,
				   .path = to_peer };
}

static int set_by(uint16_t client, struct cm_record tracked)
{
	return tracked_put(tracker, client, &tracked);
}

static void set(struct cm_record tracked)
{
	ck_assert_int_eq(set_by(ME, tracked), 0);
}

static void set_many(uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		set(record_numbered(i));
}

static void close_by(uint16_t client, uint32_t n)
{
	struct portd_close close = { n, 0x70000000 + n, to_peer.dgid, 0, 0 };

	tracker_close(tracker, client, &close);
}

static const char *state(uint32_t n)
{
	const struct tracked *tracked = tracker_of_local(tracker, n);

	return tracked ? cm_state_str((enum cm_state)tracked->is.state) : "none";
}

/* --- many connections ---------------------------------------------------- */

/* The last ones come when the tables have just doubled. */
static const uint32_t crowds[] = { 1000, 10000, 65536, 8193, 16385 };

#define N_CROWDS (sizeof(crowds) / sizeof(crowds[0]))

FIXTURE(set_up, tear_down);
TEST_LOOP(connection_needs_at_most_256_bytes, 0, N_CROWDS)
{
	set_many(crowds[_i]);
	ck_assert_uint_le(tracker_bytes(tracker) / crowds[_i], 256);
}

TEST_LOOP(each_of_many_connections_is_found, 0, N_CROWDS)
{
	set_many(crowds[_i]);
	for (uint32_t i = 1; i <= crowds[_i]; i++) {
		const struct tracked *tracked = tracker_of_local(tracker, i);

		ck_assert_ptr_nonnull(tracked);
		ck_assert_ptr_eq(tracker_of_remote(tracker, &to_peer.dgid, 0xb, 0x70000000 + i),
				 tracked);
		ck_assert_ptr_eq(tracker_of_qpn(tracker, &to_peer.dgid, 0xb, i), tracked);
	}
}

#define N_FULL 1024 /* the number that fills the tables */

static void set_one_more(void)
{
	set(record_numbered(N_FULL + 1));
}

/* All others would wait while everything is moved to larger tables. */
TEST(tables_grow_in_small_steps)
{
	unsigned long steps;

	set_many(N_FULL);
	steps = steps_of(set_one_more);
	printf("%lu instructions to add one to %u\n", steps, N_FULL);
	ck_assert_uint_le(steps, 200000); /* copying a byte may count as one */
}

TEST(memory_of_closed_connections_is_reused)
{
	size_t bytes;

	set_many(10000);
	bytes = tracker_bytes(tracker);
	for (uint32_t i = 1; i <= 10000; i++)
		close_by(ME, i);
	set_many(10000);
	ck_assert_uint_eq(tracker_bytes(tracker), bytes);
}

TEST(all_connections_of_a_client_are_taken_and_no_others)
{
	struct cm_record tracked;
	uint32_t n = 0;

	for (uint32_t i = 1; i <= 1000; i++)
		ck_assert_int_eq(set_by(i % 2 ? ME : OTHER, record_numbered(i)), 0);
	while (tracker_take(tracker, ME, &tracked))
		n += tracked.local_comm_id % 2;
	ck_assert_uint_eq(n, 500);
	ck_assert_uint_eq(tracker_count(tracker, OTHER), 500);
}

TEST(highest_client_is_tracked)
{
	ck_assert_int_eq(set_by(UINT16_MAX, record_numbered(1)), 0);
	ck_assert_uint_eq(tracker_count(tracker, UINT16_MAX), 1);
}

/* --- no memory ----------------------------------------------------------- */

static int set_without_memory(uint32_t n)
{
	int err;

	is_out_of_memory = true;
	err = set_by(ME, record_numbered(n));
	is_out_of_memory = false;
	return err;
}

static struct cm_msg req_with(uint32_t local_comm_id)
{
	struct cm_msg req;

	cm_msg_init(&req, CM_ATTR_REQ, 1);
	req.req.local_comm_id = local_comm_id;
	req.req.local_ca_guid = 0xb;
	return req;
}

TEST(table_without_memory_is_not_created)
{
	struct tracker *none;

	is_out_of_memory = true;
	none = tracker_new(1);
	is_out_of_memory = false;
	ck_assert_ptr_null(none);
}

TEST(connection_without_memory_is_refused)
{
	ck_assert_int_eq(set_without_memory(1), -ENOMEM);
	ck_assert_uint_eq(tracker_count(tracker, ME), 0);
}

TEST(sent_req_without_memory_is_refused)
{
	struct cm_msg req = req_with(1);
	int err;

	is_out_of_memory = true;
	err = tracked_put_sent(tracker, ME, PORT, &to_peer, &req, true);
	is_out_of_memory = false;
	ck_assert_int_eq(err, -ENOMEM);
}

TEST(received_req_without_memory_is_dropped)
{
	struct cm_msg req = req_with(1);
	int err;

	is_out_of_memory = true;
	err = tracker_received(tracker, ME, PORT, &to_peer, &req, &(bool){ false });
	is_out_of_memory = false;
	ck_assert_int_eq(err, -ENOMEM);
}

/* 64 fill the buckets, 256 the first chunk. */
TEST_LOOP(table_that_cannot_grow_keeps_its_connections, 0, 2)
{
	uint32_t n = _i ? 256 : 64;

	set_many(n);
	ck_assert_int_eq(set_without_memory(n + 1), -ENOMEM);
	ck_assert_uint_eq(tracker_count(tracker, ME), n);
	ck_assert_str_eq(state(n), "ESTABLISHED");
}

/* --- reports of the client ----------------------------------------------- */

static int report_by(uint16_t client, struct cm_record tracked)
{
	return tracker_set(tracker, client, &tracked, false);
}

static struct cm_record record_in_state(enum cm_state state)
{
	struct cm_record tracked = record_numbered(1);

	tracked.state = (uint8_t)state;
	return tracked;
}

TEST(client_can_report_a_connection_established_by_data)
{
	set(record_in_state(CM_REP_SENT));
	ck_assert_int_eq(report_by(ME, record_numbered(1)), 0);
	ck_assert_str_eq(state(1), "ESTABLISHED");
}

TEST(report_of_a_resuming_client_is_accepted)
{
	struct cm_record tracked = record_numbered(1);

	ck_assert_int_eq(tracker_set(tracker, ME, &tracked, true), 0);
	ck_assert_uint_eq(tracker_count(tracker, ME), 1);
}

TEST(connection_that_never_existed_cannot_be_reported)
{
	ck_assert_int_eq(report_by(ME, record_numbered(1)), -EPERM);
	ck_assert_uint_eq(tracker_count(tracker, ME), 0);
}

TEST(report_of_an_ended_connection_is_not_tracked)
{
	ck_assert_int_eq(report_by(ME, record_in_state(CM_IDLE)), 0);
	ck_assert_uint_eq(tracker_count(tracker, ME), 0);
}

TEST(connection_without_comm_id_cannot_be_reported)
{
	ck_assert_int_eq(report_by(ME, record_numbered(0)), -EPERM);
}

TEST(unknown_state_cannot_be_reported)
{
	set(record_numbered(1));
	ck_assert_int_eq(report_by(ME, record_in_state(CM_N_STATES)), -EPERM);
}

TEST(anothers_connection_cannot_be_reported)
{
	set(record_numbered(1));
	ck_assert_int_eq(report_by(OTHER, record_in_state(CM_TIMEWAIT)), -EPERM);
	ck_assert_str_eq(state(1), "ESTABLISHED");
}

TEST(anothers_peer_cannot_be_reported)
{
	struct cm_record tracked = record_numbered(1);

	set(record_numbered(1));
	tracked.local_comm_id = 2;
	ck_assert_int_eq(report_by(OTHER, tracked), -EPERM);
}

TEST(unreceived_comm_id_of_the_peer_cannot_be_reported)
{
	struct cm_record tracked = record_in_state(CM_REQ_SENT);

	tracked.active = 1;
	tracked.remote_comm_id = 0;
	set(tracked);
	ck_assert_int_eq(report_by(ME, record_numbered(1)), -EPERM);
	ck_assert_str_eq(state(1), "REQ_SENT");
}

TEST(connection_without_the_peers_comm_id_cannot_be_reported_as_established)
{
	struct cm_record tracked = record_in_state(CM_REQ_SENT);

	tracked.active = 1;
	tracked.remote_comm_id = 0;
	set(tracked);
	tracked.state = CM_ESTABLISHED;
	ck_assert_int_eq(report_by(ME, tracked), -EPERM);
}

TEST(connection_cannot_be_reported_with_another_peer)
{
	struct cm_record tracked = record_in_state(CM_DREQ_SENT);

	set(record_numbered(1));
	tracked.path.dgid.raw[15] ^= 1;
	ck_assert_int_eq(report_by(ME, tracked), -EPERM);
	ck_assert_str_eq(state(1), "ESTABLISHED");
}

TEST(connection_cannot_be_reported_with_another_port)
{
	struct cm_record tracked = record_in_state(CM_DREQ_SENT);

	set(record_numbered(1));
	tracked.handle = PORT + 1;
	ck_assert_int_eq(report_by(ME, tracked), -EPERM);
}

/* Its core has no comm id of the peer either. */
TEST(reported_rejected_connection_stays_ended)
{
	struct cm_record tracked = record_in_state(CM_IDLE);

	tracked.active = 1;
	tracked.remote_comm_id = 0;
	set(tracked);
	ck_assert_int_eq(report_by(ME, tracked), 0);
	ck_assert_str_eq(state(1), "IDLE");
}

TEST(path_of_a_report_is_not_used)
{
	struct cm_record tracked = record_in_state(CM_DREQ_SENT);

	set(record_numbered(1));
	tracked.path.sgid_index = 7;
	tracked.path.pkey_index = 7;
	ck_assert_int_eq(report_by(ME, tracked), 0);
	ck_assert_uint_eq(tracker_of_local(tracker, 1)->is.path.sgid_index, to_peer.sgid_index);
	ck_assert_uint_eq(tracker_of_local(tracker, 1)->is.path.pkey_index, to_peer.pkey_index);
}

TEST(leftover_report_of_the_core_is_refused)
{
	set(record_in_state(CM_DREQ_SENT));
	ck_assert_int_eq(report_by(ME, record_numbered(1)), 0);
	ck_assert_str_eq(state(1), "DREQ_SENT");
}

TEST(report_may_be_of_a_delivered_request)
{
	struct cm_record tracked = record_numbered(1);
	struct cm_msg req = req_with(tracked.remote_comm_id);

	ck_assert_int_eq(tracker_received(tracker, ME, PORT, &to_peer, &req, &(bool){ false }), 0);
	ck_assert_int_eq(report_by(ME, tracked), 0);
	ck_assert_uint_eq(tracker_count(tracker, ME), 1);
}
