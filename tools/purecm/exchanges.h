/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics of connections: time to respond, to connect and to disconnect, rejections by reason,
 * requests without a response.
 */
#ifndef TOOLS_PURECM_EXCHANGES_H
#define TOOLS_PURECM_EXCHANGES_H

#include "tools/purecm/observation.h"

struct exchanges;

/** exchanges_new() - create zeroed metrics for the life of the process. Return: NULL on ENOMEM. */
struct exchanges *exchanges_new(void);

/** exchanges_take() - count a message that passed this host */
void exchanges_take(struct exchanges *exchanges, const struct observation *observation);

/** exchanges_give_up() - count requests whose response is overdue; to be called periodically */
void exchanges_give_up(struct exchanges *exchanges, uint64_t now_ns);

/** exchanges_print() - print as in metric.h */
void exchanges_print(const struct exchanges *exchanges);

#endif
