/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that block: a library preloaded into the commands of hosts with the quirk umad-blocks. It
 * replaces write() of the C library, and calls nothing of ours. A write to umad ignores O_NONBLOCK,
 * because the kernel resolves the peer's link address in it; here the first one to each peer takes
 * BLOCK_S, whether the peer exists or not.
 */
#include <dlfcn.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BLOCK_S	  1
#define GID_BYTES 16
#define PEERS_MAX 1024

typedef ssize_t write_fn(int fd, const void *bytes, size_t n);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t peer[PEERS_MAX][GID_BYTES];
static unsigned int n_peers;

/* A umad socket of a fabric: "hosts/a/umad.1". */
static bool is_umad(int fd)
{
	struct sockaddr_un addr = { .sun_family = AF_UNSPEC };
	socklen_t length = sizeof(addr) - 1;

	return !getpeername(fd, (struct sockaddr *)&addr, &length) && addr.sun_family == AF_UNIX &&
	       strstr(addr.sun_path, "/umad.");
}

static bool is_new(const uint8_t gid[GID_BYTES])
{
	bool is_known = false;
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < n_peers && !is_known; i++)
		is_known = !memcmp(peer[i], gid, GID_BYTES);
	if (!is_known && n_peers < PEERS_MAX)
		memcpy(peer[n_peers++], gid, GID_BYTES);
	pthread_mutex_unlock(&lock);
	return !is_known;
}

static bool is_blocked_write(int fd, const void *bytes, size_t n)
{
	struct ib_user_mad head;

	if (n <= sizeof(head) || !is_umad(fd))
		return false;
	memcpy(&head, bytes, sizeof(head));
	return head.addr.grh_present && is_new(head.addr.gid);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	static write_fn *of_libc;

	if (!of_libc)
		of_libc = (write_fn *)(uintptr_t)dlsym(RTLD_NEXT, "write");
	if (is_blocked_write(fd, bytes, n))
		sleep(BLOCK_S);
	return of_libc(fd, bytes, n);
}
