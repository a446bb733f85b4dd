/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closes descriptors that users have sent, in threads. close() of a file of FUSE waits for the
 * user who serves it, and that of a TCP socket with SO_LINGER for its peer; the last close() of a
 * unix socket does the same for the descriptors in its queue. Sockets wait for 1 ms at most, as
 * signals interrupt them; nothing interrupts FUSE.
 *
 * At most one thread works for each struct closing, so a user who makes it wait makes only himself
 * wait. Each user has two: one for descriptors that cmportd has received, one for its own sockets
 * with something in their queue. A file of FUSE may make the first wait as long as its user wants.
 * It does not do that to the second, because the kernel waits when a descriptor is closed, and
 * those in a queue are not in cmportd's table.
 */
#ifndef LIB_PORTD_SERVER_CLIENTS_CLOSER_H
#define LIB_PORTD_SERVER_CLIENTS_CLOSER_H

#include <stdbool.h>

#define CLOSER_THREADS 12  /* of struct closing at a time */
#define CLOSER_MANY    256 /* descriptors of a user, above which his clients are not read from */

struct closer;
struct closing; /* descriptors of one user */

/** closer_new() - Return: a closer without threads; they start on demand. NULL on ENOMEM. */
struct closer *closer_new(void);

/**
 * closer_free() - let go of a closer, after closer_forget() of all users; NULL is allowed
 *
 * Threads end when they have closed what they are closing, and the last one frees the rest.
 */
void closer_free(struct closer *closer);

/**
 * closer_put() - close a descriptor soon, in a thread
 * @closing: of the user; NULL before the first call; to be released with closer_forget()
 * @fd:      owned by the callee if it returns true
 *
 * Return: false if that is not possible: out of memory, or no thread.
 */
bool closer_put(struct closer *closer, struct closing **closing, int fd);

/**
 * closer_is_empty() - shut down a unix socket, and return whether its queue is empty
 *
 * close() of such a socket does not wait, as there are no descriptors in its queue.
 */
bool closer_is_empty(int socket);

/** closer_count() - return how many descriptors are not closed yet; @closing may be NULL */
unsigned int closer_count(const struct closing *closing);

/** closer_forget() - the user ends; descriptors are still closed. *@closing may be NULL. */
void closer_forget(struct closer *closer, struct closing **closing);

#endif
