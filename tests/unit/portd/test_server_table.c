/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that a client may put into a message (lib/portd/server/routing/fields.c), against the
 * layouts of all messages: for each field a client sends a valid message in which all bits of that
 * field are inverted. It leaves only if the table here has the field.
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

static const enum cm_attr attrs[] = {
	CM_ATTR_REQ,  CM_ATTR_MRA, CM_ATTR_REJ, CM_ATTR_REP,	  CM_ATTR_RTU,	    CM_ATTR_DREQ,
	CM_ATTR_DREP, CM_ATTR_LAP, CM_ATTR_APR, CM_ATTR_SIDR_REQ, CM_ATTR_SIDR_REP,
};

#define N_ATTRS (sizeof(attrs) / sizeof(attrs[0]))

/* --- fields that a client may choose ---------------------------------------- */

#define IN(attr) (1u << (CM_ATTR_##attr - CM_ATTR_REQ))
#define ALL	 UINT32_MAX

/* clang-format off */
static const struct {
	const char *fields; /* names of layouts, separated by spaces */
	uint32_t in;
} chosen[] = {
	/* A service of the IB port space may find no header, or another one. */
	{ "CMA.cma_version CMA.ip_version CMA.dst_addr", IN(REQ) | IN(SIDR_REQ) },
	{ "MAD.status MAD.class_specific MAD.tid MAD.attr_mod", ALL },
	{ "private_data", ALL },
	/* The client may have forgotten the connection: such messages have a rate. */
	{ "remote_comm_id", IN(DREP) },
	{ "vendor_id", IN(REQ) | IN(REP) | IN(SIDR_REP) },
	{ "local_qkey starting_psn responder_resources initiator_depth flow_control "
	  "rnr_retry_count srq", IN(REQ) | IN(REP) },
	{ "service_id pkey", IN(REQ) | IN(SIDR_REQ) },
	{ "local_eecn remote_eecn remote_cm_response_timeout transport_service_type "
	  "local_cm_response_timeout retry_count path_mtu rdc_exists max_cm_retries "
	  "extended_transport_type sap_supported", IN(REQ) },
	{ "primary.local_lid primary.remote_lid primary.flow_label primary.packet_rate "
	  "primary.traffic_class primary.hop_limit primary.sl primary.subnet_local "
	  "primary.local_ack_timeout", IN(REQ) },
	/* Without a local address there is no alternate path. */
	{ "alternate.remote_lid alternate.remote_gid alternate.flow_label alternate.packet_rate "
	  "alternate.traffic_class alternate.hop_limit alternate.sl alternate.subnet_local "
	  "alternate.local_ack_timeout", IN(REQ) },
	{ "target_ack_delay failover_accepted", IN(REP) },
	{ "message", IN(MRA) | IN(REJ) },
	{ "service_timeout", IN(MRA) },
	{ "ari_bytes reason", IN(REJ) },
	{ "remote_qpn", IN(DREQ) },
	{ "status info_bytes info", IN(APR) | IN(SIDR_REP) },
	{ "qpn qkey", IN(SIDR_REP) },
};
/* clang-format on */

static bool may_choose(enum cm_attr attr, const char *field)
{
	const size_t n = strlen(field);
	const char *at;
	size_t i;

	if (attr == CM_ATTR_LAP)
		return false;
	for (i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
		if (!(chosen[i].in >> (attr - CM_ATTR_REQ) & 1))
			continue;
		for (at = chosen[i].fields; (at = strstr(at, field)); at += n)
			if ((at == chosen[i].fields || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
				return true;
	}
	return false;
}

static const char *name_of(const char *prefix, const char *field)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s%s", prefix, field);
	return name;
}

FIXTURE(scene_set_up, scene_tear_down);

/* --- effects ------------------------------------------------------------- */

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
	struct cm_msg msg;
	const char *name;
	bool leaves;
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		name = name_of(prefix, layout->field[i].name);
		if (depends_on_others(name))
			continue;
		scene_tear_down();
		scene_set_up();
		msg = valid(attr);
		send_inverted(&msg, &layout->field[i], at);
		leaves = scene_wire()[0];
		ck_assert_msg(leaves == may_choose(attr, name), "%s: %s %s",
			      cm_msg_layout(attr)->name, name, leaves ? "left" : "did not leave");
	}
}

/* LAP is never sent. */
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
