/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lib/conn/stat.c: what a process answers when it is asked how its ids stand, to a cmportd that
 * reads when the test says so.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lib/conn/rooms.h"
#include "lib/conn/stat.h"
#include "lib/engine/engine.h"
#include "lib/engine/host.h"

#define ASK_ID	  77
#define HANDLE	  3
#define MANY	  1000 /* ids, which take several datagrams */
#define ROWS_MAX  (MANY + 16)
#define WAIT_MS	  5
#define LISTENING 7174

struct port *__wrap_host_port(uint8_t handle);
int __wrap_portd_try_data(struct portd_client *client, const struct portd_datagram *datagram);

static struct channel *channel;
static struct port port;
static struct portd_record row[ROWS_MAX];
static unsigned int n_rows, n_datagrams;
static unsigned int n_refused; /* how often it does not read yet */
static int gone;	       /* or why it never will */

struct port *__wrap_host_port(uint8_t handle)
{
	return handle == HANDLE ? port_get(&port) : NULL;
}

int __wrap_portd_try_data(struct portd_client *client, const struct portd_datagram *datagram)
{
	struct portd_datagram in = *datagram;

	(void)client;
	if (gone)
		return gone;
	if (n_refused) {
		n_refused--;
		return -EAGAIN;
	}
	n_datagrams++;
	for (in.at = 0; portd_get(&in, &row[n_rows]) == 0; n_rows++)
		ck_assert_uint_lt(n_rows, ROWS_MAX - 1);
	return 0;
}

static struct id *new_id(void)
{
	struct engine *engine;
	struct id *made;

	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &made), 0);
	made->born = clock_now();
	engine = engine_lock();
	list_append(&engine->ids, &made->link);
	engine_unlock();
	return made;
}

static void setup(void)
{
	ck_assert_int_eq(rooms_start(), 0);
	ck_assert_int_eq(channel_new(&channel), 0);
	port = (struct port){ .handle = HANDLE, .refs = 1 };
}

/* Return: the row of a type that has come, one at least. */
static const struct portd_record *row_of(enum portd_type type)
{
	unsigned int i;

	for (i = 0; i < n_rows; i++)
		if (row[i].type == type)
			return &row[i];
	ck_abort_msg("no %s", portd_type_str(type));
	return NULL;
}

static unsigned int number_of(enum portd_type type)
{
	unsigned int i, n = 0;

	for (i = 0; i < n_rows; i++)
		n += row[i].type == type;
	return n;
}

START_TEST(who_was_not_asked_says_nothing)
{
	stat_look(NULL);
	ck_assert_uint_eq(n_datagrams, 0);
	ck_assert(stat_deadline().ns == CM_TIME_NEVER.ns);
}
END_TEST

START_TEST(without_ids_there_is_an_end)
{
	stat_asked(ASK_ID);
	stat_look(NULL);
	ck_assert_uint_eq(n_rows, 1);
	ck_assert_uint_eq(row_of(PORTD_STAT_END)->stat_end.n_rows, 0);
	ck_assert_uint_eq(row[0].stat_row.ask_id, ASK_ID);
}
END_TEST

START_TEST(an_id_is_told_with_state_and_address)
{
	struct id *id = new_id();
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(LISTENING) };
	const struct portd_stat_id *told;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	memcpy(&id->claim.local, &addr, sizeof(addr));
	id->state = ID_LISTEN;
	id->n_requests = 4;
	stat_asked(ASK_ID);
	stat_look(NULL);
	told = &row_of(PORTD_STAT_ID)->stat_id;
	ck_assert_uint_eq(told->id_state, ID_LISTEN);
	ck_assert_uint_eq(told->conn_state, PORTD_STAT_NONE);
	ck_assert_uint_eq(told->port, PORTD_STAT_NO_PORT);
	ck_assert_uint_eq(told->ps, RDMA_PS_TCP);
	ck_assert_uint_eq(told->family, 4);
	ck_assert_uint_eq(told->local_port, LISTENING);
	ck_assert_mem_eq(told->local_addr + 12, &addr.sin_addr, 4);
	ck_assert_uint_eq(told->n_requests, 4);
	ck_assert_uint_lt(told->age_ms, 60000);
}
END_TEST

START_TEST(counters_that_are_not_zero_are_told_with_their_port)
{
	const struct portd_stat_count *told;

	port.cm.tally.count[CM_COUNT_ALIEN][CM_ATTR_DREQ - CM_ATTR_REQ] = 9;
	stat_asked(ASK_ID);
	stat_look(NULL);
	ck_assert_uint_eq(number_of(PORTD_STAT_COUNT), 1);
	told = &row_of(PORTD_STAT_COUNT)->stat_count;
	ck_assert_uint_eq(told->port, HANDLE);
	ck_assert_uint_eq(told->what, PORTD_COUNT_ALIEN);
	ck_assert_uint_eq(told->message, CM_ATTR_DREQ - CM_ATTR_REQ);
	ck_assert_uint_eq(told->value, 9);
}
END_TEST

START_TEST(every_counter_fits)
{
	memset(&port.cm.tally, 1, sizeof(port.cm.tally));
	stat_asked(ASK_ID);
	stat_look(NULL);
	ck_assert_uint_eq(number_of(PORTD_STAT_COUNT), (CM_N_COUNTERS + 2) * CM_TALLY_KINDS);
}
END_TEST

START_TEST(a_port_is_let_go_of)
{
	stat_asked(ASK_ID);
	ck_assert_uint_eq(port.refs, 1);
}
END_TEST

START_TEST(many_ids_take_several_datagrams)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		new_id();
	stat_asked(ASK_ID);
	stat_look(NULL);
	ck_assert_uint_eq(number_of(PORTD_STAT_ID), MANY);
	ck_assert_uint_eq(row_of(PORTD_STAT_END)->stat_end.n_rows, MANY);
	ck_assert_uint_gt(n_datagrams, 2);
}
END_TEST

START_TEST(what_has_no_room_is_told_later_and_once)
{
	new_id();
	n_refused = 2;
	stat_asked(ASK_ID);
	stat_look(NULL);
	ck_assert_uint_eq(n_rows, 0);
	ck_assert_uint_le(stat_deadline().ns, clock_now().ns + WAIT_MS * CM_NS_PER_MS);
	stat_look(NULL);
	stat_look(NULL);
	stat_look(NULL);
	ck_assert_uint_eq(number_of(PORTD_STAT_ID), 1);
	ck_assert_uint_eq(number_of(PORTD_STAT_END), 1);
	ck_assert(stat_deadline().ns == CM_TIME_NEVER.ns);
}
END_TEST

START_TEST(the_answer_is_of_the_moment_of_the_question)
{
	n_refused = 1;
	stat_asked(ASK_ID);
	stat_look(NULL);
	new_id();
	stat_look(NULL);
	ck_assert_uint_eq(number_of(PORTD_STAT_ID), 0);
}
END_TEST

START_TEST(of_two_questions_the_last_is_answered)
{
	stat_asked(ASK_ID);
	stat_asked(ASK_ID + 1);
	stat_look(NULL);
	ck_assert_uint_eq(number_of(PORTD_STAT_END), 1);
	ck_assert_uint_eq(row_of(PORTD_STAT_END)->stat_row.ask_id, ASK_ID + 1);
}
END_TEST

START_TEST(an_asker_who_has_gone_is_forgotten)
{
	gone = -EPIPE;
	stat_asked(ASK_ID);
	stat_look(NULL);
	ck_assert(stat_deadline().ns == CM_TIME_NEVER.ns);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stat");
	TCase *tc = tcase_create("stat");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, NULL); /* each test in a process of its own */
	tcase_add_test(tc, who_was_not_asked_says_nothing);
	tcase_add_test(tc, without_ids_there_is_an_end);
	tcase_add_test(tc, an_id_is_told_with_state_and_address);
	tcase_add_test(tc, counters_that_are_not_zero_are_told_with_their_port);
	tcase_add_test(tc, every_counter_fits);
	tcase_add_test(tc, a_port_is_let_go_of);
	tcase_add_test(tc, many_ids_take_several_datagrams);
	tcase_add_test(tc, what_has_no_room_is_told_later_and_once);
	tcase_add_test(tc, the_answer_is_of_the_moment_of_the_question);
	tcase_add_test(tc, of_two_questions_the_last_is_answered);
	tcase_add_test(tc, an_asker_who_has_gone_is_forgotten);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
