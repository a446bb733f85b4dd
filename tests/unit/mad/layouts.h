/* SPDX-License-Identifier: BSD-2-Clause */
/* All layouts of mad/ in one list, for tests of every row of every message. */
#ifndef TESTS_UNIT_MAD_LAYOUTS_H
#define TESTS_UNIT_MAD_LAYOUTS_H

#include "mad/wire.h"

struct known_layout {
	const struct wire_layout *layout;
	/* Sets the bytes of a host struct that belong to members, and clears padding. */
	void (*mark_members)(void *host);
};

extern const struct known_layout known_layouts[];
extern const int n_known_layouts;

/* All rows of all layouts, numbered from 0, for a Check loop test. */
int n_known_rows(void);
const struct wire_field *known_row(int i);

/*
 * Whether the compiler can distinguish members from padding; without it mark_members sets all
 * bytes.
 */
extern const int members_are_known;

#endif
