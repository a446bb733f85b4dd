/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a connection of Bob's can have come when he dies, and what its peer hears then.
 */
#ifndef TESTS_UNIT_PORTD_LIVES_H
#define TESTS_UNIT_PORTD_LIVES_H

#include "tests/unit/portd/scene.h"

#define LIFE_REMOTE_ID 0x701 /* what its peer calls it */
#define LIFE_N	       16

struct life {
	void (*come_so_far)(void);
	const char *end; /* as scene_wire() says it */
};

extern const struct life life[LIFE_N];

/** life_id() - its comm id: the first of Bob's that he uses. */
uint32_t life_id(void);

/** life_is_connected() - one of them: Bob has connected. */
void life_is_connected(void);

#endif
