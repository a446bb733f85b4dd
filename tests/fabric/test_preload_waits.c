/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for sockets with librspreload.so, by all functions of the C library. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/preload_rig.h"
#include "tests/unit/test.h"

FIXTURE(listen_and_connect, NULL);

#define SOON_MS 50 /* duration of checks that nothing happens */

/* The receiving end is ready, by each function that waits. */
static int wait_by_poll(int fd, int timeout_ms)
{
	struct pollfd fds = { .fd = fd, .events = POLLIN };

	return poll(&fds, 1, timeout_ms);
}

static struct timespec in_ms(int ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
}

static int wait_by_ppoll(int fd, int timeout_ms)
{
	struct pollfd fds = { .fd = fd, .events = POLLIN };
	struct timespec timeout = in_ms(timeout_ms);

	return ppoll(&fds, 1, &timeout, NULL);
}

static int wait_by_select(int fd, int timeout_ms)
{
	struct timeval timeout = { .tv_sec = timeout_ms / 1000,
				   .tv_usec = timeout_ms % 1000 * 1000 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return select(fd + 1, &in, NULL, NULL, &timeout);
}

static int wait_by_pselect(int fd, int timeout_ms)
{
	struct timespec timeout = in_ms(timeout_ms);
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return pselect(fd + 1, &in, NULL, NULL, &timeout, NULL);
}

/* A descriptor above 1,024, in sets that a program allocates itself. */
static int wait_by_large_select(int fd, int timeout_ms)
{
	struct timeval timeout = { .tv_usec = timeout_ms * 1000 };
	fd_mask in[2048 / NFDBITS] = { 0 };
	int n;

	ck_assert_int_eq(dup2(fd, 1500), 1500);
	in[1500 / NFDBITS] = (fd_mask)1 << 1500 % NFDBITS;
	n = select(1501, (fd_set *)(void *)in, NULL, NULL, &timeout);
	ck_assert_int_eq(in[1500 / NFDBITS] != 0, n == 1);
	close(1500);
	return n;
}

static int in_epoll(int fd)
{
	int epfd = epoll_create1(0);

	ck_assert_int_eq(
		epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = EPOLLIN }), 0);
	return epfd;
}

static int wait_by_epoll(int fd, int timeout_ms)
{
	int epfd = in_epoll(fd);
	struct epoll_event event;
	int n = epoll_wait(epfd, &event, 1, timeout_ms);

	close(epfd);
	return n;
}

static int wait_by_epoll_pwait2(int fd, int timeout_ms)
{
	struct timespec timeout = in_ms(timeout_ms);
	int epfd = in_epoll(fd);
	struct epoll_event event;
	int n = epoll_pwait2(epfd, &event, 1, &timeout, NULL);

	close(epfd);
	return n;
}

static int wait_by_nested_epoll(int fd, int timeout_ms)
{
	int inner = in_epoll(fd);
	int n = wait_by_epoll(inner, timeout_ms);

	close(inner);
	return n;
}

/* The inner epoll gets the socket after it was added to the outer one. */
static int wait_by_epoll_nested_first(int fd, int timeout_ms)
{
	int inner = epoll_create1(0), outer = in_epoll(inner);
	struct epoll_event event = { .events = EPOLLIN };
	int n;

	ck_assert_int_eq(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event), 0);
	n = epoll_wait(outer, &event, 1, timeout_ms);
	close(inner);
	close(outer);
	return n;
}

static int wait_by_duplicate(int fd, int timeout_ms)
{
	int epfd = epoll_create(1), other = dup(epfd);
	struct epoll_event event = { .events = EPOLLIN };
	int n;

	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), 0);
	close(epfd);
	n = epoll_wait(other, &event, 1, timeout_ms);
	close(other);
	return n;
}

static int wait_by_renamed(int epfd, int fd, int timeout_ms)
{
	struct epoll_event event = { .events = EPOLLIN };
	int other = dup(epfd), n;

	close(epfd);
	ck_assert_int_eq(epoll_ctl(other, EPOLL_CTL_ADD, fd, &event), 0);
	n = epoll_wait(other, &event, 1, timeout_ms);
	close(other);
	return n;
}

static int wait_by_renamed_epoll(int fd, int timeout_ms)
{
	return wait_by_renamed(epoll_create1(0), fd, timeout_ms);
}

static int wait_by_renamed_epoll_with_sockets(int fd, int timeout_ms)
{
	return wait_by_renamed(in_epoll(the.listener), fd, timeout_ms);
}

static int wait_by_poll_of_epoll(int fd, int timeout_ms)
{
	int epfd = in_epoll(fd);
	int n = wait_by_poll(epfd, timeout_ms);

	close(epfd);
	return n;
}

static int wait_by_pselect_of_epoll(int fd, int timeout_ms)
{
	int epfd = in_epoll(fd);
	int n = wait_by_pselect(epfd, timeout_ms);

	close(epfd);
	return n;
}

static int (*const waits[])(int fd, int timeout_ms) = {
	wait_by_poll,
	wait_by_ppoll,
	wait_by_select,
	wait_by_pselect,
	wait_by_large_select,
	wait_by_epoll,
	wait_by_epoll_pwait2,
	wait_by_nested_epoll,
	wait_by_epoll_nested_first,
	wait_by_duplicate,
	wait_by_poll_of_epoll,
	wait_by_pselect_of_epoll,
	wait_by_renamed_epoll,
	wait_by_renamed_epoll_with_sockets,
};

TEST_LOOP(waiting_thread_is_woken_by_data_only, 0, sizeof(waits) / sizeof(waits[0]))
{
	ck_assert_int_eq(waits[_i](the.there, SOON_MS), 0);
	ck_assert_int_eq(write(the.here, "hello", 5), 5);
	ck_assert_int_eq(waits[_i](the.there, WAIT_MS), 1);
	ck_assert_int_eq(waits[_i](the.there, WAIT_MS), 1);
	assert_got(the.there, "hello");
	ck_assert_int_eq(waits[_i](the.there, SOON_MS), 0);
}
END_TEST

/* Return: a descriptor of a program without the library. */
static long connect_by_tcp(void)
{
	long fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(syscall(SYS_connect, fd, &the.addr, sizeof(the.addr)), 0);
	return fd;
}

/* Of a process that may have 1,024 descriptors, most of them not in use now. */
TEST(many_entries_are_polled_with_a_socket)
{
	struct rlimit limit;
	struct pollfd fds[600];

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 1024;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (size_t i = 0; i < 600; i++)
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[300].fd = the.there;
	fds[400].fd = the.listener;
	connect_by_tcp();
	ck_assert_int_eq(write(the.here, "hello", 5), 5);
	ck_assert_int_eq(wait_by_poll(the.there, WAIT_MS), 1);
	ck_assert_int_eq(wait_by_poll(the.listener, WAIT_MS), 1);
	ck_assert_int_eq(poll(fds, 600, WAIT_MS), 2);
	ck_assert_int_eq(fds[300].revents, POLLIN);
	ck_assert_int_eq(fds[400].revents, POLLIN);
}
END_TEST

static int (*const waits_with_times[])(int fd, int timeout_ms) = {
	wait_by_ppoll,
	wait_by_select,
	wait_by_pselect,
	wait_by_epoll_pwait2,
};

TEST_LOOP(negative_time_is_refused, 0, sizeof(waits_with_times) / sizeof(waits_with_times[0]))
{
	ck_assert_int_eq(waits_with_times[_i](the.there, -1500), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

TEST(epolls_in_a_circle_are_refused)
{
	int one = in_epoll(the.here), other = in_epoll(one);
	struct epoll_event event = { .events = EPOLLIN };

	ck_assert_int_eq(epoll_ctl(one, EPOLL_CTL_ADD, other, &event), -1);
	ck_assert_int_eq(errno, ELOOP);
}
END_TEST

static void do_nothing(int number)
{
	(void)number;
}

/* As for the kernel's: whether the event comes before or during the wait. */
TEST(a_signal_that_is_pending_ends_a_wait)
{
	struct pollfd fd = { .fd = the.there, .events = POLLIN };
	int epfd = in_epoll(the.there);
	struct epoll_event event;
	sigset_t blocked, none;

	signal(SIGUSR1, do_nothing);
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	raise(SIGUSR1);
	ck_assert_int_eq(ppoll(&fd, 1, NULL, &none), -1);
	ck_assert_int_eq(errno, EINTR);
	raise(SIGUSR1);
	ck_assert_int_eq(epoll_pwait(epfd, &event, 1, -1, &none), -1);
	ck_assert_int_eq(errno, EINTR);
}
END_TEST

static void *wait_in_thread(void *epfd)
{
	struct epoll_event event;

	return (void *)(intptr_t)epoll_wait(*(int *)epfd, &event, 1, WAIT_MS);
}

TEST(a_socket_is_added_while_threads_wait)
{
	int epfd = epoll_create1(0);
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_in_thread, &epfd), 0);
	/* The threads must sleep in the kernel, or the test proves less. */
	poll(NULL, 0, SOON_MS);
	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_ADD, the.there,
				   &(struct epoll_event){ .events = EPOLLIN }),
			 0);
	ck_assert_int_eq(write(the.here, "hello", 5), 5);
	for (int i = 0; i < 2; i++) {
		void *n;

		ck_assert_int_eq(pthread_join(thread[i], &n), 0);
		ck_assert_int_eq((intptr_t)n, 1);
	}
}
END_TEST

/* --- many threads in accept() ------------------------------------------------- */

#define N_ACCEPTING 8
#define N_ROUNDS    50
#define ACCEPT_MS   20000

static atomic_int n_accepted;

static void *accept_one(void *unused)
{
	if (accept(the.listener, NULL, NULL) >= 0)
		n_accepted++;
	return unused;
}

static void connect_by_rdma(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(connect(fd, (void *)&the.addr, sizeof(the.addr)), 0);
	ck_assert(is_rdma(fd));
}

static void await_accepted(int n)
{
	for (int ms = 0; n_accepted < n && ms < ACCEPT_MS; ms++)
		poll(NULL, 0, 1);
	ck_assert_int_eq(n_accepted, n);
}

/* The first connection wakes all threads, and those that come too late go on waiting for both. */
TEST(threads_that_accept_wait_for_both_kinds)
{
	pthread_t thread[N_ACCEPTING];

	for (int round = 0; round < N_ROUNDS; round++) {
		n_accepted = 0;
		for (int i = 0; i < N_ACCEPTING; i++)
			ck_assert_int_eq(pthread_create(&thread[i], NULL, accept_one, NULL), 0);
		/* The threads must sleep, or the test proves less. */
		poll(NULL, 0, 5);
		connect_by_rdma();
		await_accepted(1);
		for (int i = 1; i < N_ACCEPTING; i++)
			connect_by_tcp();
		await_accepted(N_ACCEPTING);
		for (int i = 0; i < N_ACCEPTING; i++)
			pthread_join(thread[i], NULL);
	}
}
END_TEST

/* As TCP's: a server accepts it when it has closed another one. */
TEST(accept_without_a_free_descriptor_leaves_the_connection)
{
	struct pollfd fd = { .fd = the.listener, .events = POLLIN };
	int client = socket(AF_INET, SOCK_STREAM, 0), there, error;
	struct rlimit all, none;

	ck_assert_int_eq(connect(client, (void *)&the.addr, sizeof(the.addr)), 0);
	ck_assert_int_eq(poll(&fd, 1, WAIT_MS), 1);
	getrlimit(RLIMIT_NOFILE, &all);
	none = all;
	none.rlim_cur = (rlim_t)the.first;
	setrlimit(RLIMIT_NOFILE, &none);
	there = accept(the.listener, NULL, NULL);
	error = errno;
	setrlimit(RLIMIT_NOFILE, &all);
	ck_assert_int_eq(there, -1);
	ck_assert_int_eq(error, EMFILE);
	ck_assert_int_eq(poll(&fd, 1, WAIT_MS), 1);
	there = accept(the.listener, NULL, NULL);
	ck_assert(is_rdma(there));
	assert_sends(client, there, "hello");
}
END_TEST

/* --- a socket that becomes TCP in an epoll ------------------------------------ */

/* Return: a socket bound to the.addr with SO_REUSEPORT. */
static int bind_reusing(int fd)
{
	socklen_t bytes = sizeof(the.addr);

	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int));
	ck_assert_int_eq(bind(fd, (void *)&the.addr, bytes), 0);
	ck_assert_int_eq(getsockname(fd, (void *)&the.addr, &bytes), 0);
	return fd;
}

/* As Boost.Asio, which adds each socket when it opens it. */
TEST(a_listener_that_becomes_tcp_stays_in_its_epoll)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), epfd = in_epoll(fd);
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };

	the.addr.sin_port = 0;
	bind_reusing(socket(AF_INET, SOCK_STREAM, 0));
	bind_reusing(fd);
	ck_assert(!is_rdma(fd));
	ck_assert_int_eq(listen(fd, 1), 0);
	connect_by_tcp();
	ck_assert_int_eq(epoll_wait(epfd, &event, 1, WAIT_MS), 1);
	ck_assert_uint_eq(event.events, EPOLLIN);
	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &event), 0);
}
END_TEST

/* As the standard input of a program to be started. */
TEST(a_listener_for_another_program_stays_in_its_epoll)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epfd = in_epoll(the.listener);

	ck_assert_int_eq(dup2(the.listener, STDIN_FILENO), STDIN_FILENO);
	ck_assert(!is_rdma(the.listener));
	ck_assert_int_eq(epoll_ctl(epfd, EPOLL_CTL_MOD, the.listener, &event), 0);
	connect_by_tcp();
	ck_assert_int_eq(epoll_wait(epfd, &event, 1, WAIT_MS), 1);
	ck_assert_int_ge(accept(the.listener, NULL, NULL), 0);
	ck_assert_int_eq(epoll_wait(epfd, &event, 1, 0), 0);
}
END_TEST

/* --- an epoll from before a fork() --------------------------------------------- */

/* Waits for an event, and accepts. Return: whether the connection uses RDMA. */
static bool serve_one(int epfd, int listener)
{
	struct epoll_event event;
	int fd;

	if (epoll_wait(epfd, &event, 1, WAIT_MS) != 1)
		_exit(1);
	fd = accept(listener, NULL, NULL);
	if (fd < 0 || write(fd, "hello", 5) != 5)
		_exit(2);
	return is_rdma(fd);
}

static void assert_is_greeted(long fd)
{
	char got[5] = "";

	for (size_t at = 0; at < sizeof(got); at++)
		ck_assert_int_eq(syscall(SYS_read, fd, &got[at], 1), 1);
	ck_assert_mem_eq(got, "hello", sizeof(got));
}

/* The parent has waited for requests before fork(), and keeps the RDMA listener. */
TEST(an_epoll_from_before_a_fork_has_its_listener_in_the_child)
{
	int epfd = in_epoll(the.listener), status;
	struct epoll_event event = { .events = EPOLLIN };
	pid_t child = fork();
	long fd;

	if (!child)
		_exit(serve_one(epfd, the.listener) ||
		      epoll_ctl(epfd, EPOLL_CTL_MOD, the.listener, &event));
	fd = connect_by_tcp();
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	assert_is_greeted(fd);
}
END_TEST

/* As most servers do. */
static void serve_as_daemon(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), epfd = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };

	if (bind(listener, (void *)&the.addr, sizeof(the.addr)) || listen(listener, 8) ||
	    epoll_ctl(epfd, EPOLL_CTL_ADD, listener, &event) || daemon(1, 1))
		_exit(3);
	while (!serve_one(epfd, listener))
		;
	_exit(0);
}

TEST(an_epoll_of_a_daemon_has_its_listener)
{
	int fd, result, status;
	pid_t server;

	alarm(WAIT_MS / 1000);
	close(the.listener);
	server = fork();
	if (!server)
		serve_as_daemon();
	ck_assert_int_eq(waitpid(server, &status, 0), server);
	ck_assert_int_eq(status, 0);
	do {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		result = connect(fd, (void *)&the.addr, sizeof(the.addr));
	} while (result || !is_rdma(fd));
	assert_got(fd, "hello");
}
END_TEST

/* --- what ends accept() ------------------------------------------------------- */

static void *accept_none(void *unused)
{
	int fd = accept(the.listener, NULL, NULL);

	return fd < 0 ? (void *)(intptr_t)errno : unused;
}

/* Without those of Check, which lack SA_RESTART. */
static pthread_t accept_with_handler(int flags)
{
	struct sigaction action = { .sa_handler = do_nothing, .sa_flags = flags };
	pthread_t thread;

	signal(SIGALRM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigaction(SIGUSR1, &action, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, accept_none, NULL), 0);
	return thread;
}

/* A server that forks gets SIGCHLD all the time. */
TEST(accept_goes_on_after_a_handler_with_sa_restart)
{
	pthread_t thread = accept_with_handler(SA_RESTART);
	void *err;

	for (int i = 0; i < 3; i++) {
		/* The thread must sleep, or the test proves less. */
		poll(NULL, 0, SOON_MS);
		pthread_kill(thread, SIGUSR1);
	}
	poll(NULL, 0, SOON_MS);
	connect_by_rdma();
	ck_assert_int_eq(pthread_join(thread, &err), 0);
	ck_assert_int_eq((intptr_t)err, 0);
}
END_TEST

TEST(accept_ends_after_a_handler_without_sa_restart)
{
	pthread_t thread = accept_with_handler(0);
	void *err;

	while (pthread_tryjoin_np(thread, &err)) {
		pthread_kill(thread, SIGUSR1);
		poll(NULL, 0, 1);
	}
	ck_assert_int_eq((intptr_t)err, EINTR);
}
END_TEST

/* Many servers end a thread so. */
TEST(shutdown_of_a_listener_ends_accept)
{
	struct pollfd fd = { .fd = the.listener, .events = POLLIN | POLLOUT };
	int client = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;
	void *err;

	ck_assert_int_eq(pthread_create(&thread, NULL, accept_none, NULL), 0);
	poll(NULL, 0, SOON_MS);
	ck_assert_int_eq(shutdown(the.listener, SHUT_WR), 0);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	ck_assert_int_eq(shutdown(the.listener, SHUT_RDWR), 0);
	ck_assert_int_eq(pthread_join(thread, &err), 0);
	ck_assert_int_eq((intptr_t)err, EINVAL);
	ck_assert_int_eq(poll(&fd, 1, 0), 1);
	ck_assert_int_eq(fd.revents, POLLHUP | POLLOUT);
	ck_assert_int_eq(wait_by_epoll(the.listener, WAIT_MS), 1);
	ck_assert_int_eq(connect(client, (void *)&the.addr, sizeof(the.addr)), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	ck_assert_int_eq(shutdown(the.listener, SHUT_RDWR), -1);
	ck_assert_int_eq(errno, ENOTCONN);
	ck_assert_int_eq(listen(the.listener, 8), 0);
	connect_pair();
}
END_TEST

/* As TCP's, also of one that nobody has waited for since a fork(). */
TEST(shutdown_of_a_listener_without_rsocket_succeeds)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(shutdown(the.listener, SHUT_RDWR) || accept(the.listener, NULL, NULL) >= 0 ||
		      errno != EINVAL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST
