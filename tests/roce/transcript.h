/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that two ends of a world send and complete, as text.
 *
 * A line is a packet, ">" of the first end, "<" of the other one: name, of a message f(irst),
 * l(ast), a (ACK asked for), s(olicited), i(mmediate),
 * v (invalidates); PSN. Middle responses are left out. Or a
 * completion, "done" and the end; or an asynchronous event. The path MTU is 256, an ACK is asked
 * for every 1024 bytes, a read is asked for in parts of 1024, and a response is sent in parts of
 * 1024.
 */
#ifndef TESTS_ROCE_TRANSCRIPT_H
#define TESTS_ROCE_TRANSCRIPT_H

#include "tests/roce/world.h"

/** transcript_lost - the number of the packet that is lost; UINT32_MAX: none. */
extern unsigned int transcript_lost;

/** transcript_open() - as world_open(), and listen; nothing is lost. */
struct world *transcript_open(const struct world_config *config);

/** transcript_say() - a line of the test's own. */
void transcript_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** transcript_forget() - what happened so far. */
void transcript_forget(void);

/** transcript_check() - run until nothing happens; all that happened since the last check is this.
 */
void transcript_check(struct world *world, const char *wanted);

/** transcript_compare() - all that was sent since the last check is this; nothing runs. */
void transcript_compare(const char *wanted);

#endif
