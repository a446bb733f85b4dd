/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records between library and cmportd.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/portd/proto/datagram.h"
#include "tests/unit/test.h"

static struct portd_record full_mad(void)
{
	struct portd_record record = {
		.type = PORTD_MAD,
		.mad = { .port = 3,
			 .again = 1,
			 .path = { .pkey_index = 0x1234,
				   .dlid = 0x4321,
				   .sl = 5,
				   .path_bits = 6,
				   .grh = true,
				   .sgid_index = 7,
				   .hop_limit = 64,
				   .traffic_class = 0x20,
				   .flow_label = 0xfffff,
				   .dgid = { { [0] = 0xfe, [15] = 0x01 } } } },
	};
	int i;

	for (i = 0; i < MAD_BYTES; i++)
		record.mad.mad[i] = (uint8_t)(i * 7);
	return record;
}

TEST(a_message_arrives_as_it_was_sent)
{
	struct portd_record sent = full_mad(), got;
	struct portd_datagram datagram = { .bytes = 0 };

	memset(&got, 0xee, sizeof(got));
	ck_assert(portd_put(&datagram, &sent));
	ck_assert_int_eq(portd_get(&datagram, &got), 0);
	ck_assert_int_eq(got.type, PORTD_MAD);
	ck_assert_mem_eq(&got.mad, &sent.mad, sizeof(got.mad));
}

/* The receiver has room for descriptors, or not. */
TEST_LOOP(a_datagram_that_is_too_long_has_no_records, 0, 2)
{
	const struct portd_record sent = full_mad();
	struct portd_datagram in = { .bytes = 0 };
	uint8_t out[PORTD_DATAGRAM_BYTES + 1];
	struct portd_record got;
	int pair[2], fd[2];

	while (portd_put(&in, &sent))
		;
	memset(out, 0, sizeof(out));
	memcpy(out, in.data, in.bytes);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(send(pair[0], out, in.bytes, 0), in.bytes);
	ck_assert_int_eq(portd_datagram_receive(pair[1], &in, _i ? fd : NULL, 0), in.bytes);
	ck_assert_int_eq(portd_get(&in, &got), 0);
	ck_assert_int_eq(send(pair[0], out, sizeof(out), 0), sizeof(out));
	ck_assert_int_gt(portd_datagram_receive(pair[1], &in, _i ? fd : NULL, 0), 0);
	ck_assert_int_eq(portd_get(&in, &got), -EPROTO);
	close(pair[0]);
	close(pair[1]);
}

/* A listening socket of systemd may have the option, which those that it accepts inherit. */
TEST_LOOP(credentials_are_no_descriptors, 0, 2)
{
	struct portd_datagram out = { .bytes = 1 }, in;
	int pair[2], fd[PORTD_FDS_MAX + 1], passed[2];
	const int on = 1;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	ck_assert_int_eq(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	passed[0] = _i ? pair[0] : -1;
	passed[1] = -1;
	memset(fd, 0x55, sizeof(fd));
	ck_assert_int_eq(portd_datagram_send(pair[0], &out, passed, 0), 0);
	ck_assert_int_eq(portd_datagram_receive_all(pair[1], &in, fd), 1);
	ck_assert_int_eq(fd[_i], -1);
	if (_i)
		ck_assert_int_eq(close(fd[0]), 0);
	close(pair[0]);
	close(pair[1]);
}

#define SIGNALS_MAX 1000

static volatile sig_atomic_t n_signals;

/* The last one lets the call end. */
static void count_signal(int number)
{
	const struct itimerval off = { .it_value.tv_sec = 0 };

	(void)number;
	if (++n_signals == SIGNALS_MAX)
		setitimer(ITIMER_REAL, &off, NULL);
}

/* A profiler interrupts a program more often than the time limit of a call comes. */
TEST(signals_do_not_prolong_a_send)
{
	const struct itimerval often = { .it_interval.tv_usec = 5000, .it_value.tv_usec = 5000 };
	const struct itimerval off = { .it_value.tv_sec = 0 };
	const struct timeval limit = { .tv_usec = 100000 };
	struct portd_datagram out = { .bytes = 1 };
	int pair[2], err = 0;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	while (!err)
		err = portd_datagram_send(pair[0], &out, NULL, MSG_DONTWAIT);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	signal(SIGALRM, count_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	ck_assert_int_eq(portd_datagram_send(pair[0], &out, NULL, 0), -EAGAIN);
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
	ck_assert_int_lt(n_signals, SIGNALS_MAX);
	close(pair[0]);
	close(pair[1]);
}

TEST_LOOP(trailing_zeros_of_a_message_are_not_sent, 2, MAD_BYTES)
{
	struct portd_record sent = full_mad(), got;
	struct portd_datagram datagram = { .bytes = 0 };
	size_t full;

	portd_put(&datagram, &sent);
	full = datagram.bytes;
	memset(&sent.mad.mad[_i], 0, (size_t)(MAD_BYTES - _i));
	memset(&got, 0xee, sizeof(got));
	datagram.bytes = 0;
	portd_put(&datagram, &sent);
	ck_assert_uint_eq(datagram.bytes, full - (size_t)(MAD_BYTES - _i));
	ck_assert_int_eq(portd_get(&datagram, &got), 0);
	ck_assert_mem_eq(&got.mad, &sent.mad, sizeof(got.mad));
}

TEST(a_message_longer_than_a_mad_is_refused)
{
	struct portd_record record = full_mad(), got;
	struct portd_datagram datagram = { .bytes = 0 };

	portd_put(&datagram, &record);
	portd_put(&datagram, &record);
	datagram.data[3]++;
	ck_assert_int_eq(portd_get(&datagram, &got), -EPROTO);
}

TEST(records_are_read_in_order)
{
	struct portd_record got, one = { .type = PORTD_CLOSE, .close = { .local_comm_id = 1 } };
	struct portd_record two = { .type = PORTD_GONE, .gone = { .port = 2 } };
	struct portd_datagram datagram = { .bytes = 0 };

	portd_put(&datagram, &one);
	portd_put(&datagram, &two);
	portd_get(&datagram, &got);
	ck_assert_int_eq(got.type, PORTD_CLOSE);
	portd_get(&datagram, &got);
	ck_assert_int_eq(got.type, PORTD_GONE);
	ck_assert_int_eq(portd_get(&datagram, &got), -ENODATA);
}

TEST_LOOP(every_type_has_a_layout_of_its_own, PORTD_NONE + 1, PORTD_N_TYPES)
{
	struct portd_record record = { .type = (enum portd_type)_i }, got;
	struct portd_datagram datagram = { .bytes = 0 };

	ck_assert(portd_put(&datagram, &record));
	ck_assert_int_gt(datagram.bytes, PORTD_HEAD_BYTES);
	ck_assert_int_eq(portd_get(&datagram, &got), 0);
	ck_assert_int_eq(got.type, _i);
}

TEST(a_full_datagram_refuses_records)
{
	struct portd_record record = full_mad();
	struct portd_datagram datagram = { .bytes = 0 };
	size_t before;

	while (portd_put(&datagram, &record))
		before = datagram.bytes;
	ck_assert_uint_eq(datagram.bytes, before);
	ck_assert_uint_le(before, PORTD_DATAGRAM_BYTES);
}

TEST(a_truncated_record_is_refused)
{
	struct portd_record record = full_mad(), got;
	struct portd_datagram datagram = { .bytes = 0 };

	portd_put(&datagram, &record);
	while (--datagram.bytes) {
		datagram.at = 0;
		ck_assert_int_eq(portd_get(&datagram, &got), -EPROTO);
	}
}

TEST(a_length_of_another_type_is_refused)
{
	struct portd_record record = { .type = PORTD_CLOSE }, got;
	struct portd_datagram datagram = { .bytes = 0 };

	portd_put(&datagram, &record);
	portd_put(&datagram, &record);
	datagram.data[3]++;
	ck_assert_int_eq(portd_get(&datagram, &got), -EPROTO);
}

TEST(a_type_that_does_not_exist_is_refused)
{
	struct portd_datagram datagram = { .bytes = 8, .data = { 0, PORTD_N_TYPES, 0, 8 } };
	struct portd_record got;

	ck_assert_int_eq(portd_get(&datagram, &got), -EPROTO);
}

TEST_LOOP(random_bytes_are_read_without_harm, 0, 8)
{
	struct portd_datagram datagram;
	struct portd_record got;
	int i, turn;

	srandom((unsigned int)_i);
	for (turn = 0; turn < 2000; turn++) {
		for (i = 0; i < 600; i++)
			datagram.data[i] = (uint8_t)random();
		datagram.data[0] = 0;
		datagram.data[1] %= PORTD_N_TYPES + 1;
		datagram.data[2] %= 2;
		datagram.bytes = (size_t)random() % 600;
		datagram.at = 0;
		while (portd_get(&datagram, &got) == 0)
			ck_assert_uint_le(datagram.at, datagram.bytes);
	}
}
