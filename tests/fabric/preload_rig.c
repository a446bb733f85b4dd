/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection of a host to itself over preloaded sockets: see preload_rig.h. */
#include "tests/fabric/preload_rig.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define SOL_RDMA 0x10000

struct preload_rig the;
struct preload_behind behind;

bool is_rdma(int fd)
{
	socklen_t bytes = sizeof(int);
	int value;

	return getsockopt(fd, SOL_RDMA, 0, &value, &bytes) == 0;
}

void connect_pair(void)
{
	the.here = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(the.here, (void *)&the.addr, sizeof(the.addr)), 0);
	the.there = accept(the.listener, NULL, NULL);
	ck_assert_int_ge(the.there, 0);
	ck_assert(is_rdma(the.here) && is_rdma(the.there));
}

void listen_and_connect(void)
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

void assert_got(int fd, const char *text)
{
	char got[64] = "";
	size_t bytes = strlen(text);

	ck_assert_int_eq(recv(fd, got, bytes, MSG_WAITALL), (ssize_t)bytes);
	ck_assert_str_eq(got, text);
}

void assert_sends(int from, int to, const char *text)
{
	size_t bytes = strlen(text);

	ck_assert_int_eq(write(from, text, bytes), (ssize_t)bytes);
	assert_got(to, text);
}
