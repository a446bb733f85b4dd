/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: two ids that bind the same port. */
#include <sys/wait.h>

#include "steps.h"

enum kind {
	ANY,
	OWN,
	LOOPBACK
};

static struct sockaddr *pick(struct scene *s, enum kind kind)
{
	switch (kind) {
	case ANY:
		return any(s, s->port);
	case OWN:
		return at(&s->self, s->port);
	case LOOPBACK:
		return loopback(s, s->port);
	}
	return NULL;
}

static void set_flag(struct rdma_cm_id *id, int option, int value)
{
	if (rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof(value)))
		give_up("rdma_set_option: %s", strerror(errno));
}

struct case_of_two {
	enum kind first, second;
	int first_reuse, second_reuse;
};

static const struct case_of_two cases[] = {
	{ ANY, ANY, 0, 0 },	 { ANY, OWN, 0, 0 },	  { OWN, ANY, 0, 0 }, { OWN, OWN, 0, 0 },
	{ OWN, LOOPBACK, 0, 0 }, { LOOPBACK, OWN, 0, 0 }, { ANY, ANY, 1, 0 }, { ANY, ANY, 0, 1 },
	{ ANY, ANY, 1, 1 },	 { OWN, OWN, 1, 0 },	  { OWN, OWN, 0, 1 }, { OWN, OWN, 1, 1 },
	{ ANY, OWN, 1, 1 },
};

static void one_case(struct scene *s, const struct case_of_two *c)
{
	static const char *const names[] = { "any", "own", "loopback" };
	struct rdma_cm_id *first = open_id(s, "first", RDMA_PS_TCP);
	struct rdma_cm_id *second = open_id(s, "second", RDMA_PS_TCP);

	SAY("%s%s then %s%s", names[c->first], c->first_reuse ? " reuse" : "", names[c->second],
	    c->second_reuse ? " reuse" : "");
	if (c->first_reuse)
		set_flag(first, RDMA_OPTION_ID_REUSEADDR, 1);
	if (c->second_reuse)
		set_flag(second, RDMA_OPTION_ID_REUSEADDR, 1);
	DO(rdma_bind_addr(first, pick(s, c->first)));
	DO(rdma_bind_addr(second, pick(s, c->second)));
	DO(rdma_listen(first, 0));
	DO(rdma_listen(second, 0));
	close_id(second);
	close_id(first);
}

static void same_port_conflicts(struct scene *s)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		one_case(s, &cases[i]);
}

static void listening_ends_reuse(struct scene *s)
{
	struct rdma_cm_id *first = open_id(s, "first", RDMA_PS_TCP);
	struct rdma_cm_id *second = open_id(s, "second", RDMA_PS_TCP);
	int off = 0;

	set_flag(first, RDMA_OPTION_ID_REUSEADDR, 1);
	set_flag(second, RDMA_OPTION_ID_REUSEADDR, 1);
	DO(rdma_bind_addr(first, any(s, s->port)));
	DO(rdma_listen(first, 0));
	DO(rdma_bind_addr(second, any(s, s->port)));
	DO(rdma_listen(second, 0));
	DO(rdma_set_option(first, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off)));
	close_id(first);
	close_id(second);
}

static void port_spaces_are_separate(struct scene *s)
{
	static const int spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };
	struct rdma_cm_id *ids[3];
	size_t i;

	for (i = 0; i < 3; i++) {
		ids[i] = open_id(s, "id", spaces[i]);
		DO(rdma_bind_addr(ids[i], any(s, s->port)));
		DO(rdma_listen(ids[i], 0));
	}
	for (i = 0; i < 3; i++)
		close_id(ids[i]);
}

/* afonly: -1 leaves the default. */
static void families(struct scene *s, const char *first_addr, int first_afonly,
		     const char *second_addr, int second_afonly)
{
	struct rdma_cm_id *first = open_id(s, "first", RDMA_PS_TCP);
	struct rdma_cm_id *second = open_id(s, "second", RDMA_PS_TCP);

	SAY("%s afonly %d then %s afonly %d", first_addr, first_afonly, second_addr, second_afonly);
	if (first_afonly >= 0)
		set_flag(first, RDMA_OPTION_ID_AFONLY, first_afonly);
	if (second_afonly >= 0)
		set_flag(second, RDMA_OPTION_ID_AFONLY, second_afonly);
	DO(rdma_bind_addr(first, numeric(first_addr, s->port)));
	DO(rdma_bind_addr(second, numeric(second_addr, s->port)));
	close_id(second);
	close_id(first);
}

static void families_share_a_port_with_afonly(struct scene *s)
{
	families(s, "0.0.0.0", -1, "::", -1);
	families(s, "::", -1, "0.0.0.0", -1);
	families(s, "::", 1, "0.0.0.0", -1);
	families(s, "0.0.0.0", -1, "::", 1);
	families(s, "::", 1, "0.0.0.0", 0);
	families(s, "::", 0, "0.0.0.0", 1);
	families(s, "::1", -1, "127.0.0.1", -1);
}

static void destroyed_ids_free_their_port(struct scene *s)
{
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < 3; i++) {
		id = open_id(s, "id", RDMA_PS_TCP);
		DO(rdma_bind_addr(id, at(&s->self, s->port)));
		DO(rdma_listen(id, 0));
		close_id(id);
	}
}

static void bind_in_second_process(struct scene *s, int go)
{
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(1);
	open_channel(s);
	same_port_conflicts(s);
	fflush(stdout);
	_exit(0);
}

static void ports_are_shared_between_processes(struct scene *s)
{
	struct rdma_cm_id *id;
	int go[2], status;
	pid_t second;

	if (pipe(go))
		give_up("pipe: %s", strerror(errno));
	second = fork();
	if (!second)
		bind_in_second_process(s, go[0]);
	open_channel(s);
	id = open_id(s, "owner", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->self, s->port)));
	DO(rdma_listen(id, 0));
	if (write(go[1], "g", 1) != 1 || waitpid(second, &status, 0) != second)
		give_up("second process: %s", strerror(errno));
	SAY("second process ended with %d", status);
	close_id(id);
}

const struct scenario conflict_scenarios[] = {
	LOCAL("conflict-one-process", same_port_conflicts, 0,
	      "the same port twice: wildcard, own and loopback addresses, with and without reuse"),
	LOCAL("conflict-two-processes", ports_are_shared_between_processes, BARE,
	      "the same port in two processes"),
	LOCAL("conflict-listen-reuse", listening_ends_reuse, 0,
	      "what a listener with address reuse leaves to others"),
	LOCAL("conflict-port-spaces", port_spaces_are_separate, 0,
	      "one port number in three port spaces"),
	LOCAL("conflict-families", families_share_a_port_with_afonly, V4_ONLY,
	      "one port number in both address families, with AFONLY on and off"),
	LOCAL("conflict-freed", destroyed_ids_free_their_port, 0,
	      "a port is free again as soon as its id is destroyed"),
	LAST_SCENARIO,
};
