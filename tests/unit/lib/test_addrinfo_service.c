/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RAI_SA (lib/names/sa_service.c) on a host with one device of two ports, with links set by the
 * test. The engine runs; cmportd is a fake.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "lib/engine/session.h"
#include "lib/path/subnet.h"
#include "mad/sa_msg.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/lib/fake_cmportd.h"
#include "tests/unit/test.h"

static struct ibv_device device;
static struct rdma_addrinfo *found;

static void expect(int err, const char *node, const char *service, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags };

	ck_assert_int_eq(rdma_getaddrinfo(node, service, &hints, &found), -1);
	ck_assert_int_eq(errno, err);
	ck_assert_ptr_null(found);
}

static void set_port(unsigned int i, enum ibv_port_state state, uint8_t link_layer)
{
	fake.port[i].state = state;
	fake.port[i].link_layer = link_layer;
}

/* The engine keeps the cmportd that it has found. */
static void connect_to_cmportd(void)
{
	static bool is_there;

	if (!is_there)
		fake_cmportd_begin();
	is_there = true;
}

static void setup(void)
{
	connect_to_cmportd();
	fake.listed = &device;
	fake.n_listed = 1;
	fake.n_ports = 2;
	found = NULL;
	set_port(0, IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET);
	set_port(1, IBV_PORT_ACTIVE, IBV_LINK_LAYER_ETHERNET);
}

FIXTURE(setup, NULL);

TEST(service_on_a_host_without_subnet_is_unknown)
{
	expect(ENOENT, NULL, "7471", RAI_SA);
}

TEST(port_that_is_down_is_on_no_subnet)
{
	set_port(1, IBV_PORT_DOWN, IBV_LINK_LAYER_INFINIBAND);
	expect(ENOENT, NULL, "7471", RAI_SA);
}

/* --- responses of the administrator --------------------------------------- */

static unsigned int n_services;
static struct sa_msg question;

static struct portd_record sent_record(uint32_t ask_id, uint16_t error, unsigned int i)
{
	struct portd_record told = { .type = PORTD_SA_TOLD,
				     .sa_told = { .ask_id = ask_id, .error = error } };
	struct sa_service service = { .service_id = 7 + i, .pkey = 0x8001 };

	if (!error)
		told.sa_told.left = (uint16_t)(n_services - 1 - i);
	service.gid.raw[15] = (uint8_t)i;
	wire_encode(&sa_service_layout, &service, told.sa_told.record);
	return told;
}

static void add_answer(uint32_t ask_id, uint16_t error, unsigned int i)
{
	const struct portd_record told = sent_record(ask_id, error, i);

	fake_cmportd_send(&told);
}

static void answer_question(const struct portd_record *record)
{
	unsigned int i;

	if (record->type != PORTD_SA_ASK)
		return;
	wire_decode(&sa_service_layout, record->sa_ask.record, &question.service);
	question.sa.comp_mask = record->sa_ask.comp_mask;
	question.hdr.method = record->sa_ask.method;
	for (i = 0; i < n_services; i++)
		add_answer(record->sa_ask.ask_id, 0, i);
	if (!n_services)
		add_answer(record->sa_ask.ask_id, ENOENT, 0);
}

static void use_infiniband(unsigned int services)
{
	n_services = services;
	cmportd.meanwhile = answer_question;
	set_port(1, IBV_PORT_ACTIVE, IBV_LINK_LAYER_INFINIBAND);
}

static void tear_down(void)
{
	cmportd.meanwhile = NULL;
	rdma_freeaddrinfo(found);
}

FIXTURE(setup, tear_down);

TEST(unregistered_service_is_unknown)
{
	use_infiniband(0);
	expect(ENOENT, NULL, "news", RAI_SA);
	ck_assert_uint_eq(question.hdr.method, SA_METHOD_GET_TABLE);
	ck_assert_uint_eq(question.sa.comp_mask, SA_SERVICE_NAME);
	ck_assert_str_eq((const char *)question.service.name, "news");
}

TEST(each_record_is_an_address)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };
	const struct sockaddr_ib *at;

	use_infiniband(2);
	ck_assert_int_eq(rdma_getaddrinfo(NULL, "0x7471", &hints, &found), 0);
	ck_assert_uint_eq(question.sa.comp_mask, SA_SERVICE_ID);
	ck_assert_uint_eq(question.service.service_id, 0x7471);
	ck_assert_int_eq(found->ai_flags, RAI_SA);
	ck_assert_int_eq(found->ai_family, AF_IB);
	ck_assert_int_eq(found->ai_port_space, RDMA_PS_IB);
	at = (const struct sockaddr_ib *)(const void *)found->ai_next->ai_dst_addr;
	ck_assert_uint_eq(be64toh(at->sib_sid), 8);
	ck_assert_uint_eq(be16toh(at->sib_pkey), 0x8001);
	ck_assert_uint_eq(at->sib_addr.sib_addr8[15], 1);
	ck_assert_ptr_null(found->ai_next->ai_next);
}

/* A cmportd that ends after it has reported the first of three records; the next one has two. */
static void restart_and_answer(const struct portd_record *record)
{
	static bool has_died;
	struct portd_record told;

	if (record->type != PORTD_SA_ASK)
		return;
	if (has_died) {
		answer_question(record);
		return;
	}
	has_died = true;
	n_services = 3;
	told = sent_record(record->sa_ask.ask_id, 0, 0);
	subnet_answered(&told.sa_told);
	n_services = 2;
	subnet_resend(session_client());
}

TEST(records_of_the_next_cmportd_replace_earlier_ones)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA };

	use_infiniband(2);
	cmportd.meanwhile = restart_and_answer;
	ck_assert_int_eq(rdma_getaddrinfo(NULL, "news", &hints, &found), 0);
	ck_assert_ptr_nonnull(found->ai_next);
	ck_assert_ptr_null(found->ai_next->ai_next);
}

static const char *const bad_names[] = {
	"", "a234567890123456789012345678901234567890123456789012345678901234"
};

TEST_LOOP(invalid_service_name_is_refused, 0, 2)
{
	use_infiniband(1);
	expect(EINVAL, NULL, bad_names[_i], RAI_SA);
}

FIXTURE(setup, NULL);

TEST(subnet_query_with_a_node_is_refused)
{
	expect(EOPNOTSUPP, "192.0.2.1", "7471", RAI_SA);
	expect(EOPNOTSUPP, "192.0.2.1", NULL, RAI_SA);
}

TEST(subnet_and_name_server_exclude_each_other)
{
	expect(EOPNOTSUPP, NULL, "7471", RAI_SA | RAI_DNS);
}

TEST(subnet_query_without_a_service_is_refused)
{
	expect(EINVAL, NULL, NULL, RAI_SA);
}

TEST(flag_selects_the_name_server)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_DNS };

	ck_assert_int_eq(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &found), 0);
	ck_assert_int_eq(found->ai_flags, 0);
	rdma_freeaddrinfo(found);
}
