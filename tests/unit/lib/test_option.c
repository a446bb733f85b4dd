/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options that only purecm has, and the getters of ports (lib/conn/option.c). The options of stock
 * are compared with it in tests/parity.
 */
#include <check.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <purecm/purecm.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/engine.h"

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

static int set_waits(uint32_t first_ms, uint32_t last_ms)
{
	struct purecm_retry_waits waits = { first_ms, last_ms };

	return rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, &waits,
			       sizeof(waits));
}

START_TEST(waits_are_kept_for_the_next_request)
{
	ck_assert_int_eq(set_waits(50, 400), 0);
	ck_assert_uint_eq(id->option.waits.first_ms, 50);
	ck_assert_uint_eq(id->option.waits.last_ms, 400);
}
END_TEST

START_TEST(zeros_bring_the_default_back)
{
	set_waits(50, 400);
	ck_assert_int_eq(set_waits(0, 0), 0);
	ck_assert_uint_eq(id->option.waits.first_ms, 0);
}
END_TEST

static int set_retries(uint32_t retries)
{
	return rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRIES, &retries,
			       sizeof(retries));
}

START_TEST(retries_are_counted_from_the_second_transmission)
{
	ck_assert_int_eq(set_retries(4), 0);
	ck_assert_uint_eq(id->option.waits.transmissions_max, 5);
}
END_TEST

START_TEST(more_retries_than_are_counted_are_refused)
{
	ck_assert_int_eq(set_retries(254), 0);
	ck_assert_int_eq(set_retries(255), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(waits_leave_retries_as_they_are)
{
	set_retries(4);
	set_waits(50, 400);
	ck_assert_uint_eq(id->option.waits.transmissions_max, 5);
}
END_TEST

static const struct purecm_retry_waits bad[] = {
	{0,  1},
	  { 1, 0},
	    { 2, 1}
};

START_TEST(waits_that_make_no_sense_are_refused) /* loop test: _i is the row */
{
	set_waits(50, 400);
	ck_assert_int_eq(set_waits(bad[_i].first_ms, bad[_i].last_ms), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(id->option.waits.first_ms, 50);
}
END_TEST

START_TEST(waits_of_a_request_under_way_stay)
{
	struct cm_conn conn = { 0 };

	id->conn = &conn;
	id->accepted = true;
	ck_assert_int_eq(set_waits(50, 400), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(value_of_another_size_is_refused)
{
	uint32_t half = 1;

	ck_assert_int_eq(rdma_set_option(&id->pub, PURECM_OPTION, PURECM_OPTION_RETRY_WAITS, &half,
					 sizeof(half)),
			 -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(option_that_is_unknown_is_not_there)
{
	uint32_t value = 1;

	ck_assert_int_eq(rdma_set_option(&id->pub, PURECM_OPTION, 77, &value, sizeof(value)), -1);
	ck_assert_int_eq(errno, ENOSYS);
}
END_TEST

static struct rdma_addr *addrs(void)
{
	return &id->pub.route.addr;
}

START_TEST(ports_of_ip_addresses_are_read)
{
	addrs()->src_sin.sin_family = AF_INET;
	addrs()->src_sin.sin_port = htons(7471);
	addrs()->dst_sin6.sin6_family = AF_INET6;
	addrs()->dst_sin6.sin6_port = htons(7174);
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), 7471);
	ck_assert_uint_eq(ntohs(rdma_get_dst_port(&id->pub)), 7174);
}
END_TEST

START_TEST(port_of_an_infiniband_address_is_the_end_of_its_service_id)
{
	struct sockaddr_ib sib = { .sib_family = AF_IB, .sib_sid = htobe64(0x1061d2f) };

	memcpy(&addrs()->src_storage, &sib, sizeof(sib));
	sib.sib_sid = htobe64(0x123456789abcdef0);
	memcpy(&addrs()->dst_storage, &sib, sizeof(sib));
	ck_assert_uint_eq(ntohs(rdma_get_src_port(&id->pub)), 7471);
	ck_assert_uint_eq(ntohs(rdma_get_dst_port(&id->pub)), 0xdef0);
}
END_TEST

START_TEST(address_of_no_known_family_has_no_port)
{
	memset(&addrs()->src_storage, 0xff, sizeof(addrs()->src_storage));
	ck_assert_uint_eq(rdma_get_src_port(&id->pub), 0);
	ck_assert_uint_eq(rdma_get_dst_port(&id->pub), 0);
}
END_TEST

START_TEST(addresses_are_those_inside_the_id)
{
	ck_assert_ptr_eq(rdma_get_local_addr(&id->pub), &addrs()->src_addr);
	ck_assert_ptr_eq(rdma_get_peer_addr(&id->pub), &addrs()->dst_addr);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("option");
	TCase *tc = tcase_create("option");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, waits_are_kept_for_the_next_request);
	tcase_add_test(tc, retries_are_counted_from_the_second_transmission);
	tcase_add_test(tc, more_retries_than_are_counted_are_refused);
	tcase_add_test(tc, waits_leave_retries_as_they_are);
	tcase_add_test(tc, zeros_bring_the_default_back);
	tcase_add_loop_test(tc, waits_that_make_no_sense_are_refused, 0,
			    sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, waits_of_a_request_under_way_stay);
	tcase_add_test(tc, value_of_another_size_is_refused);
	tcase_add_test(tc, option_that_is_unknown_is_not_there);
	tcase_add_test(tc, ports_of_ip_addresses_are_read);
	tcase_add_test(tc, port_of_an_infiniband_address_is_the_end_of_its_service_id);
	tcase_add_test(tc, address_of_no_known_family_has_no_port);
	tcase_add_test(tc, addresses_are_those_inside_the_id);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
