/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forged messages of connections of others: see flooder.h. Messages of another host are read from
 * the recording of its cmportd, as if the network had been captured, and are sent again, modified
 * as an attacker can, but from the flooder's address.
 */
#include "tests/portd/flooder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm/core.h"
#include "lib/portd/proto/trace_ring.h"

#define KEPT	  1024 /* number of latest messages */
#define UPDATE_AT 4096 /* forged messages */
#define IDS	  4096 /* a power of two */

static struct trace_reader reader;
static struct trace_entry kept[KEPT];
static unsigned int n_kept;
static uint32_t qpn_of[IDS]; /* by comm id */

/* Ignores messages that were forged before. */
static void learn(const struct mad_gid *own, const struct trace_entry *entry)
{
	struct cm_msg msg;

	if (memcmp(own, &entry->path.dgid, sizeof(*own)) == 0 ||
	    cm_msg_decode(entry->mad, MAD_BYTES, &msg))
		return;
	if (msg.hdr.attr_id == CM_ATTR_REQ)
		qpn_of[msg.req.local_comm_id % IDS] = msg.req.local_qpn;
	if (msg.hdr.attr_id == CM_ATTR_REP)
		qpn_of[msg.rep.local_comm_id % IDS] = msg.rep.local_qpn;
	kept[n_kept++ % KEPT] = *entry;
}

static void read_recording(const struct mad_gid *own)
{
	const char *path = getenv("FLOODER_RECORDING");
	struct trace_entry entry;
	int err;

	if (reader.ring)
		err = trace_reader_update(&reader);
	else
		err = trace_reader_open(&reader, path ? open(path, O_RDONLY | O_CLOEXEC) : -1);
	if (err)
		die("the recording", err);
	while (trace_reader_take(&reader, &entry))
		learn(own, &entry);
}

/* --- modifications of a message ------------------------------------------- */

/* All but REQ, SIDR_REQ and SIDR_REP begin with both comm ids. */
static bool has_both_ids(const struct cm_msg *msg)
{
	return msg->hdr.attr_id >= CM_ATTR_MRA && msg->hdr.attr_id <= CM_ATTR_DREP;
}

static void clear_fields(struct cm_msg *msg)
{
	(void)msg;
}

static void change_tid(struct cm_msg *msg)
{
	msg->hdr.tid ^= (uint64_t)random() + 1;
}

static void change_sender(struct cm_msg *msg)
{
	msg->rtu.local_comm_id ^= (uint32_t)random() + 1;
}

static void change_receiver(struct cm_msg *msg)
{
	if (has_both_ids(msg))
		msg->rtu.remote_comm_id ^= (uint32_t)random() % 0xffff + 1; /* in the block */
}

static void swap_ids(struct cm_msg *msg)
{
	const uint32_t sender = msg->rtu.local_comm_id;

	if (!has_both_ids(msg))
		return;
	msg->rtu.local_comm_id = msg->rtu.remote_comm_id;
	msg->rtu.remote_comm_id = sender;
}

static void copy_fields(struct cm_msg *msg, enum cm_attr attr)
{
	const struct cm_rtu rtu = msg->rtu;
	const uint64_t tid = msg->hdr.tid;

	cm_msg_init(msg, attr, tid);
	msg->rtu.local_comm_id = rtu.local_comm_id;
	msg->rtu.remote_comm_id = rtu.remote_comm_id;
}

static void make_dreq(struct cm_msg *msg)
{
	if (!has_both_ids(msg))
		return;
	copy_fields(msg, CM_ATTR_DREQ);
	msg->dreq.remote_qpn = qpn_of[msg->dreq.remote_comm_id % IDS];
}

static void make_drep(struct cm_msg *msg)
{
	if (has_both_ids(msg))
		copy_fields(msg, CM_ATTR_DREP);
}

static void make_rtu(struct cm_msg *msg)
{
	if (has_both_ids(msg))
		copy_fields(msg, CM_ATTR_RTU);
}

static void make_rej(struct cm_msg *msg)
{
	static const enum cm_rej_reason reasons[] = { CM_REJ_TIMEOUT, CM_REJ_CONSUMER,
						      CM_REJ_STALE_CONNECTION };

	if (!has_both_ids(msg))
		return;
	copy_fields(msg, CM_ATTR_REJ);
	msg->rej.reason = reasons[random() % 3];
	msg->rej.message = (uint8_t)(random() % 3);
}

static void make_mra(struct cm_msg *msg)
{
	if (!has_both_ids(msg))
		return;
	copy_fields(msg, CM_ATTR_MRA);
	msg->mra.message = (uint8_t)(random() % 3);
	msg->mra.service_timeout = 31;
}

/* Another connection of the same queue pair: the known one seems to be stale. */
static void request_again(struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		msg->req.local_comm_id ^= (uint32_t)random() + 1;
}

static void reply_again(struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REP)
		msg->rep.local_qpn ^= 1;
}

static void (*const changes[])(struct cm_msg *msg) = {
	clear_fields, change_tid, change_sender, change_receiver, swap_ids,	 make_dreq,
	make_drep,    make_rtu,	  make_rej,	 make_mra,	  request_again, reply_again,
};

/* A listener would accept it, from any host. */
static void use_unknown_service(struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		msg->req.service_id ^= 1;
}

void forge(const struct mad_gid *own, const struct mad_gid *victim, struct mad_gid *ret_to,
	   uint8_t ret[MAD_BYTES])
{
	static unsigned int n;
	const struct trace_entry *entry;
	struct cm_msg msg;

	if (n++ % UPDATE_AT == 0)
		read_recording(own);
	if (!n_kept)
		die("the recording", -ENODATA);
	entry = &kept[(unsigned int)random() % (n_kept < KEPT ? n_kept : KEPT)];
	*ret_to = *victim;
	if (memcmp(victim, &entry->local_gid, sizeof(*victim)) == 0 && random() % 2)
		*ret_to = entry->path.dgid;
	memcpy(ret, entry->mad, MAD_BYTES);
	if (cm_msg_decode(entry->mad, MAD_BYTES, &msg))
		return;
	changes[(unsigned int)random() % (sizeof(changes) / sizeof(changes[0]))](&msg);
	use_unknown_service(&msg);
	cm_msg_encode(&msg, ret);
}
