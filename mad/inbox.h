/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reception beside QP1: messages that peers send to the queue pair from which ours leave. They come
 * straight from the device's queue: without a kernel thread, without a system call per message, and
 * without the lookup of the sender's link address that umad does for each MAD. RoCE v2 only.
 *
 * Created by sender.c; the owner of the sender receives through mad/port.h, and serialises all
 * calls.
 */
#ifndef MAD_INBOX_H
#define MAD_INBOX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "mad/port.h"

#define INBOX_SLOTS	 2048 /* QP1 has 512, but the kernel empties it at once */

#define INBOX_SGES	 2 /* per receive: see post_slot() */

#define INBOX_GRH_BYTES	 40    /* before each datagram, written by the device */
#define INBOX_REST_BYTES 65536 /* no packet is larger */

/**
 * inbox_grh_gids() - the source and destination of a received datagram
 * @grh: what the device put in front of it: a GRH, or an IPv4 header in the last twenty bytes
 *
 * Return: 0; -EPROTO if it is neither.
 */
int inbox_grh_gids(const uint8_t grh[INBOX_GRH_BYTES], struct mad_gid *ret_source,
		   struct mad_gid *ret_dest);

struct inbox;

/**
 * inbox_new() - create the resources for receiving on a queue pair
 * @pd:      of the queue pair
 * @n_slots: number of receives to post, INBOX_SLOTS at most
 *
 * Return: 0, with @ret to be released with inbox_free(); or the error of the device.
 */
int inbox_new(struct ibv_pd *pd, uint8_t port_num, unsigned int n_slots, struct inbox **ret);

/** inbox_cq() - the receive CQ, for the creation of the queue pair */
struct ibv_cq *inbox_cq(const struct inbox *inbox);

/** inbox_start() - receive on @qp, which has left RESET. Return: 0 or -errno. */
int inbox_start(struct inbox *inbox, struct ibv_qp *qp);

/** inbox_port() - the port to receive from; its send() returns -EOPNOTSUPP */
struct mad_port *inbox_port(struct inbox *inbox);

/**
 * inbox_answers_for() - true if a peer may answer here to messages from this GID
 *
 * The GID must be of RoCE v2 and unique on the port: two interfaces may share a link-local address.
 */
bool inbox_answers_for(struct inbox *inbox, uint8_t sgid_index);

/** inbox_forget() - the port's GIDs may have changed */
void inbox_forget(struct inbox *inbox);

/** inbox_free() - free, after the queue pair was destroyed; NULL is allowed */
void inbox_free(struct inbox *inbox);

#endif
