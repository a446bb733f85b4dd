/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The legal orders, written from the protocol and not from the code, and a small automaton that
 * follows them: every letter of an expression is a position with a set of possible successors
 * (Glushkov's construction). See order.h.
 */
#include "tests/sim/order.h"

#undef NDEBUG /* assert() must execute its calls in release builds, too */
#include <assert.h>
#include <ctype.h>
#include <stddef.h>

#define POSITIONS_MAX 63
#define START	      UINT64_C(1) /* position 0: no letter was read */

/*
 * Calls, in capitals: Q asks for a connection, P accepts, R confirms (RTU), J rejects, M sends MRA,
 * E is established by the peer's data, D disconnects, A answers a disconnect; S looks up, B answers
 * a lookup.
 *
 * Reports: r request, p accepted, e established, j rejected, s rejected as stale, u no answer, d
 * the peer disconnects, f the disconnect is answered, x it is not, t timewait is over, a the lookup
 * is answered.
 *
 * A connection is over with one of d f x j s, once; t follows all of them that leave a queue pair
 * behind, at once or, where an answer is owed (d), after it is given or has become needless.
 * Waiting for the caller may last for ever, waiting for the peer may not.
 */
#define OVER  "(d(A?t)? | ft | xt | jt | st)"
#define ALIVE "(" OVER " | D" OVER ")?"

static const char *const expression[ORDER_N_ROLES] = {
	[ORDER_ACTIVE] = "Q(u | j | st | J | pM?(J | jt | st | R" ALIVE ")?)",
	[ORDER_PASSIVE] = "rM?(J | j | st | P(u | Jt | j | st | d(A?t)? | E?e" ALIVE "))?",
	[ORDER_LOOKS_UP] = "S(a | u)",
	[ORDER_LOOKED_UP] = "rB?",
};

struct automaton {
	uint64_t follow[POSITIONS_MAX + 1];
	uint64_t letter['z' + 1]; /* the positions of the letter */
	uint64_t end;		  /* the possible last positions; START if none is required */
	unsigned int n_positions;
};

/* A part of an expression: its possible first and last positions, and whether it may be empty. */
struct part {
	uint64_t first;
	uint64_t last;
	bool empty;
};

struct parser {
	struct automaton *to;
	const char *at;
};

static struct automaton automata[ORDER_N_ROLES];
static bool built;

static struct part parse_choice(struct parser *parser);

static char peek(struct parser *parser)
{
	while (*parser->at == ' ')
		parser->at++;
	return *parser->at;
}

static void join(struct automaton *to, uint64_t last, uint64_t first)
{
	for (unsigned int i = 0; i <= to->n_positions; i++)
		if (last >> i & 1)
			to->follow[i] |= first;
}

static struct part parse_item(struct parser *parser)
{
	struct automaton *to = parser->to;
	struct part part;
	char c = peek(parser);

	parser->at++;
	if (c == '(') {
		part = parse_choice(parser);
		assert(peek(parser) == ')');
		parser->at++;
	} else {
		assert(isalpha(c) && to->n_positions < POSITIONS_MAX);
		part.first = part.last = UINT64_C(1) << ++to->n_positions;
		part.empty = false;
		to->letter[(unsigned char)c] |= part.first;
	}
	for (c = peek(parser); c == '?' || c == '*'; c = peek(parser)) {
		part.empty = true;
		if (c == '*')
			join(to, part.last, part.first);
		parser->at++;
	}
	return part;
}

static struct part parse_sequence(struct parser *parser)
{
	struct part all = { .empty = true }, item;
	char c;

	for (c = peek(parser); c && c != '|' && c != ')'; c = peek(parser)) {
		item = parse_item(parser);
		join(parser->to, all.last, item.first);
		all.first |= all.empty ? item.first : 0;
		all.last = item.last | (item.empty ? all.last : 0);
		all.empty = all.empty && item.empty;
	}
	return all;
}

static struct part parse_choice(struct parser *parser)
{
	struct part all = parse_sequence(parser), other;

	while (peek(parser) == '|') {
		parser->at++;
		other = parse_sequence(parser);
		all.first |= other.first;
		all.last |= other.last;
		all.empty = all.empty || other.empty;
	}
	return all;
}

static void build(void)
{
	built = true;
	for (int role = 0; role < ORDER_N_ROLES; role++) {
		struct parser parser = { .to = &automata[role], .at = expression[role] };
		struct part all = parse_choice(&parser);

		assert(!peek(&parser));
		automata[role].follow[0] = all.first;
		automata[role].end = all.last | (all.empty ? START : 0);
	}
}

struct order order_begin(enum order_role role)
{
	if (!built)
		build();
	return (struct order){ .role = role, .last = START };
}

static uint64_t after(const struct order *order, char letter)
{
	const struct automaton *automaton = &automata[order->role];
	uint64_t next = 0;

	for (uint64_t left = order->last; left; left &= left - 1)
		next |= automaton->follow[__builtin_ctzll(left)];
	return next & automaton->letter[(unsigned char)letter];
}

bool order_step(struct order *order, char letter)
{
	uint64_t next = after(order, letter);

	if (next)
		order->last = next;
	return next;
}

bool order_may(const struct order *order, char letter)
{
	return after(order, letter);
}

bool order_may_rest(const struct order *order)
{
	return order->last & automata[order->role].end;
}

const char *order_text(enum order_role role)
{
	return expression[role];
}
