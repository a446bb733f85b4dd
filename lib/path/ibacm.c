/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to ibacm: see ibacm.h.
 */
#include "lib/path/ibacm.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "lib/api.h"
#include "lib/diag/warning.h"

#define LISTENING 0x0a /* in /proc/net/tcp */

static struct ibacm of_host;
static pthread_once_t of_host_once = PTHREAD_ONCE_INIT;

void ibacm_init(struct ibacm *acm, const char *port_file, const char *socket, int timeout_ms)
{
	*acm = (struct ibacm){
		.port_file = port_file, .socket = socket, .timeout_ms = timeout_ms, .fd = -1
	};
	pthread_mutex_init(&acm->lock, NULL);
}

void ibacm_fini(struct ibacm *acm)
{
	fd_close(&acm->fd);
	pthread_mutex_destroy(&acm->lock);
}

/* A child with its parent's connection would get the parent's responses. */
static void forget_parent(void)
{
	fd_close(&of_host.fd);
	ibacm_init(&of_host, IBACM_PORT_FILE, IBACM_SOCKET, IBACM_TIMEOUT_MS);
}

static void init_shared_client(void)
{
	ibacm_init(&of_host, IBACM_PORT_FILE, IBACM_SOCKET, IBACM_TIMEOUT_MS);
	pthread_atfork(NULL, NULL, forget_parent);
}

struct ibacm *ibacm_of_host(void)
{
	pthread_once(&of_host_once, init_shared_client);
	return &of_host;
}

/* --- transfers with a deadline ------------------------------------------- */

static int wait_for(const struct ibacm *acm, int fd, short events)
{
	struct pollfd poller = { .fd = fd, .events = events };
	struct cm_time now = clock_now();
	uint64_t left_ns = cm_time_reached(acm->deadline, now) ? 0 : acm->deadline.ns - now.ns;
	int n;

	if (acm->may_cancel)
		api_leave(PTHREAD_CANCEL_ENABLE);
	n = poll(&poller, 1, (int)((left_ns + CM_NS_PER_MS - 1) / CM_NS_PER_MS));
	if (acm->may_cancel)
		api_enter();
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n ? 0 : -ETIMEDOUT;
}

/* Sends or receives exactly @bytes bytes. */
static int transfer_bytes(const struct ibacm *acm, short events, uint8_t *at, size_t bytes)
{
	int err = 0;

	while (bytes && !err) {
		ssize_t n = events == POLLOUT
				    ? send(acm->fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
				    : recv(acm->fd, at, bytes, MSG_DONTWAIT);

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			err = wait_for(acm, acm->fd, events);
		} else {
			err = -ECONNRESET;
		}
	}
	return err;
}

/* --- connecting ------------------------------------------------------------ */

/* Answers of a daemon of another user are not trusted. */
static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* Return: the port, or 0 if the file contains none. */
static uint16_t read_port(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int port = 0;
	struct stat stat;

	if (!file)
		return 0;
	if (fstat(fileno(file), &stat) || !is_trusted(stat.st_uid) ||
	    fscanf(file, "%5u", &port) != 1 || port > UINT16_MAX)
		port = 0;
	fclose(file);
	return (uint16_t)port;
}

/*
 * The file may be older than the present listener. Return: whether that is another user's, by
 * /proc/net.
 */
static bool is_owned_by_other_user(const char *table, uint16_t port)
{
	unsigned int local_port, state, uid;
	char *line = NULL;
	size_t room = 0;
	FILE *file = fopen(table, "re");
	bool found = false;

	while (file && !found && getline(&line, &room, file) >= 0)
		found = sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %u",
			       &local_port, &state, &uid) == 3 &&
			local_port == port && state == LISTENING && !is_trusted(uid);
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* Not cancelled: on this host a connect ends at once. Return: a descriptor or -errno. */
static int connect_to(struct ibacm *acm, const void *addr, socklen_t bytes)
{
	int fd = socket(((const struct sockaddr *)addr)->sa_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int failure = 0, err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, addr, bytes))
		err = errno == EINPROGRESS ? wait_for(acm, fd, POLLOUT) : -errno;
	if (!err && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &(socklen_t){ sizeof(failure) }))
		err = -errno;
	err = err ? err : -failure;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int connect_to_port(struct ibacm *acm, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!port)
		return -ENOENT;
	if (is_owned_by_other_user("/proc/net/tcp", port) ||
	    is_owned_by_other_user("/proc/net/tcp6", port))
		return -EPERM;
	return connect_to(acm, &addr, sizeof(addr));
}

static int connect_to_socket(struct ibacm *acm, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	return connect_to(acm, &addr, sizeof(addr));
}

/* --- requests ------------------------------------------------------------- */

static int exchange_messages(struct ibacm *acm, const struct ibacm_question *question,
			     struct ibacm_answer *ret)
{
	uint8_t wire[IBACM_MESSAGE_BYTES];
	size_t bytes = ibacm_encode(question, ++acm->tid, wire);
	int err, verdict;

	if (!bytes)
		return -ENOENT;
	err = transfer_bytes(acm, POLLOUT, wire, bytes);
	if (!err)
		err = transfer_bytes(acm, POLLIN, wire, IBACM_HEADER_BYTES);
	if (err)
		return err;
	verdict = ibacm_check(wire, acm->tid, &bytes);
	if (verdict == -EBADMSG)
		return verdict;
	err = transfer_bytes(acm, POLLIN, wire, bytes);
	if (!err && !verdict)
		ibacm_decode(wire, bytes, ret);
	return err ? err : verdict;
}

/* Connects on the first call only. */
static int try_to_ask(struct ibacm *acm, const struct ibacm_question *question,
		      struct ibacm_answer *ret)
{
	int err;

	acm->deadline = cm_time_after(clock_now(), (uint64_t)acm->timeout_ms * CM_NS_PER_MS);
	acm->may_cancel = false;
	if (!acm->is_tried) {
		acm->is_tried = true;
		acm->fd = connect_to_port(acm, read_port(acm->port_file));
		if (acm->fd < 0)
			acm->fd = connect_to_socket(acm, acm->socket);
		if (acm->fd >= 0)
			log_debug("ibacm is there");
	}
	if (acm->fd < 0)
		return -ENOTCONN;
	acm->may_cancel = question->may_cancel;
	err = exchange_messages(acm, question, ret);
	if (err && err != -ENOENT) {
		warning_of_ibacm(err);
		fd_close(&acm->fd);
	}
	return err;
}

/* The thread is cancelled: the next one connects again, since the answer is still to come. */
static void abandon_question(void *arg)
{
	struct ibacm *acm = arg;

	fd_close(&acm->fd);
	acm->is_tried = false;
	pthread_mutex_unlock(&acm->lock);
}

int ibacm_ask(struct ibacm *acm, const struct ibacm_question *question, struct ibacm_answer *ret)
{
	int err;

	pthread_mutex_lock(&acm->lock);
	pthread_cleanup_push(abandon_question, acm);
	err = try_to_ask(acm, question, ret);
	pthread_cleanup_pop(0);
	pthread_mutex_unlock(&acm->lock);
	return err;
}
