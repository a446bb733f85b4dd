/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the state machine as a page of docs/, from the table itself. Run by state_table.py,
 * which holds the page in docs/ against it.
 */
#include <stdio.h>

#include "cm/fsm.h"

static const char intro[] =
	"# The state machine\n"
	"\n"
	"This page is printed from the table in `cm/fsm.c`; a test compares the two. `CALL_*` events come\n"
	"from the program, `RX_*` from the wire, `T_*` from a timer. An event that is not listed for a\n"
	"state is illegal there: the program gets EINVAL, a message is counted and dropped. `cm/conn.h`\n"
	"explains the states and events, `cm/action.h` the actions.\n";

static void print_state(enum cm_state state)
{
	const struct cm_edge *edge;
	unsigned int event;

	printf("\n## %s\n\n| event | next state |\n|---|---|\n", cm_state_str(state));
	for (event = 0; event < CM_N_EVENTS; event++) {
		edge = cm_edge_of(state, (enum cm_event)event);
		if (edge->act)
			printf("| %s | %s |\n", cm_event_str((enum cm_event)event),
			       edge->to == state ? "same" : cm_state_str(edge->to));
	}
}

static void print_diagram(void)
{
	const struct cm_edge *edge;
	unsigned int state, event;

	printf("\n## All transitions\n\n```mermaid\nstateDiagram-v2\n");
	for (state = 0; state < CM_N_STATES; state++) {
		for (event = 0; event < CM_N_EVENTS; event++) {
			edge = cm_edge_of((enum cm_state)state, (enum cm_event)event);
			if (edge->act && edge->to != state)
				printf("  %s --> %s: %s\n", cm_state_str((enum cm_state)state),
				       cm_state_str(edge->to), cm_event_str((enum cm_event)event));
		}
	}
	printf("```\n");
}

int main(void)
{
	unsigned int state;

	fputs(intro, stdout);
	for (state = 0; state < CM_N_STATES; state++)
		print_state((enum cm_state)state);
	print_diagram();
	return 0;
}
