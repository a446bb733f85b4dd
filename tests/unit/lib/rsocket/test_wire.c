/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of sockets, compared with literal bytes; each cell of the state table of a stream; the
 * preload library's configuration.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rsocket/dgram_wire.h"
#include "lib/rsocket/preload/preload.h"
#include "lib/rsocket/state.h"
#include "lib/rsocket/stream_wire.h"
#include "tests/unit/test.h"

/* --- streams ------------------------------------------------------------- */

static const uint8_t hello_wire[RS_HELLO_BYTES] = {
	1,    2,    0x01, 0x80, 0,    0,    0,	  0x81, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
	0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0,	  0,	0,    2,    0x10, 0x20, 0x30, 0x40,
	0x50, 0x60, 0x70, 0x80, 0xa1, 0xb1, 0xc1, 0xd1, 0,    1,    0,	  0,
};

TEST(private_data_is_as_on_the_wire)
{
	struct rs_hello hello;
	uint8_t wire[RS_HELLO_BYTES] = { 0 };

	wire_decode(&rs_hello_layout, hello_wire, &hello);
	ck_assert_uint_eq(hello.version, 1);
	ck_assert(hello.has_iomap && !hello.big_endian);
	ck_assert_uint_eq(hello.credits, 384);
	ck_assert_uint_eq(rs_scale_decode(hello.iomap_scaled), 256);
	ck_assert_uint_eq(hello.table_addr, 0x1122334455667788);
	ck_assert_uint_eq(hello.table_entries, 2);
	ck_assert_uint_eq(hello.half_bytes, 65536);
	wire_encode(&rs_hello_layout, &hello, wire);
	ck_assert_mem_eq(wire, hello_wire, sizeof(wire));
}
END_TEST

TEST_LOOP(a_scaled_number_is_rounded_down, 0, 600)
{
	uint32_t scaled = rs_scale_decode(rs_scale_encode((uint32_t)_i));

	ck_assert_uint_le(scaled, (uint32_t)_i);
	if (_i <= 128)
		ck_assert_uint_eq(scaled, (uint32_t)_i);
	else
		ck_assert_uint_le((uint32_t)_i - scaled, 255);
}
END_TEST

TEST(entries_for_the_other_byte_order_are_swapped)
{
	struct rs_iomap_entry entry = { 1, { 2, 3, 4 } };
	struct rs_iomap_entry there = rs_iomap_entry_for_peer(entry, !rs_host_is_big_endian());

	ck_assert_uint_eq(there.offset, 1ULL << 56);
	ck_assert_uint_eq(there.target.key, 3U << 24);
	there = rs_iomap_entry_for_peer(entry, rs_host_is_big_endian());
	ck_assert_mem_eq(&there, &entry, sizeof(entry));
}
END_TEST

/* _i is a state and an event. */
TEST_LOOP(a_refused_step_changes_no_state, 0, STREAM_N_STATES *STREAM_N_EVENTS)
{
	enum stream_state before = (enum stream_state)(_i / STREAM_N_EVENTS), state = before;
	enum stream_event event = (enum stream_event)(_i % STREAM_N_EVENTS);

	if (stream_step(&state, event) == STREAM_REFUSE)
		ck_assert_int_eq(state, before);
	ck_assert_int_lt(state, STREAM_N_STATES);
	/* A direction that has ended does not start again. */
	if (before >= STREAM_OPEN)
		ck_assert(!stream_can_read(state) || stream_can_read(before));
	if (before >= STREAM_OPEN)
		ck_assert(!stream_can_write(state) || stream_can_write(before));
	ck_assert_ptr_nonnull(stream_state_str(before));
	ck_assert_ptr_nonnull(stream_event_str(event));
}
END_TEST

/* --- datagrams ----------------------------------------------------------- */

static const uint8_t ud4[] = { 4, 8, 0x1c, 0x06, 10, 77, 0, 1 };
static const uint8_t ud6[] = { 6, 24, 0x1c, 0x06, 0, 0, 0, 5, 0xfd, 0, 0, 0x77,
			       0, 0,  0,    0,	  0, 0, 0, 0, 0,    0, 0, 1 };
static const uint8_t udp4[] = { 0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 1, 2, 3, 10, 77, 0, 2 };

TEST(a_datagram_names_its_sender)
{
	union addr from;
	uint8_t wire[DGRAM_UD_BYTES_MAX];

	ck_assert_int_eq(dgram_ud_decode(ud4, sizeof(ud4), &from), 8);
	ck_assert_uint_eq(addr_port(&from), 7174);
	ck_assert_uint_eq(ntohl(from.in4.sin_addr.s_addr), 0x0a4d0001);
	ck_assert_uint_eq(dgram_ud_encode(&from, wire), 8);
	ck_assert_mem_eq(wire, ud4, sizeof(ud4));
	ck_assert_int_eq(dgram_ud_decode(ud6, sizeof(ud6), &from), 24);
	ck_assert_uint_eq(dgram_ud_encode(&from, wire), 24);
	ck_assert_mem_eq(wire, ud6, sizeof(ud6));
}
END_TEST

TEST(an_answer_names_a_queue_pair)
{
	struct dgram_udp header;
	uint8_t wire[DGRAM_UDP_BYTES_MAX];

	ck_assert_int_eq(dgram_udp_decode(udp4, sizeof(udp4), &header), 16);
	ck_assert_int_eq(header.op, DGRAM_CONTROL);
	ck_assert_uint_eq(header.qpn, 0x010203);
	ck_assert_uint_eq(dgram_udp_encode(&header, wire), 16);
	ck_assert_mem_eq(wire, udp4, sizeof(udp4));
}
END_TEST

/* Stock reads beyond the packet if a header claims to be longer. */
/* _i is the number of bytes. */
TEST_LOOP(truncated_header_is_refused, 0, sizeof(ud6))
{
	struct dgram_udp header;
	union addr from;
	uint8_t *exact = malloc((size_t)_i + 1);

	memcpy(exact, ud6, (size_t)_i);
	ck_assert_int_eq(dgram_ud_decode(exact, (size_t)_i, &from), -EBADMSG);
	memcpy(exact, udp4, (size_t)_i < sizeof(udp4) ? (size_t)_i : 0);
	ck_assert_int_eq(dgram_udp_decode(exact, (size_t)_i % sizeof(udp4), &header), -EBADMSG);
	free(exact);
}
END_TEST

TEST(header_of_another_size_is_refused)
{
	uint8_t wire[sizeof(ud4)], other[sizeof(udp4)];
	struct dgram_udp header;
	union addr from;

	memcpy(wire, ud4, sizeof(wire));
	wire[1] = 24;
	ck_assert_int_eq(dgram_ud_decode(wire, sizeof(wire), &from), -EBADMSG);
	memcpy(other, udp4, sizeof(other));
	other[5] = 3;
	ck_assert_int_eq(dgram_udp_decode(other, sizeof(other), &header), -EBADMSG);
}
END_TEST

/* --- the preload library's configuration --------------------------------- */

static const struct {
	const char *line;
	bool is_entry, matches; /* a TCP socket of "curl" */
} lines[] = {
	{ "# curl inet stream tcp", false, false },
	{ "", false, false },
	{ "curl inet stream tcp", true, true },
	{ "CUR AF_INET SOCK_STREAM *", true, true },
	{ "* * * *", true, true },
	{ "curl inet6 stream tcp", true, false },
	{ "curl inet dgram udp", true, false },
	{ "wget inet stream tcp", true, false },
	{ "curl inet stream", false, false },
};

TEST_LOOP(configuration_line_selects_sockets, 0, sizeof(lines) / sizeof(lines[0]))
{
	bool is_entry;

	ck_assert(config_matches(lines[_i].line, "curl", AF_INET, SOCK_STREAM, 0, &is_entry) ==
		  lines[_i].matches);
	ck_assert(is_entry == lines[_i].is_entry);
}
END_TEST
