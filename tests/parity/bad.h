/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of meaningless calls: those of bad.c, which makes all of them, and of bad_values.c. */
#ifndef PARITY_BAD_H
#define PARITY_BAD_H

#include "parity.h"

#define BEYOND 99
#define HUGE   0x7fffffff

/* The state of an id. Stock follows pointers of ids that are not in the state it expects. */
enum progress {
	NEW,
	BOUND,
	ROUTED
};

struct bad_row {
	const char *what;
	int (*call)(struct scene *s, struct rdma_cm_id *id);
	enum progress from;
};

#define ROW(call) ROW_FROM(NEW, call)
#define ROW_FROM(from, call)      \
	{                         \
#call, call, from \
	}

extern const struct bad_row bad_values[];
extern const size_t n_bad_values;

#endif
