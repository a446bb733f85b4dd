/* SPDX-License-Identifier: BSD-2-Clause */
/* mad/umad.c on a libibumad made of sockets: what it opens, writes and reads. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "tests/unit/test.h"
#include "umad_fake.h"

#define HEAD_BYTES 64

#define LIMIT_MS   60000
#define FIRST_LANE 2 /* of the opened descriptors: the owner's, the callers', those of threads */

/*
 * A message that the kernel was given, on any descriptor; a thread may have to write it. Return:
 * the descriptor's number.
 */
static int take_written(uint8_t bytes[HEAD_BYTES + MAD_BYTES])
{
	struct pollfd ready[N_FDS_MAX];
	int i;

	for (i = 0; i < fake.n_opened; i++)
		ready[i] = (struct pollfd){ .fd = fake.peer[i], .events = POLLIN };
	ck_assert_int_ge(poll(ready, (nfds_t)fake.n_opened, LIMIT_MS), 1);
	for (i = 0; i < fake.n_opened; i++)
		if (recv(fake.peer[i], bytes, HEAD_BYTES + MAD_BYTES, MSG_DONTWAIT) ==
		    HEAD_BYTES + MAD_BYTES)
			return i;
	ck_abort_msg("nothing was written");
	return -1;
}

/* Return: number of bytes written to one descriptor. */
static ssize_t take_from(int i, uint8_t bytes[HEAD_BYTES + MAD_BYTES])
{
	struct pollfd ready = { .fd = fake.peer[i], .events = POLLIN };

	ck_assert_int_eq(poll(&ready, 1, LIMIT_MS), 1);
	return recv(fake.peer[i], bytes, HEAD_BYTES + MAD_BYTES, 0);
}

static const struct mad_path v6_path = {
	.pkey_index = 3,
	.dlid = 0x1234,
	.sl = 5,
	.path_bits = 2,
	.grh = true,
	.sgid_index = 9,
	.hop_limit = 64,
	.traffic_class = 0xb8,
	.flow_label = 0xabcde,
	.dgid = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
};

static struct mad_path path_to(uint8_t number)
{
	struct mad_path path = v6_path;

	path.dgid.raw[15] = number;
	return path;
}

static void deliver(const struct ib_mad_addr *addr, const uint8_t *mad, size_t bytes)
{
	uint8_t buffer[HEAD_BYTES + 2048] = { 0 };
	struct ib_user_mad head = { .addr = *addr };

	memcpy(buffer, &head, sizeof(head));
	memcpy(buffer + HEAD_BYTES, mad, bytes);
	ck_assert_int_eq(send(fake.peer[0], buffer, HEAD_BYTES + bytes, 0), HEAD_BYTES + bytes);
}

FIXTURE(set_up_fake_umad, tear_down_fake_umad);

TEST(one_descriptor_owns_the_class_and_the_others_only_send)
{
	struct mad_port *port = open_rxe0();

	ck_assert_int_eq(port->fd, fake.fd[0]);
	ck_assert_int_eq(fake.methods[0], OWNER_METHOD);
	ck_assert_int_gt(fake.n_opened, 2);
	for (int i = 1; i < fake.n_opened; i++)
		ck_assert_int_eq(fake.methods[i], 0);
	mad_port_close(port);
}

static void check_flags_of_opened(void)
{
	for (int i = 0; i < fake.n_opened; i++) {
		ck_assert(fcntl(fake.fd[i], F_GETFD) & FD_CLOEXEC);
		ck_assert(fcntl(fake.fd[i], F_GETFL) & O_NONBLOCK);
	}
}

TEST(descriptors_do_not_block_and_are_closed_on_exec)
{
	struct mad_port *port = open_rxe0();

	check_flags_of_opened();
	mad_port_close(port);
}

TEST(close_closes_all)
{
	mad_port_close(open_rxe0());
	ck_assert_int_eq(n_closed(), fake.n_opened);
	mad_port_close(NULL);
}

TEST(port_without_node_is_opened_by_a_substitute_for_libibumad)
{
	struct umad_owner who;
	struct mad_port *port;

	fake.is_stand_in = true;
	ck_assert_int_eq(umad_port_open("fab0", 1, &port, &who), 0);
	ck_assert_int_eq(fake.methods[0], OWNER_METHOD);
	check_flags_of_opened();
	mad_port_close(port);
}

TEST(send_sets_no_timeout_in_the_kernel)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_rxe0();
	struct ib_user_mad head;
	int i;

	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	i = take_written(bytes);
	memcpy(&head, bytes, sizeof(head));
	ck_assert_int_ne(i, 0);
	ck_assert_uint_eq(head.agent_id, 40 + i);
	ck_assert_uint_eq(head.timeout_ms, 0);
	ck_assert_uint_eq(head.retries, 0);
	mad_port_close(port);
}

TEST(send_goes_to_qp1_along_the_path)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_rxe0();
	struct ib_user_mad head;

	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	take_written(bytes);
	memcpy(&head, bytes, sizeof(head));
	ck_assert_uint_eq(ntohl(head.addr.qpn), 1);
	ck_assert_uint_eq(ntohl(head.addr.qkey), 0x80010000);
	ck_assert_uint_eq(ntohs(head.addr.lid), 0x1234);
	ck_assert_uint_eq(head.addr.sl, 5);
	ck_assert_uint_eq(head.addr.path_bits, 2);
	ck_assert_uint_eq(head.addr.pkey_index, 3);
	ck_assert_uint_eq(head.addr.grh_present, 1);
	ck_assert_uint_eq(head.addr.gid_index, 9);
	ck_assert_uint_eq(head.addr.hop_limit, 64);
	ck_assert_uint_eq(head.addr.traffic_class, 0xb8);
	ck_assert_uint_eq(ntohl(head.addr.flow_label), 0xabcde);
	ck_assert_mem_eq(head.addr.gid, v6_path.dgid.raw, 16);
	mad_port_close(port);
}

TEST(path_without_grh_has_none)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_path path = { .dlid = 7, .hop_limit = 1 };
	struct mad_port *port = open_rxe0();
	struct ib_user_mad head;

	ck_assert_int_eq(mad_port_send(port, &path, mad), 0);
	take_written(bytes);
	memcpy(&head, bytes, sizeof(head));
	ck_assert_uint_eq(head.addr.grh_present, 0);
	ck_assert_uint_eq(head.addr.hop_limit, 0);
	mad_port_close(port);
}

TEST(send_changes_the_low_transaction_id_only)
{
	uint8_t first[HEAD_BYTES + MAD_BYTES], second[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES];
	struct mad_port *port = open_rxe0();

	memset(mad, 0x5a, sizeof(mad));
	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	take_written(first);
	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	take_written(second);
	ck_assert_mem_eq(first + HEAD_BYTES, mad, 12);
	ck_assert_mem_eq(first + HEAD_BYTES + 16, mad + 16, MAD_BYTES - 16);
	ck_assert_mem_ne(first + HEAD_BYTES + 12, second + HEAD_BYTES + 12, 4);
	mad_port_close(port);
}

/* As umad, which ignores O_NONBLOCK: a write blocks while the descriptor is full. */
static void hold_writes_of(int i)
{
	int bytes = 0;

	while (send(fake.fd[i], &bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
	ck_assert(!fcntl(fake.fd[i], F_SETFL, fcntl(fake.fd[i], F_GETFL) & ~O_NONBLOCK));
}

TEST(blocked_write_delays_no_other_peer)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_path dead = path_to(1), other = path_to(2);
	struct mad_port *port = open_rxe0();
	struct ib_user_mad head;

	hold_writes_of(FIRST_LANE);
	ck_assert_int_eq(mad_port_send(port, &dead, mad), 0);
	ck_assert_int_eq(mad_port_send(port, &dead, mad), 0);
	ck_assert_int_eq(mad_port_send(port, &other, mad), 0);
	ck_assert_int_eq(take_from(FIRST_LANE + 1, bytes), sizeof(bytes));
	memcpy(&head, bytes, sizeof(head));
	ck_assert_mem_eq(head.addr.gid, other.dgid.raw, 16);
	close(fake.peer[FIRST_LANE]); /* blocked writes return */
	mad_port_close(port);
}

TEST(message_whose_write_blocks_is_queued)
{
	struct mad_path dead = path_to(1), other = path_to(2);
	struct mad_port *port = open_rxe0();
	uint8_t mad[MAD_BYTES] = { 0 };

	hold_writes_of(FIRST_LANE);
	ck_assert(!mad_port_has_queued(port, &dead.dgid));
	ck_assert_int_eq(mad_port_send(port, &dead, mad), 0);
	ck_assert(mad_port_has_queued(port, &dead.dgid));
	ck_assert(!mad_port_has_queued(port, &other.dgid));
	close(fake.peer[FIRST_LANE]);
	while (mad_port_has_queued(port, &dead.dgid))
		sched_yield();
	mad_port_close(port);
}

TEST(trusted_peer_is_written_to_by_the_caller)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_rxe0();
	int first, own = 0;

	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	first = take_written(bytes);
	for (int tries = 0; tries < LIMIT_MS && (own == 0 || own == first); tries++) {
		ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
		own = take_written(bytes);
	}
	ck_assert_int_eq(own, 1);
	mad_port_close(port);
}

TEST(messages_to_one_peer_are_sent_in_order)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_rxe0();

	hold_writes_of(FIRST_LANE);
	for (int i = 0; i < 8; i++) {
		mad[MAD_BYTES - 1] = (uint8_t)i;
		ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	}
	for (int i = 0; i < 8;) {
		if (take_from(FIRST_LANE, bytes) != sizeof(bytes))
			continue; /* skip what filled it */
		ck_assert_uint_eq(bytes[HEAD_BYTES + MAD_BYTES - 1], i++);
	}
	mad_port_close(port);
}

TEST(waiting_messages_are_written_before_the_port_is_closed)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_rxe0();

	for (uint8_t i = 0; i < 8; i++) {
		struct mad_path path = path_to(i);

		ck_assert_int_eq(mad_port_send(port, &path, mad), 0);
	}
	mad_port_close(port);
	for (int i = 0; i < 8; i++)
		take_written(bytes);
}

TEST(empty_port_is_eagain)
{
	struct mad_port *port = open_rxe0();
	uint8_t mad[MAD_BYTES];
	struct mad_path path;

	ck_assert_int_eq(mad_port_receive(port, &path, mad), -EAGAIN);
	mad_port_close(port);
}

TEST(received_path_leads_back)
{
	const struct ib_mad_addr addr = { .lid = htons(0x1234),
					  .sl = 5,
					  .path_bits = 2,
					  .grh_present = 1,
					  .gid_index = 9,
					  .hop_limit = 64,
					  .traffic_class = 0xb8,
					  .gid = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
					  .flow_label = htonl(0xabcde),
					  .pkey_index = 3 };
	struct mad_port *port = open_rxe0();
	uint8_t sent[MAD_BYTES], mad[MAD_BYTES];
	struct mad_path path;

	memset(sent, 0x5a, sizeof(sent));
	deliver(&addr, sent, sizeof(sent));
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_mem_eq(mad, sent, sizeof(mad));
	ck_assert_mem_eq(&path, &v6_path, sizeof(path));
	mad_port_close(port);
}

TEST(traffic_class_of_an_ipv4_packet_is_ignored)
{
	const struct ib_mad_addr addr = { .grh_present = 1,
					  .traffic_class = 0x45,
					  .flow_label = htonl(0x12345),
					  .gid = { [10] = 0xff, 0xff, 10, 0, 0, 2 } };
	struct mad_port *port = open_rxe0();
	uint8_t mad[MAD_BYTES] = { 0 };
	struct mad_path path;

	deliver(&addr, mad, sizeof(mad));
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_uint_eq(path.traffic_class, 0);
	ck_assert_uint_eq(path.flow_label, 0);
	mad_port_close(port);
}

TEST(short_mad_is_padded)
{
	const struct ib_mad_addr addr = { .lid = 0 };
	struct mad_port *port = open_rxe0();
	uint8_t sent[100], mad[MAD_BYTES], zeros[MAD_BYTES] = { 0 };
	struct mad_path path;

	memset(sent, 0x5a, sizeof(sent));
	memset(mad, 0xff, sizeof(mad));
	deliver(&addr, sent, sizeof(sent));
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_mem_eq(mad, sent, sizeof(sent));
	ck_assert_mem_eq(mad + sizeof(sent), zeros, sizeof(mad) - sizeof(sent));
	mad_port_close(port);
}

TEST(long_mad_does_not_block_the_next)
{
	const struct ib_mad_addr addr = { .lid = 0 };
	struct mad_port *port = open_rxe0();
	uint8_t sent[2048] = { 0 }, mad[MAD_BYTES];
	struct mad_path path;

	deliver(&addr, sent, sizeof(sent));
	sent[0] = 0x77;
	deliver(&addr, sent, MAD_BYTES);
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_uint_eq(mad[0], 0x77);
	mad_port_close(port);
}
