/* SPDX-License-Identifier: BSD-2-Clause */
/* Stages of a connection at which Bob's client dies, and the messages that its peer gets then. */
#ifndef TESTS_UNIT_PORTD_LIVES_H
#define TESTS_UNIT_PORTD_LIVES_H

#include "tests/unit/portd/scene.h"

#define LIFE_REMOTE_ID 0x701 /* the peer's comm id */
#define LIFE_N	       16

struct life {
	void (*come_so_far)(void);
	const char *end; /* in the notation of scene_wire() */
};

extern const struct life life[LIFE_N];

/** life_id() - its comm id: the first one that Bob's client uses. */
uint32_t life_id(void);

/** life_connect() - return whether Bob's client is connected at this stage. */
void life_connect(void);

#endif
