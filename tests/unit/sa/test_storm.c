/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many requests to a subnet administrator at once, in virtual time: number of MADs, duration and
 * memory. The administrator serves one request after the other, and answers BUSY when its queue is
 * full.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/sa/wire.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define HOSTS_MAX   8
#define ASKS_MAX    50000
#define QUEUE_MAX   4096
#define TIMEOUT_MS  60000
#define STATUS_BUSY 1

struct question {
	unsigned int host;
	bool is_refused;
	uint8_t mad[MAD_BYTES];
};

static struct sa_agent agents[HOSTS_MAX];
static struct sa_ask *asks;
static unsigned int n_done, n_wrong;
static uint64_t now_ms;

/* The administrator. */
static struct question queue[QUEUE_MAX];
static unsigned int n_queued, queue_room, served_a_ms;
static unsigned int n_questions, n_refused, most_queued;

static void arrive(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	struct question *question = &queue[n_queued++];

	(void)wait_ms;
	ck_assert_uint_le(n_queued, QUEUE_MAX);
	question->host = (unsigned int)((struct sa_agent *)arg - agents);
	question->is_refused = n_queued > queue_room;
	memcpy(question->mad, mad, MAD_BYTES);
	n_questions++;
	n_refused += question->is_refused;
	most_queued = n_queued > most_queued ? n_queued : most_queued;
}

static void make_answer(const struct question *question, uint8_t mad[MAD_BYTES])
{
	wire_clear();
	wire_send(NULL, question->mad, 0);
	wire_answer(0, question->is_refused ? STATUS_BUSY : 0, 7, mad);
}

static void answer(const struct question *question)
{
	uint8_t mad[MAD_BYTES];

	make_answer(question, mad);
	sa_agent_input(&agents[question->host], mad, sizeof(mad), at_ms(now_ms));
}

/* It refuses at once; requests that arrive meanwhile are handled in the next millisecond. */
static void serve(void)
{
	static struct question old[QUEUE_MAX];
	unsigned int n_old = n_queued, n_left = served_a_ms, i;

	memcpy(old, queue, n_old * sizeof(old[0]));
	n_queued = 0;
	for (i = 0; i < n_old; i++) {
		if (old[i].is_refused || n_left) {
			n_left -= !old[i].is_refused;
			answer(&old[i]);
		} else {
			queue[n_queued++] = old[i];
		}
	}
}

static void done(struct sa_ask *ask, int err, const struct sa_msg *answered)
{
	(void)ask;
	n_done++;
	n_wrong += err || answered->path.dlid != 7;
}

static void begin(unsigned int n_hosts, unsigned int room, unsigned int a_ms)
{
	unsigned int i;

	n_done = n_wrong = n_queued = n_questions = n_refused = most_queued = 0;
	now_ms = 0;
	queue_room = room;
	served_a_ms = a_ms;
	for (i = 0; i < n_hosts; i++) {
		sa_agent_init(&agents[i], 1 + 1000 * i, 2 + i, arrive, &agents[i]);
		sa_agent_subnet(&agents[i], &(struct sa_subnet){ 3, 1, 0, true }, false, at_ms(0));
	}
	asks = calloc(n_hosts * (size_t)ASKS_MAX, sizeof(*asks));
	ck_assert_ptr_nonnull(asks);
}

static void end(unsigned int n_hosts)
{
	unsigned int i;

	for (i = 0; i < n_hosts; i++)
		sa_agent_fini(&agents[i]);
	free(asks);
}

static void ask_path_to(struct sa_ask *ask, uint32_t destination)
{
	*ask = (struct sa_ask){ .timeout_ms = TIMEOUT_MS, .done = done };
	sa_msg_init(&ask->msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID, 0);
	memcpy(ask->msg.path.dgid.raw + 12, &destination, sizeof(destination));
}

static void ask_for_group(struct sa_ask *ask, unsigned int number)
{
	*ask = (struct sa_ask){ .timeout_ms = TIMEOUT_MS, .done = done };
	sa_msg_init(&ask->msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	ask->msg.member.mgid.raw[0] = 0xff;
	memcpy(ask->msg.member.mgid.raw + 8, &number, sizeof(number));
}

static void ask_all(unsigned int host, unsigned int n, unsigned int n_destinations)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct sa_ask *ask = &asks[host * ASKS_MAX + i];

		ask_path_to(ask, i % n_destinations);
		sa_agent_ask(&agents[host], ask, at_ms(now_ms));
	}
}

static void run_until_done(unsigned int n_hosts, unsigned int n)
{
	unsigned int i;

	while (n_done < n && now_ms < TIMEOUT_MS) {
		now_ms++;
		serve();
		for (i = 0; i < n_hosts; i++)
			sa_agent_expire(&agents[i], at_ms(now_ms));
	}
	ck_assert_uint_eq(n_done, n);
	ck_assert_uint_eq(n_wrong, 0);
	printf("%u hosts, %u asked: %u questions, %u of them refused, %u waited at once, %u ms\n",
	       n_hosts, n, n_questions, n_refused, most_queued, (unsigned int)now_ms);
}

START_TEST(ten_thousand_paths_need_ten_thousand_requests)
{
	begin(1, QUEUE_MAX, 20);
	ask_all(0, 10000, 10000);
	run_until_done(1, 10000);
	ck_assert_uint_eq(n_questions, 10000);
	ck_assert_uint_le(most_queued, SA_FLIGHTS_OUT_MAX);
	end(1);
}
END_TEST

START_TEST(ten_thousand_clients_of_a_hundred_destinations_need_a_hundred_requests)
{
	begin(1, QUEUE_MAX, 20);
	ask_all(0, 10000, 100);
	run_until_done(1, 10000);
	ck_assert_uint_eq(n_questions, 100);
	end(1);
}
END_TEST

/* Eight hosts may have 512 outstanding requests, and it queues 128. */
START_TEST(busy_administrator_answers_all_requests)
{
	unsigned int i;

	begin(HOSTS_MAX, 128, 5);
	for (i = 0; i < HOSTS_MAX; i++)
		ask_all(i, 1000, 1000);
	run_until_done(HOSTS_MAX, HOSTS_MAX * 1000);
	ck_assert_uint_le(n_questions, 2 * HOSTS_MAX * 1000);
	end(HOSTS_MAX);
}
END_TEST

#ifdef __GLIBC__ /* reports allocated bytes */
/* A subnet of 50,000 nodes, all of which a host connects to. */
START_TEST(fifty_thousand_destinations_need_bounded_memory)
{
	size_t before, during, after;

	begin(1, QUEUE_MAX, 20);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	ask_all(0, 50000, 50000);
	during = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	run_until_done(1, 50000);
	after = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	printf("%zu bytes for each question under way, %zu bytes of known paths afterwards\n",
	       during / 50000, after);
	ck_assert_uint_eq(n_questions, 50000);
	ck_assert_uint_le(after, 2 << 20);
	n_done = 0;
	ask_all(0, 50000, 50000);
	run_until_done(1, 50000);
	printf("asked again within a minute: %u from what is known\n",
	       (unsigned int)agents[0].n_from_cache);
	end(1);
}
END_TEST
#endif

/* The kernel waits for each response, ten minutes for these. */
START_TEST(cancelled_requests_are_limited_in_the_kernel)
{
	unsigned int i;

	begin(1, QUEUE_MAX, 0);
	for (i = 0; i < 4000; i++) {
		ask_path_to(&asks[0], i);
		sa_agent_ask(&agents[0], &asks[0], at_ms(now_ms));
		sa_agent_withdraw(&agents[0], &asks[0], at_ms(now_ms));
	}
	ask_for_group(&asks[0], 0); /* waits */
	sa_agent_ask(&agents[0], &asks[0], at_ms(now_ms));
	sa_agent_withdraw(&agents[0], &asks[0], at_ms(now_ms));
	printf("4,000 questions, withdrawn at once: the kernel waits for %u answers\n",
	       n_questions);
	fflush(stdout);
	ck_assert_uint_le(n_questions, SA_FLIGHTS_OUT_MAX);
	ck_assert_uint_eq(agents[0].n_groups, 0);
	end(1);
}
END_TEST

/* The administrator serves a whole subnet, and responds within a second. */
START_TEST(requests_with_short_timeouts_wait_for_their_turn)
{
	unsigned int i;

	begin(1, QUEUE_MAX, 0);
	for (i = 0; i < 4000; i++) {
		ask_path_to(&asks[i], i);
		asks[i].timeout_ms = 1;
		sa_agent_ask(&agents[0], &asks[i], at_ms(now_ms));
		now_ms += i % 20 == 19;
		sa_agent_expire(&agents[0], at_ms(now_ms));
	}
	printf("4,000 questions in 200 ms, each for 1 ms: %u are sent\n", n_questions);
	fflush(stdout);
	ck_assert_uint_le(n_questions, SA_FLIGHTS_OUT_MAX);
	end(1);
}
END_TEST

START_TEST(one_call_times_out_few_requests)
{
	unsigned int n, most = 0, n_turns = 0;

	begin(1, QUEUE_MAX, 0);
	ask_all(0, 4000, 4000);
	now_ms = TIMEOUT_MS + 1;
	while (n_done < 4000 && n_turns++ < 4000) {
		n = n_done;
		sa_agent_expire(&agents[0], at_ms(now_ms));
		most = n_done - n > most ? n_done - n : most;
	}
	printf("4,000 questions time out in %u turns, at most %u at once; %u are sent\n", n_turns,
	       most, n_questions);
	fflush(stdout);
	ck_assert_uint_eq(n_done, 4000);
	ck_assert_uint_le(most, 2 * SA_EXPIRE_MAX);
	end(1);
}
END_TEST

/* A new administrator must get all memberships again. */
START_TEST(one_call_renews_few_groups)
{
	const unsigned int n_groups = 4000;
	struct sa_subnet subnet = { .lid = 1, .sm_lid = 2, .is_active = true };
	unsigned int i, before, most = 0, n_turns = 0;

	begin(1, QUEUE_MAX, 0);
	sa_agent_subnet(&agents[0], &subnet, false, at_ms(now_ms));
	for (i = 0; i < n_groups; i++) {
		ask_for_group(&asks[i], i);
		sa_agent_ask(&agents[0], &asks[i], at_ms(now_ms));
	}
	for (i = 0; i < n_queued; i++)
		answer(&queue[i]);
	ck_assert_uint_eq(n_done, n_groups);
	subnet.sm_lid = 3;
	before = agents[0].flights.number;
	sa_agent_subnet(&agents[0], &subnet, false, at_ms(now_ms));
	do {
		most = agents[0].flights.number - before > most ? agents[0].flights.number - before
								: most;
		before = agents[0].flights.number;
		if (agents[0].flights.n_out + agents[0].flights.n_waiting < n_groups)
			ck_assert_uint_le(sa_agent_deadline(&agents[0]).ns, at_ms(now_ms).ns);
		sa_agent_expire(&agents[0], at_ms(now_ms));
	} while (n_turns++ < n_groups && agents[0].flights.number != before);
	printf("%u groups are renewed in %u turns, at most %u at once\n", n_groups, n_turns, most);
	fflush(stdout);
	ck_assert_uint_eq(agents[0].flights.n_out + agents[0].flights.n_waiting, n_groups);
	ck_assert_uint_le(most, 64);
	end(1);
}
END_TEST

/* --- steps ---------------------------------------------------------------- */

static struct sa_ask one_more;
static uint8_t an_answer[MAD_BYTES];

static void ask_one_more(void)
{
	sa_agent_ask(&agents[0], &one_more, at_ms(now_ms));
}

static void take_answer(void)
{
	sa_agent_input(&agents[0], an_answer, MAD_BYTES, at_ms(now_ms));
}

/* The agent has as many outstanding requests as permitted, and the rest waits. */
static unsigned long steps_beside(unsigned int n_others, void (*run)(void))
{
	unsigned long steps;

	begin(1, QUEUE_MAX, 20);
	ask_all(0, n_others, n_others);
	one_more = (struct sa_ask){ .timeout_ms = TIMEOUT_MS, .done = done };
	sa_msg_init(&one_more.msg, SA_METHOD_GET, SA_ATTR_PATH_RECORD, SA_PATH_DGID, 0);
	memset(one_more.msg.path.dgid.raw, 0xee, sizeof(one_more.msg.path.dgid.raw));
	/* The first responses allocate the table of known paths, and order all timers at once. */
	answer(&queue[0]);
	answer(&queue[1]);
	make_answer(&queue[2], an_answer);
	steps = steps_of(run);
	end(1);
	return steps;
}

static void check_steps(void (*run)(void))
{
	unsigned long few = steps_beside(100, run), many = steps_beside(10000, run);

	ck_assert_msg(many <= few + few / 10, "%lu steps beside 100, %lu beside 10000", few, many);
}

START_TEST(a_query_costs_no_more_steps_beside_ten_thousand)
{
	check_steps(ask_one_more);
}
END_TEST

START_TEST(a_response_costs_no_more_steps_beside_ten_thousand)
{
	check_steps(take_answer);
}
END_TEST

/* Instructions for each of @n members that wait for the response to the first one's request. */
static unsigned long steps_of_joining(unsigned int n)
{
	unsigned long steps;
	unsigned int i;

	begin(1, QUEUE_MAX, 20);
	for (i = 0; i < n; i++) {
		sa_msg_init(&asks[i].msg, SA_METHOD_SET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID,
			    0);
		asks[i].msg.member.mgid.raw[0] = 0xff;
		asks[i].timeout_ms = TIMEOUT_MS;
		asks[i].done = done;
		sa_agent_ask(&agents[0], &asks[i], at_ms(now_ms));
	}
	ck_assert_uint_eq(n_queued, 1);
	make_answer(&queue[0], an_answer);
	steps = steps_of(take_answer);
	end(1);
	return steps / n;
}

START_TEST(a_member_costs_no_more_steps_in_a_group_of_five_hundred)
{
	unsigned long few = steps_of_joining(50), many = steps_of_joining(500);

	ck_assert_msg(many <= few + few / 10, "%lu steps in one of 50, %lu of 500", few, many);
}
END_TEST

/* Instructions of joining a group of its own beside others. */
static unsigned long steps_of_group_beside(unsigned int n_others)
{
	unsigned long steps;
	unsigned int i;

	begin(1, QUEUE_MAX, 20);
	for (i = 0; i < n_others; i++) {
		ask_for_group(&asks[i], i);
		sa_agent_ask(&agents[0], &asks[i], at_ms(now_ms));
	}
	ask_for_group(&one_more, n_others);
	steps = steps_of(ask_one_more);
	end(1);
	return steps;
}

START_TEST(a_group_costs_no_more_steps_beside_four_thousand)
{
	unsigned long few = steps_of_group_beside(100), many = steps_of_group_beside(4000);

	ck_assert_msg(many <= few + few / 10, "%lu steps beside 100, %lu beside 4000", few, many);
}
END_TEST

/* Instructions of the response to the first request for a new group, beside others. */
static unsigned long steps_of_new_group_beside(unsigned int n_others)
{
	unsigned long steps;
	unsigned int i;

	begin(1, QUEUE_MAX, 20);
	for (i = 0; i <= n_others; i++) {
		ask_for_group(&asks[i], 0);
		memset(&asks[i].msg.member.mgid, 0, sizeof(asks[i].msg.member.mgid));
		sa_agent_ask(&agents[0], &asks[i], at_ms(now_ms));
	}
	answer(&queue[0]); /* orders all timers at once */
	make_answer(&queue[1], an_answer);
	steps = steps_of(take_answer);
	end(1);
	return steps;
}

START_TEST(a_new_group_costs_no_more_steps_beside_four_thousand)
{
	unsigned long few = steps_of_new_group_beside(100);
	unsigned long many = steps_of_new_group_beside(4000);

	printf("a new group: %lu steps beside 100, %lu beside 4000\n", few, many);
	ck_assert_msg(many <= few + few / 10, "%lu steps beside 100, %lu beside 4000", few, many);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sa storm");
	TCase *tcase = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int n_failed;

	tcase_set_timeout(tcase, 100);
	tcase_add_test(tcase, ten_thousand_paths_need_ten_thousand_requests);
	tcase_add_test(tcase,
		       ten_thousand_clients_of_a_hundred_destinations_need_a_hundred_requests);
	tcase_add_test(tcase, busy_administrator_answers_all_requests);
#ifdef __GLIBC__
	tcase_add_test(tcase, fifty_thousand_destinations_need_bounded_memory);
#endif
	tcase_add_test(tcase, cancelled_requests_are_limited_in_the_kernel);
	tcase_add_test(tcase, requests_with_short_timeouts_wait_for_their_turn);
	tcase_add_test(tcase, one_call_times_out_few_requests);
	tcase_add_test(tcase, one_call_renews_few_groups);
	tcase_add_test(tcase, a_query_costs_no_more_steps_beside_ten_thousand);
	tcase_add_test(tcase, a_response_costs_no_more_steps_beside_ten_thousand);
	tcase_add_test(tcase, a_member_costs_no_more_steps_in_a_group_of_five_hundred);
	tcase_add_test(tcase, a_group_costs_no_more_steps_beside_four_thousand);
	tcase_add_test(tcase, a_new_group_costs_no_more_steps_beside_four_thousand);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
