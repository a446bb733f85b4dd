/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's interface to cmportd: messages, ports, comm ids, tracked connections.
 *
 * Functions may be called from any thread, unless stated otherwise. A request waits some tens of
 * microseconds for its response, and a second or so while a cmportd that has died is being
 * replaced.
 */
#ifndef LIB_PORTD_CLIENT_PORTD_CLIENT_H
#define LIB_PORTD_CLIENT_PORTD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/portd/proto/proto.h"
#include "lib/portd/proto/stat.h"

/* A cmportd that has not responded by then is given up, unless it waits for a CPU. */
#define PORTD_ANSWER_MS	       15000
#define PORTD_ANSWER_WAITS_MAX 8 /* of that length, while it waits for a CPU */

struct portd_client;

/* Why a call failed and what to do about it, for the log; "" if unknown. */
struct portd_why {
	char text[PORTD_TEXT_BYTES];
};

/**
 * portd_client_open() - connect to the cmportd of this host, starting it if necessary
 * @ret:     to be released with portd_client_close()
 * @ret_ids: the first block of comm ids
 * @ret_why: set on error
 *
 * Return: 0; -ECONNREFUSED if there is no cmportd and none can be started; -EMFILE, -ENFILE or
 * -ENOMEM if that is because this process, or cmportd, has reached its limit; -EACCES if this user
 * may not connect; the error of socket_path_try() if it cannot start one; -EPROTONOSUPPORT if its
 * version differs; -ETIMEDOUT; -errno.
 */
int portd_client_open(struct portd_client **ret, struct portd_ids *ret_ids,
		      struct portd_why *ret_why);

/**
 * portd_start_own() - start a cmportd for this process alone, for portd_client_open_by()
 * @ret_fd: a connection to it; owned by the caller. It ends when the connection does.
 *
 * Return: 0; -ECONNREFUSED; -errno.
 */
int portd_start_own(int *ret_fd, struct portd_why *ret_why);

/**
 * portd_client_open_by() - connect to a cmportd by other means than its socket path
 * @reach: opens a connection, now and after the present one has ended; returns 0 or -errno
 *
 * Return: as portd_client_open(), or as @reach.
 */
int portd_client_open_by(struct portd_client **ret,
			 int (*reach)(int *ret_fd, struct portd_why *ret_why),
			 struct portd_ids *ret_ids, struct portd_why *ret_why);

/**
 * portd_client_visit() - connect to the cmportd of this host without starting one
 *
 * For portd_stat() only: such a client gets no comm ids.
 *
 * Return: as portd_client_open(); -ENOENT or -ECONNREFUSED if there is none.
 */
int portd_client_visit(struct portd_client **ret, struct portd_why *ret_why);

/** portd_client_close() - disconnect; cmportd ends open connections. NULL is allowed. */
void portd_client_close(struct portd_client *client);

/**
 * portd_client_leave() - when the process exits: disconnect from a cmportd of portd_start_own(),
 * and wait until it has ended the connections and freed the ports
 * @ms: timeout in milliseconds
 *
 * Leaves the descriptors open, because other threads may be about to use them. Takes no lock.
 */
void portd_client_leave(struct portd_client *client, int ms);

/**
 * portd_client_after_fork() - close the sockets of the parent's latest client, and free it
 *
 * Called in a forked child. A thread of the parent may have been opening that client.
 */
void portd_client_after_fork(void);

/**
 * portd_client_fd() - the descriptor that is readable when portd_receive() has work
 *
 * The number stays the same, but must be added to an epoll instance again after portd_resume().
 */
int portd_client_fd(const struct portd_client *client);

/**
 * portd_await() - if cmportd is gone, wait until another thread has resumed with the next one
 *
 * Return: 0; -EPIPE if the calling thread is the one that resumes; -ECONNREFUSED if it cannot.
 */
int portd_await(struct portd_client *client);

/* Called with handle, CA GUID and GID 0 of a port that is open. The handle is this cmportd's. */
typedef void portd_opened_fn(const struct portd_reply *reply, void *arg);

/** portd_keep_reply() - a portd_opened_fn that copies the reply to @arg */
void portd_keep_reply(const struct portd_reply *reply, void *arg);

/**
 * portd_open_port() - start to receive CM messages on a port
 * @opened: called before portd_resume() can call its tell(), which must open the port again
 *
 * Does not wait for the next cmportd, since callers hold locks that the resuming thread takes.
 *
 * Return: 0, or as umad_port_open(), with *ret_why; -EPIPE if cmportd is gone.
 */
int portd_open_port(struct portd_client *client, const char *device, uint8_t port_num,
		    portd_opened_fn *opened, void *arg, struct portd_why *ret_why);

/** portd_bind() - claim a port; a zero @claim->local_port is set. Return: as ports_bind(). */
int portd_bind(struct portd_client *client, struct portd_claim *claim);

/** portd_listen() - accept requests for a claim. Return: as ports_listen(). */
int portd_listen(struct portd_client *client, const struct portd_claim *claim);

/** portd_update() - update the addresses or flags of a claim */
void portd_update(struct portd_client *client, const struct portd_claim *claim);

/** portd_release() - release a claim */
void portd_release(struct portd_client *client, uint32_t claim_id);

/**
 * portd_take_port() - take a leased ephemeral port; usually without a system call
 *
 * Return: the port; 0 when the host has none left, or if @ps is not a port space.
 */
uint16_t portd_take_port(struct portd_client *client, uint16_t ps);

/** portd_give_port() - free a leased port. Return: false if the port is not leased. */
bool portd_give_port(struct portd_client *client, uint16_t ps, uint16_t port);

/**
 * portd_port_events() - number of events of an opened port's device, modulo 2^32; no system call
 * @handle: of the port
 *
 * cmportd counts them while it is connected. Never 0 for a port that was opened.
 */
uint32_t portd_port_events(const struct portd_client *client, int handle);

/** portd_lease_ids() - lease one more block of comm ids. Return: 0, -ENOSPC, -errno. */
int portd_lease_ids(struct portd_client *client, struct portd_ids *ret);

/**
 * portd_put_data() - send a record on the data socket, before those that are queued
 *
 * Waits while the client resumes: the next cmportd must receive this record after those of tell(),
 * which opens the ports and repeats the queries. SA_REVALIDATE does not wait, not for room either:
 * it is lost, as the next cmportd has no use for it.
 *
 * Return: 0; -EPIPE or -ECONNRESET if cmportd has ended; another -errno if the record is lost.
 */
int portd_put_data(struct portd_client *client, const struct portd_record *record);

/** portd_hold() - queue a message, or the notice that a comm id is free again */
void portd_hold(struct portd_client *client, const struct portd_record *record);

/**
 * portd_send_held() - send what is queued, in order, which wakes up cmportd once
 *
 * Return: 0, or -errno if it is lost.
 */
int portd_send_held(struct portd_client *client);

/**
 * portd_drain() - wait until cmportd has read what was sent, and may have sent it
 * @ms: timeout in milliseconds for the reading
 */
void portd_drain(struct portd_client *client, int ms);

/**
 * portd_stat() - query connections and counters, which arrive as STAT_* records
 * @pid:   the process to ask, or 0 for all
 * @reply: first: ask_id of the rows; count: number of STAT_END to expect, without cmportd's own
 *
 * Return: 0; -EBUSY if the previous query was too recent; -errno if the connection to cmportd has
 * ended.
 */
int portd_stat(struct portd_client *client, uint32_t pid, struct portd_reply *ret);

/**
 * portd_try_data() - send a datagram if the socket has room
 *
 * Return: 0; -EAGAIN; -errno if it is lost.
 */
int portd_try_data(struct portd_client *client, const struct portd_datagram *datagram);

/**
 * portd_resume_here() - declare that the calling thread receives records and resumes the client
 *
 * Its requests do not wait for the next cmportd. portd_receive() implies it, which may come late.
 */
void portd_resume_here(void);

/**
 * portd_receive() - handle one received datagram; never blocks. One thread at a time.
 * @take: called for each record that portd_is_told()
 *
 * Return: 0 if there may be more; -EAGAIN if there is none; -EPIPE if the connection to cmportd has
 * ended: call portd_resume().
 */
int portd_receive(struct portd_client *client,
		  void (*take)(const struct portd_record *record, void *arg), void *arg);

/**
 * portd_resume() - connect to the next cmportd and report everything; for the receiving thread
 * @tell: reports all ports, claims and connections by the functions below; it may be called again
 *
 * Return: 0, or -errno to try again later.
 */
int portd_resume(struct portd_client *client, void (*tell)(struct portd_client *client, void *arg),
		 void *arg);

/**
 * portd_tell_port() - open a port again; called only by tell() of portd_resume()
 *
 * Return: 0 with the response, whose .error may be an errno; -errno if cmportd is gone.
 */
int portd_tell_port(struct portd_client *client, const char *device, uint8_t port_num,
		    struct portd_reply *ret);

/** portd_tell_claim() - report a claim; called by tell() only. Return: 0, or as portd_bind(). */
int portd_tell_claim(struct portd_client *client, const struct portd_claim *claim, bool listens);

/** portd_tell_data() - as portd_put_data(); called by tell() only */
int portd_tell_data(struct portd_client *client, const struct portd_record *record);

/**
 * portd_tell_failed() - called by tell() only: something cannot be told, so portd_resume() shall
 * fail or begin anew
 */
void portd_tell_failed(struct portd_client *client);

/** portd_track() - report that data has established a connection, without an RTU */
void portd_track(struct portd_client *client, const struct cm_record *tracked);

/** portd_tell_tracked() - report a connection; called by tell() only */
void portd_tell_tracked(struct portd_client *client, const struct cm_record *tracked);

#endif
