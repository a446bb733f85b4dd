/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for threads without assumptions about their duration. */
#ifndef TESTS_UNIT_LIB_THREADS_H
#define TESTS_UNIT_LIB_THREADS_H

/** threads_wait_asleep() - wait until each other thread of the process sleeps or has ended. */
void threads_wait_asleep(void);

#endif
