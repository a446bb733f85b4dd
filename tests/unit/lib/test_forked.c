/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of the API in a forked child, with objects that existed before the fork, while
 * threads of the parent held their locks: the child must not wait for these.
 */
#include <fcntl.h>
#include <purecm/purecm.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

#define CALLS_MAX 128

static struct rdma_cm_id *id, *sync_id;
static struct rdma_event_channel *channel;
static struct rdma_cm_event *event;
static int stream, poller;

static const char *called[CALLS_MAX];
static unsigned int n_called;

static void note(const char *function)
{
	ck_assert_uint_lt(n_called, CALLS_MAX);
	called[n_called++] = function;
}

static void check_refusal(const char *function, ssize_t result, int err)
{
	note(function);
	ck_assert_msg(result == -1 && errno == err, "%s: %zd %s", function, result,
		      strerrorname_np(errno));
}

#define REFUSED(function, ...) check_refusal(#function, function(__VA_ARGS__), EACCES)
#define UNKNOWN(function, ...) check_refusal(#function, (ssize_t)function(__VA_ARGS__), EBADF)

/* For functions that return nothing, that succeed, or that get no inherited object. */
#define HARMLESS(function, ...) (note(#function), (void)function(__VA_ARGS__))

static void set_up(void)
{
	rig_begin_with(&rig_reporting);
	channel = &rig.channel->pub;
	id = &rig_routed(RDMA_PS_TCP)->pub;
	engine_lock();
	id_notify(id_of(id), RDMA_CM_EVENT_ADDR_CHANGE, 0);
	engine_unlock();
	event = rig_next();
	ck_assert_int_eq(rdma_create_id(NULL, &sync_id, NULL, RDMA_PS_TCP), 0);
	stream = rsocket(AF_INET, SOCK_STREAM, 0);
	poller = repoll_create(0);
	ck_assert(stream >= 0 && poller >= 0);
}

FIXTURE(set_up, NULL);

static void hold_locks(struct rdma_cm_id *of)
{
	pthread_mutex_lock(&id_of(of)->lock);
	pthread_mutex_lock(&id_of(of)->qp_lock);
	pthread_mutex_lock(&id_of(of)->channel->lock);
}

static void connect_and_accept(void)
{
	union addr peer = rig_peer(RIG_PORT);
	struct rdma_conn_param param = { 0 };

	REFUSED(rdma_bind_addr, id, &peer.sa);
	REFUSED(rdma_resolve_addr, id, NULL, &peer.sa, 1000);
	REFUSED(rdma_resolve_addr, sync_id, NULL, &peer.sa, 1000);
	REFUSED(rdma_resolve_route, id, 1000);
	REFUSED(rdma_listen, id, 1);
	REFUSED(rdma_get_request, sync_id, &id);
	REFUSED(rdma_connect, id, &param);
	REFUSED(rdma_accept, id, &param);
	REFUSED(rdma_reject, id, NULL, 0);
	REFUSED(rdma_reject_ece, id, NULL, 0);
	REFUSED(rdma_establish, id);
	REFUSED(rdma_notify, id, IBV_EVENT_COMM_EST);
	REFUSED(rdma_disconnect, id);
	HARMLESS(rdma_get_src_port, id);
	HARMLESS(rdma_get_dst_port, id);
}

static void make_verbs_objects(void)
{
	struct ibv_qp_init_attr_ex qp_ex = { 0 };
	struct ibv_srq_init_attr_ex srq_ex = { 0 };
	struct ibv_qp_init_attr qp = { 0 };
	struct ibv_srq_init_attr srq = { 0 };
	struct ibv_ece ece = { .vendor_id = 1 };
	struct ibv_qp_attr attr = { 0 };
	int mask;

	REFUSED(rdma_create_qp, id, NULL, &qp);
	REFUSED(rdma_create_qp_ex, id, &qp_ex);
	REFUSED(rdma_create_srq, id, NULL, &srq);
	REFUSED(rdma_create_srq_ex, id, &srq_ex);
	REFUSED(rdma_init_qp_attr, id, &attr, &mask);
	REFUSED(rdma_set_local_ece, id, &ece);
	REFUSED(rdma_get_remote_ece, id, &ece);
	HARMLESS(rdma_destroy_qp, id);
	HARMLESS(rdma_destroy_srq, id);
}

static void use_channels_and_names(void)
{
	struct rdma_cm_join_mc_attr_ex join = { 0 };
	union addr peer = rig_peer(0);
	struct rdma_addrinfo *info;
	struct rdma_cm_event *next;
	struct rdma_cm_id *other;
	char text[8];
	int one = 1;

	REFUSED(rdma_get_cm_event, channel, &next);
	REFUSED(rdma_create_id, channel, &other, NULL, RDMA_PS_TCP);
	REFUSED(rdma_migrate_id, id, NULL);
	REFUSED(rdma_set_option, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one));
	REFUSED(rdma_write_cm_event, id, RDMA_CM_EVENT_USER, 0, 0);
	REFUSED(rdma_join_multicast, id, &peer.sa, NULL);
	REFUSED(rdma_join_multicast_ex, id, &join, NULL);
	REFUSED(rdma_leave_multicast, id, &peer.sa);
	REFUSED(rdma_resolve_addrinfo, id, "localhost", NULL, NULL);
	REFUSED(rdma_query_addrinfo, id, &info);
	REFUSED(purecm_last_failure, id, text, sizeof(text));
}

/* A new id of the child cannot use a channel of the parent. */
static void move_own_id(void)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *new;

	ck_assert_int_eq(rdma_create_id(own, &new, NULL, RDMA_PS_TCP), 0);
	REFUSED(rdma_migrate_id, new, channel);
	ck_assert_int_eq(rdma_destroy_id(new), 0);
	rdma_destroy_event_channel(own);
	note("rdma_create_event_channel");
}

static void destroy_all(void)
{
	ck_assert_int_eq(rdma_ack_cm_event(event), 0);
	ck_assert_int_eq(rdma_destroy_id(id), 0);
	note("rdma_ack_cm_event");
	note("rdma_destroy_id");
	HARMLESS(rdma_destroy_ep, sync_id);
	HARMLESS(rdma_destroy_event_channel, channel);
}

static void use_sockets(void)
{
	union addr peer = rig_peer(RIG_PORT);
	struct epoll_event ready = { .events = EPOLLIN };
	struct iovec io = { .iov_base = &peer, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1 };
	socklen_t bytes = sizeof(peer);

	UNKNOWN(rbind, stream, &peer.sa, bytes);
	UNKNOWN(rlisten, stream, 1);
	UNKNOWN(raccept, stream, NULL, NULL);
	UNKNOWN(rconnect, stream, &peer.sa, bytes);
	UNKNOWN(rshutdown, stream, SHUT_RDWR);
	UNKNOWN(rread, stream, &peer, 1);
	UNKNOWN(rreadv, stream, &io, 1);
	UNKNOWN(rrecv, stream, &peer, 1, 0);
	UNKNOWN(rrecvfrom, stream, &peer, 1, 0, NULL, NULL);
	UNKNOWN(rrecvmsg, stream, &msg, 0);
	UNKNOWN(rwrite, stream, &peer, 1);
	UNKNOWN(rwritev, stream, &io, 1);
	UNKNOWN(rsend, stream, &peer, 1, 0);
	UNKNOWN(rsendto, stream, &peer, 1, 0, NULL, 0);
	UNKNOWN(rsendmsg, stream, &msg, 0);
	UNKNOWN(rgetsockname, stream, &peer.sa, &bytes);
	UNKNOWN(rgetpeername, stream, &peer.sa, &bytes);
	UNKNOWN(rgetsockopt, stream, SOL_SOCKET, SO_REUSEADDR, &peer, &bytes);
	UNKNOWN(rsetsockopt, stream, SOL_SOCKET, SO_REUSEADDR, &peer, sizeof(int));
	UNKNOWN(rfcntl, stream, F_GETFL);
	UNKNOWN(riomap, stream, &peer, 1, PROT_WRITE, 0, -1);
	UNKNOWN(riounmap, stream, &peer, 1);
	UNKNOWN(riowrite, stream, &peer, 1, 0, 0);
	ck_assert_int_eq(repoll_ctl(poller, EPOLL_CTL_ADD, stream, &ready), EBADF);
	ck_assert_int_eq(repoll_wait(poller, &ready, 1, 0), EBADF);
	note("repoll_ctl");
	note("repoll_wait");
	UNKNOWN(rclose, poller);
	UNKNOWN(rclose, stream);
}

/* These get no object of the parent, or a descriptor that is no socket. */
static void use_the_rest(void)
{
	struct pollfd one = { .fd = stream, .events = POLLIN };
	struct timeval now = { 0 };
	struct purecm_counters counters;
	struct rdma_addrinfo *info = NULL;

	HARMLESS(rpoll, &one, 1, 0);
	HARMLESS(rselect, 0, NULL, NULL, NULL, &now);
	HARMLESS(rclose, rsocket(AF_INET, SOCK_STREAM, 0));
	HARMLESS(rclose, repoll_create(0));
	note("rsocket");
	note("repoll_create");
	HARMLESS(rdma_getaddrinfo, "192.0.2.2", "7471", NULL, &info);
	HARMLESS(rdma_freeaddrinfo, info);
	HARMLESS(rdma_free_devices, rdma_get_devices(NULL));
	note("rdma_get_devices");
	HARMLESS(rdma_create_ep, NULL, NULL, NULL, NULL);
	HARMLESS(rdma_event_str, RDMA_CM_EVENT_USER);
	HARMLESS(purecm_get_counters, &counters, sizeof(counters));
	HARMLESS(purecm_set_trace, NULL, NULL);
	HARMLESS(purecm_reject_str, 8);
	HARMLESS(purecm_sidr_str, 1);
}

static bool was_called(const char *function)
{
	for (unsigned int i = 0; i < n_called; i++)
		if (!strcmp(called[i], function))
			return true;
	return false;
}

static void expect_all_called(void)
{
	FILE *file = fopen(SYMBOLS, "r");
	char line[128];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "@\n")] = '\0';
		ck_assert_msg(was_called(line), "%s is not in this test", line);
	}
	fclose(file);
}

static void call_all(void)
{
	connect_and_accept();
	make_verbs_objects();
	use_channels_and_names();
	move_own_id();
	use_sockets();
	use_the_rest();
	destroy_all();
	expect_all_called();
}

TEST(child_is_refused_every_call_with_inherited_objects)
{
	pid_t child;
	int status;

	hold_locks(id);
	hold_locks(sync_id);
	child = fork();
	if (!child) {
		call_all();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

/* A channel without an id, and so without an engine. */
TEST(child_is_refused_a_channel_that_never_had_an_id)
{
	struct rdma_event_channel *lone = rdma_create_event_channel();
	pid_t child = fork();
	int status;

	if (!child) {
		REFUSED(rdma_get_cm_event, lone, &event);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
