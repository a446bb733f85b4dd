/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of lib/portd/server/routing/fields.c against the layouts of all messages: each field
 * has a row, and each row has its effect. For each field a client sends a valid message in which
 * all bits of that field are inverted.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "cm/guard.h"
#include "lib/portd/server/routing/fields.h"
#include "mad/cma_hdr.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define bob	 (&scene_bob)
#define PEERS_ID 0x901
#define ADDR	 6   /* of the header, as an IPv6 address */
#define HDR_AT	 140 /* in a REQ, after the MAD header: see mad/cm_msg.c */

static const char *const of_path[] = {
	"path.pkey_index", "path.dlid",	      "path.sl",	"path.path_bits",
	"path.grh",	   "path.sgid_index", "path.hop_limit", "path.traffic_class",
	"path.sgid_tag",   "path.flow_label", "path.dgid",
};

_Static_assert(sizeof(struct mad_path) == 32, "of_path has all members of struct mad_path");

static const enum cm_attr attrs[] = {
	CM_ATTR_REQ,  CM_ATTR_MRA, CM_ATTR_REJ, CM_ATTR_REP,	  CM_ATTR_RTU,	    CM_ATTR_DREQ,
	CM_ATTR_DREP, CM_ATTR_LAP, CM_ATTR_APR, CM_ATTR_SIDR_REQ, CM_ATTR_SIDR_REP,
};

#define N_ATTRS (sizeof(attrs) / sizeof(attrs[0]))

/* --- rows ---------------------------------------------------------------- */

static const char *name_of(const char *prefix, const char *field)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s%s", prefix, field);
	return name;
}

static void must_have_rows(enum cm_attr attr, const char *prefix, const struct wire_layout *layout)
{
	const char *name;
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		name = name_of(prefix, layout->field[i].name);
		ck_assert_msg(fields_by(attr, name) != FIELDS_WITHOUT_ROW, "%s: no row for %s",
			      cm_msg_layout(attr)->name, name);
	}
}

FIXTURE(scene_set_up, scene_tear_down);

TEST_LOOP(each_field_of_a_message_has_a_row, 0, N_ATTRS)
{
	size_t i;

	must_have_rows(attrs[_i], "MAD.", &mad_hdr_layout);
	must_have_rows(attrs[_i], "", cm_msg_layout(attrs[_i]));
	if (attrs[_i] == CM_ATTR_REQ || attrs[_i] == CM_ATTR_SIDR_REQ)
		must_have_rows(attrs[_i], "CMA.", &cma_hdr_layout);
	for (i = 0; i < sizeof(of_path) / sizeof(of_path[0]); i++)
		ck_assert_msg(fields_by(attrs[_i], of_path[i]) != FIELDS_WITHOUT_ROW, "%s",
			      of_path[i]);
}

TEST(each_row_has_a_field)
{
	ck_assert_int_eq(fields_by(CM_ATTR_REQ, "remote_comm_id"), FIELDS_WITHOUT_ROW);
	ck_assert_int_eq(fields_by(CM_ATTR_RTU, "comm_id"), FIELDS_WITHOUT_ROW);
	ck_assert_int_eq(fields_by(CM_ATTR_RTU, "MAD."), FIELDS_WITHOUT_ROW);
}

/* --- effects of rows ----------------------------------------------------- */

static void with_header(uint8_t *private_data, uint16_t src_port)
{
	struct cma_hdr hdr = { .ip_version = ADDR, .src_port = src_port };
	const struct mad_gid gid = rig_gid();

	memcpy(hdr.src_addr, gid.raw, sizeof(gid.raw));
	wire_encode(&cma_hdr_layout, &hdr, private_data);
}

static uint16_t bind_any(void)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(2, SCENE_ADDR) };

	record.claim.local_port = 0;
	ck_assert_int_eq(rig_ask(bob, &record), 0);
	return bob->reply.port;
}

static struct cm_msg lookup_of_peer(void)
{
	const struct cm_msg req = scene_peer_req(PEERS_ID, SCENE_ADDR);
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_SIDR_REQ, 0x7777);
	msg.sidr_req.request_id = PEERS_ID;
	msg.sidr_req.service_id = req.req.service_id;
	memcpy(msg.sidr_req.private_data, req.req.private_data, CMA_HDR_BYTES);
	return msg;
}

static void receives_request(struct cm_msg request)
{
	ck_assert_int_eq(rig_listen(bob, SCENE_ADDR), 0);
	scene_receive(request);
}

/* Return: a message that Bob may send. */
static struct cm_msg valid(enum cm_attr attr)
{
	struct cm_msg msg = talk_msg_of(attr, bob->first + 1, PEERS_ID);

	if (attr == CM_ATTR_REQ) {
		msg = scene_req(bob, 1);
		msg.req.primary.local_gid = rig_gid();
		msg.req.primary.remote_gid = rig_peer(SCENE_PEER).dgid;
		with_header(msg.req.private_data, bind_any());
	} else if (attr == CM_ATTR_SIDR_REQ) {
		msg.sidr_req.request_id = bob->first + 1;
		msg.sidr_req.service_id = cma_service_id(RDMA_PS_UDP, RIG_SERVICE);
	} else if (attr == CM_ATTR_SIDR_REP) {
		receives_request(lookup_of_peer());
		msg.sidr_rep.request_id = PEERS_ID;
		msg.sidr_rep.service_id = lookup_of_peer().sidr_req.service_id;
	} else if (attr == CM_ATTR_MRA || attr == CM_ATTR_REJ || attr == CM_ATTR_REP) {
		receives_request(scene_peer_req(PEERS_ID, SCENE_ADDR));
		if (attr == CM_ATTR_REP)
			msg = scene_rep(bob, 1, PEERS_ID);
		else if (attr == CM_ATTR_REJ)
			cm_rej_timeout(&msg.rej, RIG_GUID);
	} else {
		scene_connect(bob, 1);
		msg.rtu.remote_comm_id = 0x701;
	}
	scene_wire();
	return msg;
}

static void invert(uint8_t *wire, const struct wire_field *field)
{
	unsigned int bit, first = field->byte * 8u + field->bit;

	for (bit = first; bit < first + field->width; bit++)
		wire[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
}

static void send_inverted(const struct cm_msg *msg, const struct wire_field *field, unsigned int at)
{
	struct portd_record record = {
		.type = PORTD_MAD, .mad = { .port = bob->handle, .path = rig_peer(SCENE_PEER) }
	};

	cm_msg_encode(msg, record.mad.mad);
	if (field)
		invert(record.mad.mad + at, field);
	rig_send_record(bob, &record);
	rig_settle();
}

/* The rows of queue pairs compare them with those of others: test_server_own_qpn.c. */
static bool depends_on_others(const char *name)
{
	return strcmp(name, "local_qpn") == 0 || strcmp(name, "local_eecn") == 0;
}

static void check_each_field(enum cm_attr attr, const char *prefix,
			     const struct wire_layout *layout, unsigned int at)
{
	enum fields_by by;
	struct cm_msg msg;
	const char *name;
	bool leaves;
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		name = name_of(prefix, layout->field[i].name);
		by = fields_by(attr, name);
		if (depends_on_others(name))
			continue;
		scene_tear_down();
		scene_set_up();
		msg = valid(attr);
		send_inverted(&msg, &layout->field[i], at);
		leaves = scene_wire()[0];
		ck_assert_msg(leaves == (by == FIELDS_FREE || by == FIELDS_AT_A_RATE), "%s: %s %s",
			      cm_msg_layout(attr)->name, name, leaves ? "left" : "did not leave");
	}
}

/* LAP has the row "*": it is never sent. */
TEST_LOOP(a_valid_message_is_sent, 0, N_ATTRS)
{
	struct cm_msg msg = valid(attrs[_i]);

	send_inverted(&msg, NULL, 0);
	ck_assert_msg((scene_wire()[0] != '\0') == (attrs[_i] != CM_ATTR_LAP), "%s",
		      cm_msg_layout(attrs[_i])->name);
}

TEST_LOOP(field_of_the_mad_header_is_checked_by_the_table, 0, N_ATTRS)
{
	if (attrs[_i] != CM_ATTR_LAP)
		check_each_field(attrs[_i], "MAD.", &mad_hdr_layout, 0);
}

TEST_LOOP(field_of_a_message_is_checked_by_the_table, 0, N_ATTRS)
{
	check_each_field(attrs[_i], "", cm_msg_layout(attrs[_i]), MAD_HDR_BYTES);
}

TEST(field_of_the_ip_cm_header_is_checked_by_the_table)
{
	check_each_field(CM_ATTR_REQ, "CMA.", &cma_hdr_layout, MAD_HDR_BYTES + HDR_AT);
}
