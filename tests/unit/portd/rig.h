/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All of cmportd but the device, inside a test: turns are made one by one, in virtual time, and
 * nothing waits. What it sends on the wire is recorded, and messages arrive from there when the
 * test says so. Clients are sockets of the test, which speak the protocol of
 * lib/portd/proto/proto.h and nothing prevents from lying.
 *
 * rig.c is the host and its clients, rig_device.c what stands for the RDMA device. Called by the
 * tests of the server and by its fuzz target. What the rig itself cannot do ends the program.
 */
#ifndef TESTS_UNIT_PORTD_RIG_H
#define TESTS_UNIT_PORTD_RIG_H

#include "lib/portd/proto/lease.h"
#include "lib/portd/server/state.h"

#define RIG_DEVICE   "fake0" /* has two ports */
#define RIG_GUID     UINT64_C(0x5054000000000001)
#define RIG_PORTS    2
#define RIG_GID	     0x77 /* the last byte of all its GIDs */
#define RIG_SERVICE  7174
#define RIG_PROBE_ID 0x9abc			  /* of the sender's probe */
#define RIG_NO_GID   10				  /* an index that is not in use */
#define RIG_PEER_QPN 0x4711			  /* what arrives beside QP1 was sent from there */
#define RIG_SECRET   UINT64_C(0x1111111111111111) /* all random numbers are that */
#define RIG_HOME     1 /* cookie of the network namespace that cmportd is in */

/* --- the host ------------------------------------------------------------ */

/**
 * rig_set_up() - a cmportd begins, at virtual time 1000 s
 * @path: of its socket, in a folder that is there
 */
void rig_set_up(const char *path);

/** rig_set_up_alone() - one without a socket directory begins, for the first client that dials. */
void rig_set_up_alone(void);

/** rig_opens_ports() - does the next one open all ports at once? At first, it does not. */
void rig_opens_ports(bool opens);

/** rig_records() - the next cmportd records so many messages; 64 if nothing is said. */
void rig_records(uint32_t n);

/** rig_port_file() - what root sets for ports is there, for the next one; NULL: nowhere, as at
 * first.
 */
void rig_port_file(const char *path);

/** rig_reload() - it is told to read that again, and does. */
void rig_reload(void);

/** rig_stop() - it is told to stop. */
void rig_stop(void);

/** rig_tear_down() - it ends, and what was recorded is forgotten. */
void rig_tear_down(void);

/** rig_server() - all that it knows, to be looked at. */
struct server *rig_server(void);

/** rig_settle() - let it turn until it would wait, or leave. It must not turn in circles. */
void rig_settle(void);

/** rig_turn() - let it turn once. */
void rig_turn(void);

/** rig_pass() - time goes by, in one piece, and it settles. */
void rig_pass(uint64_t ms);

/** rig_wait_ms() - how long it would wait for something to happen; -1: for ever. */
int rig_wait_ms(void);

/** rig_count() - of messages of any kind, at all ports. */
uint64_t rig_count(enum portd_stat_counter counter);

/** rig_n_fds() - how many descriptors this process has. */
unsigned int rig_n_fds(void);

/* --- the wire ------------------------------------------------------------ */

struct rig_sent {
	uint8_t port_num;
	bool slowly; /* by umad: with a look at the neighbour */
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/** rig_peer() - the way to a host of the other side; each @host has an address of its own. */
struct mad_path rig_peer(uint8_t host);

/** rig_arrive() - a message arrives at port 1, and is dealt with. */
void rig_arrive(const struct mad_path *from, const struct cm_msg *msg);

/** rig_arrive_bytes() - any bytes do, at any port of the device; not looked at yet. */
void rig_arrive_bytes(uint8_t port_num, const struct mad_path *from, const uint8_t mad[MAD_BYTES]);

/**
 * rig_arrive_beside() - a message arrives beside QP1, at the queue pair that those of port 1 leave
 *                       from; not looked at yet
 * @msg: NULL: nonsense
 */
void rig_arrive_beside(const struct mad_path *from, const struct cm_msg *msg);

/** rig_remove_device() - it says so at QP1; not looked at yet. */
void rig_remove_device(void);

/** rig_gid_moves() - rig_gid() is at this index from now on, and another GID at all others;
 * RIG_NO_GID: it has gone */
void rig_gid_moves(uint8_t index);

/** rig_gid_is_elsewhere() - the GID that messages come to is of an interface of another namespace.
 */
void rig_gid_is_elsewhere(unsigned int ifindex);

/** rig_foreign_has() - such an interface with that GID is in each namespace that is read; 0: none.
 */
void rig_foreign_has(unsigned int ifindex);

/** rig_foreign_takes() - to read one takes so many datagrams (1) */
void rig_foreign_takes(unsigned int n_datagrams);

/** rig_n_foreign_reads() - how often one was read */
unsigned int rig_n_foreign_reads(void);

/** rig_heard() - the peer that was heard last, and from which queue pair; 0: none was */
uint32_t rig_heard(struct mad_gid *ret);

/** rig_unanswered() - the peer that last left a message unanswered */
struct mad_gid rig_unanswered(void);

/** rig_hops_are_ready() - from now on, has every next hop a link address? At first, it has. */
void rig_hops_are_ready(bool ready);

/** rig_hop_questions() - how often it was asked whether one has. */
uint64_t rig_hop_questions(void);

/** rig_sender_is_ready() - from now on, could the sender send at once? As hops, if not said. */
void rig_sender_is_ready(bool ready);

/** rig_sender_refuses() - the sender takes no message, and says this; 0: it takes all. */
void rig_sender_refuses(int err);

/** rig_sends_fail() - what the sender has taken fails from now on, and was not sent. */
void rig_sends_fail(bool fail);

/** rig_probe() - from now on this is the sender's score; a probe of host 1 is due if any is out */
void rig_probe(const struct mad_sender_score *is);

/** rig_proves_itself() - each port that is opened, and each whose paths have changed, from now on
 */
void rig_proves_itself(void);

/** rig_next_answers_a_probe() - from now on, does what comes answer the sender's probes? */
void rig_next_answers_a_probe(bool it_does);

/** rig_came() - the message that the sender was told of last. Return: was there one? */
bool rig_came(struct mad_gid *ret, struct cm_msg *ret_msg);

/** rig_n_revalidations() - how often it has revalidated a next hop. */
unsigned int rig_n_revalidations(void);

/** rig_n_sent() - how many messages it has sent that rig_sent() has not returned. */
unsigned int rig_n_sent(void);

/** rig_sent() - the next message that it has sent. Return: false if there is none. */
bool rig_sent(struct rig_sent *ret, struct cm_msg *ret_msg);

/* --- clients ------------------------------------------------------------- */

struct rig_client {
	int control;
	int data;
	int page_fd;
	bool is_tracer;		  /* its last question was that */
	int ring_fd;		  /* the answer */
	uint32_t first;		  /* of its comm ids */
	uint64_t secret;	  /* of them */
	uint8_t handle;		  /* of port 1 */
	struct portd_reply reply; /* the last one */
	struct portd_datagram in; /* what rig_next() is reading */
};

/** rig_come_from() - from now on clients come from another network namespace, or RIG_HOME. */
void rig_come_from(uint64_t cookie);

/** rig_come_as() - from now on clients are another process, or unknown: 0; -1: this one. */
void rig_come_as(pid_t pid);

/** rig_come_as_user() - from now on, until the next rig, clients are of this user, and not root's.
 */
void rig_come_as_user(uid_t uid);

/** rig_dial() - connect, and no more. Return: the socket. */
int rig_dial(void);

/** rig_dial_later() - a socket for rig_connect(), while there are descriptors to be had. */
int rig_dial_later(void);

/** rig_connect() - connect it; the server turns while too many wait to be accepted. */
void rig_connect(int fd);

/** rig_resume() - a client says that it comes from an earlier cmportd. Return: as rig_ask(). */
int rig_resume(struct rig_client *client, int page_fd);

/** rig_hold() - it shows the secret of its comm ids, and asks for them. Return: as rig_ask(). */
int rig_hold(struct rig_client *client);

/** rig_meet() - a client that has said HELLO. */
void rig_meet(struct rig_client *client);

/** rig_join() - a client that has said HELLO and opened port 1. */
void rig_join(struct rig_client *client);

/** rig_leave() - it closes what it has, and is gone. */
void rig_leave(struct rig_client *client);

/**
 * rig_ask() - a record on its control socket
 *
 * Return: the error of the answer, 0 also for a record that gets none; -1 if there was no answer.
 */
int rig_ask(struct rig_client *client, const struct portd_record *record);

/** rig_answer() - an answer that came later. Return: as rig_ask(). */
int rig_answer(struct rig_client *client);

/**
 * rig_put() - bytes, on any socket, with descriptors; not looked at yet
 *
 * Return: false if there was no room, or nobody.
 */
bool rig_put(int to, const void *bytes, size_t n, const int *fds, unsigned int n_fds);

/** rig_tell() - a record on its data socket; not looked at yet. Return: as rig_put(). */
bool rig_tell(const struct rig_client *client, const struct portd_record *record);

/** rig_gid() - all that are in its GID tables. */
struct mad_gid rig_gid(void);

/** rig_encode() - a message for a path that is set; a REQ names its GIDs, unless it names others.
 */
void rig_encode(struct portd_mad *mad, const struct cm_msg *msg);

/** rig_send() - it sends a message from port 1, which is dealt with. */
void rig_send(struct rig_client *client, const struct mad_path *to, const struct cm_msg *msg);

/** rig_next() - the next record on its data socket. Return: false if there is none. */
bool rig_next(struct rig_client *client, struct portd_record *ret);

/** rig_next_msg() - the next one, if it is a message. Return: false if it is not. */
bool rig_next_msg(struct rig_client *client, struct cm_msg *ret);

/** rig_is_disconnected() - has cmportd hung up? */
bool rig_is_disconnected(const struct rig_client *client);

/** rig_claim() - of RIG_SERVICE at an IPv4 address, "0.0.0.0" for all. */
struct portd_claim rig_claim(uint32_t claim_id, const char *addr);

/** rig_listen() - BIND and LISTEN. Return: as rig_ask(). */
int rig_listen(struct rig_client *client, const char *addr);

/** rig_replace_device() - what has this name and node GUID now; at first RIG_DEVICE and RIG_GUID */
void rig_replace_device(const char *name, uint64_t guid);

/** rig_reset_device() - what is open does not answer; it can be opened again */
void rig_reset_device(void);

/** rig_said() - how often a log, a file of up to 1 MiB, contains a text */
unsigned int rig_said(int fd, const char *text);

#endif
