/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enhanced connection establishment: each side tells the vendor of its device and which of that
 * vendor's options it would like, in REQ and REP. What is told for a program's own queue pair the
 * program says; for a queue pair of the library, its driver. All of it is in the program's threads.
 */
#ifndef LIB_VERBS_ECE_H
#define LIB_VERBS_ECE_H

#include "lib/id/id.h"

/** ece_put_req() - into a REQ: who we are and what we would like. */
void ece_put_req(const struct id *id, struct cm_msg *msg);

/** ece_put_rep() - into a REP: the peer's vendor, whose options we understood, and ours. */
void ece_put_rep(const struct id *id, struct cm_msg *msg);

/**
 * ece_begin() - a queue pair was made for an id: ask its driver, and tell it what a REQ said
 * @qp: in RESET
 *
 * A driver that knows nothing of ECE is no error, here and below.
 *
 * Return: 0 or -errno.
 */
int ece_begin(struct id *id, struct ibv_qp *qp);

/** ece_ask() - learn what the driver offers once the queue pair is in INIT. Return: 0 or -errno. */
int ece_ask(struct id *id, struct ibv_qp *qp);

/**
 * ece_agree() - tell the id's queue pair what the REP said
 *
 * Return: 0; -EINVAL if the REP speaks of another vendor than our REQ did; the driver's own error,
 * positive, as the program is shown it in the event.
 */
int ece_agree(struct id *id);

#endif
