/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Legal orders of events as regular expressions, and how far a sequence has got in one. An
 * expression has letters, | ? * ( ) and blanks; it may hold 62 letters. Used by the oracles, where
 * a letter is something that an application calls or is told: see order.c for the expressions.
 */
#ifndef TESTS_SIM_ORDER_H
#define TESTS_SIM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* One expression a role. */
enum order_role {
	ORDER_ACTIVE,  /* asks for a connection */
	ORDER_PASSIVE, /* is asked */
	ORDER_LOOKS_UP,
	ORDER_LOOKED_UP,
	ORDER_N_ROLES,
};

/* How far a sequence has got: the letters that may have been the last one, as bits. */
struct order {
	enum order_role role;
	uint64_t last;
};

/** order_begin() - nothing has happened yet. */
struct order order_begin(enum order_role role);

/**
 * order_step() - the next letter
 *
 * Return: false, and nothing changed, if no legal sequence goes on with it.
 */
bool order_step(struct order *order, char letter);

/** order_may() - whether a legal sequence could go on with a letter. */
bool order_may(const struct order *order, char letter);

/** order_may_rest() - whether it is legal that nothing more comes. */
bool order_may_rest(const struct order *order);

/** order_text() - the expression of a role. */
const char *order_text(enum order_role role);

#endif
