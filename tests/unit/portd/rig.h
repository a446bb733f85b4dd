/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All of cmportd except the device, inside a test: the test runs its turns one by one, in virtual
 * time, without waiting. Sent messages are recorded, and the test injects received ones. Clients
 * are sockets of the test, which use the protocol of lib/portd/proto/proto.h, and may violate it.
 *
 * rig.c is the host and its clients, rig_device.c the fake RDMA device. Used by the tests of the
 * server and by its fuzz target. A failure of the rig itself ends the program.
 */
#ifndef TESTS_UNIT_PORTD_RIG_H
#define TESTS_UNIT_PORTD_RIG_H

#include "lib/portd/proto/lease.h"
#include "lib/portd/server/server_state.h"

#define RIG_DEVICE   "fake0" /* has two ports */
#define RIG_GUID     UINT64_C(0x5054000000000001)
#define RIG_PORTS    2
#define RIG_GID	     0x77 /* the last byte of all its GIDs */
#define RIG_SERVICE  7174
#define RIG_PROBE_ID 0x9abc			  /* of the sender's probe */
#define RIG_NO_GID   10				  /* an unused index */
#define RIG_PEER_QPN 0x4711			  /* messages beside QP1 are sent from here */
#define RIG_SECRET   UINT64_C(0x1111111111111111) /* the value of all random numbers */
#define RIG_HOME     1				  /* cookie of cmportd's network namespace */

/* --- the host ------------------------------------------------------------ */

/**
 * rig_set_up() - start a cmportd, at virtual time 1000 s
 * @path: of its socket, in an existing folder
 */
void rig_set_up(const char *path);

/** rig_set_up_alone() - start one without a socket directory, for the first client that dials. */
void rig_set_up_alone(void);

/** rig_set_opens_ports() - set whether the next cmportd opens all ports at once; not by default. */
void rig_set_opens_ports(bool opens);

/** rig_records() - the number of messages that the next cmportd records; 64 by default. */
void rig_records(uint32_t n);

/** rig_port_file() - the port file of the next cmportd; NULL, the default: none. */
void rig_port_file(const char *path);

/** rig_reload() - make it read that file again. */
void rig_reload(void);

/** rig_stop() - send it the signal to stop. */
void rig_stop(void);

/** rig_tear_down() - end it, and drop the record of messages. */
void rig_tear_down(void);

/** rig_server() - its state. */
struct server *rig_server(void);

/** rig_settle() - run turns until it would wait or end. An endless loop is an error. */
void rig_settle(void);

/** rig_turn() - run one turn. */
void rig_turn(void);

/** rig_pass() - advance the time in one step, and settle. */
void rig_pass(uint64_t ms);

/** rig_wait_ms() - how long it would wait for an event; -1: forever. */
int rig_wait_ms(void);

/** rig_count() - a counter of messages of any kind, at all ports. */
uint64_t rig_count(enum portd_stat_counter counter);

/** rig_n_fds() - the number of descriptors of this process. */
unsigned int rig_n_fds(void);

/* --- the wire ------------------------------------------------------------ */

struct rig_sent {
	uint8_t port_num;
	bool slowly; /* through umad, with a check of the neighbour */
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/** rig_peer() - the path to a host of the other side; each @host has an address of its own. */
struct mad_path rig_peer(uint8_t host);

/** rig_arrive() - deliver a message to port 1, and settle. */
void rig_arrive(const struct mad_path *from, const struct cm_msg *msg);

/** rig_arrive_bytes() - deliver any bytes to any port of the device, without settling. */
void rig_arrive_bytes(uint8_t port_num, const struct mad_path *from, const uint8_t mad[MAD_BYTES]);

/**
 * rig_arrive_beside() - deliver a message beside QP1, to the queue pair that sends for port 1,
 * without settling
 * @msg: NULL: invalid bytes
 */
void rig_arrive_beside(const struct mad_path *from, const struct cm_msg *msg);

/** rig_remove_device() - report the removal at QP1, without settling. */
void rig_remove_device(void);

/**
 * rig_move_gid() - put rig_gid() at this index, and another GID at all others; RIG_NO_GID: remove
 * it
 */
void rig_move_gid(uint8_t index);

/** rig_move_gid_elsewhere() - put the receiving GID on an interface of another namespace. */
void rig_move_gid_elsewhere(unsigned int ifindex);

/** rig_foreign_add() - put an interface with that GID into each foreign namespace; 0: none. */
void rig_foreign_add(unsigned int ifindex);

/** rig_foreign_only() - leave it only in the namespace with this netlink socket */
void rig_foreign_only(int netlink_fd);

/** rig_foreign_reserve() - the number of datagrams for reading one (1) */
void rig_foreign_reserve(unsigned int n_datagrams);

/** rig_n_foreign_reads() - the number of reads of foreign namespaces */
unsigned int rig_n_foreign_reads(void);

/** rig_last_noted_qpn() - the latest peer of mad_sender_note_qpn(), and its queue pair; 0: none */
uint32_t rig_last_noted_qpn(struct mad_gid *ret);

/** rig_unanswered() - the latest peer of mad_sender_unanswered() */
struct mad_gid rig_unanswered(void);

/** rig_set_hops_ready() - set whether every next hop has a link address; by default, it has. */
void rig_set_hops_ready(bool ready);

/** rig_hop_questions() - the number of checks for that. */
uint64_t rig_hop_questions(void);

/** rig_set_sender_ready() - set whether the sender can send at once; by default as the hops. */
void rig_set_sender_ready(bool ready);

/** rig_set_sender_refusal() - make the sender refuse messages with this result; 0: accept all. */
void rig_set_sender_refusal(int err);

/** rig_set_port_taken() - make another process own the ports that are opened from now on. */
void rig_set_port_taken(bool taken);

/** rig_set_port_refusal() - make opening a port fail with this result; 0: not any more. */
void rig_set_port_refusal(int err);

/** rig_set_queued() - have messages to all peers wait to be written to umad. */
void rig_set_queued(bool has);

/** rig_set_sends_fail() - make accepted messages of the sender fail. */
void rig_set_sends_fail(bool fail);

/** rig_probe() - set the sender's score; a probe of host 1 is due if any is outstanding */
void rig_probe(const struct mad_sender_score *is);

/** rig_set_probe_answers() - set whether received messages answer the sender's probes */
void rig_set_probe_answers(bool it_does);

/** rig_last_arrival() - the latest message of mad_sender_note_arrival(). Return: whether there was
 * one. */
bool rig_last_arrival(struct mad_gid *ret, struct cm_msg *ret_msg);

/** rig_n_revalidations() - the number of revalidated next hops. */
unsigned int rig_n_revalidations(void);

/** rig_n_sent() - the number of sent messages that rig_sent() has not returned. */
unsigned int rig_n_sent(void);

/** rig_sent() - get the next sent message. Return: false if there is none. */
bool rig_sent(struct rig_sent *ret, struct cm_msg *ret_msg);

/* --- clients ------------------------------------------------------------- */

struct rig_client {
	int control;
	int data;
	int page_fd;
	uint32_t first;		  /* of its comm ids */
	uint64_t secret;	  /* of the comm ids */
	uint8_t handle;		  /* of port 1 */
	struct portd_reply reply; /* the latest one */
	struct portd_datagram in; /* read by rig_next() */
};

/** rig_client_from() - set the network namespace of later clients, or RIG_HOME. */
void rig_client_from(uint64_t cookie);

/** rig_start_takes() - set how long the next cmportd takes to begin. */
void rig_start_takes(unsigned int ms);

/** rig_client_as() - set the process of later clients; 0: unknown; -1: this one. */
void rig_client_as(pid_t pid);

/** rig_client_as_user() - set the user of later clients, not root, until the next rig. */
void rig_client_as_user(uid_t uid);

/** rig_dial() - connect only. Return: the socket. */
int rig_dial(void);

/** rig_dial_later() - create a socket for rig_connect(), while there are free descriptors. */
int rig_dial_later(void);

/** rig_connect() - connect it; the server runs while too many wait to be accepted. */
void rig_connect(int fd);

/** rig_resume() - announce a client of an earlier cmportd. Return: as rig_ask(). */
int rig_resume(struct rig_client *client, int page_fd);

/** rig_hold() - request its comm ids with their secret. Return: as rig_ask(). */
int rig_hold(struct rig_client *client);

/** rig_meet() - a client that has sent HELLO. */
void rig_meet(struct rig_client *client);

/** rig_join() - a client that has sent HELLO and opened port 1. */
void rig_join(struct rig_client *client);

/** rig_leave() - close all sockets of a client. */
void rig_leave(struct rig_client *client);

/**
 * rig_ask() - send a record on its control socket
 *
 * Return: the error of the reply, 0 also for a record without one; -1 if there was no reply.
 */
int rig_ask(struct rig_client *client, const struct portd_record *record);

/** rig_answer() - get a later reply. Return: as rig_ask(). */
int rig_answer(struct rig_client *client);

/**
 * rig_put() - send bytes and descriptors on any socket, without settling
 *
 * Return: false if the socket is full or closed.
 */
bool rig_put(int to, const void *bytes, size_t n, const int *fds, unsigned int n_fds);

/** rig_send_record() - send a record on its data socket, without settling. Return: as rig_put(). */
bool rig_send_record(const struct rig_client *client, const struct portd_record *record);

/** rig_gid() - the GID in all entries of its tables. */
struct mad_gid rig_gid(void);

/**
 * rig_encode() - encode a message for a given path; a REQ gets the path's GIDs unless it has
 * others.
 */
void rig_encode(struct portd_mad *mad, const struct cm_msg *msg);

/** rig_send() - send a message from port 1, and settle. */
void rig_send(struct rig_client *client, const struct mad_path *to, const struct cm_msg *msg);

/** rig_next() - get the next record on its data socket. Return: false if there is none. */
bool rig_next(struct rig_client *client, struct portd_record *ret);

/** rig_next_msg() - get the next record if it is a message. Return: false if not. */
bool rig_next_msg(struct rig_client *client, struct cm_msg *ret);

/** rig_is_disconnected() - return whether cmportd has closed the connection. */
bool rig_is_disconnected(const struct rig_client *client);

/** rig_claim() - claim RIG_SERVICE at an IPv4 address, "0.0.0.0" for all. */
struct portd_claim rig_claim(uint32_t claim_id, const char *addr);

/** rig_listen() - BIND and LISTEN. Return: as rig_ask(). */
int rig_listen(struct rig_client *client, const char *addr);

/**
 * rig_replace_device() - set name and node GUID of the device; initially RIG_DEVICE and RIG_GUID
 */
void rig_replace_device(const char *name, uint64_t guid);

/** rig_fail_queries() - make queries of the device fail until it is opened again */
void rig_fail_queries(int err);

/** rig_count_text() - the number of occurrences of a text in a log of up to 1 MiB */
unsigned int rig_count_text(int fd, const char *text);

#endif
