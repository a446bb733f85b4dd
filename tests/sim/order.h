/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Legal orders of events as regular expressions, and the progress of a sequence in one. An
 * expression has letters, | ? * ( ) and blanks; it may hold 62 letters. Used by the oracles, where
 * a letter is a call or a report of an application: see order.c for the expressions.
 */
#ifndef TESTS_SIM_ORDER_H
#define TESTS_SIM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* One expression per role. */
enum order_role {
	ORDER_ACTIVE,  /* requests a connection */
	ORDER_PASSIVE, /* gets a request */
	ORDER_LOOKS_UP,
	ORDER_LOOKED_UP,
	ORDER_N_ROLES,
};

/* The progress of a sequence: the possible last letters, as bits. */
struct order {
	enum order_role role;
	uint64_t last;
};

/** order_begin() - start an empty sequence. */
struct order order_begin(enum order_role role);

/**
 * order_step() - the next letter
 *
 * Return: false, and nothing changed, if no legal sequence continues with it.
 */
bool order_step(struct order *order, char letter);

/** order_may() - return whether a legal sequence can continue with a letter. */
bool order_may(const struct order *order, char letter);

/** order_may_rest() - return whether the sequence may end here. */
bool order_may_rest(const struct order *order);

/** order_text() - the expression of a role. */
const char *order_text(enum order_role role);

#endif
