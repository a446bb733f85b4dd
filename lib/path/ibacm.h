/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of ibacm, which runs on some InfiniBand hosts only. A failure, such as a timeout, an
 * invalid response or a disconnect, costs that response and at most a second, and only once: the
 * client connects once per process, and stops after the first failure.
 */
#ifndef LIB_PATH_IBACM_H
#define LIB_PATH_IBACM_H

#include <pthread.h>

#include "base/time.h"
#include "lib/path/ibacm_msg.h"

#define IBACM_PORT_FILE	 "/run/ibacm.port" /* contains a TCP port of the loopback address */
#define IBACM_SOCKET	 "/run/ibacm.sock"
#define IBACM_TIMEOUT_MS 1000

struct ibacm {
	const char *port_file; /* tried first */
	const char *socket;
	int timeout_ms; /* of a request, including the connect */
	pthread_mutex_t lock;
	bool is_tried;
	int fd;			 /* -1: none, or given up */
	struct cm_time deadline; /* of the request that is under way */
	bool may_cancel;
	uint64_t tid;
};

/** ibacm_init() - initialise a client that connects on first use; the strings must outlive it. */
void ibacm_init(struct ibacm *acm, const char *port_file, const char *socket, int timeout_ms);

/** ibacm_fini() - disconnect. */
void ibacm_fini(struct ibacm *acm);

/** ibacm_of_host() - the client of this process; a forked child gets a new one. */
struct ibacm *ibacm_of_host(void);

/**
 * ibacm_ask() - request a path; serialised between threads; the thread may be cancelled while it
 * waits, if the question permits it
 * @ret: untouched on failure
 *
 * Return: 0; -ENOENT if ibacm knows no path; -ENOTCONN if there is no ibacm; -ETIMEDOUT, -EBADMSG,
 * -ECONNRESET: the connection has just been given up.
 */
int ibacm_ask(struct ibacm *acm, const struct ibacm_question *question, struct ibacm_answer *ret);

#endif
