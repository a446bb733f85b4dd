/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way in beside QP1: what peers send to the queue pair that our messages leave from. It comes
 * straight from the device's queue: no kernel thread, no system call a message, and no second look
 * for the sender's link address, which umad takes for each MAD. Only RoCE v2 has it.
 *
 * Made by sender.c, received from through mad_port.h by whoever has the sender.
 */
#ifndef MAD_INBOX_H
#define MAD_INBOX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "mad/port.h"

#define INBOX_SLOTS 2048 /* QP1 has 512, but a kernel that empties it at once */

#define INBOX_SGES  2 /* a receive: see post() */

struct inbox;

/**
 * inbox_new() - what a queue pair needs to receive
 * @pd:      of the queue pair
 * @n_slots: how many receives to post, INBOX_SLOTS at most
 *
 * Return: 0 and @ret, to be given back with inbox_free(), or what the device says.
 */
int inbox_new(struct ibv_pd *pd, uint8_t port_num, unsigned int n_slots, struct inbox **ret);

/** inbox_cq() - for the queue pair's making: its receptions complete here */
struct ibv_cq *inbox_cq(const struct inbox *inbox);

/** inbox_start() - @qp, which is past RESET, receives from now on. Return: 0 or -errno. */
int inbox_start(struct inbox *inbox, struct ibv_qp *qp);

/** inbox_port() - to receive from; its send() is -EOPNOTSUPP */
struct mad_port *inbox_port(struct inbox *inbox);

/**
 * inbox_answers_for() - may a peer answer here to what was sent from this GID?
 *
 * Only if it is of RoCE v2, and the port has it once: two interfaces may share a link-local
 * address. Any thread may call it.
 */
bool inbox_answers_for(struct inbox *inbox, uint8_t sgid_index);

/**
 * inbox_path_to_self() - from a GID of the port to itself; an IPv4 address if there is one, a
 * link's at last
 *
 * Return: 0; -ENOENT if it has none for which inbox_answers_for() holds.
 */
int inbox_path_to_self(struct inbox *inbox, struct mad_path *ret);

/** inbox_forget() - the port's GIDs may have changed; any thread may call it */
void inbox_forget(struct inbox *inbox);

/** inbox_free() - after its queue pair was destroyed; NULL is allowed */
void inbox_free(struct inbox *inbox);

#endif
