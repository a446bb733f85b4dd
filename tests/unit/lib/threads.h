/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for threads without a guess at how long they take. */
#ifndef TESTS_UNIT_LIB_THREADS_H
#define TESTS_UNIT_LIB_THREADS_H

/** threads_wait_asleep() - until each other thread of the process sleeps, or has ended. */
void threads_wait_asleep(void);

#endif
