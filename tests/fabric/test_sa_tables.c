/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of the subnet administrator in several segments. On a fabric of two InfiniBand hosts, also
 * one that loses MADs: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include "tests/fabric/sa_rig.h"
#include "tests/unit/test.h"

#define PORT_RECORD_BYTES 72
#define SWITCH_PORTS	  37 /* with port 0 */
#define HEADERS_BYTES	  56

static struct sa_rig rig;

/* Messages are assembled for the agent. */
static void set_up(void)
{
	sa_rig_open(&rig, 1);
}

static void set_up_raw(void)
{
	sa_rig_open(&rig, 0);
}

static void tear_down(void)
{
	sa_rig_close(&rig);
}

FIXTURE(set_up, tear_down);

TEST(table_of_many_segments_is_read_as_one_message)
{
	unsigned int i, n;

	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_PORT_INFO_REC, 0, "", 1);
	n = sa_rig_table(&rig, PORT_RECORD_BYTES);
	ck_assert_uint_eq(n, 2 + SWITCH_PORTS);
	for (i = 2; i < n; i++) /* the switch's ports, in order: no segment is missing */
		ck_assert_uint_eq(sa_rig_record(&rig, i, PORT_RECORD_BYTES)[2], i - 2);
}

TEST(table_that_does_not_fit_stays_queued_and_reports_its_length)
{
	int bytes = MAD_BYTES, wanted = HEADERS_BYTES + (2 + SWITCH_PORTS) * PORT_RECORD_BYTES;

	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_PORT_INFO_REC, 0, "", 1);
	ck_assert_int_eq(umad_recv(rig.fd, rig.table, &bytes, WAIT_MS), -ENOSPC);
	ck_assert_int_eq(bytes, wanted);
	ck_assert_uint_eq(sa_rig_table(&rig, PORT_RECORD_BYTES), 2 + SWITCH_PORTS);
}

TEST(table_may_be_empty)
{
	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_SERVICE_REC, 1, "\1\2\3\4\5\6\7",
		    8);
	ck_assert_uint_eq(sa_rig_table(&rig, 176), 0);
}

TEST(tables_of_paths_have_all_from_a_port)
{
	struct ibv_path_record record = { .slid = htons(2) };

	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_PATH_REC, 0x20, &record,
		    sizeof(record));
	ck_assert_uint_eq(sa_rig_table(&rig, 64), 2);
	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_PATH_REC, 0, "", 1);
	ck_assert_uint_eq(sa_rig_table(&rig, 64), 4);
}

TEST(table_of_nodes_has_the_switch)
{
	unsigned int i, n_switches = 0;

	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_NODE_REC, 0, "", 1);
	ck_assert_uint_eq(sa_rig_table(&rig, 112), 3);
	for (i = 0; i < 3; i++)
		n_switches += sa_rig_record(&rig, i, 112)[6] == 2;
	ck_assert_uint_eq(n_switches, 1);
}

TEST(unsupported_component_is_refused)
{
	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_PORT_INFO_REC, UINT64_C(1) << 40,
		    "", 1);
	ck_assert_uint_eq(sa_rig_status(&rig), UMAD_SA_STATUS_REQ_INVALID);
}

FIXTURE(set_up_raw, tear_down);

/* An agent that did not register for RMPP assembles messages itself. */
TEST(segments_are_delivered_to_an_agent_that_assembles_them)
{
	struct {
		struct ib_user_mad head;
		struct umad_sa_packet packet;
	} buffer;
	int bytes = MAD_BYTES;

	sa_rig_send(&rig, UMAD_SA_METHOD_GET_TABLE, UMAD_SA_ATTR_PORT_INFO_REC, 0, "", 1);
	ck_assert_int_eq(umad_recv(rig.fd, &buffer, &bytes, WAIT_MS), (int)rig.agent);
	ck_assert_int_eq(bytes, MAD_BYTES);
	ck_assert_uint_eq(ntohl(buffer.packet.rmpp_hdr.seg_num), 1);
	ck_assert_uint_eq(buffer.packet.rmpp_hdr.rmpp_rtime_flags & 7, 3); /* active, first */
}
