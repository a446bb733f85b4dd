/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wills in a file: see kept.h.
 */
#include "tests/unit/portd/kept.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wills *kept_wills;
char kept_path[160];
static const char device[PORTD_DEVICE_BYTES] = "rdma0";
const struct will_owner kept_owner = { .pid = 1234, .start = 99, .block = 7 };

/* --- the file ------------------------------------------------------------ */

struct will_store *kept_open(void)
{
	struct will_store *store = NULL;
	int fd = open(kept_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(will_store_open(fd, &store), 0);
	return store;
}

void kept_begin(void)
{
	kept_wills = wills_new(0x5eed);
	ck_assert_int_eq(wills_keep(kept_wills, kept_open()), 0);
	ck_assert_int_eq(wills_own(kept_wills, KEPT_CLIENT, &kept_owner), 0);
	ck_assert_int_eq(wills_handle(kept_wills, device, 1, 0), KEPT_PORT);
}

static void set_up(void)
{
	snprintf(kept_path, sizeof(kept_path), "%s.wills", socket_path);
	kept_begin();
}

static void tear_down(void)
{
	wills_free(kept_wills);
}

void kept_begin_again(void)
{
	wills_free(kept_wills);
	kept_begin();
}

void kept_write(size_t at, const void *bytes, size_t n)
{
	int fd = open(kept_path, O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(pwrite(fd, bytes, n, (off_t)at), (ssize_t)n);
	close(fd);
}

void kept_read(size_t at, void *bytes, size_t n)
{
	int fd = open(kept_path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(pread(fd, bytes, n, (off_t)at), (ssize_t)n);
	close(fd);
}

off_t kept_bytes(void)
{
	struct stat stat_of;

	ck_assert_int_eq(stat(kept_path, &stat_of), 0);
	return stat_of.st_size;
}

/* --- wills --------------------------------------------------------------- */

/* All that can be mixed up differs between two of them, but for the comm id. */
struct cm_record kept_version(uint32_t n, uint8_t v)
{
	struct cm_record will = {
		.state = v == 1 ? CM_ESTABLISHED : CM_REP_SENT,
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
		.path = {.grh = true, .pkey_index = v, .flow_label = v}
	};

	memset(will.path.dgid.raw, v, sizeof(will.path.dgid.raw));
	return will;
}

void kept_set(uint32_t n, uint8_t v)
{
	struct cm_record will = kept_version(n, v);

	ck_assert_int_eq(wills_set(kept_wills, KEPT_CLIENT, &will), 0);
}

unsigned int kept_orphans(const struct wills *of)
{
	const struct will *will = NULL;
	unsigned int n = 0;

	while ((will = wills_orphan(of, will)))
		n++;
	return n;
}

bool kept_is_version(const struct will *will, uint8_t v)
{
	struct cm_record is = kept_version(will->is.local_comm_id, v);

	return will->is.state == is.state && will->is.active == is.active &&
	       will->is.handle == is.handle && will->is.remote_comm_id == is.remote_comm_id &&
	       will->is.local_qpn == is.local_qpn && will->is.remote_qpn == is.remote_qpn &&
	       will->is.remote_ca_guid == is.remote_ca_guid && will->is.tid == is.tid &&
	       will->is.packet_life_time == is.packet_life_time &&
	       will->is.path.flow_label == is.path.flow_label &&
	       will->is.path.pkey_index == is.path.pkey_index &&
	       memcmp(&will->is.path.dgid, &is.path.dgid, sizeof(is.path.dgid)) == 0;
}

TCase *kept_tcase(const char *name)
{
	TCase *tcase = folder_tcase(name, set_up, tear_down);

	tcase_set_timeout(tcase, 120);
	return tcase;
}
