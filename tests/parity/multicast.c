/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: joining and leaving multicast groups. Each scenario has groups of its own, made from its
 * port; memberships of the kernel are read from/proc. multicast_data.c has the scenarios in which
 * datagrams flow.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <infiniband/ib.h>

#include "groups.h"

/* The expected private data pointer of the event. */
static char context[] = "joined";

static void take_join(struct scene *s)
{
	struct rdma_cm_event *event = wait_event(s->channel);

	SAY("  private data is the context %d", event->param.ud.private_data == context);
	rdma_ack_cm_event(event);
}

static void join(struct scene *s, struct rdma_cm_id *id, struct sockaddr *group)
{
	if (!DO(rdma_join_multicast(id, group, context)))
		take_join(s);
}

static void join_to_send(struct scene *s, struct rdma_cm_id *id, struct sockaddr *group)
{
	struct rdma_cm_join_mc_attr_ex attr = send_only(group);

	if (!DO(rdma_join_multicast_ex(id, &attr, context)))
		take_join(s);
}

/* --- usual cases --------------------------------------------------------- */

static void resolved_id_joins(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_UDP);

	DO(rdma_resolve_addr(id, NULL, group(s, 1), RESOLVE_MS));
	take_event(s);
	show_id(id);
	make_qp(id);
	join(s, id, group(s, 1));
	show_id(id);
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_quiet(s->channel);
	close_id(id);
}

static void bound_id_joins(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	make_qp(id);
	join(s, id, group(s, 1));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	close_id(id);
}

static void id_without_queue_pair_joins(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	join(s, id, group(s, 1));
	show_member(s, 1);
	make_qp(id);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	close_id(id);
}

static void id_joins_to_send_only(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	make_qp(id);
	join_to_send(s, id, group(s, 1));
	show_member(s, 1);
	join(s, id, group(s, 1));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	close_id(id);
}

static void options_show_in_the_address(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	uint8_t tos = 0x48;

	DO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	join(s, id, group(s, 1));
	close_id(id);
}

/* --- the same group more than once --------------------------------------- */

static void one_id_joins_twice(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	make_qp(id);
	join(s, id, group(s, 1));
	join(s, id, group(s, 1));
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	close_id(id);
}

static void two_ids_join(struct scene *s)
{
	struct rdma_cm_id *one = bound_datagram_id(s, "one");
	struct rdma_cm_id *two = bound_datagram_id(s, "two");

	make_qp(one);
	make_qp(two);
	join(s, one, group(s, 1));
	join(s, two, group(s, 1));
	DO(rdma_leave_multicast(one, group(s, 1)));
	show_member(s, 1);
	close_id(two);
	show_member(s, 1);
	close_id(one);
}

/* A member until its parent closes the pipe. */
static void join_until(struct scene *s, int joined, int until)
{
	char byte = 0;

	join(s, bound_datagram_id(s, "other"), group(s, 1));
	if (write(joined, &byte, 1) != 1 || read(until, &byte, 1))
		give_up("pipe: %s", strerror(errno));
	exit(0);
}

static void processes_share_a_group(struct scene *s)
{
	int joined[2], until[2], status;
	struct rdma_cm_id *id;
	pid_t child;
	char byte;

	if (pipe(joined) || pipe(until))
		give_up("pipe: %s", strerror(errno));
	child = fork();
	if (!child) {
		close(until[1]);
		join_until(s, joined[1], until[0]);
	}
	if (read(joined[0], &byte, 1) != 1)
		give_up("the other process failed");
	id = bound_datagram_id(s, "id");
	join(s, id, group(s, 1));
	close(until[1]);
	if (waitpid(child, &status, 0) != child || status)
		give_up("the other process failed");
	show_member(s, 1);
	close_id(id);
	show_member(s, 1);
}

static void member_exits(struct scene *s)
{
	pid_t child = fork();
	int status;

	if (!child) {
		join(s, bound_datagram_id(s, "other"), group(s, 1));
		exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		give_up("the other process failed");
	show_member(s, 1);
}

static void many_groups_on_one_id(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	unsigned int n, joined = 0, left = 0;

	make_qp(id);
	for (n = 1; n <= MANY_GROUPS; n++) {
		if (rdma_join_multicast(id, group(s, n), context))
			break;
		expect_event(s, RDMA_CM_EVENT_MULTICAST_JOIN);
		joined += is_member(s, n);
	}
	SAY("joined and member %u", joined);
	for (n = 1; n <= MANY_GROUPS; n++)
		left += !rdma_leave_multicast(id, group(s, n)) && !is_member(s, n);
	SAY("left %u", left);
	close_id(id);
}

/* --- refused calls ------------------------------------------------------- */

static void arguments_are_checked(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	struct rdma_cm_join_mc_attr_ex attr = send_only(group(s, 1));

	attr.comp_mask = 4 | 3;
	DO(rdma_join_multicast_ex(id, &attr, context));
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	DO(rdma_join_multicast_ex(id, &attr, context));
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	DO(rdma_join_multicast_ex(id, &attr, context));
	attr.comp_mask = 0;
	DO(rdma_join_multicast_ex(id, &attr, context));
	attr.comp_mask = 3;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	DO(rdma_join_multicast_ex(id, &attr, context));
	attr.comp_mask = 8;
	attr.join_flags = 9;
	DO(rdma_join_multicast_ex(id, &attr, context));
	attr.comp_mask = 3;
	attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	attr.addr = &(struct sockaddr){ .sa_family = AF_UNIX };
	DO(rdma_join_multicast_ex(id, &attr, context));
	DO(rdma_join_multicast(id, attr.addr, context));
	DO(rdma_leave_multicast(id, attr.addr));
	DO(rdma_join_multicast(id, NULL, context));
	DO(rdma_leave_multicast(id, NULL));
	show_quiet(s->channel);
	close_id(id);
}

static void odd_groups_are_checked(struct scene *s)
{
	static const char *const v4[] = { "0.0.0.0",  "0.1.2.3",   "224.0.0.1",	      "224.0.0.251",
					  "10.1.2.3", "127.0.0.1", "255.255.255.255", NULL };
	static const char *const v6[] = { "::",	     "ff02::1", "ff12:a01b:fe80::1234",
					  "fd00::1", "::1",	"::ffff:239.1.2.3",
					  NULL };
	const char *const *text = s->family == AF_INET ? v4 : v6;
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	for (; *text; text++) {
		SAY("%s", *text);
		join(s, id, numeric(*text, 0));
		join_to_send(s, id, numeric(*text, 0));
		DO(rdma_leave_multicast(id, numeric(*text, 0)));
		DO(rdma_leave_multicast(id, numeric(*text, 0)));
	}
	close_id(id);
}

static void groups_of_other_family_are_refused(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	struct sockaddr_ib ib = { .sib_family = AF_IB };
	struct sockaddr *to;

	join(s, id, (struct sockaddr *)&ib);
	to = numeric(s->family == AF_INET ? "ff0e::77:1" : "239.77.0.1", 0);
	join(s, id, to);
	join_to_send(s, id, to);
	DO(rdma_leave_multicast(id, to));
	DO(rdma_leave_multicast(id, to));
	ib.sib_addr.sib_raw[0] = 0xff;
	ib.sib_addr.sib_raw[1] = 0x0e;
	ib.sib_addr.sib_raw[15] = 0x77;
	join(s, id, (struct sockaddr *)&ib);
	join_to_send(s, id, (struct sockaddr *)&ib);
	DO(rdma_leave_multicast(id, (struct sockaddr *)&ib));
	DO(rdma_leave_multicast(id, (struct sockaddr *)&ib));
	close_id(id);
}

static void try_join(struct scene *s, struct rdma_cm_id *id)
{
	DO(rdma_join_multicast(id, group(s, 1), context));
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	close_id(id);
}

static void joins_in_wrong_states(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "idle", RDMA_PS_UDP);

	try_join(s, id);
	id = open_id(s, "wildcard", RDMA_PS_UDP);
	DO(rdma_bind_addr(id, any(s, 0)));
	try_join(s, id);
	id = open_id(s, "loopback", RDMA_PS_UDP);
	DO(rdma_bind_addr(id, loopback(s, 0)));
	try_join(s, id);
	id = open_id(s, "route resolved", RDMA_PS_UDP);
	resolve(s, id, s->port);
	try_join(s, id);
	id = open_id(s, "connections", RDMA_PS_TCP);
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	try_join(s, id);
	id = open_id(s, "connections, resolved", RDMA_PS_TCP);
	DO(rdma_resolve_addr(id, NULL, group(s, 1), RESOLVE_MS));
	take_event(s);
	try_join(s, id);
	id = open_id(s, "IB space", RDMA_PS_IB);
	DO(rdma_bind_addr(id, at(&s->self, 0)));
	try_join(s, id);
	show_quiet(s->channel);
}

static void leaving_needs_the_same_bytes(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	struct sockaddr *with_port = at((void *)group(s, 1), 7);

	DO(rdma_leave_multicast(id, group(s, 1)));
	join(s, id, group(s, 1));
	DO(rdma_leave_multicast(id, with_port));
	DO(rdma_leave_multicast(id, group(s, 2)));
	DO(rdma_leave_multicast(id, group(s, 1)));
	join(s, id, with_port);
	DO(rdma_leave_multicast(id, group(s, 1)));
	close_id(id);
	show_member(s, 1);
}

static void queue_pair_cannot_be_attached(struct scene *s)
{
	struct rdma_cm_id *other = open_id(s, "connections", RDMA_PS_TCP);
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	DO(rdma_bind_addr(other, at(&s->self, 0)));
	make_qp(other);
	id->qp = other->qp; /* only datagram queue pairs can be attached */
	join(s, id, group(s, 1));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	id->qp = NULL;
	close_id(id);
	close_id(other);
}

/* --- events that are not taken, or not acknowledged ---------------------- */

static void events_are_not_taken(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	make_qp(id);
	DO(rdma_join_multicast(id, group(s, 1), context));
	SAY("an event waits %d", is_ready(s->channel, PATIENCE_MS));
	show_member(s, 1);
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_quiet(s->channel);
	show_member(s, 1);
	DO(rdma_join_multicast(id, group(s, 1), context));
	DO(rdma_join_multicast(id, group(s, 2), context));
	SAY("an event waits %d", is_ready(s->channel, PATIENCE_MS));
	DO(rdma_leave_multicast(id, group(s, 1)));
	take_join(s);
	DO(rdma_join_multicast(id, group(s, 1), context));
	SAY("an event waits %d", is_ready(s->channel, PATIENCE_MS));
	close_id(id);
	show_quiet(s->channel);
	show_member(s, 1);
	show_member(s, 2);
}

static void events_move_with_the_id(struct scene *s)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	DO(rdma_join_multicast(id, group(s, 1), context));
	SAY("an event waits %d", is_ready(s->channel, PATIENCE_MS));
	DO(rdma_migrate_id(id, other));
	show_quiet(s->channel);
	rdma_ack_cm_event(wait_event(other));
	DO(rdma_join_multicast(id, group(s, 2), context));
	rdma_ack_cm_event(wait_event(other));
	DO(rdma_leave_multicast(id, group(s, 1)));
	close_id(id);
	rdma_destroy_event_channel(other);
}

/* A call that must wait for an acknowledgement, in a thread of its own. */
struct blocked {
	pthread_t thread;
	struct rdma_cm_id *id;
	struct sockaddr_storage group; /* family 0: the id is destroyed */
	atomic_bool done;
	int result;
};

static void *leave_or_destroy(void *arg)
{
	struct blocked *blocked = arg;

	if (blocked->group.ss_family)
		blocked->result = rdma_leave_multicast(blocked->id, (void *)&blocked->group);
	else
		blocked->result = rdma_destroy_id(blocked->id);
	atomic_store(&blocked->done, true);
	return NULL;
}

static void start_thread_of(struct blocked *blocked, int patience_ms)
{
	atomic_store(&blocked->done, false);
	pthread_create(&blocked->thread, NULL, leave_or_destroy, blocked);
	for (; patience_ms && !atomic_load(&blocked->done); patience_ms--)
		pause_ms(1);
	SAY("has returned: %d", atomic_load(&blocked->done));
}

static void end_thread_of(struct blocked *blocked)
{
	pthread_join(blocked->thread, NULL);
	SAY("returned %d", blocked->result);
}

static void leaving_waits_for_acknowledgements(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	struct blocked blocked = { .id = id };
	struct rdma_cm_event *one, *two;

	DO(rdma_join_multicast(id, group(s, 1), context));
	one = wait_event(s->channel);
	DO(rdma_join_multicast(id, group(s, 2), context));
	two = wait_event(s->channel);
	memcpy(&blocked.group, group(s, 1), sizeof(blocked.group));
	start_thread_of(&blocked, QUIET_MS);
	rdma_ack_cm_event(two);
	pause_ms(QUIET_MS);
	SAY("the other group's acknowledged: %d", atomic_load(&blocked.done));
	show_member(s, 1);
	rdma_ack_cm_event(one);
	end_thread_of(&blocked);
	DO(rdma_join_multicast(id, group(s, 1), context));
	one = wait_event(s->channel);
	memcpy(&blocked.group, group(s, 2), sizeof(blocked.group));
	start_thread_of(&blocked, PATIENCE_MS);
	end_thread_of(&blocked);
	blocked.group.ss_family = 0;
	start_thread_of(&blocked, QUIET_MS);
	rdma_ack_cm_event(one);
	end_thread_of(&blocked);
}

static void attached_queue_pair_is_destroyed(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");

	make_qp(id);
	join(s, id, group(s, 1));
	errno = 0;
	rdma_destroy_qp(id);
	SAY("errno %d qp %s", errno, id->qp ? "set" : "NULL");
	DO(rdma_leave_multicast(id, group(s, 1)));
	show_member(s, 1);
	close_id(id);
}

static void id_is_destroyed_as_a_member(struct scene *s)
{
	struct rdma_cm_id *id = bound_datagram_id(s, "id");
	struct ibv_qp *qp;

	make_qp(id);
	qp = id->qp;
	join(s, id, group(s, 1));
	join(s, id, group(s, 2));
	DO(rdma_destroy_id(id));
	show_member(s, 1);
	show_member(s, 2);
	SAY("the queue pair that is left: %s", strerror(ibv_destroy_qp(qp)));
}

const struct scenario multicast_scenarios[] = {
	LOCAL("multicast-resolved", resolved_id_joins, 0, "join and leave, address resolved"),
	LOCAL("multicast-bound", bound_id_joins, 0, "join and leave on an id that is only bound"),
	LOCAL("multicast-no-qp", id_without_queue_pair_joins, 0, "join without a queue pair"),
	LOCAL("multicast-send-only", id_joins_to_send_only, 0, "join to send only"),
	LOCAL("multicast-tos", options_show_in_the_address, 0, "the type of service of a group"),
	LOCAL("multicast-twice", one_id_joins_twice, 0, "one id joins a group twice"),
	LOCAL("multicast-two-ids", two_ids_join, 0, "two ids join a group"),
	LOCAL("multicast-processes", processes_share_a_group, BARE,
	      "two processes of a host join a group; one ends as a member"),
	LOCAL("multicast-exit", member_exits, BARE, "the only member ends"),
	LOCAL("multicast-many", many_groups_on_one_id, 0, "more groups than a socket may join"),
	LOCAL("multicast-arguments", arguments_are_checked, 0, "arguments that are refused"),
	LOCAL("multicast-odd", odd_groups_are_checked, 0,
	      "groups that are none, and groups of the link"),
	LOCAL("multicast-other-family", groups_of_other_family_are_refused, 0,
	      "groups of another family than the id's"),
	LOCAL("multicast-states", joins_in_wrong_states, 0, "joins in states that do not allow it"),
	LOCAL("multicast-leave", leaving_needs_the_same_bytes, 0, "leaving what was not joined"),
	LOCAL("multicast-attach", queue_pair_cannot_be_attached, 0, "the queue pair is not fit"),
	LOCAL("multicast-untaken", events_are_not_taken, V4_ONLY, "events that nobody takes"),
	LOCAL("multicast-migrate", events_move_with_the_id, V4_ONLY,
	      "a join's event changes channels"),
	LOCAL("multicast-account", leaving_waits_for_acknowledgements, V4_ONLY,
	      "leaving waits for the group's events, destroying for all"),
	LOCAL("multicast-attached", attached_queue_pair_is_destroyed, 0,
	      "the queue pair goes first"),
	LOCAL("multicast-destroy", id_is_destroyed_as_a_member, 0, "the id goes first"),
	LAST_SCENARIO,
};
