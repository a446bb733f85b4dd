/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enhanced connection establishment: REQ and REP carry each side's device vendor and the options of
 * that vendor that it proposes. The program sets them for its own queue pair, the driver for a
 * queue pair of the library. Used in the program's threads only.
 */
#ifndef LIB_VERBS_ECE_H
#define LIB_VERBS_ECE_H

#include "lib/id/id.h"

/** ece_put_req() - put the local vendor and options into a REQ. */
void ece_put_req(const struct id *id, struct cm_msg *msg);

/** ece_put_rep() - put the peer's vendor and the local options into a REP. */
void ece_put_rep(const struct id *id, struct cm_msg *msg);

/**
 * ece_begin() - exchange options with the driver of a new queue pair: its own, and a REQ's
 * @qp: in RESET
 *
 * Here and below, a driver without ECE support is no error.
 *
 * Return: 0 or -errno.
 */
int ece_begin(struct id *id, struct ibv_qp *qp);

/** ece_ask() - get the driver's options for a queue pair in INIT. Return: 0 or -errno. */
int ece_ask(struct id *id, struct ibv_qp *qp);

/**
 * ece_agree() - set the options of the REP in the id's queue pair
 *
 * Return: 0; -EINVAL if the REP has another vendor than our REQ; the driver's own positive error,
 * which the program gets in the event.
 */
int ece_agree(struct id *id);

#endif
