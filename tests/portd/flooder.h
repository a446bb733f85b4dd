/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What flooder.c does with sockets of its own. Each function does it once, and returns whether that
 * worked.
 */
#ifndef TESTS_PORTD_FLOODER_H
#define TESTS_PORTD_FLOODER_H

#include <stdbool.h>

/** die() - say what is wrong, and end; @err is a negative errno */
void die(const char *what, int err);

/** knock() - connect without a word, and leave: one who says nothing has spent nothing */
bool knock(void);

/** rattle() - knock, without waiting for those who came before */
bool rattle(void);

/** stay_silent() - connect without a word; the latest stay, so some are always about to speak */
bool stay_silent(void);

/** ask_for_devices_at_once() - as many requests in a datagram as there is room for */
bool ask_for_devices_at_once(void);

/** leave_lingering_sockets() - leave a socket whose close() waits in the queue of a connection */
bool leave_lingering_sockets(void);

/** send_lingering_sockets() - send a socket whose close() waits */
bool send_lingering_sockets(void);

#endif
