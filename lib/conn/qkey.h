/* SPDX-License-Identifier: BSD-2-Clause */
/* The Q_Key of an id in RDMA_PS_IPOIB, which is that of its partition's broadcast group. */
#ifndef LIB_CONN_QKEY_H
#define LIB_CONN_QKEY_H

#include "lib/id/id.h"

/**
 * qkey_question() - the request for the record of the broadcast group; the engine's lock is held
 *
 * Return: true if it is in @ret; false if the Q_Key does not depend on it, or is known.
 */
bool qkey_question(const struct id *id, struct sa_msg *ret);

/**
 * qkey_learn() - set the Q_Key of a new id of a listener; no lock is held
 *
 * Waits for the subnet administrator, at most 3 s; without an answer the Q_Key is that of the other
 * port spaces.
 */
void qkey_learn(struct id *id);

#endif
