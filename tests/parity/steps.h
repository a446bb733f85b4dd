/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps that many parity scenarios share. Only those that are documented to print do; the
 * others print only after a failure, and then end the scenario with give_up().
 */
#ifndef PARITY_STEPS_H
#define PARITY_STEPS_H

#include "conduct.h"
#include "parity.h"
#include "show.h"

/**
 * at() - an address with a port
 * @addr: the address
 * @port: host byte order
 *
 * Return: one of eight static buffers, used in turn.
 */
struct sockaddr *at(const struct sockaddr_storage *addr, uint16_t port);

/**
 * numeric() - an address from its text
 * @text: a numeric address
 * @port: host byte order
 *
 * Return: one of eight static buffers, used in turn.
 */
struct sockaddr *numeric(const char *text, uint16_t port);

/**
 * any() - the wildcard address of the scene's family
 * @s:    the scene
 * @port: host byte order
 *
 * Return: one of eight static buffers, used in turn.
 */
struct sockaddr *any(const struct scene *s, uint16_t port);

/**
 * loopback() - the loopback address of the scene's family
 * @s:    the scene
 * @port: host byte order
 *
 * Return: one of eight static buffers, used in turn.
 */
struct sockaddr *loopback(const struct scene *s, uint16_t port);

/**
 * beside() - the peer's address with another last byte
 * @s:    the scene
 * @last: the last byte; GONE and SILENT are prepared by run.py
 * @port: host byte order
 *
 * Return: one of eight static buffers, used in turn.
 */
struct sockaddr *beside(const struct scene *s, uint8_t last, uint16_t port);

/* Last bytes of addresses that resolve but do not respond, and of addresses that do not resolve. */
#define GONE   99
#define SILENT 77

/**
 * open_id() - create an id on the scene's channel, with its label as context
 * @s:     the scene
 * @label: its label
 * @ps:    port space
 *
 * Return: the id.
 */
struct rdma_cm_id *open_id(struct scene *s, const char *label, enum rdma_port_space ps);

/**
 * close_id() - destroy an id, without printing
 * @id: the id; its queue pair, if any, is destroyed first
 */
void close_id(struct rdma_cm_id *id);

/**
 * get_event() - get the next event of a channel, without printing it
 * @channel:     a blocking channel
 * @patience_ms: how long to wait at most
 *
 * Return: the event, to be acknowledged.
 */
struct rdma_cm_event *get_event(struct rdma_event_channel *channel, int patience_ms);

/**
 * wait_event() - get the next event of a channel within PATIENCE_MS and print it
 * @channel: a blocking channel
 *
 * Return: the event, to be acknowledged.
 */
struct rdma_cm_event *wait_event(struct rdma_event_channel *channel);

/**
 * wait_event_for() - wait_event() with another timeout
 * @channel:     a blocking channel
 * @patience_ms: how long to wait at most
 *
 * Return: the event, to be acknowledged.
 */
struct rdma_cm_event *wait_event_for(struct rdma_event_channel *channel, int patience_ms);

/**
 * take_event() - get, print and acknowledge the next event of the scene's channel
 * @s: the scene
 */
void take_event(struct scene *s);

/**
 * take_each() - get one event of each id in any order; print and acknowledge them in the order of
 * the ids
 * @s:           the scene
 * @ids:         the ids; NULL stands for one that does not exist yet, and becomes a request's
 * @n:           how many, at most EACH_MAX
 * @patience_ms: how long to wait for each event at most
 */
#define EACH_MAX 4
void take_each(struct scene *s, struct rdma_cm_id **ids, size_t n, int patience_ms);

/**
 * expect_event() - get and acknowledge an event; prints only what is not as expected
 * @s:    the scene
 * @type: what must come next
 */
void expect_event(struct scene *s, enum rdma_cm_event_type type);

/**
 * show_quiet() - print whether any event comes within QUIET_MS; takes none
 * @channel: the channel
 */
void show_quiet(struct rdma_event_channel *channel);

/**
 * is_ready() - whether an event waits on a channel
 * @channel: the channel
 * @wait_ms: how long to wait for one
 */
bool is_ready(const struct rdma_event_channel *channel, int wait_ms);

/**
 * resolve() - resolve address and route of the peer
 * @s:    the scene
 * @id:   an id that is idle or bound
 * @port: the peer's port, host byte order
 */
void resolve(struct scene *s, struct rdma_cm_id *id, uint16_t port);

/**
 * listen_here() - listen on the scene's port on the wildcard address, then meet the client
 * @s:       the scene
 * @ps:      port space
 * @backlog: as for rdma_listen
 *
 * Return: the listener, labelled "listener".
 */
struct rdma_cm_id *listen_here(struct scene *s, enum rdma_port_space ps, int backlog);

/**
 * dial_ready() - meet the server, then an id with its route resolved
 * @s:  the scene
 * @ps: port space
 *
 * Return: the id, labelled "client".
 */
struct rdma_cm_id *dial_ready(struct scene *s, enum rdma_port_space ps);

/**
 * wait_request() - get and acknowledge a CONNECT_REQUEST, without printing
 * @s: the scene
 *
 * Return: the new id, labelled "child".
 */
struct rdma_cm_id *wait_request(struct scene *s);

/**
 * make_qp() - create a small queue pair with the library's completion queues
 * @id: a device-bound id
 */
void make_qp(struct rdma_cm_id *id);

/**
 * unused_qpn() - a queue pair number that no queue pair has
 *
 * Two requests from one host with the same number would make one of them stale.
 *
 * Return: 24 bits, another one at each call in any process of this host.
 */
uint32_t unused_qpn(void);

/**
 * usual_param() - connection parameters: one read each way, 7 retries, a text as private data
 * @text: private data, or NULL for none
 *
 * Return: the parameters; the private data is @text itself.
 */
struct rdma_conn_param usual_param(const char *text);

/**
 * dial() - dial_ready(), queue pair, connect, ESTABLISHED, then meet answer()
 * @s: the scene
 *
 * A DREQ that follows the RTU too closely may overtake it; hence the meeting.
 *
 * Return: the id, labelled "client".
 */
struct rdma_cm_id *dial(struct scene *s);

/**
 * accept_request() - take a request, queue pair, accept, ESTABLISHED
 * @s: the scene
 *
 * Return: the new id, labelled "child".
 */
struct rdma_cm_id *accept_request(struct scene *s);

/**
 * answer() - accept_request(), then meet dial()
 * @s: the scene
 *
 * Return: the new id, labelled "child".
 */
struct rdma_cm_id *answer(struct scene *s);

/**
 * show_qp_state() - print the state of an id's queue pair
 * @id: an id with a queue pair
 */
void show_qp_state(const struct rdma_cm_id *id);

/**
 * shell() - run a command of the host's set-up; gives up when it fails
 * @format: as for printf
 */
void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * pause_ms() - sleep
 * @ms: milliseconds
 */
void pause_ms(unsigned ms);

/**
 * lose_peer() - drop everything that this host sends to the peer's address
 * @s: the scene; its control connection uses another address. The scenario has to be ALONE.
 */
void lose_peer(const struct scene *s);

/** find_peer() - undo lose_peer() */
void find_peer(const struct scene *s);

#endif
