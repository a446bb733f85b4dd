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
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
