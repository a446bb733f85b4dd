/* SPDX-License-Identifier: BSD-2-Clause */
/* A tracer gets every message once from the recording, which cmportd continues. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/portd/folder.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	 (&scene_alice)
#define RECORDED 64 /* messages, by the rig */

static struct trace_reader reader;

static int open_recording(void)
{
	char path[sizeof(socket_path) + sizeof(RECORDING_SUFFIX)];
	int fd;

	snprintf(path, sizeof(path), "%s" RECORDING_SUFFIX, socket_path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void start_trace(void)
{
	ck_assert_int_eq(trace_reader_open(&reader, open_recording()), 0);
	trace_reader_skip(&reader);
}

static bool take(struct trace_entry *ret)
{
	if (trace_reader_take(&reader, ret))
		return true;
	ck_assert_int_eq(trace_reader_update(&reader), 0);
	return trace_reader_take(&reader, ret);
}

/* Return: the next message of the ring; the test ends if there is none. */
static struct trace_entry next_seen(void)
{
	struct trace_entry seen;

	ck_assert(take(&seen));
	return seen;
}

FIXTURE(scene_set_up, scene_tear_down);

TEST(a_tracer_gets_messages_that_another_client_sends)
{
	struct mad_path peer = rig_peer(SCENE_PEER);
	struct trace_entry seen;

	start_trace();
	scene_sends(alice, scene_req(alice, 1));
	seen = next_seen();
	ck_assert_uint_eq(seen.way, PORTD_SENT);
	ck_assert_uint_eq(cm_mad_attr(seen.mad), CM_ATTR_REQ);
	ck_assert_str_eq(seen.device, RIG_DEVICE);
	ck_assert_uint_eq(seen.port_num, 1);
	ck_assert_uint_eq(seen.local_gid.raw[15], RIG_GID);
	ck_assert_uint_eq(seen.pid, (uint32_t)getpid());
	ck_assert_mem_eq(&seen.path.dgid, &peer.dgid, 16);
}

TEST(a_tracer_gets_messages_for_another_client)
{
	struct trace_entry seen;

	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	start_trace();
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	seen = next_seen();
	ck_assert_uint_eq(seen.way, PORTD_RECEIVED);
	ck_assert_uint_eq(seen.pid, (uint32_t)getpid());
}

TEST(a_tracer_gets_unconnected_answers)
{
	start_trace();
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_uint_eq(cm_mad_attr(next_seen().mad), CM_ATTR_REQ);
	ck_assert_uint_eq(cm_mad_attr(next_seen().mad), CM_ATTR_REJ);
}

TEST(a_tracer_does_not_get_dropped_messages)
{
	const unsigned int rate = RECORDED / 4, n = 4 * rate;
	struct mad_path from = rig_peer(SCENE_PEER);
	struct trace_entry seen;
	unsigned int i, n_seen = 0;
	struct cm_msg msg;

	rig_server()->options.quotas.is[QUOTA_HOST_RATE] = rate;
	start_trace();
	for (i = 0; i < n; i++) {
		msg = scene_peer_req(0x701 + i, SCENE_ADDR);
		rig_arrive(&from, &msg);
	}
	while (take(&seen))
		n_seen += seen.way == PORTD_RECEIVED;
	ck_assert_uint_gt(n_seen, 0);
	ck_assert_uint_eq(n_seen, n - rig_count(PORTD_COUNT_OVERFLOW));
}

TEST(traced_messages_are_numbered)
{
	uint64_t first;

	start_trace();
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	first = next_seen().number;
	ck_assert_uint_eq(next_seen().number, first + 1);
}

/* It never reads; its peers must not be affected. */
TEST(a_tracer_that_does_not_read_loses_messages)
{
	struct trace_entry seen;
	uint32_t n;

	start_trace();
	for (n = 1; n <= RECORDED; n++)
		scene_receive(scene_peer_req(n, SCENE_ADDR));
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(9999, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "REQ");
	for (n = 0; take(&seen);)
		n++;
	ck_assert_uint_eq(seen.number, 2 * RECORDED + 1);
	ck_assert_uint_eq(n, RECORDED);
	ck_assert_uint_eq(n + reader.n_missed, seen.number);
}

/* --- the recording -------------------------------------------------------- */

/* Return: as trace_reader_open(). */
static int play_back(void)
{
	trace_reader_fini(&reader);
	return trace_reader_open(&reader, open_recording());
}

/* Restarts it with the same socket, without clients. */
static void start_the_next(void)
{
	rig_tear_down();
	rig_set_opens_ports(true);
	rig_set_up(socket_path);
}

TEST(messages_are_recorded_without_a_tracer)
{
	struct trace_entry seen;

	scene_sends(alice, scene_req(alice, 1));
	ck_assert_int_eq(play_back(), 0);
	seen = next_seen();
	ck_assert_uint_eq(seen.way, PORTD_SENT);
	ck_assert_uint_eq(cm_mad_attr(seen.mad), CM_ATTR_REQ);
	ck_assert_uint_eq(seen.pid, (uint32_t)getpid());
	ck_assert(!take(&seen));
}

TEST(the_next_cmportd_continues_the_recording)
{
	scene_sends(alice, scene_req(alice, 1));
	start_the_next();
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_int_eq(play_back(), 0);
	ck_assert_uint_eq(next_seen().way, PORTD_SENT);
	ck_assert_uint_eq(next_seen().way, PORTD_RECEIVED);
}

TEST(disabled_recording_is_removed)
{
	scene_sends(alice, scene_req(alice, 1));
	rig_records(0);
	start_the_next();
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_int_eq(play_back(), -ENODATA);
}

TEST(a_recording_is_readable_by_its_owner_only)
{
	struct stat stat;
	int fd = open_recording();

	ck_assert_int_eq(fstat(fd, &stat), 0);
	ck_assert_uint_eq(stat.st_mode & 0777, 0600);
	close(fd);
}

/* A missing recording prevents no client from connecting. */
TEST(server_works_without_a_recording)
{
	limit_files(1 << 20);
	rig_records(RECORDING_ENTRIES);
	start_the_next();
	ck_assert_ptr_null(rig_server()->recording.ring);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_uint_eq(rig_server()->host_port[0]->passed[PORTD_COUNT_RECEIVED][0], 1);
	limit_files(RLIM_INFINITY);
}
