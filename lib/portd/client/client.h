/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's side of cmportd: messages out and in, ports, comm ids, tracked connections..
 *
 * Any thread may call anything here, except where it says otherwise. A call that asks waits for
 * the answer, some tens of microseconds; while a cmportd that died is being replaced, a second or
 * so.
 */
#ifndef LIB_PORTD_CLIENT_CLIENT_H
#define LIB_PORTD_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/portd/proto/trace_ring.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/proto/stat.h"

#define PORTD_ANSWER_MS 15000 /* a cmportd that says nothing for so long is given up */

struct portd_client;

/* Why something failed, for the log: what is in the way and what helps. "" if it is not known. */
struct portd_why {
	char text[PORTD_TEXT_BYTES];
};

/**
 * portd_client_open() - find the cmportd of this host, or start it, and say HELLO
 * @ret:     to be given back with portd_client_close()
 * @ret_ids: the first block of comm ids
 * @ret_why: filled on an error
 *
 * Return: 0; -ECONNREFUSED if none is there and none can be started; -EACCES; -EPROTONOSUPPORT if
 * it is of another version; -ETIMEDOUT; -errno.
 */
int portd_client_open(struct portd_client **ret, struct portd_ids *ret_ids,
		      struct portd_why *ret_why);

/**
 * portd_client_open_by() - say HELLO to a cmportd that is reached in another way
 * @reach: how to get a connection, now and when that one has ended. It returns 0 or -errno
 *
 * Return: as portd_client_open(), or as @reach.
 */
int portd_client_open_by(struct portd_client **ret,
			 int (*reach)(int *ret_fd, struct portd_why *ret_why),
			 struct portd_ids *ret_ids, struct portd_why *ret_why);

/**
 * portd_client_visit() - look in at the cmportd of this host; none is started
 *
 * For portd_stat() only: such a client gets no comm ids.
 *
 * Return: as portd_client_open(); -ENOENT or -ECONNREFUSED where none is.
 */
int portd_client_visit(struct portd_client **ret, struct portd_why *ret_why);

/** portd_client_close() - leave; what is still open is ended by cmportd. NULL is allowed. */
void portd_client_close(struct portd_client *client);

/**
 * portd_client_hang_up() - leave, as the process exits: cmportd ends what is open
 *
 * The descriptors stay, for other threads may be about to use them. Takes no lock.
 */
void portd_client_hang_up(struct portd_client *client);

/** portd_client_after_fork() - in a forked child: close the parent's sockets, and forget it. */
void portd_client_after_fork(struct portd_client *client);

/**
 * portd_client_fd() - readable when portd_receive() has something
 *
 * The number stays; what is behind it is new after portd_resume(), and to be polled anew.
 */
int portd_client_fd(const struct portd_client *client);

/**
 * portd_open_port() - receive CM messages on a port from now on
 * @ret: port, CA GUID and GID 0; the handle is good until portd_resume() says otherwise
 *
 * Return: 0, or as umad_port_open(), with *ret_why.
 */
int portd_open_port(struct portd_client *client, const char *device, uint8_t port_num,
		    struct portd_reply *ret, struct portd_why *ret_why);

/** portd_bind() - claim a port; @claim->local_port 0 is filled in. Return: as ports_bind(). */
int portd_bind(struct portd_client *client, struct portd_claim *claim);

/** portd_listen() - welcome requests for a claim. Return: as ports_listen(). */
int portd_listen(struct portd_client *client, const struct portd_claim *claim);

/** portd_update() - a claim's addresses or flags have changed. */
void portd_update(struct portd_client *client, const struct portd_claim *claim);

/** portd_release() - a claim is given back. */
void portd_release(struct portd_client *client, uint32_t claim_id);

/**
 * portd_take_port() - an ephemeral port of our own; usually costs no system call
 *
 * Return: it; 0 when the host has none left, or it is not a port space.
 */
uint16_t portd_take_port(struct portd_client *client, uint16_t ps);

/** portd_give_port() - give it back. Return: false if it was not taken like that. */
bool portd_give_port(struct portd_client *client, uint16_t ps, uint16_t port);

/** portd_lease_ids() - one more block of comm ids. Return: 0, -ENOSPC, -errno. */
int portd_lease_ids(struct portd_client *client, struct portd_ids *ret);

/**
 * portd_send() - messages are to leave, in this order
 *
 * Return: 0, or -errno if they are lost for sure.
 */
int portd_send(struct portd_client *client, const struct portd_mad *mad, unsigned int n);

/**
 * portd_put_data() - a record of subnet administration is to leave
 *
 * Return: 0, or -errno if it is lost for sure.
 */
int portd_put_data(struct portd_client *client, const struct portd_record *record);

/**
 * portd_hold() - a message is to leave with the next ones, after what was held before it
 *
 * Whoever answers many at once wakes cmportd once: portd_send_held().
 */
void portd_hold(struct portd_client *client, const struct portd_mad *mad);

/** portd_closed() - a comm id is free again. Held, as a message is. */
void portd_closed(struct portd_client *client, const struct portd_close *close);

/** portd_send_held() - what is held leaves now. Return: as portd_send(). */
int portd_send_held(struct portd_client *client);

/**
 * portd_drain() - wait until cmportd has read what was sent, and for the turn in which it sends it
 * @ms: no longer than that, and the turn
 */
void portd_drain(struct portd_client *client, int ms);

/**
 * portd_trace() - see every message of this host from now on
 * @ret: the trace ring; to be given back with trace_reader_fini()
 *
 * Return: 0; -EPERM for all but root and the user who runs cmportd; -errno.
 */
int portd_trace(struct portd_client *client, struct trace_reader *ret);

/**
 * portd_await_seen() - be told, by one SEEN, when the ring has a message after this one
 *
 * Return: 0, or -errno, and cmportd is gone.
 */
int portd_await_seen(struct portd_client *client, uint64_t number);

/**
 * portd_stat() - how do connections and counters stand? Rows come as STAT_* records
 * @pid:   of one process, or 0
 * @reply: first: ask_id of the rows; count: how many STAT_END will come, but for cmportd's own
 *
 * Return: 0; -EBUSY if that was asked just now; -errno, and cmportd is gone.
 */
int portd_stat(struct portd_client *client, uint32_t pid, struct portd_reply *ret);

/**
 * portd_try_data() - a datagram is to leave, if there is room
 *
 * Return: 0; -EAGAIN; -errno if it is lost for sure.
 */
int portd_try_data(struct portd_client *client, const struct portd_datagram *datagram);

/**
 * portd_receive() - take what has arrived; never blocks. One thread at a time.
 * @take: called for each MAD, GONE, SA_TOLD, SEEN and STAT_*
 *
 * Return: 0 if there may be more; -EAGAIN when there is none; -EPIPE when cmportd is gone: call
 * portd_resume().
 */
int portd_receive(struct portd_client *client,
		  void (*take)(const struct portd_record *record, void *arg), void *arg);

/* What a client tells the next cmportd: called by portd_resume(), with portd_tell_*(). */
struct portd_memory {
	void (*ask_name)(char io_device[PORTD_DEVICE_BYTES], uint8_t port_num, void *arg);
	void (*handle_is)(const char *device, uint8_t port_num, int handle, void *arg);
	void (*tell)(struct portd_client *client, void *arg); /* all claims and connections */
	void *arg;
};

/**
 * portd_resume() - find or start the next cmportd and tell it all; by the thread that receives
 *
 * ask_name() is called for each port that was open, as its device may have another name by now, and
 * handle_is() with its new handle, or the -errno with which the next cmportd refuses it; then
 * tell().
 *
 * Return: 0, or why it has to be tried again later.
 */
int portd_resume(struct portd_client *client, const struct portd_memory *memory);

/** portd_tell_claim() - in portd_memory.tell(). Return: 0, or as portd_bind(). */
int portd_tell_claim(struct portd_client *client, const struct portd_claim *claim, bool listens);

/** portd_track() - the state of a connection has changed without a message. */
void portd_track(struct portd_client *client, const struct cm_record *tracked);

/** portd_tell_tracked() - in portd_memory.tell() */
void portd_tell_tracked(struct portd_client *client, const struct cm_record *tracked);

#endif
