/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that no requester of the fabric sends, such as corrupted ones: a responder refuses them
 * as in IBTA vol. 1, 9.7, and stores nothing. Runs on a host of a soft fabric:
 * tests/fabric/meson.build.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"
#include "tools/fabric/wire/packet.h"
#include "tools/fabric/wire/folder.h"

#define BYTES 32
#define FULL  FAB_FRAGMENT_BYTES /* of a packet that is not the last of its message */

/* Sends to b, with the address of a. */
static void inject(const struct rig *rig, struct fab_packet *packet)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	static char bytes[sizeof(*packet) + FULL];
	bool is_full = packet->flags == FAB_FIRST;
	struct fab_folder folder;
	char path[FAB_PATH_BYTES];
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	packet->magic = FAB_MAGIC;
	packet->service = rig->b.qp->qp_type == IBV_QPT_UC ? FAB_SERVICE_UC : FAB_SERVICE_RC;
	packet->pkey = 0xffff;
	packet->from_port = 1;
	packet->dest_qpn = rig->b.qp->qp_num;
	packet->src_qpn = rig->a.qp->qp_num;
	packet->bytes = is_full ? FULL : BYTES;
	ck_assert_int_eq(ibv_query_gid(rig->verbs, 1, 1, &packet->sgid), 0);
	packet->dgid = packet->sgid;
	memcpy(bytes, packet, sizeof(*packet));
	memset(bytes + sizeof(*packet), 'x', packet->bytes);
	ck_assert_int_eq(fab_folder_find(&folder), 0);
	fab_folder_slot(&folder, folder.host, packet->dest_qpn >> FAB_SLOT_SHIFT, path);
	strcpy(to.sun_path, path);
	ck_assert_int_eq(sendto(fd, bytes, sizeof(*packet) + packet->bytes, 0,
				(struct sockaddr *)&to, sizeof(to)),
			 (int)(sizeof(*packet) + packet->bytes));
	close(fd);
}

static struct fab_packet part(const struct rig *rig, uint8_t op, uint8_t flags, uint32_t psn)
{
	return (struct fab_packet){
		.op = op,
		.flags = flags,
		.psn = psn,
		.rkey = rig->b.mr->rkey,
		.remote_addr = (uintptr_t)rig->b.memory + BYTES,
		.dma_bytes = FULL + BYTES,
		.compare_add = 1,
	};
}

static const struct {
	uint8_t op, flags;
	uint8_t next_op, next_flags;
} sequences[] = {
	{ FAB_OP_WRITE, FAB_FIRST, FAB_OP_SEND, FAB_LAST },
	{ FAB_OP_SEND, FAB_FIRST, FAB_OP_WRITE, FAB_LAST },
	{ FAB_OP_SEND, FAB_FIRST, FAB_OP_SEND, FAB_FIRST | FAB_LAST },
	{ FAB_OP_WRITE, FAB_FIRST, FAB_OP_READ, 0 },
	{ FAB_OP_WRITE, FAB_FIRST, FAB_OP_FETCH_ADD, 0 },
};

TEST_LOOP(message_that_continues_as_another_operation_is_refused, 0,
	  sizeof(sequences) / sizeof(sequences[0]))
{
	struct fab_packet first, next;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC });
	rig_receive(&rig.b, 1, FULL + BYTES);
	first = part(&rig, sequences[_i].op, sequences[_i].flags, 0);
	next = part(&rig, sequences[_i].next_op, sequences[_i].next_flags, 1);
	inject(&rig, &first);
	inject(&rig, &next);
	rig_event(&rig, IBV_EVENT_QP_REQ_ERR);
	rig_wait(rig.b.cq, IBV_WC_WR_FLUSH_ERR);
	ibv_query_qp(rig.b.qp, &attr, IBV_QP_STATE, &init);
	ck_assert_int_eq(attr.qp_state, IBV_QPS_ERR);
	ck_assert_int_eq(rig.b.memory[FULL + BYTES], 0);
	rig_close(&rig);
}

/* IBTA vol. 1, 9.8.2.2: dropped without a response. The next packet begins a new message. */
TEST_LOOP(unreliable_message_that_continues_as_another_is_dropped, 0, 2)
{
	struct fab_packet first, next, whole;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UC });
	rig_receive(&rig.b, 1, FULL + BYTES);
	first = part(&rig, sequences[_i].op, sequences[_i].flags, 0);
	next = part(&rig, sequences[_i].next_op, sequences[_i].next_flags, 1);
	whole = part(&rig, FAB_OP_SEND, FAB_FIRST | FAB_LAST, 2);
	inject(&rig, &first);
	inject(&rig, &next);
	inject(&rig, &whole);
	ck_assert_uint_eq(rig_wait(rig.b.cq, IBV_WC_SUCCESS).wr_id, 1);
	ck_assert_int_eq(rig.b.memory[FULL + BYTES], 0);
	rig_close(&rig);
}

/* IBTA vol. 1, table 71. The second packet exists to be waited for. */
TEST(unreliable_connection_executes_no_atomic)
{
	struct fab_packet atomic, whole;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UC });
	rig_receive(&rig.b, 1, FULL + BYTES);
	atomic = part(&rig, FAB_OP_FETCH_ADD, 0, 0);
	whole = part(&rig, FAB_OP_SEND, FAB_FIRST | FAB_LAST, 1);
	inject(&rig, &atomic);
	inject(&rig, &whole);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(rig.b.memory[BYTES], 0);
	rig_close(&rig);
}
