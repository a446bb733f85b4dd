/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_resolve_addrinfo() and rdma_query_addrinfo() (lib/names/lookup.c). The name server is a fake
 * of the test.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conn/upcalls.h"
#include "lib/engine/engine.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

/* --- substitutes ---------------------------------------------------------- */

static struct ibv_device device;
static bool server_is_fake;

/*
 * Names that begin with "host" are known, after a while; those with "slow" when answer is posted.
 */
static sem_t asked, answer;
static atomic_int server_says;

static int ask_server(const char *node)
{
	if (!strncmp(node, "slow", 4)) {
		sem_post(&asked);
		sem_wait(&answer);
	}
	return server_says;
}

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	static const struct addrinfo number = { .ai_flags = AI_NUMERICHOST };
	int eai;

	if (!server_is_fake)
		return __real_getaddrinfo(node, service, hints, list);
	eai = __real_getaddrinfo(node, service, &number, list);
	if (eai != EAI_NONAME || (hints && hints->ai_flags & AI_NUMERICHOST))
		return eai;
	eai = ask_server(node);
	return eai ? eai : __real_getaddrinfo("192.0.2.7", service, hints, list);
}

/* --- the ids -------------------------------------------------------------- */

static struct channel *channel;
static struct id *id;
static struct rdma_addrinfo *found;

static void setup(void)
{
	struct engine *engine;

	fake.listed = &device;
	fake.n_listed = 1;
	server_is_fake = true;
	sem_init(&asked, 0, 0);
	sem_init(&answer, 0, 0);
	server_says = 0;
	found = NULL;
	ck_assert_int_eq(upcalls_start(), 0);
	ck_assert_int_eq(channel_new(&channel), 0);
	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &id), 0);
	engine = engine_lock();
	list_append(&engine->ids, &id->link);
	engine_unlock();
}

static void teardown(void)
{
	if (id)
		rdma_destroy_id(&id->pub);
	rdma_freeaddrinfo(found);
	channel_close(channel);
}

FIXTURE(setup, teardown);

static int look_up(const char *node)
{
	return rdma_resolve_addrinfo(&id->pub, node, "7471", NULL);
}

static bool is_readable(void)
{
	struct pollfd poller = { .fd = channel->pub.fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

static void expect_event(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event;

	ck_assert_int_eq(rdma_get_cm_event(&channel->pub, &event), 0);
	ck_assert_int_eq(event->event, type);
	ck_assert_int_eq(event->status, status);
	ck_assert_ptr_eq(event->id, &id->pub);
	rdma_ack_cm_event(event);
}

static void expect_failure(int rc, int err)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_int_eq(errno, err);
}

static void fetch(void)
{
	ck_assert_int_eq(rdma_query_addrinfo(&id->pub, &found), 0);
}

static uint32_t found_ip(void)
{
	return ntohl(((struct sockaddr_in *)(void *)found->ai_dst_addr)->sin_addr.s_addr);
}

/* --- results -------------------------------------------------------------- */

TEST(number_is_resolved_when_the_call_returns)
{
	ck_assert_int_eq(look_up("192.0.2.1"), 0);
	ck_assert(is_readable());
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	fetch();
	ck_assert_uint_eq(found_ip(), 0xc0000201);
}

TEST(name_is_resolved_with_an_event)
{
	ck_assert_int_eq(look_up("host"), 0);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	fetch();
	ck_assert_uint_eq(found_ip(), 0xc0000207);
}

TEST(slow_name_server_does_not_block_the_caller)
{
	ck_assert_int_eq(look_up("slow"), 0);
	sem_wait(&asked);
	ck_assert(!is_readable());
	expect_failure(rdma_query_addrinfo(&id->pub, &found), ENOENT);
	sem_post(&answer);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	fetch();
}

TEST(arguments_may_be_reused_after_the_call)
{
	struct sockaddr_in src = { .sin_family = AF_INET, .sin_port = 5 };
	struct rdma_addrinfo hints = { .ai_src_addr = (struct sockaddr *)&src,
				       .ai_src_len = sizeof(src) };
	char node[] = "slow", service[] = "17";

	ck_assert_int_eq(rdma_resolve_addrinfo(&id->pub, node, service, &hints), 0);
	sem_wait(&asked);
	memset(node, 0, sizeof(node));
	memset(service, 0, sizeof(service));
	memset(&hints, 0xff, sizeof(hints));
	memset(&src, 0, sizeof(src));
	sem_post(&answer);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	fetch();
	ck_assert_uint_eq(found->ai_src_len, sizeof(src));
	ck_assert_uint_eq(((struct sockaddr_in *)(void *)found->ai_src_addr)->sin_port, 5);
}

TEST(result_is_returned_once)
{
	struct rdma_addrinfo *again = NULL;

	look_up("192.0.2.1");
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	fetch();
	expect_failure(rdma_query_addrinfo(&id->pub, &again), ENOENT);
	ck_assert_ptr_null(again);
}

TEST(state_of_the_id_does_not_change)
{
	look_up("192.0.2.1");
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	ck_assert(engine_id_is(id, ID_IDLE));
}

/* --- one at a time -------------------------------------------------------- */

TEST(second_lookup_is_refused_until_the_first_result_is_fetched)
{
	look_up("192.0.2.1");
	expect_failure(look_up("192.0.2.2"), EBUSY);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
	expect_failure(look_up("192.0.2.2"), EBUSY);
	fetch();
	ck_assert_int_eq(look_up("192.0.2.2"), 0);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
}

TEST(second_lookup_is_refused_while_the_first_is_pending)
{
	look_up("slow");
	sem_wait(&asked);
	expect_failure(look_up("192.0.2.2"), EBUSY);
	sem_post(&answer);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
}

TEST(failure_permits_another_lookup)
{
	server_says = EAI_NONAME;
	look_up("host");
	expect_event(RDMA_CM_EVENT_ADDRINFO_ERROR, -ENOENT);
	expect_failure(rdma_query_addrinfo(&id->pub, &found), ENOENT);
	server_says = 0;
	ck_assert_int_eq(look_up("host"), 0);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
}

/* --- failures ------------------------------------------------------------- */

static const struct {
	int eai, err;
} failures[] = {
	{ EAI_NONAME, ENOENT },
	{ EAI_AGAIN, ETIMEDOUT },
	{ EAI_FAIL, EIO },
	{ EAI_MEMORY, ENOMEM },
	{ EAI_FAMILY, EAFNOSUPPORT },
	{ EAI_SOCKTYPE, ESOCKTNOSUPPORT },
	{ EAI_ADDRFAMILY, EAFNOSUPPORT },
};

TEST_LOOP(error_of_the_name_server_becomes_an_errno, 0,
	  sizeof(failures) / sizeof(failures[0])) /* loop test: _i is the row */
{
	server_says = failures[_i].eai;
	ck_assert_int_eq(look_up("host"), 0);
	expect_event(RDMA_CM_EVENT_ADDRINFO_ERROR, -failures[_i].err);
}

TEST(error_found_without_a_name_server_fails_at_once)
{
	expect_failure(rdma_resolve_addrinfo(&id->pub, "192.0.2.1", "no-such-service", NULL),
		       ENOENT);
	ck_assert(!is_readable());
	ck_assert_int_eq(look_up("192.0.2.1"), 0);
	expect_event(RDMA_CM_EVENT_ADDRINFO_RESOLVED, 0);
}

TEST(name_that_must_be_a_number_is_refused_at_once)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };

	expect_failure(rdma_resolve_addrinfo(&id->pub, "host", NULL, &hints), ENOENT);
}

TEST(lookup_without_arguments_is_refused)
{
	expect_failure(rdma_resolve_addrinfo(&id->pub, NULL, NULL, NULL), EINVAL);
	expect_failure(rdma_resolve_addrinfo(NULL, "host", NULL, NULL), EINVAL);
}

TEST(missing_result_pointer_is_refused)
{
	expect_failure(rdma_query_addrinfo(&id->pub, NULL), EINVAL);
	expect_failure(rdma_query_addrinfo(NULL, &found), EINVAL);
}

static const struct {
	const char *node, *service;
	int flags;
	int err;
} service_queries[] = {
	{ "host", "7471", RAI_SA, ENOTSUP },
	{ NULL, "7471", RAI_SA | RAI_DNS, ENOTSUP },
	{ NULL, "7471", RAI_SA, EINVAL },
	{ NULL, NULL, RAI_SA, EINVAL },
};

TEST_LOOP(service_query_without_a_subnet_is_refused, 0,
	  sizeof(service_queries) / sizeof(service_queries[0])) /* loop test: _i is the row */
{
	struct rdma_addrinfo hints = { .ai_flags = service_queries[_i].flags };

	expect_failure(rdma_resolve_addrinfo(&id->pub, service_queries[_i].node,
					     service_queries[_i].service, &hints),
		       service_queries[_i].err);
}

/* --- cancelling ------------------------------------------------------------ */

static void *wait_for_server(void *arg)
{
	struct rdma_addrinfo *list;

	(void)arg;
	rdma_getaddrinfo("slow", "7471", NULL, &list);
	return NULL;
}

TEST(thread_that_waits_for_the_name_server_can_be_cancelled)
{
	pthread_t thread;
	void *result;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_server, NULL), 0);
	sem_wait(&asked);
	ck_assert_int_eq(pthread_cancel(thread), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", "7471", NULL, &found), 0);
}

/* --- ends ----------------------------------------------------------------- */

TEST(unfetched_result_is_freed_with_its_id)
{
	look_up("192.0.2.1");
	ck_assert_int_eq(rdma_destroy_id(&id->pub), 0);
	id = NULL;
	ck_assert(!is_readable());
}

TEST(id_can_be_destroyed_during_a_lookup)
{
	look_up("slow");
	sem_wait(&asked);
	ck_assert_int_eq(rdma_destroy_id(&id->pub), 0);
	id = NULL;
	sem_post(&answer);
	threads_wait_asleep(); /* later results have no receiver */
	ck_assert(!is_readable());
}
