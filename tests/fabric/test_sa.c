/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet administrator of an InfiniBand fabric of two hosts: its responses, and the packets
 * that a port gets after joining a group. Runs on the first of them: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/sa.h>
#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sa_mcm.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define WAIT_MS	    20000
#define PREFIX	    0xfe80000000000000ull
#define GUID_OF_A   0x0050430000000101ull
#define GUID_OF_B   0x0050430000000201ull
#define GIDS	    0x0c      /* component mask: DGID and SGID */
#define LIDS	    0x30      /* DLID and SLID */
#define KERNEL_MASK 0x380cull /* plus those of the kernel's connection manager */
#define CREATE_MASK 0x130c7ull
#define LEAVE_MASK  0x10003ull
#define METHOD	    0x14 /* GetMulti */
#define OF_PEER_MAX 32

struct buffer {
	struct ib_user_mad head;
	struct umad_sa_packet packet;
};

static int fd;
static uint32_t agent;

static void set_up(void)
{
	struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_ADM, .mgmt_class_version = 2 };

	fd = umad_open_port("fab0", 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(umad_register2(fd, &attr, &agent), 0);
}

static void tear_down(void)
{
	close(fd);
}

static union ibv_gid gid_of(uint64_t guid)
{
	return (union ibv_gid){ .global = { htobe64(PREFIX), htobe64(guid) } };
}

/* Return: the status of the response, which replaces the request. */
static unsigned int ask(struct buffer *buffer, uint8_t method, uint16_t attr, uint64_t mask)
{
	int bytes = sizeof(buffer->packet);

	memset(&buffer->head, 0, sizeof(buffer->head));
	umad_set_addr(buffer, 1, 1, 0, (int)0x80010000);
	buffer->packet.mad_hdr = (struct umad_hdr){
		.base_version = 1,
		.mgmt_class = UMAD_CLASS_SUBN_ADM,
		.class_version = 2,
		.method = method,
		.tid = htobe64(5),
		.attr_id = htons(attr),
	};
	buffer->packet.comp_mask = htobe64(mask);
	ck_assert_int_eq(umad_send(fd, (int)agent, buffer, bytes, WAIT_MS, 0), 0);
	ck_assert_int_eq(umad_recv(fd, buffer, &bytes, 2 * WAIT_MS), (int)agent);
	ck_assert_int_eq(umad_status(buffer), 0);
	return ntohs(buffer->packet.mad_hdr.status) >> 8;
}

static unsigned int ask_path(struct ibv_path_record *record, uint64_t mask)
{
	struct buffer buffer = { .packet = { .sm_key = { 0 } } };
	unsigned int status;

	memcpy(buffer.packet.data, record, sizeof(*record));
	status = ask(&buffer, UMAD_METHOD_GET, UMAD_SA_ATTR_PATH_REC, mask);
	ck_assert_uint_eq(buffer.packet.mad_hdr.method, UMAD_METHOD_GET_RESP);
	memcpy(record, buffer.packet.data, sizeof(*record));
	return status;
}

FIXTURE(set_up, tear_down);

TEST(path_between_gids_has_their_lids)
{
	struct ibv_path_record record = { .sgid = gid_of(GUID_OF_A),
					  .dgid = gid_of(GUID_OF_B),
					  .pkey = 0xffff,
					  .reversible_numpath = 0x81 };

	ck_assert_uint_eq(ask_path(&record, KERNEL_MASK), UMAD_SA_STATUS_SUCCESS);
	ck_assert_uint_eq(ntohs(record.slid), 1);
	ck_assert_uint_eq(ntohs(record.dlid), 2);
	ck_assert_uint_eq(ntohs(record.pkey), 0xffff);
	ck_assert_uint_eq(record.mtu, 0x80 | IBV_MTU_4096);
	ck_assert_uint_eq(record.packetlifetime, 0x80 | 18);
	ck_assert_uint_eq(record.reversible_numpath, 0x80);
}

TEST(path_between_lids_has_their_gids)
{
	struct ibv_path_record record = { .slid = htons(2), .dlid = htons(1) };
	union ibv_gid from = gid_of(GUID_OF_B), to = gid_of(GUID_OF_A);

	ck_assert_uint_eq(ask_path(&record, LIDS), UMAD_SA_STATUS_SUCCESS);
	ck_assert_int_eq(memcmp(&record.sgid, &from, 16), 0);
	ck_assert_int_eq(memcmp(&record.dgid, &to, 16), 0);
}

TEST(there_is_no_path_to_an_unknown_port)
{
	struct ibv_path_record record = { .sgid = gid_of(GUID_OF_A), .dgid = gid_of(77) };

	ck_assert_uint_eq(ask_path(&record, GIDS), UMAD_SA_STATUS_NO_RECORDS);
}

TEST(path_in_another_partition_does_not_exist)
{
	struct ibv_path_record record = { .sgid = gid_of(GUID_OF_A),
					  .dgid = gid_of(GUID_OF_B),
					  .pkey = htons(0x8001) };

	ck_assert_uint_eq(ask_path(&record, KERNEL_MASK), UMAD_SA_STATUS_NO_RECORDS);
}

TEST(path_request_needs_a_source)
{
	struct ibv_path_record record = { .dgid = gid_of(GUID_OF_B) };

	ck_assert_uint_eq(ask_path(&record, 4), UMAD_SA_STATUS_INSUF_COMPS);
}

/* --- groups -------------------------------------------------------------- */

static struct umad_sa_mcmember_record group_of(uint8_t last, uint64_t guid, uint8_t join_state)
{
	struct umad_sa_mcmember_record record = {
		.mgid = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = last },
		.qkey = htonl(0x1234),
		.pkey = 0xffff,
		.scope_state = join_state,
	};
	union ibv_gid gid = gid_of(guid);

	memcpy(record.portgid, &gid, sizeof(record.portgid));
	return record;
}

static unsigned int ask_group(uint8_t method, struct umad_sa_mcmember_record *record, uint64_t mask)
{
	struct buffer buffer = { .packet = { .sm_key = { 0 } } };
	unsigned int status;

	memcpy(buffer.packet.data, record, 52);
	status = ask(&buffer, method, UMAD_SA_ATTR_MCMEMBER_REC, mask);
	memcpy(record, buffer.packet.data, 52);
	return status;
}

static unsigned int join(uint8_t last, uint64_t guid, uint64_t mask)
{
	struct umad_sa_mcmember_record record = group_of(last, guid, 1);

	return ask_group(UMAD_METHOD_SET, &record, mask);
}

static unsigned int leave(uint8_t last, uint64_t guid)
{
	struct umad_sa_mcmember_record record = group_of(last, guid, 1);

	return ask_group(UMAD_SA_METHOD_DELETE, &record, LEAVE_MASK);
}

TEST(first_member_makes_the_group)
{
	struct umad_sa_mcmember_record record = group_of(1, GUID_OF_A, 1);

	ck_assert_uint_eq(ask_group(UMAD_METHOD_SET, &record, LEAVE_MASK),
			  UMAD_SA_STATUS_INSUF_COMPS);
	record = group_of(1, GUID_OF_A, 1);
	ck_assert_uint_eq(ask_group(UMAD_METHOD_SET, &record, CREATE_MASK), 0);
	ck_assert_uint_ge(ntohs(record.mlid), 0xc000);
	ck_assert_uint_eq(record.scope_state, 0x21);
	ck_assert_uint_eq(record.qkey, htonl(0x1234));
	ck_assert_uint_eq(join(1, GUID_OF_B, LEAVE_MASK), 0);
	ck_assert_uint_eq(leave(1, GUID_OF_A), 0);
	ck_assert_uint_eq(leave(1, GUID_OF_B), 0);
}

TEST(group_ends_with_its_last_member)
{
	struct umad_sa_mcmember_record record = group_of(2, GUID_OF_A, 1);

	ck_assert_uint_eq(join(2, GUID_OF_A, CREATE_MASK), 0);
	ck_assert_uint_eq(ask_group(UMAD_METHOD_GET, &record, 1), 0);
	ck_assert_uint_eq(leave(2, GUID_OF_A), 0);
	ck_assert_uint_eq(leave(2, GUID_OF_A), UMAD_SA_STATUS_REQ_INVALID);
	record = group_of(2, GUID_OF_A, 1);
	ck_assert_uint_eq(ask_group(UMAD_METHOD_GET, &record, 1), UMAD_SA_STATUS_NO_RECORDS);
}

TEST(broadcast_group_is_always_there)
{
	struct umad_sa_mcmember_record record = { .mgid = { 0xff, 0x12, 0x40, 0x1b, 0xff,
							    0xff, [12] = 0xff, 0xff, 0xff, 0xff } };

	ck_assert_uint_eq(ask_group(UMAD_METHOD_GET, &record, 1), 0);
	ck_assert_uint_eq(record.qkey, htonl(0xb1b));
	ck_assert_uint_eq(record.mlid, htons(0xc000));
}

TEST(join_with_another_key_is_refused)
{
	struct umad_sa_mcmember_record record = group_of(3, GUID_OF_B, 1);

	ck_assert_uint_eq(join(3, GUID_OF_A, CREATE_MASK), 0);
	record.qkey = htonl(9);
	ck_assert_uint_eq(ask_group(UMAD_METHOD_SET, &record, CREATE_MASK),
			  UMAD_SA_STATUS_REQ_INVALID);
	ck_assert_uint_eq(leave(3, GUID_OF_A), 0);
}

TEST(send_only_member_creates_no_group)
{
	struct umad_sa_mcmember_record record = group_of(4, GUID_OF_A, 8);

	ck_assert_uint_eq(ask_group(UMAD_METHOD_SET, &record, CREATE_MASK),
			  UMAD_SA_STATUS_REQ_INVALID);
}

/* Packets of the group are received by this file. */
TEST(group_ends_with_its_last_full_member)
{
	struct umad_sa_mcmember_record record = group_of(5, GUID_OF_B, 2);
	char path[256];

	snprintf(path, sizeof(path), "%s/../../joined/ff12401bffff00000000000000000005/b.1",
		 getenv("PURECM_FABRIC"));
	ck_assert_uint_eq(join(5, GUID_OF_A, CREATE_MASK), 0);
	ck_assert_uint_eq(ask_group(UMAD_METHOD_SET, &record, LEAVE_MASK), 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_uint_eq(leave(5, GUID_OF_A), 0);
	ck_assert_int_ne(access(path, F_OK), 0);
}

TEST(unsupported_request_has_its_status)
{
	struct buffer buffer = { .packet = { .sm_key = { 0 } } };

	ask(&buffer, UMAD_METHOD_GET, UMAD_SA_ATTR_LINK_REC, 0);
	ck_assert_uint_eq(ntohs(buffer.packet.mad_hdr.status), 0x000c);
	ask(&buffer, UMAD_METHOD_SET, UMAD_SA_ATTR_NODE_REC, 0);
	ck_assert_uint_eq(ntohs(buffer.packet.mad_hdr.status), 0x000c);
}

/* The first or second and last segment of a message, with a method that no other agent has. */
static void send_segment(uint32_t tid, uint32_t segment)
{
	struct buffer buffer = { .packet = { .mad_hdr = { .base_version = 1,
							  .mgmt_class = UMAD_CLASS_SUBN_ADM,
							  .class_version = 2,
							  .method = METHOD,
							  .tid = htobe64(tid) },
					     .rmpp_hdr = { .rmpp_version = 1,
							   .rmpp_type = 1,
							   .rmpp_rtime_flags = segment == 1 ? 3 : 5,
							   .seg_num = htonl(segment),
							   .paylen_newwin = htonl(220) } } };

	umad_set_addr(&buffer, 1, 1, 0, (int)0x80010000);
	ck_assert_int_eq(umad_send(fd, (int)agent, &buffer, sizeof(buffer.packet), 0, 0), 0);
}

TEST(oldest_incomplete_message_of_a_peer_is_dropped)
{
	struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_SUBN_ADM,
				      .mgmt_class_version = 2,
				      .method_mask = { 1 << METHOD },
				      .rmpp_version = 1 };
	int receiver = umad_open_port("fab0", 1), bytes = 2 * sizeof(struct umad_sa_packet);
	struct buffer got[2];
	uint32_t its;

	ck_assert_int_eq(umad_register2(receiver, &attr, &its), 0);
	for (uint32_t tid = 0; tid <= OF_PEER_MAX; tid++)
		send_segment(tid, 1);
	send_segment(0, 2);
	send_segment(1, 2);
	ck_assert_int_eq(umad_recv(receiver, got, &bytes, WAIT_MS), (int)its);
	ck_assert_uint_eq((uint32_t)be64toh(got->packet.mad_hdr.tid), 1);
	close(receiver);
}
