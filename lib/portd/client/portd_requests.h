/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of a client of cmportd: portd_requests.c finds it and sends requests, portd_client.c
 * implements the rest of portd_client.h.
 */
#ifndef LIB_PORTD_CLIENT_PORTD_REQUESTS_H
#define LIB_PORTD_CLIENT_PORTD_REQUESTS_H

#include <pthread.h>

#include "cm/ids.h"
#include "lib/portd/client/portd_client.h"
#include "lib/portd/proto/lease.h"
#include "lib/portd/proto/socket_path.h"

/* Number of cmportds that may die one after the other while they are told or asked the same. */
#define REQUEST_TRIES_MAX 8

struct portd_client {
	pthread_mutex_t lock; /* protects the members down to data_fd */
	pthread_cond_t resumed;
	unsigned int life;     /* number of resumptions */
	unsigned int n_failed; /* number of attempts to resume that failed */
	bool visits;	       /* does not start cmportd, gets no comm ids */
	int (*reach)(int *ret_fd, struct portd_why *ret_why); /* NULL: connect to path */
	bool broken;
	int control_fd;
	unsigned int n_unanswered; /* requests on it */
	struct lease_page *page;
	int page_fd;
	int turn_fd;   /* holds the turn to start cmportd, or -1 */
	int passed[2]; /* received with the answer to HELLO, until they have their places; or -1 */
	unsigned int lease_count;      /* of the next request */
	int n_free[LEASE_SPACES];      /* ports on the page, estimated; atomic */
	bool has_leased[LEASE_SPACES]; /* at any time; atomic */
	unsigned int n_blocks;
	struct portd_ids block[CM_ID_BLOCKS_MAX];
	char path[SOCKET_PATH_BYTES];

	int data_fd;
	pthread_mutex_t data_lock; /* held to send a record, and to resume; taken before lock */

	pthread_mutex_t held_lock;
	struct portd_datagram held; /* to be sent before or with the next messages */
};

extern __thread bool request_is_resumer; /* the calling thread resumes, and must not wait for it */

/** request_is_hang_up() - return whether this is how the death of cmportd shows */
bool request_is_hang_up(int err);

/**
 * request_start() - connect to cmportd, starting it if necessary, and send HELLO
 *
 * The lock must be held, or no other thread may use the client yet.
 *
 * @resumes: resume, with the client's page
 * @ret_ids: the first block; unused with @resumes
 *
 * Return: as portd_client_open().
 */
int request_start(struct portd_client *client, bool resumes, struct portd_ids *ret_ids,
		  struct portd_why *ret_why);

/**
 * request_exchange() - send one record, and receive its response if it gets one; the lock is held
 * @fd:     to be passed, or -1
 * @ret_fd: two descriptors that were passed, or -1; owned by the caller. NULL: descriptors are
 *          closed. Unchanged if there is no response.
 *
 * Return: 0 if a response arrived, even one with an error; -ETIMEDOUT if none arrived in time, in
 * which case a late one is dropped; another -errno if the connection to cmportd has ended. While
 * the client resumes, any error ends the connection.
 */
int request_exchange(struct portd_client *client, const struct portd_record *record, int fd,
		     struct portd_reply *ret, int ret_fd[2]);

/**
 * request_ask() - send a request, to the next cmportd if this one dies
 * @fd: to be passed, or -1
 *
 * Return: 0 or -errno, which may be cmportd's.
 */
int request_ask(struct portd_client *client, const struct portd_record *record, int fd,
		struct portd_reply *ret);

/** request_ask_locked() - like request_ask(); the lock is held, but not while it waits */
int request_ask_locked(struct portd_client *client, const struct portd_record *record, int fd,
		       struct portd_reply *ret);

/** request_try() - send a request once. Return: 0 or -errno; -EPIPE if cmportd has ended. */
int request_try(struct portd_client *client, const struct portd_record *record, int fd,
		struct portd_reply *ret);

/** request_keep_block() - note the block of comm ids in a response; the lock is held */
struct portd_ids request_keep_block(struct portd_client *client, const struct portd_reply *reply);

/** request_tell() - send a record without response */
void request_tell(struct portd_client *client, const struct portd_record *record);

/** request_send() - send a record on a control socket. Return: 0 or -errno. */
int request_send(int to, const struct portd_record *record, int fd);

#endif
