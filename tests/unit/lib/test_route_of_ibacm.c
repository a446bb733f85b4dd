/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_resolve_route() on a host with ibacm (lib/conn/resolve.c). The client of ibacm and
 * rdma_set_option(), which takes its path, are here.
 */
#include <check.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conn/rooms.h"
#include "lib/engine/engine.h"
#include "lib/path/ibacm.h"

static struct channel *channel;
static struct id *id;
static struct ibacm_answer answer;
static int answer_err, option_err;
static unsigned int n_asked, n_given;

struct ibacm *ibacm_of_host(void)
{
	return NULL;
}

int ibacm_ask(struct ibacm *acm, const struct ibacm_question *question, struct ibacm_answer *ret)
{
	ck_assert_ptr_null(acm);
	ck_assert_ptr_eq(question->src, &id->pub.route.addr.src_addr);
	ck_assert_ptr_eq(question->dst, &id->pub.route.addr.dst_addr);
	ck_assert(!question->no_delay);
	n_asked++;
	if (!answer_err)
		*ret = answer;
	return answer_err;
}

int rdma_set_option(struct rdma_cm_id *pub, int level, int optname, void *optval, size_t optlen)
{
	ck_assert_ptr_eq(pub, &id->pub);
	ck_assert_int_eq(level, RDMA_OPTION_IB);
	ck_assert_int_eq(optname, RDMA_OPTION_IB_PATH);
	ck_assert_uint_eq(optlen, answer.n_paths * sizeof(answer.path[0]));
	ck_assert_mem_eq(optval, answer.path, optlen);
	n_given++;
	errno = option_err;
	return option_err ? -1 : 0;
}

static void setup(void)
{
	struct engine *engine;

	ck_assert_int_eq(rooms_start(), 0);
	ck_assert_int_eq(channel_new(&channel), 0);
	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &id), 0);
	engine = engine_lock();
	list_append(&engine->ids, &id->link);
	id->state = ID_ADDR_RESOLVED;
	id->path.route.ifindex = if_nametoindex("lo");
	engine_unlock();
	memset(&answer, 0, sizeof(answer));
	answer.n_paths = 2;
	answer.path[1].flags = 0x2b;
	answer_err = option_err = 0;
	n_asked = n_given = 0;
}

static void teardown(void)
{
	rdma_destroy_id(&id->pub);
	channel_close(channel);
}

static bool has_event(void)
{
	struct pollfd poller = { .fd = channel->pub.fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

START_TEST(path_of_ibacm_is_taken)
{
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1000), 0);
	ck_assert_uint_eq(n_asked, 1);
	ck_assert_uint_eq(n_given, 1);
	ck_assert(!has_event()); /* the option's, and there is no other */
}
END_TEST

START_TEST(path_that_cannot_be_used_does_not_count)
{
	option_err = EINVAL;
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1000), 0);
	ck_assert_uint_eq(n_given, 1);
	ck_assert(engine_id_is(id, ID_ROUTE_RESOLVED));
	ck_assert(has_event());
}
END_TEST

START_TEST(without_ibacm_the_path_is_our_own)
{
	answer_err = -ENOTCONN;
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1000), 0);
	ck_assert_uint_eq(n_given, 0);
	ck_assert(engine_id_is(id, ID_ROUTE_RESOLVED));
}
END_TEST

START_TEST(ibacm_that_knows_no_path_does_not_count)
{
	answer.n_paths = 0;
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1000), 0);
	ck_assert_uint_eq(n_given, 0);
	ck_assert(engine_id_is(id, ID_ROUTE_RESOLVED));
}
END_TEST

START_TEST(id_in_a_wrong_state_is_refused_without_asking)
{
	id->state = ID_IDLE;
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1000), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_uint_eq(n_asked, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("route_of_ibacm");
	TCase *tc = tcase_create("route_of_ibacm");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, path_of_ibacm_is_taken);
	tcase_add_test(tc, path_that_cannot_be_used_does_not_count);
	tcase_add_test(tc, without_ibacm_the_path_is_our_own);
	tcase_add_test(tc, ibacm_that_knows_no_path_does_not_count);
	tcase_add_test(tc, id_in_a_wrong_state_is_refused_without_asking);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
