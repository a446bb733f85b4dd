/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A malicious cmportd, for the client side of its sockets (lib/portd/client/portd_client.c,
 * portd_requests.c): any answers with any descriptors, any records where messages are expected,
 * any hang-up, any contents of the page of leases. Every call returns, and at the end no descriptor
 * is left.
 *
 * Answers are put on the socket when the client begins to wait for one. Time passes while it looks
 * at the clock (--wrap), and nothing sleeps.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/portd/client/portd_client.h"
#include "lib/portd/proto/lease.h"
#include "tests/fuzz/input.h"

#define FDS_MAX	 4
#define STEP_MS	 50
#define SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MADS_MAX 70

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t bytes);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
ssize_t __wrap_send(int fd, const void *data, size_t bytes, int flags);
ssize_t __real_send(int fd, const void *data, size_t bytes, int flags);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until);
int __wrap_spawn_cmportd(const char *path, int client_fd, int *ret_fd);

static struct input in;
static struct portd_client *client;
static int control = -1, data = -1; /* ends of the malicious cmportd */
static int64_t clock_ms;

static void drain(int fd)
{
	char bytes[PORTD_DATAGRAM_BYTES];

	while (fd >= 0 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* --- output of the malicious cmportd ------------------------------------- */

static int new_data_socket(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	fd_close(&data);
	data = ends[1];
	return ends[0];
}

static int new_page(off_t bytes, int seals)
{
	int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, bytes) || (seals && fcntl(fd, F_ADD_SEALS, seals)))
		abort();
	return fd;
}

static int some_fd(void)
{
	uint32_t words[64];
	int fd;

	switch (next_byte(&in) % 8) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return new_page(next_byte(&in) * 64, SEALS);
	case 2:
		return new_page(LEASE_PAGE_BYTES, 0);
	case 3:
		return new_data_socket();
	}
	fd = new_page(LEASE_PAGE_BYTES, SEALS);
	next_bytes(&in, words, sizeof(words));
	if (pwrite(fd, words, sizeof(words), next_byte(&in) * 16) < 0)
		abort();
	return fd;
}

static void put(int to, const void *bytes, size_t n, const int *fds, unsigned int n_fds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} room = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds) {
		msg.msg_control = &room;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		room.align.cmsg_level = SOL_SOCKET;
		room.align.cmsg_type = SCM_RIGHTS;
		room.align.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(&room.align), fds, n_fds * sizeof(int));
	}
	if (to >= 0)
		sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void next_record(struct portd_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	next_bytes(&in, ret, sizeof(*ret));
	ret->type = PORTD_REPLY;
}

/* A reply that is mostly valid. */
static void reply(void)
{
	struct portd_datagram out = { .bytes = 0 };
	uint8_t how = next_byte(&in);
	struct portd_record record;
	int fds[FDS_MAX];
	unsigned int i, n = 0;

	if (how < 4) {
		fd_close(&control);
		return;
	}
	if (how < 8) { /* anything */
		out.bytes = next_byte(&in);
		next_bytes(&in, out.data, out.bytes);
		put(control, out.data, out.bytes, NULL, 0);
		return;
	}
	next_record(&record);
	if (how & 1)
		record.reply.error = 0;
	if (how & 2)
		fds[n++] = new_data_socket();
	if (how & 4)
		fds[n++] = new_page(LEASE_PAGE_BYTES, SEALS);
	for (i = 0; i < how >> 6; i++)
		if (n < FDS_MAX)
			fds[n++] = some_fd();
	portd_put(&out, &record);
	if (how & 8)
		portd_put(&out, &record);
	put(control, out.data, out.bytes, fds, n);
	while (n)
		close(fds[--n]);
}

/* --- in place of the C library ------------------------------------------- */

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t bytes)
{
	int ends[2];

	(void)addr, (void)bytes;
	if (next_byte(&in) > 0xf8) {
		errno = next_byte(&in) & 1 ? ECONNREFUSED : EACCES;
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ||
	    dup3(ends[0], fd, O_CLOEXEC) < 0)
		abort();
	close(ends[0]);
	fd_close(&control);
	control = ends[1];
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	drain(control);
	if (in.left)
		reply();
	else
		fd_close(&control);
	clock_ms += timeout_ms;
	return __real_poll(fds, n, 0);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	drain(data);
	return __real_send(fd, bytes, n, flags | MSG_DONTWAIT);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	clock_ms += STEP_MS;
	*ret = (struct timespec){ clock_ms / 1000, clock_ms % 1000 * 1000000 };
	return 0;
}

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
	(void)wait, (void)left;
	return 0;
}

int __wrap_spawn_cmportd(const char *path, int client_fd, int *ret_fd)
{
	(void)path, (void)client_fd;
	*ret_fd = -1;
	return next_byte(&in) & 1 ? 0 : -ENOENT;
}

/* --- the program --------------------------------------------------------- */

static void report_all(struct portd_client *to, void *arg)
{
	struct portd_claim claim = { .claim_id = 1, .ps = RDMA_PS_TCP };
	struct cm_record tracked = { .state = 1 };
	struct portd_reply reply;

	assert(!arg);
	portd_tell_port(to, "fake0", 1, &reply);
	portd_tell_claim(to, &claim, true);
	portd_tell_tracked(to, &tracked);
}

static void do_resume(void)
{
	portd_resume(client, report_all, NULL);
}

/* The work of the receiving thread. */
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				  const struct timespec *until)
{
	(void)cond, (void)clock, (void)until;
	if (next_byte(&in) & 1)
		return ETIMEDOUT;
	pthread_mutex_unlock(mutex);
	do_resume();
	pthread_mutex_lock(mutex);
	return in.left ? 0 : ETIMEDOUT;
}

static void do_open_port(void)
{
	struct portd_reply got;
	struct portd_why why;

	if (portd_open_port(client, "fake0", 1 + next_byte(&in) % 2, portd_keep_reply, &got, &why))
		assert(memchr(why.text, 0, sizeof(why.text)));
}

static void do_claim(void)
{
	struct portd_claim claim = { .claim_id = next_byte(&in), .ps = RDMA_PS_TCP };

	portd_bind(client, &claim);
	portd_listen(client, &claim);
	portd_update(client, &claim);
	portd_release(client, claim.claim_id);
}

static void do_lease(void)
{
	static const uint16_t spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB };
	uint16_t ps = spaces[next_byte(&in) % 4];
	uint16_t port = portd_take_port(client, ps);

	/* If it is put at a place that is not searched, it is lost. */
	if (port && next_byte(&in) & 1)
		portd_give_port(client, ps, port);
}

static void do_ids(void)
{
	struct portd_ids ids;

	portd_lease_ids(client, &ids);
}

static void do_send(void)
{
	struct portd_record closed = { .type = PORTD_CLOSE,
				       .close = { .local_comm_id = next_byte(&in) } };
	unsigned int n;

	portd_hold(client, &closed);
	for (n = next_byte(&in) % MADS_MAX; n; n--)
		portd_hold(client, &(struct portd_record){ .type = PORTD_MAD });
	portd_send_held(client);
}

static void take(const struct portd_record *record, void *arg)
{
	assert((record->type == PORTD_MAD || record->type == PORTD_GONE) && !arg);
}

static void do_receive(void)
{
	struct portd_datagram out = { .bytes = 0 };
	uint8_t how = next_byte(&in);
	struct portd_record record;

	while (how & 7) {
		next_record(&record);
		record.type = how & 0x80 ? PORTD_MAD : (enum portd_type)(1 + how % PORTD_GONE);
		if (!portd_put(&out, &record))
			break;
		how--;
	}
	if (how & 0x40)
		next_bytes(&in, out.data, next_byte(&in));
	put(data, out.data, out.bytes - (how & 0x20 && out.bytes ? 1 : 0), NULL, 0);
	while (portd_receive(client, take, NULL) == 0)
		;
}

static void do_hang_up(void)
{
	uint8_t which = next_byte(&in);

	if (which & 1)
		fd_close(&control);
	if (which & 2)
		fd_close(&data);
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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static void (*const does[])(void) = { do_open_port, do_claim,	do_lease,   do_ids,
					      do_send,	    do_receive, do_hang_up, do_resume };
	unsigned int n_fds = count_fds();
	struct portd_ids ids;
	struct portd_why why;

	in = (struct input){ bytes, n };
	if (portd_client_open(&client, &ids, &why)) {
		assert(memchr(why.text, 0, sizeof(why.text)));
		client = NULL;
	}
	while (client && in.left)
		does[next_byte(&in) % (sizeof(does) / sizeof(does[0]))]();
	portd_client_close(client);
	client = NULL;
	fd_close(&control);
	fd_close(&data);
	assert(count_fds() == n_fds);
	return 0;
}
