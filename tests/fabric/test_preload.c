/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls on sockets besides sending and receiving, with librspreload.so preloaded: this program has
 * both ends of a connection of the host to itself.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/preload_rig.h"
#include "tests/unit/test.h"

/* Return: an empty file at the given descriptor number. */
static int open_file_as(int fd)
{
	char name[TEMPORARY_BYTES];
	int file = mkstemp(name_temporary(name));

	ck_assert_int_ge(file, 0);
	unlink(name);
	if (file == fd)
		return fd;
	ck_assert_int_eq(behind.dup2(file, fd), fd);
	close(file);
	return fd;
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

/* As sockets of Java: IPv6, bound to all addresses or to one. */
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

/* --- options ------------------------------------------------------------------ */

/* nginx's tcp_nopush needs the first: without it, it sends no files. */
TEST(hints_about_packets_are_accepted)
{
	static const int names[] = { TCP_CORK, TCP_QUICKACK, TCP_DEFER_ACCEPT };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		socklen_t bytes = sizeof(int);
		int value = 1;

		ck_assert_int_eq(setsockopt(the.here, IPPROTO_TCP, names[i], &value, bytes), 0);
		ck_assert_int_eq(getsockopt(the.here, IPPROTO_TCP, names[i], &value, &bytes), 0);
		ck_assert_int_eq(value, 0);
	}
	assert_sends(the.here, the.there, "hello");
}
END_TEST

/* --- fork() --------------------------------------------------------------------- */

static void greet_all(int listener)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 || write(fd, "hello", 5) != 5)
			_exit(1);
	}
}

static void await_greetings(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char got[5];

	_exit(connect(fd, (void *)&the.addr, sizeof(the.addr)) ||
	      recv(fd, got, sizeof(got), MSG_WAITALL) != sizeof(got));
}

/* Waits until a client has RDMA; as long as nobody waits for it, it has TCP, or is refused. */
static void await_client(int *ret_status)
{
	pid_t client = fork();

	if (!client) {
		int fd, result;

		do {
			fd = socket(AF_INET, SOCK_STREAM, 0);
			result = connect(fd, (void *)&the.addr, sizeof(the.addr));
		} while (result || !is_rdma(fd));
		_exit(0);
	}
	ck_assert_int_eq(waitpid(client, ret_status, 0), client);
}

/* Return: a socket that is bound to a port, which becomes that of the.addr. */
static int bind_socket(void)
{
	socklen_t bytes = sizeof(the.addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	the.addr.sin_port = 0;
	ck_assert_int_eq(bind(fd, (void *)&the.addr, bytes), 0);
	ck_assert_int_eq(getsockname(fd, (void *)&the.addr, &bytes), 0);
	return fd;
}

/* As gunicorn's workers, and as varnishd, whose parent only binds. */
TEST_LOOP(a_child_sets_up_the_listener_of_its_parent, 0, 2)
{
	int listener = bind_socket(), is_listening = _i, status;
	struct sockaddr_in name;
	socklen_t bytes = sizeof(name);
	pid_t child;

	ck_assert_int_eq(getpeername(listener, (void *)&name, &bytes), -1);
	ck_assert_int_eq(errno, ENOTCONN);
	if (is_listening)
		ck_assert_int_eq(listen(listener, 8), 0);
	child = fork();
	if (child) {
		await_client(&status);
		kill(child, SIGKILL);
		ck_assert_int_eq(status, 0);
		return;
	}
	if (fcntl(listener, F_SETFL, O_NONBLOCK) || fcntl(listener, F_SETFL, 0) ||
	    fcntl(listener, F_GETFL) & O_NONBLOCK || listen(listener, 8) ||
	    getsockname(listener, (void *)&name, &bytes) || name.sin_port != the.addr.sin_port)
		_exit(1);
	greet_all(listener);
}
END_TEST

/* nginx's reuseport: one of them has RDMA, and all have TCP. */
TEST(two_listeners_reuse_a_port)
{
	int first = socket(AF_INET, SOCK_STREAM, 0), second = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t bytes = sizeof(the.addr), value_bytes = sizeof(int);
	int on = 1, value = 0;

	the.addr.sin_port = 0;
	ck_assert_int_eq(setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	ck_assert_int_eq(getsockopt(first, SOL_SOCKET, SO_REUSEPORT, &value, &value_bytes), 0);
	ck_assert_int_eq(value, 1);
	ck_assert_int_eq(bind(first, (void *)&the.addr, bytes), 0);
	ck_assert_int_eq(getsockname(first, (void *)&the.addr, &bytes), 0);
	ck_assert_int_eq(setsockopt(second, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(second, (void *)&the.addr, bytes), 0);
	ck_assert_int_eq(listen(first, 1) || listen(second, 1), 0);
	ck_assert(is_rdma(first) && !is_rdma(second));
}
END_TEST

/* The first process that waits accepts RDMA clients too; the parent does not wait and gets none. */
TEST(children_serve_the_clients_of_a_listener)
{
	socklen_t bytes = sizeof(the.addr);
	pid_t servers[2], clients[2];

	the.listener = socket(AF_INET, SOCK_STREAM, 0);
	the.addr.sin_port = 0;
	ck_assert_int_eq(bind(the.listener, (void *)&the.addr, bytes), 0);
	ck_assert_int_eq(getsockname(the.listener, (void *)&the.addr, &bytes), 0);
	ck_assert_int_eq(listen(the.listener, 8), 0);
	for (int i = 0; i < 2; i++) {
		servers[i] = fork();
		if (!servers[i])
			greet_all(the.listener);
	}
	for (int i = 0; i < 2; i++) {
		clients[i] = fork();
		if (!clients[i])
			await_greetings();
	}
	for (int i = 0; i < 2; i++) {
		int status;

		ck_assert_int_eq(waitpid(clients[i], &status, 0), clients[i]);
		ck_assert_int_eq(status, 0);
	}
	for (int i = 0; i < 2; i++)
		kill(servers[i], SIGKILL);
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

TEST(sendmmsg_and_recvmmsg_transfer_many_messages)
{
	char in[2][8] = { "", "" };
	char one[] = "one,", two[] = "two";
	struct iovec out_iov[] = { { one, 4 }, { two, 3 } };
	struct iovec in_iov[] = { { in[0], 4 }, { in[1], 3 } };
	struct mmsghdr out[] = { { .msg_hdr = { .msg_iov = &out_iov[0], .msg_iovlen = 1 } },
				 { .msg_hdr = { .msg_iov = &out_iov[1], .msg_iovlen = 1 } } };
	struct mmsghdr msg[] = { { .msg_hdr = { .msg_iov = &in_iov[0], .msg_iovlen = 1 } },
				 { .msg_hdr = { .msg_iov = &in_iov[1], .msg_iovlen = 1 } } };
	struct timespec ages = { .tv_sec = 1 << 29 }; /* in ms, a multiple of 2^32 */

	ck_assert_int_eq(sendmmsg(the.here, out, 2, 0), 2);
	ck_assert_int_eq(out[1].msg_len, 3);
	ck_assert_int_eq(recvmmsg(the.there, msg, 2, 0, &ages), 2);
	ck_assert_str_eq(in[0], "one,");
	ck_assert_str_eq(in[1], "two");
	ck_assert_int_eq(recvmmsg(the.there, msg, 2, MSG_DONTWAIT, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

/* As TCP's; the second message is empty, so that there is room for it. */
TEST(sendmmsg_ends_with_a_message_that_is_sent_in_part)
{
	static char large[1 << 24];
	struct iovec iov = { large, sizeof(large) };
	struct mmsghdr out[] = { { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
				 { .msg_hdr = { .msg_iov = NULL } } };

	ck_assert_int_eq(sendmmsg(the.here, out, 2, MSG_DONTWAIT), 1);
	ck_assert_uint_gt(out[0].msg_len, 0);
	ck_assert_uint_lt(out[0].msg_len, sizeof(large));
}
END_TEST

/* As TCP's, however many there are: nginx subtracts what it reads from the number. */
TEST(all_unread_bytes_are_counted)
{
	struct pollfd fd = { .fd = the.there, .events = POLLIN };
	static char sent[50000];
	int n = -1;

	ck_assert_int_eq(ioctl(the.there, FIONREAD, &n), 0);
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(send(the.here, sent, sizeof(sent), 0), sizeof(sent));
	ck_assert_int_eq(poll(&fd, 1, WAIT_MS), 1);
	for (int ms = 0; n < (int)sizeof(sent) && ms < WAIT_MS; ms++) {
		ck_assert_int_eq(ioctl(the.there, FIONREAD, &n), 0);
		poll(NULL, 0, 1);
	}
	ck_assert_int_eq(n, sizeof(sent));
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

/* Programs copy the data themselves then. */
TEST(splice_is_refused)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(write(ends[1], "hello", 5), 5);
	ck_assert_int_eq(splice(ends[0], NULL, the.here, NULL, 5, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	errno = 0;
	ck_assert_int_eq(copy_file_range(open_file_as(ends[0]), NULL, the.here, NULL, 5, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* As TCP's: sockperf gives one. */
TEST(a_connected_stream_ignores_an_address)
{
	char text[] = "world";
	struct iovec out = { text, 5 };
	struct msghdr msg = { .msg_name = &the.addr,
			      .msg_namelen = sizeof(the.addr),
			      .msg_iov = &out,
			      .msg_iovlen = 1 };

	ck_assert_int_eq(sendto(the.here, "hello", 5, 0, (void *)&the.addr, sizeof(the.addr)), 5);
	assert_got(the.there, "hello");
	ck_assert_int_eq(sendmsg(the.here, &msg, 0), 5);
	assert_got(the.there, "world");
}
END_TEST

/* --- time limits ------------------------------------------------------------------ */

TEST(a_call_ends_at_the_time_limit_of_its_socket)
{
	static char much[1 << 20];
	struct timeval limit = { .tv_usec = 50000 };
	socklen_t bytes = sizeof(limit);

	ck_assert_int_eq(setsockopt(the.here, SOL_SOCKET, SO_RCVTIMEO, &limit, bytes), 0);
	ck_assert_int_eq(setsockopt(the.here, SOL_SOCKET, SO_SNDTIMEO, &limit, bytes), 0);
	ck_assert_int_eq(setsockopt(the.listener, SOL_SOCKET, SO_RCVTIMEO, &limit, bytes), 0);
	ck_assert_int_eq(recv(the.here, much, 1, 0), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(accept(the.listener, NULL, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
	while (send(the.here, much, sizeof(much), 0) > 0)
		;
	ck_assert_int_eq(errno, EAGAIN);
	limit.tv_usec = 0;
	ck_assert_int_eq(getsockopt(the.here, SOL_SOCKET, SO_RCVTIMEO, &limit, &bytes), 0);
	ck_assert_int_eq(limit.tv_usec, 50000);
}
END_TEST

/* --- descriptors closed by other means ------------------------------------- */

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

TEST_LOOP(peer_sees_the_end_however_a_socket_is_closed, 0, sizeof(closers) / sizeof(closers[0]))
{
	struct pollfd fd = { .fd = the.here, .events = POLLIN };
	char byte;

	closers[_i](the.there);
	ck_assert_int_eq(poll(&fd, 1, WAIT_MS), 1);
	ck_assert_int_eq(read(the.here, &byte, 1), 0);
}
END_TEST

TEST(number_closed_by_a_system_call_is_no_socket)
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

/* Runs in a child that shares this memory: replaces the socket by a file, and duplicates it. */
static int duplicate_file(void *fd)
{
	open_file_as(*(int *)fd);
	dup2(*(int *)fd, STDERR_FILENO);
	syscall(SYS_exit, 0);
	return 1;
}

/* The child that starts cmportd shares this memory, while other threads open sockets. */
TEST(a_child_that_shares_the_memory_has_descriptors_of_its_own)
{
	static _Alignas(16) char stack[65536];
	int fd = socket(AF_INET, SOCK_STREAM, 0), other, status;
	struct rlimit limit;
	pid_t child =
		clone(duplicate_file, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &fd);

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	/* The child would have opened a TCP socket by this number, which close() must not close. */
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	other = (int)syscall(SYS_fcntl, STDIN_FILENO, F_DUPFD,
			     limit.rlim_cur > 16384 ? 8192 : limit.rlim_cur / 2);
	close(fd);
	ck_assert_int_eq(syscall(SYS_close, other), 0);
}
END_TEST

/* Descriptors of the libraries are above those that the program expects. */
TEST(socket_uses_one_descriptor)
{
	ck_assert_int_eq(the.listener, the.first);
	ck_assert_int_eq(the.here, the.first + 1);
	ck_assert_int_eq(the.there, the.first + 2);
}
END_TEST

/* Such as the folder of a checkout; only a file's own name identifies a library. */
TEST(library_in_a_folder_named_librdmacm_belongs_to_the_program)
{
	char folder[TEMPORARY_BYTES], inner[TEMPORARY_BYTES + 16], path[TEMPORARY_BYTES + 32];
	int (*user_socket)(void);
	void *handle;

	ck_assert_ptr_nonnull(mkdtemp(name_temporary(folder)));
	snprintf(inner, sizeof(inner), "%s/librdmacm", folder);
	snprintf(path, sizeof(path), "%s/user.so", inner);
	ck_assert_int_eq(mkdir(inner, 0700), 0);
	ck_assert_int_eq(symlink(PRELOAD_USER, path), 0);
	handle = dlopen(path, RTLD_NOW);
	unlink(path);
	rmdir(inner);
	rmdir(folder);
	ck_assert_ptr_nonnull(handle);
	*(void **)&user_socket = dlsym(handle, "user_socket");
	ck_assert_ptr_nonnull(user_socket);
	ck_assert(is_rdma(user_socket()));
}

/* A program cannot close the library's own descriptors. */
TEST(connections_survive_closefrom)
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

TEST(descriptors_in_use_survive_close_range)
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
