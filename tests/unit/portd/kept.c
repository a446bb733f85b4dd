/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections in a file: see kept.h.
 */
#include "tests/unit/portd/kept.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/portd/tracked_put.h"
#include "lib/portd/server/ledger/tracked_adopt.h"

struct tracker *kept_tracker;
static struct state_file *state_file;
static int folder_fd;
static const struct tracked_port port = { .guid = 0xa, .port_num = 1, .device = "rdma0" };
const struct tracked_owner kept_owner = { .pid = 1234, .start = 99, .block = 7 };

/* --- the file ------------------------------------------------------------ */

struct tracked_store *kept_open(void)
{
	struct tracked_store *store;

	state_file_close(state_file);
	state_file = NULL;
	ck_assert_int_eq(state_file_open(folder_fd, state_path, &state_file), 0);
	store = state_file_tracked(state_file);
	ck_assert_ptr_nonnull(store);
	return store;
}

void kept_begin(void)
{
	kept_tracker = tracker_new(0x5eed);
	ck_assert_int_eq(tracker_keep(kept_tracker, kept_open()), 0);
	ck_assert_int_eq(tracker_own(kept_tracker, KEPT_CLIENT, &kept_owner), 0);
	ck_assert_int_eq(tracker_handle(kept_tracker, &port, 0), KEPT_PORT);
}

void kept_set_up(void)
{
	folder_make();
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kept_begin();
}

void kept_tear_down(void)
{
	tracker_free(kept_tracker);
	state_file_close(state_file);
	close(folder_fd);
}

void kept_begin_again(void)
{
	tracker_free(kept_tracker);
	kept_begin();
}

void kept_write(size_t at, const void *bytes, size_t n)
{
	int fd = open(state_path, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)at + STATE_FILE_TRACKED_AT), (ssize_t)n);
	close(fd);
}

void kept_read(size_t at, void *bytes, size_t n)
{
	int fd = open(state_path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(pread(fd, bytes, n, (off_t)at + STATE_FILE_TRACKED_AT), (ssize_t)n);
	close(fd);
}

off_t kept_bytes(void)
{
	struct stat stat_of;

	ck_assert_int_eq(stat(state_path, &stat_of), 0);
	return stat_of.st_size - STATE_FILE_TRACKED_AT;
}

/* --- tracked connections ------------------------------------------------- */

/* Two connections differ in everything that can be mixed up, except the comm id. */
struct cm_record kept_version(uint32_t n, uint8_t v)
{
	struct cm_record tracked = { .state = v == 1 ? CM_ESTABLISHED : CM_REP_SENT,
				     .active = v == 1,
				     .handle = KEPT_PORT,
				     .local_comm_id = n,
				     .remote_comm_id = v * UINT32_C(0x11111111) ^ n,
				     .local_qpn = v * UINT32_C(0x111111),
				     .remote_qpn = v * UINT32_C(0x111111) ^ n,
				     .remote_ca_guid = v * UINT64_C(0x1111111111111111),
				     .tid = v * UINT64_C(0x1111111111111111),
				     .packet_life_time = v,
				     .local_ack_timeout = v,
				     .path = { .grh = true, .pkey_index = v, .flow_label = v } };

	memset(tracked.path.dgid.raw, v, sizeof(tracked.path.dgid.raw));
	return tracked;
}

void kept_set(uint32_t n, uint8_t v)
{
	struct cm_record tracked = kept_version(n, v);

	ck_assert_int_eq(tracked_put(kept_tracker, KEPT_CLIENT, &tracked), 0);
}

unsigned int kept_orphans(const struct tracker *of)
{
	const struct tracked *tracked = NULL;
	unsigned int n = 0;

	while ((tracked = tracker_orphan(of, tracked)))
		n++;
	return n;
}

bool kept_is_version(const struct tracked *tracked, uint8_t v)
{
	struct cm_record is = kept_version(tracked->is.local_comm_id, v);

	return tracked->is.state == is.state && tracked->is.active == is.active &&
	       tracked->is.handle == is.handle && tracked->is.remote_comm_id == is.remote_comm_id &&
	       tracked->is.local_qpn == is.local_qpn && tracked->is.remote_qpn == is.remote_qpn &&
	       tracked->is.remote_ca_guid == is.remote_ca_guid && tracked->is.tid == is.tid &&
	       tracked->is.packet_life_time == is.packet_life_time &&
	       tracked->is.path.flow_label == is.path.flow_label &&
	       tracked->is.path.pkey_index == is.path.pkey_index &&
	       memcmp(&tracked->is.path.dgid, &is.path.dgid, sizeof(is.path.dgid)) == 0;
}
