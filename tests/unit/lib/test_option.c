/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options that only purecm has, and the getters of ports (lib/conn/option.c). tests/parity compares
 * the options of stock.
 */
#include <errno.h>
#include <infiniband/ib.h>
#include <purecm/purecm.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"
#include "tests/unit/test.h"

static struct channel *channel;
static struct id *id;

static void setup(void)
{
	ck_assert_int_eq(channel_new(&channel), 0);
	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &id), 0);
}

static void teardown(void)
{
	id_free(id);
	channel_close(channel);
}

FIXTURE(setup, teardown);

static int set_waits(uint32_t first_ms, uint32_t last_ms)
{
	struct purecm_retry_waits waits = { first_ms, last_ms };

	return rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, &waits,
			       sizeof(waits));
}

TEST(intervals_apply_to_the_next_request)
{
	ck_assert_int_eq(set_waits(50, 400), 0);
	ck_assert_uint_eq(id->option.waits.first_ms, 50);
	ck_assert_uint_eq(id->option.waits.last_ms, 400);
}

TEST(zeros_restore_the_default)
{
	set_waits(50, 400);
	ck_assert_int_eq(set_waits(0, 0), 0);
	ck_assert_uint_eq(id->option.waits.first_ms, 0);
}

static int set_retries(uint32_t retries)
{
	return rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRIES, &retries,
			       sizeof(retries));
}

TEST(retries_are_counted_from_the_second_transmission)
{
	ck_assert_int_eq(set_retries(4), 0);
	ck_assert_uint_eq(id->option.waits.transmissions_max, 5);
}

TEST(too_many_retries_are_refused)
{
	ck_assert_int_eq(set_retries(254), 0);
	ck_assert_int_eq(set_retries(255), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(intervals_leave_retries_unchanged)
{
	set_retries(4);
	set_waits(50, 400);
	ck_assert_uint_eq(id->option.waits.transmissions_max, 5);
}

static const struct purecm_retry_waits bad[] = { { 0, 1 }, { 1, 0 }, { 2, 1 } };

TEST_LOOP(invalid_intervals_are_refused, 0,
	  sizeof(bad) / sizeof(bad[0])) /* loop test: _i is the row */
{
	set_waits(50, 400);
	ck_assert_int_eq(set_waits(bad[_i].first_ms, bad[_i].last_ms), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(id->option.waits.first_ms, 50);
}

TEST(intervals_of_an_outstanding_request_are_unchanged)
{
	struct cm_conn conn = { 0 };

	id->conn = &conn;
	id->accepted = true;
	ck_assert_int_eq(set_waits(50, 400), -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(value_of_another_size_is_refused)
{
	uint32_t half = 1;

	ck_assert_int_eq(rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, &half,
					 sizeof(half)),
			 -1);
	ck_assert_int_eq(errno, EINVAL);
}

TEST(unknown_option_is_enosys)
{
	uint32_t value = 1;

	ck_assert_int_eq(rdma_set_option(&id->pub, PURECM_OPTION, 77, &value, sizeof(value)), -1);
	ck_assert_int_eq(errno, ENOSYS);
}

static struct rdma_addr *addrs(void)
{
	return &id->pub.route.addr;
}

TEST(ports_of_ip_addresses_are_read)
{
	addrs()->src_sin.sin_family = AF_INET;
	addrs()->src_sin.sin_port = htons(7471);
	addrs()->dst_sin6.sin6_family = AF_INET6;
	addrs()->dst_sin6.sin6_port = htons(7174);
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), 7471);
	ck_assert_uint_eq(ntohs(rdma_get_dst_port(&id->pub)), 7174);
}

TEST(port_of_an_infiniband_address_is_the_end_of_its_service_id)
{
	struct sockaddr_ib sib = { .sib_family = AF_IB, .sib_sid = htobe64(0x1061d2f) };

	memcpy(&addrs()->src_storage, &sib, sizeof(sib));
	sib.sib_sid = htobe64(0x123456789abcdef0);
	memcpy(&addrs()->dst_storage, &sib, sizeof(sib));
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), 7471);
	ck_assert_uint_eq(ntohs(rdma_get_dst_port(&id->pub)), 0xdef0);
}

TEST(address_of_no_known_family_has_no_port)
{
	memset(&addrs()->src_storage, 0xff, sizeof(addrs()->src_storage));
	ck_assert_uint_eq(rdma_get_src_port(&id->pub), 0);
	ck_assert_uint_eq(rdma_get_dst_port(&id->pub), 0);
}

TEST(addresses_are_those_inside_the_id)
{
	ck_assert_ptr_eq(rdma_get_local_addr(&id->pub), &addrs()->src_addr);
	ck_assert_ptr_eq(rdma_get_peer_addr(&id->pub), &addrs()->dst_addr);
}
