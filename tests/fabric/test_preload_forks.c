/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections in forked children, in other programs and in other processes, with librspreload.so.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/preload_rig.h"
#include "tests/unit/test.h"

FIXTURE(listen_and_connect, NULL);

#define MANY 1000000

/* Return: the child, which has called a function and ended with its result. */
static pid_t in_child(int (*work)(void))
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (!child)
		_exit(work());
	return child;
}

static void assert_ends(pid_t child)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

static void assert_no_more(int fd)
{
	struct pollfd it = { .fd = fd, .events = POLLIN };
	char byte;

	ck_assert_int_eq(poll(&it, 1, WAIT_MS), 1);
	ck_assert_int_eq(read(fd, &byte, 1), 0);
}

/* --- fork() ----------------------------------------------------------------- */

/* Also the names and options of TCP's. */
static int echo_word(void)
{
	struct sockaddr_in name;
	socklen_t bytes = sizeof(name);
	int on = 1, domain = 0;
	char word[5];

	close(the.here);
	if (recv(the.there, word, sizeof(word), MSG_WAITALL) != sizeof(word) ||
	    write(the.there, word, sizeof(word)) != sizeof(word))
		return 1;
	if (getsockname(the.there, (void *)&name, &bytes) || bytes != sizeof(name) ||
	    memcmp(&name, &the.addr, sizeof(name)))
		return 2;
	if (getpeername(the.there, (void *)&name, &bytes) || name.sin_family != AF_INET)
		return 3;
	bytes = sizeof(domain);
	if (setsockopt(the.there, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    getsockopt(the.there, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) || domain != AF_INET)
		return 4;
	return 0;
}

TEST(child_serves_what_its_parent_has_accepted)
{
	pid_t child = in_child(echo_word);

	close(the.there);
	assert_sends(the.here, the.here, "hello");
	assert_no_more(the.here);
	ck_assert(is_rdma(the.here));
	assert_ends(child);
}
END_TEST

static int wait_for_end(void)
{
	char byte;

	return read(0, &byte, 1) != 0;
}

/* Such as one that writes a file while the parent serves. */
TEST(connections_stay_rdmas_beside_a_child_that_does_not_use_them)
{
	int ends[2];
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	dup2(ends[0], 0);
	fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	child = fork();
	if (!child) {
		close(ends[1]);
		_exit(wait_for_end());
	}
	assert_sends(the.here, the.there, "hello");
	assert_sends(the.there, the.here, "again");
	ck_assert(is_rdma(the.here) && is_rdma(the.there));
	close(ends[1]);
	assert_ends(child);
	close(the.there);
	assert_no_more(the.here);
}
END_TEST

static int send_three(void)
{
	return write(the.there, "one", 3) != 3;
}

static void *receive_three(void *unused)
{
	char word[3];

	return recv(the.there, word, sizeof(word), MSG_WAITALL) == 3 ? NULL : unused;
}

/* The child's first use must not strand a parent that waits already. */
TEST(parent_and_child_use_a_connection)
{
	pthread_t thread;
	void *result;
	pid_t child;

	ck_assert_int_eq(pthread_create(&thread, NULL, receive_three, &the), 0);
	child = in_child(send_three);
	assert_got(the.here, "one");
	assert_ends(child);
	ck_assert_int_eq(write(the.here, "two", 3), 3);
	pthread_join(thread, &result);
	ck_assert_ptr_null(result);
	assert_sends(the.there, the.here, "three");
	close(the.there);
	assert_no_more(the.here);
}
END_TEST

TEST(a_parent_that_polls_hears_of_what_comes_after_a_child_used_the_connection)
{
	struct pollfd fd = { .fd = the.there, .events = POLLIN };
	pid_t child;

	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	child = in_child(send_three);
	if (!fork()) {
		/* The parent polls by then, or the test proves less. */
		assert_got(the.here, "one");
		poll(NULL, 0, 100);
		_exit(write(the.here, "two", 3) != 3);
	}
	ck_assert_int_eq(poll(&fd, 1, WAIT_MS), 1);
	assert_got(the.there, "two");
	assert_ends(child);
	wait(NULL);
}
END_TEST

TEST(an_epoll_of_the_parent_goes_on_after_a_child_used_its_member)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 7 };
	pid_t child;

	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_ADD, the.there, &event), 0);
	child = in_child(send_three);
	assert_got(the.here, "one");
	assert_ends(child);
	ck_assert_int_eq(write(the.here, "two", 3), 3);
	event.data.u64 = 0;
	ck_assert_int_eq(epoll_wait(epfd, &event, 1, WAIT_MS), 1);
	ck_assert_int_eq(event.data.u64, 7);
	assert_got(the.there, "two");
	ck_assert_int_eq(epoll_wait(epfd, &event, 1, 0), 0);
	event.events = EPOLLOUT;
	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_MOD, the.there, &event), 0);
	ck_assert_int_eq(epoll_wait(epfd, &event, 1, WAIT_MS), 1);
	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_DEL, the.there, NULL), 0);
}
END_TEST

static int serve_from_grandchild(void)
{
	pid_t child = fork();

	if (child)
		_exit(child < 0);
	return echo_word();
}

TEST(a_grandchild_serves_when_its_parent_has_ended)
{
	assert_ends(in_child(serve_from_grandchild));
	close(the.there);
	assert_sends(the.here, the.here, "hello");
	assert_no_more(the.here);
}
END_TEST

static int use_and_sleep(void)
{
	if (write(the.there, "hello", 5) == 5)
		pause();
	return 1;
}

TEST(peer_of_a_child_that_is_killed_sees_the_end)
{
	pid_t child = in_child(use_and_sleep);

	close(the.there);
	assert_got(the.here, "hello");
	kill(child, SIGKILL);
	assert_no_more(the.here);
	waitpid(child, NULL, 0);
}
END_TEST

static int sleep_only(void)
{
	return pause();
}

TEST(peer_of_a_child_that_is_killed_before_it_used_the_connection_sees_the_end)
{
	pid_t child = in_child(sleep_only);

	close(the.there);
	kill(child, SIGKILL);
	assert_no_more(the.here);
	waitpid(child, NULL, 0);
}
END_TEST

static int close_and_sleep(void)
{
	close(the.there);
	return pause();
}

TEST(a_child_need_not_end_to_give_a_connection_up)
{
	pid_t child = in_child(close_and_sleep);

	close(the.there);
	assert_no_more(the.here);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
END_TEST

static char byte_at(size_t i)
{
	return (char)(i * 7 + i / 251);
}

static int echo_until_end(void)
{
	static char some[70000];
	ssize_t n;

	close(the.here);
	while ((n = read(the.there, some, sizeof(some))) > 0)
		for (ssize_t at = 0, sent; at < n; at += sent) {
			sent = write(the.there, some + at, (size_t)(n - at));
			if (sent < 0)
				return 1;
		}
	return n < 0;
}

static void *send_many(void *unused)
{
	static char all[MANY];

	for (size_t i = 0; i < MANY; i++)
		all[i] = byte_at(i);
	if (send(the.here, all, MANY, 0) != MANY || shutdown(the.here, SHUT_WR))
		return &the;
	return unused;
}

TEST(many_bytes_go_both_ways_until_each_end_has_shut_down)
{
	static char all[MANY];
	pid_t child = in_child(echo_until_end);
	pthread_t thread;
	void *result;

	close(the.there);
	ck_assert_int_eq(pthread_create(&thread, NULL, send_many, NULL), 0);
	ck_assert_int_eq(recv(the.here, all, MANY, MSG_WAITALL), MANY);
	for (size_t i = 0; i < MANY; i++)
		ck_assert(all[i] == byte_at(i));
	assert_no_more(the.here);
	pthread_join(thread, &result);
	ck_assert_ptr_null(result);
	assert_ends(child);
}
END_TEST

static int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 65536; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

TEST(fifty_children_leave_nothing)
{
	int before = 0;

	for (int i = 0; i < 50; i++) {
		pid_t child = in_child(echo_word);

		close(the.there);
		assert_sends(the.here, the.here, "hello");
		assert_no_more(the.here);
		assert_ends(child);
		close(the.here);
		connect_pair();
		if (i == 9)
			before = count_open();
	}
	ck_assert_int_le(count_open(), before + 4);
}
END_TEST

static int use_in_nonblocking_mode(void)
{
	struct pollfd fd = { .fd = the.there, .events = POLLIN };
	char word[5];

	fcntl(the.there, F_SETFL, O_NONBLOCK);
	if (read(the.there, word, sizeof(word)) >= 0 || errno != EAGAIN)
		return 1;
	if (write(the.there, "go", 2) != 2 || poll(&fd, 1, WAIT_MS) != 1)
		return 2;
	return read(the.there, word, sizeof(word)) != 5;
}

TEST(a_child_uses_nonblocking_mode_and_poll)
{
	pid_t child = in_child(use_in_nonblocking_mode);

	assert_got(the.here, "go");
	ck_assert_int_eq(write(the.here, "hello", 5), 5);
	assert_ends(child);
}
END_TEST

/* Return: a listener, whose address the parent gets by a pipe. */
static int listen_elsewhere(int told)
{
	socklen_t bytes = sizeof(the.addr);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	the.addr.sin_port = 0;
	if (bind(listener, (void *)&the.addr, bytes) || listen(listener, 1) ||
	    getsockname(listener, (void *)&the.addr, &bytes) || write(told, &the.addr, bytes) < 0)
		_exit(1);
	return listener;
}

/* Return: a child that listens elsewhere, to which the.here is connected. */
static pid_t connect_to_child(int (*serve)(int told))
{
	int ends[2];
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	close(the.here);
	child = fork();
	if (!child)
		_exit(serve(ends[1]));
	ck_assert_int_eq(read(ends[0], &the.addr, sizeof(the.addr)), sizeof(the.addr));
	the.here = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(the.here, (void *)&the.addr, sizeof(the.addr)), 0);
	ck_assert(is_rdma(the.here));
	return child;
}

static int serve_by_child(int told)
{
	int listener = listen_elsewhere(told), fd = accept(listener, NULL, NULL);

	if (fork())
		return pause();
	if (write(fd, "hello", 5) == 5)
		pause();
	return 1;
}

/* Unlike TCP's. */
TEST(connections_end_with_the_process_that_has_the_queue_pair)
{
	pid_t child = connect_to_child(serve_by_child);

	assert_got(the.here, "hello");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_no_more(the.here);
}
END_TEST

/* --- standard streams and exit() --------------------------------------------- */

static int print_many(int told)
{
	int listener = listen_elsewhere(told), fd = accept(listener, NULL, NULL);

	if (dup2(fd, 1) != 1)
		return 1;
	for (int i = 0; i < MANY / 10; i++)
		printf("%09d\n", i);
	exit(0);
}

/* The C library's streams make system calls of their own, and the end is that of the process. */
TEST(what_is_printed_before_exit_arrives)
{
	pid_t child = connect_to_child(print_many);
	FILE *in = fdopen(the.here, "r");
	char line[16];

	for (int i = 0; i < MANY / 10; i++) {
		ck_assert_ptr_nonnull(fgets(line, sizeof(line), in));
		ck_assert_int_eq(atoi(line), i);
	}
	ck_assert_ptr_null(fgets(line, sizeof(line), in));
	assert_ends(child);
}
END_TEST

/* --- exec() --------------------------------------------------------------- */

static int run_cat(void)
{
	dup2(the.there, 0);
	dup2(the.there, 1);
	closefrom(3);
	execlp("cat", "cat", (char *)NULL);
	return 1;
}

TEST(cat_serves_what_its_parent_has_accepted)
{
	pid_t child = in_child(run_cat);

	close(the.there);
	assert_sends(the.here, the.here, "hello");
	shutdown(the.here, SHUT_WR);
	assert_no_more(the.here);
	assert_ends(child);
}
END_TEST

TEST(cat_of_vfork_serves)
{
	pid_t child = vfork();

	if (!child)
		_exit(run_cat());
	close(the.there);
	assert_sends(the.here, the.here, "hello");
	shutdown(the.here, SHUT_WR);
	assert_no_more(the.here);
	assert_ends(child);
}
END_TEST

TEST(cat_of_posix_spawn_serves)
{
	posix_spawn_file_actions_t actions;
	char name[] = "cat", *argv[] = { name, NULL };
	pid_t child;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, the.there, 0);
	posix_spawn_file_actions_adddup2(&actions, the.there, 1);
	posix_spawn_file_actions_addclose(&actions, the.there);
	ck_assert_int_eq(posix_spawnp(&child, "cat", &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(the.there);
	assert_sends(the.here, the.here, "hello");
	shutdown(the.here, SHUT_WR);
	assert_no_more(the.here);
	assert_ends(child);
}
END_TEST

/* --- SCM_RIGHTS ------------------------------------------------------------- */

static int pass(int to, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(to, &msg, 0) == 1 ? 0 : -1;
}

static int take(int from)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(from, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

TEST(a_connection_is_sent_to_another_process)
{
	int ends[2];
	pid_t child;

	close(the.there);
	close(the.here);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child = fork();
	if (!child) {
		the.there = take(ends[1]);
		_exit(echo_word());
	}
	connect_pair();
	ck_assert_int_eq(pass(ends[0], the.there), 0);
	close(the.there);
	assert_sends(the.here, the.here, "hello");
	assert_no_more(the.here);
	assert_ends(child);
}
END_TEST
