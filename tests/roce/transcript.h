/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All packets and completions of two ends of a world, as text.
 *
 * A line is a packet, ">" of the first end, "<" of the other one: name, of a message f(irst),
 * l(ast), a (ACK requested), s(olicited), i(mmediate), v (invalidates); PSN. Middle responses are
 * left out. Or a completion, "done" and the end; or an asynchronous event. The path MTU is 256, an
 * ACK is requested every 1024 bytes, a read is requested in parts of 1024, and a response is sent
 * in parts of 1024.
 */
#ifndef TESTS_ROCE_TRANSCRIPT_H
#define TESTS_ROCE_TRANSCRIPT_H

#include "tests/roce/world.h"

/** transcript_lost - the number of the packet to lose; UINT32_MAX: none. */
extern unsigned int transcript_lost;

/** transcript_open() - as world_open(), and start recording; no packet is lost. */
struct world *transcript_open(const struct world_config *config);

/** transcript_add() - add a line of the test's own. */
void transcript_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** transcript_forget() - drop the transcript so far. */
void transcript_forget(void);

/** transcript_check() - run until nothing happens; compare the transcript since the last check. */
void transcript_check(struct world *world, const char *wanted);

/** transcript_compare() - compare the transcript since the last check, without running. */
void transcript_compare(const char *wanted);

#endif
