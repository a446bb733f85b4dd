/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of ibacm, which some InfiniBand hosts run and no other has. Whatever it does, silence,
 * nonsense or a hang-up, costs no more than its answer and a second, and that once: it is connected
 * to once in a process, and not spoken to any more after the first failure.
 */
#ifndef LIB_PATH_IBACM_H
#define LIB_PATH_IBACM_H

#include <pthread.h>

#include "lib/path/ibacm_msg.h"

#define IBACM_PORT_FILE	 "/run/ibacm.port" /* holds a TCP port of the loopback address */
#define IBACM_SOCKET	 "/run/ibacm.sock"
#define IBACM_TIMEOUT_MS 1000

struct ibacm {
	const char *port_file; /* tried first */
	const char *socket;
	int timeout_ms; /* of a question, connecting included */
	pthread_mutex_t lock;
	bool is_tried;
	int fd; /* -1: there is none, or it is given up */
	uint64_t tid;
};

/** ibacm_init() - a client that connects when it is first asked; the strings must outlive it. */
void ibacm_init(struct ibacm *acm, const char *port_file, const char *socket, int timeout_ms);

/** ibacm_fini() - hang up. */
void ibacm_fini(struct ibacm *acm);

/** ibacm_of_host() - the one of this process; after fork() the child's is another. */
struct ibacm *ibacm_of_host(void);

/**
 * ibacm_ask() - ask for a path; other threads' questions wait
 * @ret: untouched on failure
 *
 * Return: 0; -ENOENT if ibacm does not know; -ENOTCONN if there is none; -ETIMEDOUT, -EBADMSG,
 * -ECONNRESET: given up just now.
 */
int ibacm_ask(struct ibacm *acm, const struct ibacm_question *question, struct ibacm_answer *ret);

#endif
