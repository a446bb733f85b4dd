/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the state machine as a page of docs/, from the table itself; state_table.py compares it
 * with the page.
 */
#include <stdio.h>

#include "cm/fsm.h"

static const char intro[] =
	"# The state machine\n"
	"\n"
	"For each state its events and the next state, printed from the table in `cm/fsm.c`; a test\n"
	"compares the two. `CALL_*` events come from the program, `RX_*` from the wire, `T_*` from a\n"
	"timer. An event that is not listed for a state is illegal there: the program gets EINVAL, a\n"
	"message is counted and dropped. `cm/conn.h` explains the states and events, `cm/action.h` the\n"
	"actions.\n";

static void print_state(enum cm_state state)
{
	const struct cm_edge *edge;
	unsigned int event;

	printf("\n## %s\n\n", cm_state_str(state));
	for (event = 0; event < CM_N_EVENTS; event++) {
		edge = cm_edge_of(state, (enum cm_event)event);
		if (edge->act)
			printf("- %s: %s\n", cm_event_str((enum cm_event)event),
			       edge->to == state ? "same" : cm_state_str(edge->to));
	}
}

int main(void)
{
	unsigned int state;

	fputs(intro, stdout);
	for (state = 0; state < CM_N_STATES; state++)
		print_state((enum cm_state)state);
	return 0;
}
