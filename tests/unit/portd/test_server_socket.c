/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invalid use of a client's sockets: datagrams that are no records, unrequested descriptors,
 * waiting requests, and disconnects in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice (&scene_alice)
#define bob   (&scene_bob)

static int socket_of(const struct rig_client *client, int which)
{
	return which ? client->data : client->control;
}

static void must_be_disconnected(const struct rig_client *client)
{
	rig_settle();
	ck_assert(rig_is_disconnected(client));
	ck_assert(!rig_is_disconnected(alice));
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* --- datagrams ----------------------------------------------------------- */

static size_t lease_ids(uint8_t bytes[PORTD_DATAGRAM_BYTES])
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &record);
	memcpy(bytes, out.data, out.bytes);
	return out.bytes;
}

FIXTURE(scene_set_up, scene_tear_down);

/* Loop tests: on either socket. */
TEST_LOOP(a_record_cut_short_ends_the_connection, 0, 2)
{
	uint8_t bytes[PORTD_DATAGRAM_BYTES];
	size_t n = lease_ids(bytes);

	rig_put(socket_of(bob, _i), bytes, n - 1, NULL, 0);
	must_be_disconnected(bob);
}

TEST_LOOP(a_head_cut_short_ends_the_connection, 0, 2)
{
	const uint8_t bytes[] = { 0, PORTD_LEASE_IDS, 0 };

	rig_put(socket_of(bob, _i), bytes, sizeof(bytes), NULL, 0);
	must_be_disconnected(bob);
}

TEST_LOOP(a_type_that_does_not_exist_ends_the_connection, 0, 2)
{
	const uint8_t bytes[] = { 0, PORTD_N_TYPES, 0, 0 };

	rig_put(socket_of(bob, _i), bytes, sizeof(bytes), NULL, 0);
	must_be_disconnected(bob);
}

TEST_LOOP(a_datagram_that_is_too_large_ends_the_connection, 0, 2)
{
	static uint8_t bytes[PORTD_DATAGRAM_BYTES + 1];

	lease_ids(bytes);
	ck_assert(rig_put(socket_of(bob, _i), bytes, sizeof(bytes), NULL, 0));
	must_be_disconnected(bob);
}

/* SOCK_SEQPACKET: indistinguishable from its end. */
TEST_LOOP(an_empty_datagram_ends_the_connection, 0, 2)
{
	rig_put(socket_of(bob, _i), "", 0, NULL, 0);
	must_be_disconnected(bob);
}

TEST_LOOP(an_answer_from_a_client_ends_the_connection, 0, 2)
{
	struct portd_record record = { .type = PORTD_REPLY };
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &record);
	rig_put(socket_of(bob, _i), out.data, out.bytes, NULL, 0);
	must_be_disconnected(bob);
}

TEST_LOOP(either_socket_that_closes_ends_the_connection, 0, 2)
{
	close(socket_of(bob, _i));
	rig_settle();
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

TEST(data_after_a_protocol_violation_is_not_read)
{
	struct portd_datagram out = { .bytes = 0 };
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };

	out.data[1] = PORTD_N_TYPES;
	out.bytes = PORTD_HEAD_BYTES;
	portd_put(&out, &record);
	rig_put(bob->control, out.data, out.bytes, NULL, 0);
	must_be_disconnected(bob);
	ck_assert_int_eq(rig_ask(alice, &record), 0);
}

static const uint16_t versions[] = { 0, PORTD_VERSION + 1, UINT16_MAX };

TEST_LOOP(another_version_is_refused_and_may_try_again, 0, 3)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = versions[_i] } };
	struct rig_client carol = { .control = rig_dial(), .data = -1 };

	ck_assert_int_eq(rig_ask(&carol, &hello), EPROTONOSUPPORT);
	hello.hello.version = PORTD_VERSION;
	ck_assert_int_eq(rig_ask(&carol, &hello), 0);
}

/* --- descriptors --------------------------------------------------------- */

/* Descriptors of a test: made for each record, closed here at once. */
static void put_with_fds(int to, const void *bytes, size_t n, unsigned int n_fds)
{
	int fds[8] = { -1 };
	unsigned int i;

	for (i = 0; i < n_fds; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert(rig_put(to, bytes, n, fds, n_fds));
	for (i = 0; i < n_fds; i++)
		close(fds[i]);
}

static const unsigned int crowds[] = { 1, 2, 3, 8 };

TEST_LOOP(unrequested_descriptors_are_closed, 0, 4)
{
	uint8_t bytes[PORTD_DATAGRAM_BYTES];
	size_t n = lease_ids(bytes);
	unsigned int before = rig_n_fds();

	put_with_fds(bob->control, bytes, n, crowds[_i]);
	rig_settle();
	ck_assert_int_eq(rig_answer(bob), 0);
	ck_assert_uint_eq(rig_n_fds(), before);
}

TEST_LOOP(descriptors_on_the_data_socket_are_closed, 0, 4)
{
	struct portd_record record = { .type = PORTD_CLOSE };
	struct portd_datagram out = { .bytes = 0 };
	unsigned int before = rig_n_fds();

	portd_put(&out, &record);
	put_with_fds(bob->data, out.data, out.bytes, crowds[_i]);
	rig_settle();
	ck_assert_uint_eq(rig_n_fds(), before);
}

TEST_LOOP(descriptors_with_an_empty_datagram_are_closed, 0, 2)
{
	int fds[2] = { bob->control, bob->data };
	unsigned int before = rig_n_fds();

	put_with_fds(fds[_i], "", 0, 1);
	rig_settle();
	ck_assert_uint_eq(rig_n_fds(), before - 2); /* of Bob's sockets */
}

TEST_LOOP(descriptors_with_an_invalid_record_are_closed, 0, 2)
{
	const uint8_t bytes[] = { 0xff };
	int fds[2] = { bob->control, bob->data };
	unsigned int before = rig_n_fds();

	put_with_fds(fds[_i], bytes, sizeof(bytes), 2);
	rig_settle();
	ck_assert_uint_eq(rig_n_fds(), before - 2);
}

TEST(a_page_in_a_first_hello_is_closed)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };
	struct rig_client carol = { .control = rig_dial(), .data = -1, .page_fd = -1 };
	struct portd_datagram out = { .bytes = 0 };
	unsigned int before;

	rig_settle();
	before = rig_n_fds();
	portd_put(&out, &hello);
	put_with_fds(carol.control, out.data, out.bytes, 1);
	rig_settle();
	ck_assert_int_eq(rig_answer(&carol), 0);
	ck_assert_uint_eq(rig_n_fds(), before + 3); /* data socket at both ends, and the page */
}

TEST(resuming_without_a_page_is_refused)
{
	struct portd_record hello = { .type = PORTD_HELLO,
				      .hello = { .version = PORTD_VERSION, .resumes = 1 } };
	struct rig_client carol = { .control = rig_dial(), .data = -1, .page_fd = -1 };

	ck_assert_int_eq(rig_ask(&carol, &hello), EINVAL);
}

TEST(a_refused_page_is_closed)
{
	struct portd_record hello = { .type = PORTD_HELLO,
				      .hello = { .version = PORTD_VERSION, .resumes = 1 } };
	struct rig_client carol = { .control = rig_dial(), .data = -1, .page_fd = -1 };
	struct portd_datagram out = { .bytes = 0 };
	unsigned int before;

	rig_settle();
	before = rig_n_fds();
	portd_put(&out, &hello);
	put_with_fds(carol.control, out.data, out.bytes, 1);
	put_with_fds(carol.control, out.data, out.bytes, 1);
	rig_settle();
	ck_assert_int_eq(rig_answer(&carol), EINVAL);
	ck_assert_int_eq(rig_answer(&carol), EINVAL);
	ck_assert_uint_eq(rig_n_fds(), before);
}

static void put_record(int to, const struct portd_record *record)
{
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, record);
	rig_put(to, out.data, out.bytes, NULL, 0);
}

/* --- several requests ----------------------------------------------------- */

/* Otherwise a turn could not end between them. */
TEST(two_requests_in_a_datagram_end_the_connection)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &record);
	portd_put(&out, &record);
	rig_put(bob->control, out.data, out.bytes, NULL, 0);
	rig_settle();
	ck_assert_int_eq(rig_answer(bob), -1);
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}

/* The first is handled again a turn later, as its port may be closed meanwhile. */
TEST(a_request_behind_a_waiting_one_is_answered_after_it)
{
	struct portd_record bind = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
	struct portd_record lease = { .type = PORTD_LEASE_IDS };

	ck_assert_int_eq(rig_ask(alice, &bind), 0);
	put_record(bob->control, &bind);
	put_record(bob->control, &lease);
	rig_settle();
	ck_assert_int_eq(rig_answer(bob), EADDRINUSE);
	ck_assert_int_eq(rig_answer(bob), 0);
	ck_assert_int_eq(rig_ask(bob, &lease), 0);
}

TEST(a_client_that_does_not_read_its_replies_is_disconnected)
{
	struct portd_record record = { .type = PORTD_LEASE_PORTS, .lease_ports = { .ps = 0x106 } };
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		put_record(bob->control, &record);
		rig_turn();
	}
	ck_assert_uint_eq(rig_server()->n_clients, 1);
}
