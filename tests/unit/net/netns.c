/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The namespaces of netns.h, set up with ip(8) and nsenter(1).
 */
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t peer;

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (bytes < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Root, or root of a user namespace. */
static int unshare_net(void)
{
	char uids[64], gids[64];
	int err;

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	if (!unshare(CLONE_NEWNET))
		return 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -errno;
	err = put("/proc/self/uid_map", uids);
	if (!err)
		err = put("/proc/self/setgroups", "deny");
	return err ? err : put("/proc/self/gid_map", gids);
}

bool netns_allowed(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(-unshare_net());
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status)) {
		perror("fork");
		return false;
	}
	if (WEXITSTATUS(status))
		printf("skipped: no network namespace of our own: %s; run as root\n",
		       strerror(WEXITSTATUS(status)));
	return !WEXITSTATUS(status);
}

void netns_enter(void)
{
	ck_assert_int_eq(unshare_net(), 0);
	run("ip link set lo up");
	run("echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad");
}

__attribute__((format(printf, 2, 0))) static void run_v(const char *prefix, const char *format,
							va_list args)
{
	char command[512];
	int bytes = snprintf(command, sizeof(command), "%s", prefix);

	vsnprintf(command + bytes, sizeof(command) - bytes, format, args);
	ck_assert_msg(system(command) == 0, "failed: %s", command);
}

void run(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	run_v("", format, args);
	va_end(args);
}

void wait_until(const char *format, ...)
{
	char loop[512] = "for i in $(seq 3000); do ";
	size_t bytes = strlen(loop);
	va_list args;

	va_start(args, format);
	vsnprintf(loop + bytes, sizeof(loop) - bytes, format, args);
	va_end(args);
	run("%s && exit; sleep 0.01; done; exit 1", loop);
}

void peer_run(const char *format, ...)
{
	char prefix[64];
	va_list args;

	snprintf(prefix, sizeof(prefix), "nsenter -t %d -n ", peer);
	va_start(args, format);
	run_v(prefix, format, args);
	va_end(args);
}

static void peer_main(int ready_fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) < 0 || write(ready_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

void peer_start(void)
{
	char ready;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	peer = fork();
	ck_assert_int_ge(peer, 0);
	if (!peer)
		peer_main(fds[1]);
	ck_assert_int_eq(read(fds[0], &ready, 1), 1);
	close(fds[0]);
	close(fds[1]);
	run("ip link add veth0 type veth peer name veth1");
	run("ip link set veth1 netns %d", peer);
	run("echo 50 > /proc/sys/net/ipv4/neigh/veth0/retrans_time_ms");
	run("echo 2 > /proc/sys/net/ipv4/neigh/veth0/mcast_solicit");
	run("ip link set veth0 up");
	peer_run("ip link set veth1 up");
}

void drop_net_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
	data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective &= ~CAP_TO_MASK(CAP_NET_ADMIN);
	ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

union addr ip(const char *text)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *found;
	union addr addr;

	ck_assert_msg(!getaddrinfo(text, NULL, &hints, &found), "no address: %s", text);
	ck_assert_int_eq(addr_copy(found->ai_addr, &addr), 0);
	freeaddrinfo(found);
	return addr;
}

const char *ip_text(union addr addr)
{
	static char text[NI_MAXHOST];

	if (getnameinfo(&addr.sa, addr_bytes(&addr.sa), text, sizeof(text), NULL, 0,
			NI_NUMERICHOST))
		return "(none)";
	return text;
}
