/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance management agents of an InfiniBand fabric of two hosts, queried through umad:
 * their responses, and resetting counters. Runs on the first host: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/umad.h>
#include <infiniband/umad_types.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define WAIT_MS	      20000
#define LID_A	      1
#define LID_B	      2
#define LID_SWITCH    0xbe00
#define PORT_COUNTERS 0x12
#define EXTENDED      0x1d
#define SAMPLES	      0x10
#define GET	      1
#define SET	      2
#define MAD_WORDS     72 /* LRH, BTH, DETH, MAD and ICRC, in units of 4 bytes */
#define BAD_VERSION   0x04
#define BAD_METHOD    0x08
#define BAD_ATTRIBUTE 0x0c
#define BAD_VALUE     0x1c

/* Offsets in the data of PortCounters, and bits of its CounterSelect. */
#define XMIT_DATA	   24
#define RCV_PACKETS	   36
#define SELECT_XMIT_DATA   12
#define SELECT_RCV_PACKETS 15

struct buffer {
	struct ib_user_mad head;
	struct umad_hdr mad;
	uint8_t reserved[40];
	uint8_t data[192];
};

static int fd;
static uint32_t agent, tid;

static struct buffer request_of(uint8_t method, uint16_t attribute, uint8_t port)
{
	return (struct buffer){
		.mad = { .base_version = 1,
			 .mgmt_class = UMAD_CLASS_PERF_MGMT,
			 .class_version = 1,
			 .method = method,
			 .attr_id = htons(attribute) },
		.data = { [1] = port },
	};
}

/* Return: the status of the response, which replaces the request. */
static unsigned int ask(uint16_t lid, struct buffer *buffer)
{
	int bytes = (int)(sizeof(*buffer) - sizeof(buffer->head));

	umad_set_addr(buffer, lid, 1, 0, (int)0x80010000);
	buffer->mad.tid = htobe64(++tid);
	ck_assert_int_eq(umad_send(fd, (int)agent, buffer, bytes, WAIT_MS, 0), 0);
	ck_assert_int_eq(umad_recv(fd, buffer, &bytes, WAIT_MS), (int)agent);
	ck_assert_int_eq(umad_status(buffer), 0);
	ck_assert_uint_eq(buffer->mad.method, UMAD_METHOD_GET_RESP);
	ck_assert_uint_eq(ntohs(buffer->head.addr.lid), lid);
	return ntohs(buffer->mad.status);
}

static uint32_t number_at(const struct buffer *buffer, unsigned int at)
{
	uint32_t value;

	memcpy(&value, buffer->data + at, sizeof(value));
	return ntohl(value);
}

static void set_number(struct buffer *buffer, unsigned int at, uint32_t value)
{
	value = htonl(value);
	memcpy(buffer->data + at, &value, sizeof(value));
}

static void select_counter(struct buffer *buffer, unsigned int bit)
{
	buffer->data[2] |= (uint8_t)(1u << bit >> 8);
	buffer->data[3] |= (uint8_t)(1u << bit);
}

static uint32_t counter(uint16_t lid, uint8_t port, unsigned int at)
{
	struct buffer buffer = request_of(GET, PORT_COUNTERS, port);

	ck_assert_uint_eq(ask(lid, &buffer), 0);
	ck_assert_uint_eq(buffer.data[1], port);
	return number_at(&buffer, at);
}

static void reset_b(uint16_t attribute)
{
	struct buffer buffer = request_of(SET, attribute, 1);

	buffer.data[2] = buffer.data[3] = 0xff;
	ck_assert_uint_eq(ask(LID_B, &buffer), 0);
}

static void set_up(void)
{
	struct umad_reg_attr attr = { .mgmt_class = UMAD_CLASS_PERF_MGMT, .mgmt_class_version = 1 };

	fd = umad_open_port("fab0", 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(umad_register2(fd, &attr, &agent), 0);
	reset_b(EXTENDED);
	reset_b(PORT_COUNTERS);
}

static void tear_down(void)
{
	close(fd);
}

FIXTURE(set_up, tear_down);

TEST(class_port_info_has_the_capabilities)
{
	static const uint16_t lids[] = { LID_A, LID_B, LID_SWITCH };
	struct buffer buffer;

	for (unsigned int i = 0; i < 3; i++) {
		buffer = request_of(GET, UMAD_ATTR_CLASS_PORT_INFO, 0);
		ck_assert_uint_eq(ask(lids[i], &buffer), 0);
		ck_assert_uint_eq(buffer.data[0], 1);
		ck_assert_uint_eq(buffer.data[1], 1);
		ck_assert_uint_eq(buffer.data[2], 3); /* all ports, 64 bits */
		ck_assert_uint_eq(buffer.data[7], 18);
	}
}

TEST(unsupported_request_has_its_status)
{
	static const struct {
		uint8_t class_version, method;
		uint16_t attribute, lid;
		uint8_t port;
		unsigned int status;
	} cases[] = {
		{ 2, GET, PORT_COUNTERS, LID_B, 1, BAD_VERSION },
		{ 1, SET, UMAD_ATTR_CLASS_PORT_INFO, LID_B, 1, BAD_METHOD },
		{ 1, GET, SAMPLES, LID_B, 1, BAD_ATTRIBUTE },
		{ 1, GET, PORT_COUNTERS, LID_B, 0, BAD_VALUE },
		{ 1, GET, PORT_COUNTERS, LID_B, 2, BAD_VALUE },
		{ 1, GET, EXTENDED, LID_SWITCH, 37, BAD_VALUE },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buffer buffer =
			request_of(cases[i].method, cases[i].attribute, cases[i].port);

		buffer.mad.class_version = cases[i].class_version;
		ck_assert_uint_eq(ask(cases[i].lid, &buffer), cases[i].status);
	}
}

TEST(each_mad_is_counted_at_both_ends_of_the_link)
{
	uint32_t own = counter(LID_A, 1, RCV_PACKETS);
	uint32_t of_switch = counter(LID_SWITCH, 2, XMIT_DATA);

	/* The counters in a response include the request but not the response itself. */
	ck_assert_uint_eq(counter(LID_B, 1, RCV_PACKETS), 1);
	ck_assert_uint_eq(counter(LID_B, 1, RCV_PACKETS), 2);
	ck_assert_uint_eq(counter(LID_B, 1, XMIT_DATA), 3 * MAD_WORDS);
	ck_assert_uint_eq(counter(LID_SWITCH, 2, XMIT_DATA), of_switch + 3 * MAD_WORDS);
	/* Requests to the host itself leave no port; five responses have arrived since. */
	ck_assert_uint_eq(counter(LID_A, 1, RCV_PACKETS), own + 5);
}

TEST(set_changes_the_counters_that_are_selected)
{
	struct buffer buffer = request_of(SET, PORT_COUNTERS, 1);

	select_counter(&buffer, SELECT_XMIT_DATA);
	set_number(&buffer, XMIT_DATA, 1000);
	ck_assert_uint_eq(ask(LID_B, &buffer), 0);
	ck_assert_uint_eq(number_at(&buffer, XMIT_DATA), 1000);
	ck_assert_uint_eq(number_at(&buffer, RCV_PACKETS), 1);
	ck_assert_uint_eq(counter(LID_B, 1, XMIT_DATA), 1000 + MAD_WORDS);
}

TEST(set_of_all_ports_resets_each)
{
	struct buffer buffer = request_of(SET, PORT_COUNTERS, 0xff);

	ck_assert_uint_gt(counter(LID_SWITCH, 1, RCV_PACKETS), 0);
	select_counter(&buffer, SELECT_RCV_PACKETS);
	ck_assert_uint_eq(ask(LID_SWITCH, &buffer), 0);
	ck_assert_uint_eq(number_at(&buffer, RCV_PACKETS), 0);
	ck_assert_uint_eq(counter(LID_SWITCH, 2, RCV_PACKETS), 0);
	ck_assert_uint_gt(counter(LID_SWITCH, 2, XMIT_DATA), 0);
}

TEST(a_counter_stops_at_its_largest_value)
{
	struct buffer buffer = request_of(SET, PORT_COUNTERS, 1);

	select_counter(&buffer, SELECT_XMIT_DATA);
	set_number(&buffer, XMIT_DATA, UINT32_MAX - MAD_WORDS);
	ck_assert_uint_eq(ask(LID_B, &buffer), 0);
	ck_assert_uint_eq(counter(LID_B, 1, XMIT_DATA), UINT32_MAX);
	ck_assert_uint_eq(counter(LID_B, 1, XMIT_DATA), UINT32_MAX);
}

TEST(the_extended_counters_are_set_apart)
{
	struct buffer buffer = request_of(SET, EXTENDED, 1);

	select_counter(&buffer, 0);
	ck_assert_uint_eq(ask(LID_B, &buffer), 0);
	ck_assert_uint_eq(number_at(&buffer, 12), 0);
	ck_assert_uint_eq(counter(LID_B, 1, XMIT_DATA), 2 * MAD_WORDS);
	buffer = request_of(GET, EXTENDED, 1);
	ck_assert_uint_eq(ask(LID_B, &buffer), 0);
	ck_assert_uint_eq(number_at(&buffer, 12), 2 * MAD_WORDS);
}
