/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invalid replies of a cmportd to its client (lib/portd/client/portd_client.c, request.c,
 * portd_requests.c), and its death in between. Replies are written to the socket in advance.
 * tests/fuzz/fuzz_client.c found these cases.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#include "lib/portd/client/portd_requests.h"
#include "lib/portd/proto/datagram.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/test.h"

#define N_UNREAD 5000 /* more than a socket's buffer holds */

static int liar, its_data; /* cmportd's ends */
static int ours[2];	   /* ours: control and data */
static struct portd_client *client;
static struct portd_ids ids;
static struct portd_why why;

static int mortal_fd = -1; /* connected to once, instead of the fake; or -1 */

static int connect_to_liar(int *ret_fd, struct portd_why *ret_why)
{
	(void)ret_why;
	*ret_fd = mortal_fd >= 0 ? mortal_fd : fcntl(ours[0], F_DUPFD_CLOEXEC, 0);
	mortal_fd = -1;
	return *ret_fd < 0 ? -errno : 0;
}

/* Return: the other end. */
static int connect_to_mortal_once(void)
{
	int pair[2];

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	mortal_fd = pair[0];
	return pair[1];
}

static unsigned int n_hang_ups, n_reached;

/* Closes the first n_hang_ups connections before HELLO is answered. */
static int connect_to_hasty(int *ret_fd, struct portd_why *ret_why)
{
	int pair[2];

	if (n_reached++ >= n_hang_ups)
		return connect_to_liar(ret_fd, ret_why);
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	close(pair[1]);
	*ret_fd = pair[0];
	return 0;
}

static void set_up(void)
{
	int control[2], data[2];

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control));
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, data));
	ours[0] = control[0];
	liar = control[1];
	ours[1] = data[0];
	its_data = data[1];
	client = NULL;
	request_is_resumer = false;
}

static void tear_down(void)
{
	portd_client_close(client);
	close(liar);
	close(its_data);
	close(ours[0]);
	close(ours[1]);
}

static int new_page(int seals)
{
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert(!ftruncate(fd, LEASE_PAGE_BYTES));
	ck_assert(!fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void answer(const struct portd_reply *reply, const int fds[2])
{
	struct portd_record record = { .type = PORTD_REPLY, .reply = *reply };
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &record);
	ck_assert_int_eq(portd_datagram_send(liar, &out, fds, 0), 0);
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int open_client(int seals)
{
	struct portd_reply reply = { .first = 0x10000, .count = 0x10000 };
	int fds[2] = { ours[1], new_page(seals) };
	int err;

	answer(&reply, fds);
	err = portd_client_open_by(&client, connect_to_liar, &ids, &why);
	close(fds[1]);
	return err;
}

FIXTURE(set_up, tear_down);

TEST(client_retries_after_a_disconnect)
{
	int fds[2] = { ours[1], new_page(LEASE_SEALS) };

	n_hang_ups = 3;
	answer(&(struct portd_reply){ .first = 0x10000, .count = 0x10000 }, fds);
	ck_assert_int_eq(portd_client_open_by(&client, connect_to_hasty, &ids, &why), 0);
	close(fds[1]);
}

TEST(cmportd_that_only_disconnects_is_given_up)
{
	n_hang_ups = UINT_MAX;
	ck_assert_int_eq(portd_client_open_by(&client, connect_to_hasty, &ids, &why),
			 -ECONNREFUSED);
	ck_assert_uint_le(n_reached, 100);
	ck_assert_ptr_nonnull(strstr(why.text, "hangs up"));
}

static int status_of_child;

static void fork_child(unsigned int n_fds)
{
	pid_t child = fork();

	if (!child) {
		portd_client_after_fork();
		_exit(count_fds() != n_fds);
	}
	waitpid(child, &status_of_child, 0);
}

static int fork_at_liar(int *ret_fd, struct portd_why *ret_why)
{
	unsigned int n_fds = count_fds();
	int err = connect_to_liar(ret_fd, ret_why);

	fork_child(n_fds);
	return err;
}

TEST(child_has_no_socket_of_a_client_that_is_being_opened)
{
	int fds[2] = { ours[1], new_page(LEASE_SEALS) };

	answer(&(struct portd_reply){ .first = 0x10000, .count = 0x10000 }, fds);
	ck_assert_int_eq(portd_client_open_by(&client, fork_at_liar, &ids, &why), 0);
	close(fds[1]);
	ck_assert_int_eq(status_of_child, 0);
}

/* The parent has not yet noted it as its client. */
TEST(child_has_no_socket_of_a_client_that_was_just_opened)
{
	unsigned int n_fds = count_fds();

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	fork_child(n_fds);
	ck_assert_int_eq(status_of_child, 0);
}

TEST(page_that_could_be_truncated_is_refused)
{
	unsigned int before = count_fds();

	ck_assert_int_eq(open_client(F_SEAL_GROW), -EPROTO);
	ck_assert_uint_eq(count_fds(), before);
}

TEST(unrequested_descriptors_are_closed)
{
	struct portd_reply reply = { .first = 0x20000, .count = 0x10000 };
	unsigned int before;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	before = count_fds();
	answer(&reply, ours);
	ck_assert_int_eq(portd_lease_ids(client, &ids), 0);
	ck_assert_uint_eq(count_fds(), before);
}

/* For example, a late reply to another request. */
TEST(wrong_reply_ends_the_connection)
{
	const struct portd_record wrong = { .type = PORTD_GONE };
	struct portd_datagram out = { .bytes = 0 };
	struct portd_reply reply;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	portd_put(&out, &wrong);
	ck_assert_int_eq(portd_datagram_send(liar, &out, NULL, 0), 0);
	answer(&(struct portd_reply){ .count = 77 }, NULL);
	ck_assert_int_eq(portd_stat(client, 0, &reply), -EPROTO);
	ck_assert_int_lt(portd_stat(client, 0, &reply), 0);
}

/* Its socket fills up; no send may wait forever, nor may each of many. */
TEST(cmportd_that_does_not_read_blocks_no_send)
{
	const struct cm_record tracked = { .handle = 0 };
	struct timeval wait = { 0 };
	socklen_t bytes = sizeof(wait);
	const uint64_t begin = clock_ns();
	unsigned int i;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	ck_assert(!getsockopt(ours[0], SOL_SOCKET, SO_SNDTIMEO, &wait, &bytes));
	ck_assert(wait.tv_sec > 0 && wait.tv_sec * 1000 <= PORTD_ANSWER_MS);
	wait = (struct timeval){ .tv_usec = 20000 };
	ck_assert(!setsockopt(ours[0], SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)));
	for (i = 0; i < N_UNREAD; i++)
		portd_tell_tracked(client, &tracked);
	for (i = 0; i < N_UNREAD; i++)
		portd_release(client, i);
	ck_assert_uint_lt(clock_ns() - begin, N_UNREAD * UINT64_C(10000000));
}

TEST(text_without_a_terminator_is_terminated)
{
	struct portd_reply reply = { .error = ENXIO }, got;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	memset(reply.text, 'x', sizeof(reply.text));
	answer(&reply, NULL);
	ck_assert_int_eq(portd_open_port(client, "fake0", 1, portd_keep_reply, &got, &why), -ENXIO);
	ck_assert_uint_eq(strnlen(why.text, sizeof(why.text)), sizeof(why.text) - 1);
}

static void answer_resumption(int hold_ids_error)
{
	struct portd_reply hello = { .first = 0x10000, .count = 0x10000 };

	answer(&hello, (int[2]){ ours[1], -1 });
	answer(&(struct portd_reply){ .error = hold_ids_error }, NULL);
	answer(&(struct portd_reply){ .error = 0 }, NULL); /* to RESUMED */
}

static void report_nothing(struct portd_client *to, void *arg)
{
	(void)to, (void)arg;
}

static void report_port(struct portd_client *to, void *arg)
{
	*(int *)arg = portd_tell_port(to, "fake0", 1, &(struct portd_reply){ 0 });
}

TEST(port_is_not_refused_by_a_cmportd_that_dies_before_opening_it)
{
	struct portd_reply hello = { .first = 0x10000, .count = 0x10000 };
	int err = 0;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	answer(&hello, ours);				   /* to HELLO */
	answer(&(struct portd_reply){ .error = 0 }, NULL); /* to HOLD_IDS */
	shutdown(liar, SHUT_WR);
	ck_assert_int_eq(portd_resume(client, report_port, &err), -ECONNREFUSED);
	ck_assert(request_is_hang_up(err));
}

TEST(client_resumes_again_if_cmportd_dies_meanwhile)
{
	struct portd_reply hello = { .first = 0x10000, .count = 0x10000 };
	int mortal, live = liar;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	mortal = connect_to_mortal_once();
	liar = mortal;
	answer(&hello, ours); /* to HELLO; then it dies */
	shutdown(mortal, SHUT_WR);
	liar = live;
	answer(&hello, ours);				   /* to HELLO */
	answer(&(struct portd_reply){ .error = 0 }, NULL); /* to HOLD_IDS */
	answer(&(struct portd_reply){ .error = 0 }, NULL); /* to RESUMED */
	ck_assert_int_eq(portd_resume(client, report_nothing, NULL), 0);
	close(mortal);
}

/* Without them it could neither connect nor accept. */
TEST(client_does_not_resume_without_its_comm_ids)
{
	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	answer_resumption(EPERM);
	ck_assert_int_eq(portd_resume(client, report_nothing, NULL), -EPERM);
}

static void fill_and_tell(struct portd_client *to, void *arg)
{
	const struct portd_datagram any = { .bytes = 1 };
	const struct portd_record told = { .type = PORTD_SA_ASK };

	while (!portd_try_data(to, &any))
		;
	*(int *)arg = portd_tell_data(to, &told);
}

/* The record would be lost: after RESUMED nobody repeats it. */
TEST(client_does_not_resume_if_a_record_cannot_be_sent)
{
	int err = 0;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	answer_resumption(0);
	ck_assert_int_ne(portd_resume(client, fill_and_tell, &err), 0);
	ck_assert_int_eq(err, -EAGAIN);
}

static void *put_drop(void *ret_is_begun)
{
	const struct portd_record drop = { .type = PORTD_SA_DROP };

	*(_Atomic bool *)ret_is_begun = true;
	ck_assert_int_eq(portd_put_data(client, &drop), 0);
	return NULL;
}

static pthread_t putter;

static void put_and_tell(struct portd_client *to, void *arg)
{
	const struct portd_record told = { .type = PORTD_SA_ASK };
	_Atomic bool is_begun = false;

	(void)arg;
	ck_assert(!pthread_create(&putter, NULL, put_drop, &is_begun));
	while (!is_begun)
		sched_yield();
	threads_wait_asleep();
	ck_assert_int_eq(portd_tell_data(to, &told), 0);
}

static enum portd_type type_of_next(void)
{
	struct portd_record record = { .type = PORTD_NONE };
	struct portd_datagram in;

	ck_assert_int_gt(portd_datagram_receive(its_data, &in, NULL, 0), 0);
	ck_assert_int_eq(portd_get(&in, &record), 0);
	return record.type;
}

/* The record may name a port that the next cmportd has not opened yet. */
TEST(record_of_another_thread_comes_after_what_the_next_cmportd_is_told)
{
	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	answer_resumption(0);
	ck_assert_int_eq(portd_resume(client, put_and_tell, NULL), 0);
	ck_assert(!pthread_join(putter, NULL));
	ck_assert_int_eq(type_of_next(), PORTD_SA_ASK);
	ck_assert_int_eq(type_of_next(), PORTD_SA_DROP);
}

static void put_doubt(struct portd_client *to, void *arg)
{
	const struct portd_record doubt = { .type = PORTD_SA_REVALIDATE };

	*(int *)arg = portd_put_data(to, &doubt);
}

/* The program takes an event, perhaps of a channel that must not block. */
TEST(report_of_a_dead_path_waits_for_nothing)
{
	const struct portd_datagram any = { .bytes = 1 };
	int err = 0;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	answer_resumption(0);
	ck_assert_int_eq(portd_resume(client, put_doubt, &err), 0);
	ck_assert_int_eq(err, -EBUSY);
	while (!portd_try_data(client, &any))
		;
	setsockopt(ours[1], SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ 0 },
		   sizeof(struct timeval));
	put_doubt(client, &err);
	ck_assert_int_eq(err, -EAGAIN);
}

static void end_cmportd(void)
{
	shutdown(liar, SHUT_RDWR);
}

TEST(thread_that_resumes_does_not_wait_for_itself)
{
	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	ck_assert_int_eq(portd_receive(client, NULL, NULL), -EAGAIN);
	end_cmportd();
	ck_assert_int_eq(portd_lease_ids(client, &ids), -EPIPE);
}

/* A listener that waits for a device may open its first port in that thread. */
TEST(thread_that_will_resume_does_not_wait_for_itself)
{
	portd_resume_here();
	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	end_cmportd();
	ck_assert_int_eq(portd_lease_ids(client, &ids), -EPIPE);
	ck_assert_int_eq(portd_await(client), -EPIPE);
}

static void *lease_ids(void *ret)
{
	*(int *)ret = portd_lease_ids(client, &ids);
	return NULL;
}

static bool is_broken(void)
{
	bool broken;

	pthread_mutex_lock(&client->lock);
	broken = client->broken;
	pthread_mutex_unlock(&client->lock);
	return broken;
}

static int connect_to_nobody(int *ret_fd, struct portd_why *ret_why)
{
	(void)ret_fd, (void)ret_why;
	return -ENOENT;
}

/* The first attempt to resume fails; the cmportd of the second answers the request. */
TEST(request_outlives_an_attempt_to_resume_that_fails)
{
	struct portd_reply hello = { .first = 0x10000, .count = 0x10000 };
	int live = liar, result = -1;
	pthread_t asker;

	liar = connect_to_mortal_once();
	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	close(liar);
	liar = live;
	ck_assert(!pthread_create(&asker, NULL, lease_ids, &result));
	while (!is_broken())
		sched_yield();
	client->reach = connect_to_nobody;
	ck_assert_int_eq(portd_resume(client, report_nothing, NULL), -ENOENT);
	client->reach = connect_to_liar;
	answer(&hello, ours);				    /* to HELLO */
	answer(&(struct portd_reply){ .error = 0 }, NULL);  /* to HOLD_IDS */
	answer(&(struct portd_reply){ .error = 0 }, NULL);  /* to RESUMED */
	answer(&(struct portd_reply){ .count = 77 }, NULL); /* to LEASE_IDS */
	ck_assert_int_eq(portd_resume(client, report_nothing, NULL), 0);
	ck_assert(!pthread_join(asker, NULL));
	ck_assert_int_eq(result, 0);
}

/* Its callers hold locks that the resuming thread takes. */
TEST(opening_a_port_does_not_wait_for_the_next_cmportd)
{
	struct portd_reply reply;

	ck_assert_int_eq(open_client(LEASE_SEALS), 0);
	end_cmportd();
	ck_assert_int_eq(portd_open_port(client, "fake0", 1, portd_keep_reply, &reply, &why),
			 -EPIPE);
	ck_assert_int_eq(portd_open_port(client, "fake0", 1, portd_keep_reply, &reply, &why),
			 -EPIPE);
}
