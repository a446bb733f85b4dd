/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows and texts of purecm, by calling its functions: cases that the program does not reach. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/purecm/advice.h"
#include "tools/purecm/observation.h"
#include "tools/purecm/reading.h"
#include "tools/purecm/pcapng.h"

static const struct mad_gid a = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
static const struct mad_gid b = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 2 } };

#define N_KEPT 100

static struct flows *flows;
static struct flow_step step;

static void setup(void)
{
	flows = flows_new(N_KEPT, true);
	ck_assert_ptr_nonnull(flows);
}

static void teardown(void)
{
	flows_free(flows);
}

static enum observation_way way; /* of the test's observations */

static int add_message(const struct mad_gid *src, const struct mad_gid *dst, struct cm_msg *msg)
{
	static uint64_t time_ns;
	struct observation observation = {
		.time_ns = ++time_ns, .src = *src, .dst = *dst, .way = way
	};

	cm_msg_encode(msg, observation.mad);
	return flows_take(flows, &observation, msg, &step);
}

/* All but REQ and SIDR begin with the two ids. */
static struct flow *add_flow(const struct mad_gid *src, enum cm_attr attr, uint32_t local,
			     uint32_t remote)
{
	struct cm_msg msg;

	cm_msg_init(&msg, attr, 1);
	msg.rtu.local_comm_id = local;
	if (attr != CM_ATTR_REQ)
		msg.rtu.remote_comm_id = remote;
	ck_assert_int_eq(add_message(src, src == &a ? &b : &a, &msg), 0);
	return step.flow;
}

static void connect(uint32_t local, uint32_t remote)
{
	add_flow(&a, CM_ATTR_REQ, local, 0);
	add_flow(&b, CM_ATTR_REP, remote, local);
	add_flow(&a, CM_ATTR_RTU, local, remote);
}

START_TEST(message_of_a_host_to_itself_counts_once)
{
	way = WAY_OUT;
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	way = WAY_IN;
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	way = WAY_UNKNOWN;
	ck_assert(step.is_copy);
}
END_TEST

START_TEST(message_that_a_traced_host_sends_twice_counts_twice)
{
	way = WAY_OUT;
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	way = WAY_UNKNOWN;
	ck_assert(!step.is_copy);
	ck_assert_uint_eq(step.nth, 2);
}
END_TEST

START_TEST(both_ends_may_have_the_same_comm_id)
{
	connect(7, 7);
	ck_assert_ptr_eq(add_flow(&b, CM_ATTR_DREQ, 7, 7), flows_get(flows, 0));
	ck_assert_int_eq(step.from, FLOW_PASSIVE);
	ck_assert_uint_eq(flows_count(flows), 1);
}
END_TEST

START_TEST(connections_in_both_directions_with_the_same_ids_are_two)
{
	connect(7, 8);
	add_flow(&b, CM_ATTR_REQ, 7, 0);
	add_flow(&a, CM_ATTR_REP, 9, 7);
	ck_assert_uint_eq(flows_count(flows), 2);
	ck_assert_uint_eq(step.flow->number, 2);
	ck_assert_int_eq(step.from, FLOW_PASSIVE);
}
END_TEST

START_TEST(reused_comm_id_starts_a_new_flow)
{
	struct cm_msg again;

	connect(7, 8);
	cm_msg_init(&again, CM_ATTR_REQ, 1);
	again.req.local_comm_id = 7;
	again.req.starting_psn = 99;
	ck_assert_int_eq(add_message(&a, &b, &again), 0);
	ck_assert_uint_eq(step.flow->number, 2);
	ck_assert_ptr_eq(add_flow(&b, CM_ATTR_REP, 8, 7), flows_get(flows, 1));
}
END_TEST

START_TEST(crossing_disconnects_are_no_retransmissions)
{
	connect(7, 8);
	add_flow(&a, CM_ATTR_DREQ, 7, 8);
	add_flow(&b, CM_ATTR_DREQ, 8, 7);
	ck_assert_uint_eq(step.nth, 1);
	add_flow(&a, CM_ATTR_DREP, 7, 8);
	ck_assert_int_eq(step.flow->outcome, FLOW_CLOSED);
}
END_TEST

/* A retransmitted REP without a comm id looks like a first one, illegal in this state. */
START_TEST(retransmission_that_looks_like_a_first_message_is_a_stray)
{
	way = WAY_OUT;
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	add_flow(&b, CM_ATTR_REP, 0, 7);
	ck_assert(!step.is_stray);
	add_flow(&b, CM_ATTR_REP, 0, 7);
	way = WAY_UNKNOWN;
	ck_assert_uint_eq(step.nth, 2);
	ck_assert(step.is_stray);
}
END_TEST

START_TEST(a_lost_rtu_does_not_hide_the_disconnect)
{
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	add_flow(&b, CM_ATTR_REP, 8, 7);
	add_flow(&a, CM_ATTR_DREQ, 7, 8);
	ck_assert_int_eq(step.state[FLOW_PASSIVE], CM_DREQ_RCVD);
	ck_assert(!step.is_stray);
}
END_TEST

START_TEST(flow_captured_from_its_middle_is_followed_to_its_end)
{
	add_flow(&b, CM_ATTR_DREQ, 8, 7);
	ck_assert(!step.is_stray);
	add_flow(&a, CM_ATTR_DREP, 7, 8);
	ck_assert_uint_eq(flows_count(flows), 1);
	ck_assert_int_eq(step.flow->outcome, FLOW_CLOSED);
	ck_assert(!flow_has_failed(step.flow));
}
END_TEST

START_TEST(flow_knows_the_senders_of_its_messages)
{
	struct flows *all = flows_new(N_KEPT, false);
	struct observation observation = { .src = a, .dst = b };
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REQ, 1);
	ck_assert_int_eq(flows_take(all, &observation, &msg, &step), 0);
	ck_assert(flows_has_spoken(all, &a));
	ck_assert(!flows_has_spoken(all, &b));
	flows_free(all);
}
END_TEST

/* A host that forges addresses would fill the memory of a tracer that never ends. */
START_TEST(limited_store_keeps_no_senders)
{
	add_flow(&a, CM_ATTR_REQ, 7, 0);
	ck_assert(!flows_has_spoken(flows, &a));
}
END_TEST

START_TEST(limited_store_drops_the_oldest_flow)
{
	uint32_t i;

	for (i = 1; i <= N_KEPT + 5; i++)
		connect(i, i + 1000);
	ck_assert_uint_eq(flows_count(flows), N_KEPT + 5);
	ck_assert_ptr_null(flows_get(flows, 4));
	ck_assert_uint_eq(flows_get(flows, 5)->number, 6);
	ck_assert_uint_eq(flows_get(flows, N_KEPT + 4)->number, N_KEPT + 5);
	ck_assert_uint_eq(add_flow(&a, CM_ATTR_DREQ, 6, 1006)->number, 6);
	ck_assert_uint_eq(add_flow(&a, CM_ATTR_DREQ, 5, 1005)->number, N_KEPT + 6);
}
END_TEST

START_TEST(excess_flow_is_an_error_without_a_limit)
{
	struct flows *all = flows_new(1, false);
	struct observation observation = { .src = a, .dst = b };
	struct cm_msg msg;

	cm_msg_init(&msg, CM_ATTR_REQ, 1);
	msg.req.local_comm_id = 1;
	ck_assert_int_eq(flows_take(all, &observation, &msg, &step), 0);
	ck_assert_int_eq(flows_take(all, &observation, &msg, &step), 0);
	msg.req.local_comm_id = 2;
	ck_assert_int_eq(flows_take(all, &observation, &msg, &step), -ENOBUFS);
	flows_free(all);
}
END_TEST

START_TEST(every_text_names_known_facts)
{
	const struct advice *advice = advice_get((size_t)_i);
	const char *texts[] = { advice->what, advice->cause, advice->remedy };
	struct flow *flow = add_flow(&a, CM_ATTR_REQ, 7, 0);
	const struct context context = { flows, flow, flow->last_ns };
	FILE *nowhere = fopen("/dev/null", "w");
	size_t i;

	ck_assert_ptr_nonnull(nowhere);
	for (i = 0; i < 3; i++) {
		ck_assert_ptr_nonnull(texts[i]);
		ck_assert_int_eq(context_print(&context, texts[i], nowhere), 0);
		ck_assert_int_ne(texts[i][strlen(texts[i]) - 1], ' ');
	}
	fclose(nowhere);
}
END_TEST

START_TEST(wrapped_packets_are_found)
{
	struct observation made = { .src = a, .dst = b, .src_qpn = 0x77, .pkey = 0x8001 },
			   got = { 0 };
	uint8_t packet[WRAP_BYTES_MAX];
	enum link_type link_type = LINK_ETHERNET;
	size_t bytes;

	if (_i == 1) {
		memset(made.src.raw, 0xfd, sizeof(made.src.raw));
	} else if (_i == 2) {
		made.src = observation_gid_of_lid(3);
		made.dst = observation_gid_of_lid(4);
		made.network = NETWORK_INFINIBAND;
		link_type = LINK_ERF;
	}
	memset(made.mad, MAD_CLASS_CM, MAD_BYTES);
	bytes = wrap_mad(&made, link_type, packet);
	ck_assert_int_eq(frame_find_mad(link_type, packet, bytes, &got), 1);
	ck_assert_mem_eq(&got.src, &made.src, sizeof(made.src));
	ck_assert_mem_eq(&got.dst, &made.dst, sizeof(made.dst));
	ck_assert_mem_eq(got.mad, made.mad, MAD_BYTES);
	ck_assert_uint_eq(got.src_qpn, 0x77);
	ck_assert_uint_eq(got.pkey, 0x8001);
}
END_TEST

START_TEST(wrapped_messages_of_a_recording_keep_their_network)
{
	const struct trace_entry seen = {
		.way = _i & 1 ? PORTD_RECEIVED : PORTD_SENT,
		.path = { .dlid = _i < 4 ? 7 : 0, .grh = _i & 2, .dgid = b },
		.local_gid = a,
		.mad = { [1] = MAD_CLASS_CM }
	};
	struct observation made, got = { 0 };
	uint8_t packet[WRAP_BYTES_MAX];
	size_t bytes;

	recorded_observe(&seen, &made);
	bytes = wrap_mad(&made, LINK_ERF, packet);
	ck_assert_int_eq(frame_find_mad(LINK_ERF, packet, bytes, &got), 1);
	ck_assert_int_eq(got.network, made.network);
	ck_assert_mem_eq(&got.src, &made.src, sizeof(made.src));
	ck_assert_mem_eq(&got.dst, &made.dst, sizeof(made.dst));
}
END_TEST

static void record(const char *path, uint32_t comm_id, bool is_rejected)
{
	struct cm_msg msgs[2];
	struct trace_entry *entry;
	struct trace_ring ring;
	int i;

	cm_msg_init(&msgs[0], CM_ATTR_REQ, 1);
	msgs[0].req.local_comm_id = comm_id;
	cm_msg_init(&msgs[1], CM_ATTR_REJ, 1);
	msgs[1].rej.remote_comm_id = comm_id;
	ck_assert_int_eq(trace_ring_open(&ring, open(path, O_RDWR | O_CREAT, 0600), 2), 0);
	for (i = 0; i < 1 + is_rejected; i++) {
		entry = trace_ring_begin(&ring);
		entry->time_ns = (uint64_t)i + 1;
		entry->way = i ? PORTD_RECEIVED : PORTD_SENT;
		entry->local_gid = a;
		entry->path.grh = true;
		entry->path.dgid = b;
		cm_msg_encode(&msgs[i], entry->mad);
		trace_ring_end(&ring);
	}
	trace_ring_fini(&ring);
}

/* The recording is replaced once it is open. Writing to a FIFO waits for its reader. */
START_TEST(outcomes_of_a_recording_are_those_of_its_messages)
{
	char folder[] = "/tmp/purecm-test-XXXXXX", lines[4096];
	const char *argv[] = { "trace", "--recorded", "--outcome=rejected", "--json", "-w",
			       "fifo",	NULL };
	int status, n = 0, ends[2], events = inotify_init();
	ssize_t bytes;
	pid_t child;

	ck_assert(mkdtemp(folder) && !chdir(folder) && !pipe(ends) && !mkfifo("fifo", 0600));
	setenv("PURECM_SOCKET", strcat(strcpy(lines, folder), "/socket"), 1);
	record("socket.recorded", 7, true);
	ck_assert_int_ge(inotify_add_watch(events, "socket.recorded", IN_OPEN), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		exit(trace_main(6, (char **)(uintptr_t)argv));
	}
	close(ends[1]);
	ck_assert_int_gt(read(events, lines, sizeof(lines)), 0);
	record("later", 8, false);
	ck_assert(!rename("later", "socket.recorded"));
	ck_assert_int_ge(open("fifo", O_RDONLY), 0);
	while ((bytes = read(ends[0], lines, sizeof(lines))) > 0)
		while (bytes--)
			n += lines[bytes] == '\n';
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(n, 2);
	ck_assert(!remove("socket.recorded") && !remove("fifo") && !rmdir(folder));
}
END_TEST

#define N_SAID (N_KEPT * 2)

static int repeat_message(struct source *source, struct observation *ret)
{
	ret->number = ++source->counts.packets;
	source->counts.mads++;
	return source->counts.packets <= N_SAID;
}

static int keep_flows(void *arg, const struct observation *observation)
{
	(*(unsigned int *)arg)++;
	return observation->number > N_KEPT ? -ENOBUFS : 0;
}

START_TEST(excess_packets_are_skipped)
{
	struct source source = { .name = "huge", .next = repeat_message };
	unsigned int n_taken = 0;

	ck_assert_int_eq(reading_source(&source, false, keep_flows, &n_taken), SOURCE_CUT);
	ck_assert_uint_eq(n_taken, N_SAID);
}
END_TEST

static int count_advice(void)
{
	int n = 0;

	while (advice_get((size_t)n))
		n++;
	return n;
}

static Suite *flow_suite(void)
{
	Suite *suite = suite_create("flow");
	TCase *tcase = tcase_create("flow");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, both_ends_may_have_the_same_comm_id);
	tcase_add_test(tcase, message_of_a_host_to_itself_counts_once);
	tcase_add_test(tcase, message_that_a_traced_host_sends_twice_counts_twice);
	tcase_add_test(tcase, connections_in_both_directions_with_the_same_ids_are_two);
	tcase_add_test(tcase, reused_comm_id_starts_a_new_flow);
	tcase_add_test(tcase, crossing_disconnects_are_no_retransmissions);
	tcase_add_test(tcase, retransmission_that_looks_like_a_first_message_is_a_stray);
	tcase_add_test(tcase, a_lost_rtu_does_not_hide_the_disconnect);
	tcase_add_test(tcase, flow_captured_from_its_middle_is_followed_to_its_end);
	tcase_add_test(tcase, flow_knows_the_senders_of_its_messages);
	tcase_add_test(tcase, limited_store_keeps_no_senders);
	tcase_add_test(tcase, limited_store_drops_the_oldest_flow);
	tcase_add_test(tcase, excess_flow_is_an_error_without_a_limit);
	tcase_add_test(tcase, excess_packets_are_skipped);
	tcase_add_loop_test(tcase, every_text_names_known_facts, 0, count_advice());
	tcase_add_test(tcase, outcomes_of_a_recording_are_those_of_its_messages);
	tcase_add_loop_test(tcase, wrapped_packets_are_found, 0, 3);
	tcase_add_loop_test(tcase, wrapped_messages_of_a_recording_keep_their_network, 0, 8);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(flow_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
