/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of connections, counted for a scraper: how long answers, connecting and
 * disconnecting take, refusals by reason, requests without an answer.
 */
#ifndef TOOLS_PURECM_EXCHANGES_H
#define TOOLS_PURECM_EXCHANGES_H

#include "tools/purecm/observation.h"

struct exchanges;

/** exchanges_new() - all zero. Return: to be given back with exchanges_free(); NULL: no memory. */
struct exchanges *exchanges_new(void);

/** exchanges_free() - NULL is allowed. */
void exchanges_free(struct exchanges *exchanges);

/** exchanges_take() - a message has passed this host. */
void exchanges_take(struct exchanges *exchanges, const struct observation *observation);

/** exchanges_give_up() - count requests that have waited too long for an answer; now and then. */
void exchanges_give_up(struct exchanges *exchanges, uint64_t now_ns);

/** exchanges_print() - as metric.h has it. */
void exchanges_print(const struct exchanges *exchanges);

#endif
