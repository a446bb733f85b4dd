/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/inbox.c, with its sender, on a fake device: validation of received messages, their slots, and
 * wakeups.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mad/inbox.h"
#include "mad/sender.h"
#include "tests/unit/test.h"
#include "tests/unit/fake_verbs.h"

#define QPN	 0x4711
#define V4_INDEX 1
#define V6_INDEX 2
#define V1_INDEX 3

#define LONGEST	 65507 /* maximum of UDP */

#define OWN_V4	 "10.77.0.1"
#define OWN_V6	 "fd00:77::1"
#define PEER_V4	 "10.77.0.2"
#define PEER_V6	 "fd00:77::2"

static struct mad_sender *sender;
static struct mad_port *inbox;
static uint8_t mad[MAD_BYTES];

static void setup(void)
{
	struct ibv_context *context = fake_roce_begin();

	fake_add_gid(OWN_V4, V4_INDEX, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid(OWN_V6, V6_INDEX, IBV_GID_TYPE_ROCE_V2);
	fake_add_gid("10.77.1.1", V1_INDEX, IBV_GID_TYPE_ROCE_V1);
	ck_assert_int_eq(mad_sender_open(context, 1, &sender), 0);
	inbox = mad_sender_port(sender);
	for (int i = 0; i < MAD_BYTES; i++)
		mad[i] = (uint8_t)i;
}

static void teardown(void)
{
	mad_sender_close(sender);
	ck_assert_int_eq(fake.n_made, 0);
}

/* --- packets ------------------------------------------------------------- */

static uint16_t checksum_of(const uint8_t *ipv4)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ipv4[i] << 8 | ipv4[i + 1]);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* An IPv4 packet as a device delivers it: its header in the last twenty bytes. */
static void put_ipv4(uint8_t head[FAKE_GRH], const char *from, const char *to, bool has_checksum)
{
	const uint8_t ipv4[] = { 0x45, 0, 1, 0x44, 0x12, 0x34, 0x40, 0, 64, 17 };
	struct mad_gid src = fake_gid_of(from), dst = fake_gid_of(to);
	uint16_t sum;

	memcpy(head + 20, ipv4, sizeof(ipv4));
	memset(head + 30, 0, 2);
	memcpy(head + 32, src.raw + 12, 4);
	memcpy(head + 36, dst.raw + 12, 4);
	sum = checksum_of(head + 20);
	if (!has_checksum)
		return;
	head[30] = (uint8_t)(sum >> 8);
	head[31] = (uint8_t)sum;
}

static void put_grh(uint8_t head[FAKE_GRH], const char *from, const char *to)
{
	const uint8_t grh[] = { 0x6b, 0x8a, 0xbc, 0xde, 1, 0x18, 17, 64 };
	struct mad_gid src = fake_gid_of(from), dst = fake_gid_of(to);

	memcpy(head, grh, sizeof(grh));
	memcpy(head + 8, &src, sizeof(src));
	memcpy(head + 24, &dst, sizeof(dst));
}

static void arrive_v4(const char *from, const char *to, size_t bytes, unsigned int flags)
{
	uint8_t head[FAKE_GRH] = { 0 }, message[LONGEST] = { 0 };

	memcpy(message, mad, MAD_BYTES);
	put_ipv4(head, from, to, true);
	fake_arrive(head, message, bytes, QPN, flags);
}

/* A valid message. */
static void arrive_well(void)
{
	arrive_v4(PEER_V4, OWN_V4, MAD_BYTES, IBV_WC_GRH);
}

static int receive(struct mad_path *ret)
{
	uint8_t bytes[MAD_BYTES];
	int err;

	do
		err = mad_port_receive(inbox, ret, bytes);
	while (err == -ENOMSG);
	if (!err)
		ck_assert_mem_eq(bytes, mad, MAD_BYTES);
	return err;
}

static bool is_readable(void)
{
	struct pollfd look = { .fd = inbox->fd, .events = POLLIN };

	return poll(&look, 1, 0) == 1;
}

static void check_path(const struct mad_path *path, const char *peer, uint8_t sgid_index)
{
	struct mad_gid gid = fake_gid_of(peer);

	ck_assert(path->grh);
	ck_assert_mem_eq(&path->dgid, &gid, sizeof(gid));
	ck_assert_uint_eq(path->sgid_index, sgid_index);
	ck_assert_uint_eq(path->dlid, 0);
	ck_assert_uint_eq(path->sl, 0);
	ck_assert_uint_ge(path->hop_limit, 64);
}

/* --- receiving ----------------------------------------------------------- */

FIXTURE(setup, teardown);

TEST(empty_inbox_is_eagain_and_not_readable)
{
	struct mad_path path;

	ck_assert(!is_readable());
	ck_assert_int_eq(receive(&path), -EAGAIN);
	ck_assert(!is_readable());
}

TEST(received_message_has_the_path_back_over_ipv4)
{
	struct mad_path path;

	arrive_well();
	ck_assert(is_readable());
	ck_assert_int_eq(receive(&path), 0);
	check_path(&path, PEER_V4, V4_INDEX);
	ck_assert_uint_eq(path.traffic_class, 0);
	ck_assert_uint_eq(inbox->source_qpn, QPN);
}

TEST(received_message_has_the_path_back_over_ipv6)
{
	uint8_t head[FAKE_GRH];
	struct mad_path path;

	put_grh(head, PEER_V6, OWN_V6);
	fake_arrive(head, mad, MAD_BYTES, QPN, IBV_WC_GRH);
	ck_assert_int_eq(receive(&path), 0);
	check_path(&path, PEER_V6, V6_INDEX);
	ck_assert_uint_eq(path.traffic_class, 0xb8);
	ck_assert_uint_eq(path.flow_label, 0xabcde);
}

TEST(path_back_of_a_request_has_its_service_level)
{
	struct cm_msg req;
	struct mad_path path;

	cm_msg_init(&req, CM_ATTR_REQ, 1);
	req.req.primary.sl = 5;
	cm_msg_encode(&req, mad);
	arrive_well();
	ck_assert_int_eq(receive(&path), 0);
	ck_assert_uint_eq(path.sl, 5);
}

TEST(garbage_before_an_ipv4_header_is_not_taken_for_a_grh)
{
	uint8_t head[FAKE_GRH];
	struct mad_path path;

	put_grh(head, PEER_V6, OWN_V6);
	put_ipv4(head, PEER_V4, OWN_V4, true);
	fake_arrive(head, mad, MAD_BYTES, QPN, IBV_WC_GRH);
	ck_assert_int_eq(receive(&path), 0);
	check_path(&path, PEER_V4, V4_INDEX);
}

TEST(a_packet_that_never_left_the_host_has_no_checksum)
{
	uint8_t head[FAKE_GRH] = { 0 };
	struct mad_path path;

	put_ipv4(head, OWN_V4, OWN_V4, false);
	fake_arrive(head, mad, MAD_BYTES, QPN, IBV_WC_GRH);
	ck_assert_int_eq(receive(&path), 0);
	check_path(&path, OWN_V4, V4_INDEX);
}

/* Its destination ends in bytes that could begin an IPv4 header. */
TEST(an_ipv6_address_that_looks_like_an_ipv4_header_is_an_address)
{
	const char *odd = "fd00:77::4500:144";
	uint8_t head[FAKE_GRH];
	struct mad_path path;

	put_grh(head, odd, OWN_V6);
	fake_arrive(head, mad, MAD_BYTES, QPN, IBV_WC_GRH);
	ck_assert_int_eq(receive(&path), 0);
	check_path(&path, odd, V6_INDEX);
}

/* Messages of a hostile peer, and messages that are not for this port. */
static void arrive_nonsense(int kind)
{
	const uint8_t nothing[FAKE_GRH] = { 0 };

	switch (kind) {
	case 0:
		arrive_v4(PEER_V4, OWN_V4, 0, IBV_WC_GRH);
		break;
	case 1:
		arrive_v4(PEER_V4, OWN_V4, MAD_BYTES - 1, IBV_WC_GRH);
		break;
	case 2:
		arrive_v4(PEER_V4, OWN_V4, MAD_BYTES, 0);
		break;
	case 3:
		arrive_v4(PEER_V4, "10.77.0.9", MAD_BYTES, IBV_WC_GRH);
		break;
	case 4:
		arrive_v4(PEER_V4, "10.77.1.1", MAD_BYTES, IBV_WC_GRH); /* RoCE v1 */
		break;
	case 5:
		arrive_v4(PEER_V4, OWN_V4, MAD_BYTES + 1, IBV_WC_GRH);
		break;
	case 6:
		arrive_v4(PEER_V4, OWN_V4, LONGEST, IBV_WC_GRH);
		break;
	case 7:
		fake_arrive(nothing, mad, MAD_BYTES, QPN, IBV_WC_GRH);
		break;
	}
}

#define N_NONSENSE 8

TEST_LOOP(invalid_message_is_skipped_and_its_slot_posted_again, 0, N_NONSENSE)
{
	int n_slots = fake.n_slots;
	struct mad_path path;

	arrive_nonsense(_i);
	arrive_well();
	ck_assert_int_eq(fake.n_slots, n_slots - 2);
	ck_assert_int_eq(receive(&path), 0);
	check_path(&path, PEER_V4, V4_INDEX);
	ck_assert_int_eq(receive(&path), -EAGAIN);
	ck_assert_int_eq(fake.n_slots, n_slots);
}

TEST(ten_thousand_messages_find_a_slot_each)
{
	int n_slots = fake.n_slots;
	struct mad_path path;

	for (int i = 0; i < 10000; i++) {
		arrive_nonsense(i % N_NONSENSE);
		arrive_well();
		ck_assert_int_eq(receive(&path), 0);
	}
	ck_assert_int_eq(receive(&path), -EAGAIN);
	ck_assert_int_eq(fake.n_slots, n_slots);
}

TEST(all_slots_may_be_filled_before_a_read)
{
	int n = fake.n_slots;
	struct mad_path path;

	ck_assert_int_eq(n, INBOX_SLOTS);
	while (fake.n_slots)
		arrive_well();
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(receive(&path), 0);
	ck_assert_int_eq(receive(&path), -EAGAIN);
	ck_assert_int_eq(fake.n_slots, n);
}

TEST(after_eagain_the_descriptor_is_readable_for_the_next_message)
{
	struct mad_path path;

	for (int i = 0; i < 5; i++) {
		ck_assert(!is_readable());
		arrive_well();
		ck_assert(is_readable());
		ck_assert_int_eq(receive(&path), 0);
		ck_assert_int_eq(receive(&path), -EAGAIN);
	}
}

static void arrive_thrice(void)
{
	for (int i = 0; i < 3; i++)
		arrive_well();
}

TEST(message_between_the_poll_and_the_arming_is_found)
{
	struct mad_path path;

	arrive_well();
	fake.before_arming = arrive_thrice;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(receive(&path), 0);
	ck_assert_ptr_null(fake.before_arming);
	ck_assert_int_eq(receive(&path), -EAGAIN);
	arrive_well();
	ck_assert(is_readable());
}

TEST(flushed_queue_is_eagain)
{
	struct mad_path path;

	arrive_well();
	fake_flush();
	ck_assert_int_eq(receive(&path), 0);
	ck_assert_int_eq(receive(&path), -EAGAIN);
	ck_assert(!is_readable());
}

TEST(failing_poll_does_not_wake_for_ever)
{
	struct mad_path path;

	arrive_well();
	fake.poll_error = -2;
	ck_assert_int_eq(receive(&path), -EAGAIN);
	ck_assert(!is_readable());
}

/* A host that sends as fast as we read must not block everything else. */
TEST(one_invalid_message_is_skipped_per_call)
{
	struct mad_path path;

	arrive_nonsense(0);
	arrive_well();
	ck_assert_int_eq(mad_port_receive(inbox, &path, mad), -ENOMSG);
	ck_assert_int_eq(mad_port_receive(inbox, &path, mad), 0);
}

TEST(gids_are_read_once_and_again_after_forgetting)
{
	struct mad_path path;
	int n_looks;

	arrive_well();
	receive(&path);
	n_looks = fake.n_looks;
	arrive_well();
	receive(&path);
	ck_assert_int_eq(fake.n_looks, n_looks);
	mad_sender_forget(sender);
	fake.gid[0].gid_index = 9;
	arrive_well();
	ck_assert_int_eq(receive(&path), 0);
	ck_assert_uint_eq(path.sgid_index, 9);
}

TEST(each_of_forty_addresses_is_looked_up_once)
{
	char address[32];
	struct mad_path path;

	for (unsigned int i = 0; i < 40; i++) {
		snprintf(address, sizeof(address), "10.78.0.%u", i);
		fake_add_gid(address, 10 + i, IBV_GID_TYPE_ROCE_V2);
	}
	for (unsigned int i = 0; i < 400; i++) {
		snprintf(address, sizeof(address), "10.78.0.%u", i % 40);
		arrive_v4(PEER_V4, address, MAD_BYTES, IBV_WC_GRH);
		ck_assert_int_eq(receive(&path), 0);
		ck_assert_uint_eq(path.sgid_index, 10 + i % 40);
	}
	ck_assert_int_eq(fake.n_looks, 40);
}

/*
 * With RDMAV_FORK_SAFE, and a kernel before 5.12, a child lacks these pages: they may contain
 * nothing else.
 */
TEST(registered_memory_has_pages_of_its_own)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t fd_at = (uintptr_t)&inbox->fd;

	ck_assert_uint_eq(fake.registered_at % page_bytes, 0);
	ck_assert(fd_at / page_bytes != fake.registered_at / page_bytes);
}
