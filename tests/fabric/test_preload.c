/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs do to sockets besides sending and receiving, with librspreload.so, which this
 * program has preloaded: both ends of a connection of a host with itself.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define SOL_RDMA 0x10000
#define WAIT_MS	 3000

static struct {
	int first; /* the lowest descriptor that any of this takes */
	int listener, here, there;
	struct sockaddr_in addr;
} the;

/* The C library's own functions, of which librspreload.so learns nothing. */
static struct {
	int (*close)(int fd);
	int (*dup2)(int from, int to);
} behind;

static bool is_rdma(int fd)
{
	socklen_t bytes = sizeof(int);
	int value;

	return getsockopt(fd, SOL_RDMA, 0, &value, &bytes) == 0;
}

static void connect_pair(void)
{
	the.here = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(the.here, (void *)&the.addr, sizeof(the.addr)), 0);
	the.there = accept(the.listener, NULL, NULL);
	ck_assert_int_ge(the.there, 0);
	ck_assert(is_rdma(the.here) && is_rdma(the.there));
}

static void listen_and_connect(void)
{
	socklen_t bytes = sizeof(the.addr);
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	*(void **)&behind.close = dlsym(libc, "close");
	*(void **)&behind.dup2 = dlsym(libc, "dup2");
	ck_assert(behind.close && behind.dup2 && behind.close != close);
	the.first = dup(0);
	close(the.first);
	the.addr = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, "10.77.0.1", &the.addr.sin_addr);
	the.listener = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(the.listener, (void *)&the.addr, bytes), 0);
	ck_assert_int_eq(getsockname(the.listener, (void *)&the.addr, &bytes), 0);
	ck_assert_int_eq(listen(the.listener, 8), 0);
	connect_pair();
}

/* Return: an empty file, which has the number that is said. */
static int open_file_as(int fd)
{
	char name[] = "/tmp/preload.XXXXXX";
	int file = mkstemp(name);

	ck_assert_int_ge(file, 0);
	unlink(name);
	if (file == fd)
		return fd;
	ck_assert_int_eq(behind.dup2(file, fd), fd);
	close(file);
	return fd;
}

static void assert_sends(int from, int to, const char *text)
{
	char got[64] = "";
	size_t bytes = strlen(text);

	ck_assert_int_eq(write(from, text, bytes), (ssize_t)bytes);
	ck_assert_int_eq(recv(to, got, bytes, MSG_WAITALL), (ssize_t)bytes);
	ck_assert_str_eq(got, text);
}

FIXTURE(listen_and_connect, NULL);

/* --- addresses ---------------------------------------------------------------- */

static struct sockaddr_in6 name_by(int (*get)(int fd, struct sockaddr *addr, socklen_t *bytes),
				   int fd)
{
	struct sockaddr_in6 name;
	socklen_t bytes = sizeof(name);

	ck_assert_int_eq(get(fd, (void *)&name, &bytes), 0);
	ck_assert_int_eq(bytes, sizeof(name));
	ck_assert_int_eq(name.sin6_family, AF_INET6);
	return name;
}

/* As Java's sockets, which are IPv6, and bound to all addresses or to one. */
TEST_LOOP(mapped_addresses_are_ipv4, 0, 2)
{
	struct sockaddr_in6 own = { .sin6_family = AF_INET6 }, to = own, peer;
	int listener = socket(AF_INET6, SOCK_STREAM, 0), client = socket(AF_INET6, SOCK_STREAM, 0);
	socklen_t bytes = sizeof(peer);
	int server;

	inet_pton(AF_INET6, "::ffff:10.77.0.1", &to.sin6_addr);
	if (_i)
		own = to;
	ck_assert_int_eq(bind(listener, (void *)&own, sizeof(own)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	own = name_by(getsockname, listener);
	ck_assert_mem_eq(&own.sin6_addr, _i ? &to.sin6_addr : &in6addr_any, 16);
	to.sin6_port = own.sin6_port;
	ck_assert_int_eq(connect(client, (void *)&to, sizeof(to)), 0);
	server = accept(listener, (void *)&peer, &bytes);
	ck_assert(is_rdma(client) && is_rdma(server));
	own = name_by(getsockname, client);
	ck_assert_mem_eq(&own, &peer, sizeof(own));
	own = name_by(getpeername, server);
	ck_assert_mem_eq(&own, &peer, sizeof(own));
	own = name_by(getpeername, client);
	ck_assert_mem_eq(&own, &to, sizeof(own));
	own = name_by(getsockname, server);
	ck_assert_mem_eq(&own, &to, sizeof(own));
	assert_sends(client, server, "hello");
}
END_TEST

/* --- stdio ------------------------------------------------------------------ */

TEST(streams_of_the_c_library_are_sent)
{
	FILE *out = fdopen(the.here, "r+"), *in = fdopen(the.there, "r");
	char got[64];

	ck_assert_int_eq(fileno(out), the.here);
	fprintf(out, "%s\n", "by fprintf");
	ck_assert_int_eq(fflush(out), 0);
	dprintf(the.here, "%s\n", "by dprintf");
	ck_assert_ptr_nonnull(fgets(got, sizeof(got), in));
	ck_assert_str_eq(got, "by fprintf\n");
	ck_assert_ptr_nonnull(fgets(got, sizeof(got), in));
	ck_assert_str_eq(got, "by dprintf\n");
	ck_assert_ptr_nonnull(freopen("/proc/self/comm", "r", in));
	ck_assert_ptr_nonnull(fgets(got, sizeof(got), in));
	ck_assert_str_eq(got, "test_preload\n");
	fclose(in);
	ck_assert_int_eq(read(the.here, got, 1), 0);
}
END_TEST

/* --- other ways to transfer --------------------------------------------------- */

static void assert_got(int fd, const char *text)
{
	char got[64] = "";
	size_t bytes = strlen(text);

	ck_assert_int_eq(recv(fd, got, bytes, MSG_WAITALL), (ssize_t)bytes);
	ck_assert_str_eq(got, text);
}

TEST(messages_are_sent_and_received_by_the_dozen)
{
	char in[2][8] = { "", "" };
	char one[] = "one,", two[] = "two";
	struct iovec out_iov[] = { { one, 4 }, { two, 3 } };
	struct iovec in_iov[] = { { in[0], 4 }, { in[1], 3 } };
	struct mmsghdr out[] = { { .msg_hdr = { .msg_iov = &out_iov[0], .msg_iovlen = 1 } },
				 { .msg_hdr = { .msg_iov = &out_iov[1], .msg_iovlen = 1 } } };
	struct mmsghdr msg[] = { { .msg_hdr = { .msg_iov = &in_iov[0], .msg_iovlen = 1 } },
				 { .msg_hdr = { .msg_iov = &in_iov[1], .msg_iovlen = 1 } } };

	ck_assert_int_eq(sendmmsg(the.here, out, 2, 0), 2);
	ck_assert_int_eq(out[1].msg_len, 3);
	ck_assert_int_eq(recvmmsg(the.there, msg, 2, 0, NULL), 2);
	ck_assert_str_eq(in[0], "one,");
	ck_assert_str_eq(in[1], "two");
	ck_assert_int_eq(recvmmsg(the.there, msg, 2, MSG_DONTWAIT, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

TEST(vectors_with_flags_are_those_of_a_stream)
{
	char said[] = "hello", got[8] = "";
	struct iovec out = { said, 5 }, in = { got, 5 };

	ck_assert_int_eq(preadv2(the.there, &in, 1, -1, RWF_NOWAIT), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(pwritev2(the.here, &out, 1, -1, 0), 5);
	ck_assert_int_eq(preadv2(the.there, &in, 1, -1, 0), 5);
	ck_assert_str_eq(got, "hello");
	ck_assert_int_eq(pwritev2(the.here, &out, 1, 0, 0), -1);
	ck_assert_int_eq(errno, ESPIPE);
}
END_TEST

/* Programs then copy. */
TEST(splice_is_refused)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], "hello", 5), 5);
	ck_assert_int_eq(splice(ends[0], NULL, the.here, NULL, 5, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* --- waiting -------------------------------------------------------------------- */

#define SOON_MS 50 /* for what must not happen */

/* The end that receives is ready; by all means that there are. */
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

/* A number above 1,024, in sets that a program allocates itself. */
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

/* The inner one gets the socket when it is in the outer one. */
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
	wait_by_poll,	      wait_by_ppoll,	     wait_by_select,
	wait_by_pselect,      wait_by_large_select,  wait_by_epoll,
	wait_by_epoll_pwait2, wait_by_nested_epoll,  wait_by_epoll_nested_first,
	wait_by_duplicate,    wait_by_poll_of_epoll, wait_by_pselect_of_epoll,
};

TEST_LOOP(what_waits_is_woken_by_data_only, 0, sizeof(waits) / sizeof(waits[0]))
{
	ck_assert_int_eq(waits[_i](the.there, SOON_MS), 0);
	ck_assert_int_eq(write(the.here, "hello", 5), 5);
	ck_assert_int_eq(waits[_i](the.there, WAIT_MS), 1);
	ck_assert_int_eq(waits[_i](the.there, WAIT_MS), 1);
	assert_got(the.there, "hello");
	ck_assert_int_eq(waits[_i](the.there, SOON_MS), 0);
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

/* As the kernel's do, whether it comes before or later. */
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

	return (void *)(intptr_t)epoll_wait(*(int *)epfd, &event, 1, 10 * WAIT_MS);
}

TEST(a_socket_is_added_while_threads_wait)
{
	int epfd = epoll_create1(0);
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_in_thread, &epfd), 0);
	/* They sleep in the kernel then, or the test says less. */
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

/* --- numbers that are closed by other means -------------------------------- */

static void close_by_close(int fd)
{
	close(fd);
}

static void close_by_stream(int fd)
{
	fclose(fdopen(fd, "r+"));
}

static void close_by_freopen(int fd)
{
	fclose(freopen("/dev/null", "r", fdopen(fd, "r+")));
}

static void close_by_closefrom(int fd)
{
	closefrom(fd);
}

static void close_by_range(int fd)
{
	close_range((unsigned int)fd, ~0U, 0);
}

static void close_by_number(int fd)
{
	syscall(SYS_close, fd);
}

static void (*const closers[])(int fd) = {
	close_by_close,	    close_by_stream, close_by_freopen,
	close_by_closefrom, close_by_range,  close_by_number,
};

TEST_LOOP(a_peer_is_told_however_a_socket_is_closed, 0, sizeof(closers) / sizeof(closers[0]))
{
	struct pollfd fd = { .fd = the.here, .events = POLLIN };
	char byte;

	closers[_i](the.there);
	ck_assert_int_eq(poll(&fd, 1, WAIT_MS), 1);
	ck_assert_int_eq(read(the.here, &byte, 1), 0);
}
END_TEST

TEST(a_number_that_was_closed_behind_is_no_socket)
{
	struct pollfd fd = { .fd = the.there, .events = POLLIN };
	struct stat stat;
	char byte;

	behind.close(the.there);
	open_file_as(the.there);
	ck_assert_int_eq(poll(&fd, 1, 0), 1);
	ck_assert_int_eq(write(the.there, "mine", 4), 4);
	ck_assert_int_eq(fstat(the.there, &stat), 0);
	ck_assert_int_eq(stat.st_size, 4);
	ck_assert_int_eq(read(the.there, &byte, 1), 0);
	ck_assert_int_eq(recv(the.here, &byte, 1, MSG_DONTWAIT), 0);
}
END_TEST

TEST(a_child_of_vfork_closes_its_own_descriptors)
{
	int status;
	pid_t child = vfork();

	if (child == 0) {
		close(the.here);
		dup2(0, the.there);
		close_range((unsigned int)the.first, ~0U, 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	assert_sends(the.here, the.there, "hello");
}
END_TEST
/* The libraries' are above those that the program may count on. */
TEST(a_socket_takes_one_number)
{
	ck_assert_int_eq(the.listener, the.first);
	ck_assert_int_eq(the.here, the.first + 1);
	ck_assert_int_eq(the.there, the.first + 2);
}
END_TEST

/* The library's own descriptors are not the program's to close. */
TEST(connections_go_on_after_closefrom)
{
	closefrom(the.first);
	for (int i = 0; i < 16; i++)
		open_file_as(the.first + i);
	the.listener = 0;
	for (int i = 0; i < 16; i++)
		close(the.first + i);
	listen_and_connect();
	assert_sends(the.here, the.there, "hello");
}
END_TEST

TEST(what_is_in_use_goes_on_after_close_range)
{
	int here = dup2(the.here, 900), there = dup2(the.there, 901),
	    listener = dup2(the.listener, 902);

	close_range((unsigned int)the.first, 899, 0);
	close_range(903, ~0U, 0);
	for (int i = 0; i < 16; i++)
		open_file_as(the.first + i);
	assert_sends(here, there, "hello");
	the.listener = listener;
	connect_pair();
	assert_sends(the.here, the.there, "again");
}
END_TEST
