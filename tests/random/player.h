/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The player of random sequences: an ordinary librdmacm program that executes scripts of calls and
 * prints a transcript in which two libraries can be compared, in the form of tests/parity.
 */
#ifndef RANDOM_PLAYER_H
#define RANDOM_PLAYER_H

#include "tests/parity/show.h"

#include <infiniband/ib.h>
#include <rdma/rdma_verbs.h>

#define N_CHANNELS  2
#define N_SLOTS	    10 /* ids; those of requests take the first free one from FIRST_CHILD on */
#define FIRST_CHILD 5
#define N_PORTS	    8 /* p0 to p7 of a script, on both hosts */
#define MAX_WORDS   8
#define LINE_BYTES  512

struct slot {
	struct rdma_cm_id *id;
	char label[8];
	char shown[2048]; /* as its state was last printed */
	bool routed;	  /* see README.md: calls that are not made */
	bool connecting;
	bool has_response; /* it may be established */
	bool is_request, listens;
	bool is_busy; /* the thread is in a call of it */
};

/* One end of a script. */
struct play {
	struct rdma_event_channel *channels[N_CHANNELS];
	struct slot slots[N_SLOTS];
	struct rdma_cm_event *held;
	int control;	   /* to the other end; -1 at that */
	unsigned pause_us; /* see settle() */
	unsigned limit_ms; /* of a call that waits */
	bool is_stormy;	   /* signals arrive during the call */
	bool is_settled;   /* see settle() */
	bool is_idle;	   /* see set_idle() */
	char **words;	   /* of the step: the call, an id or a channel, arguments */
	struct slot *slot; /* its second word, if that is an id */
};

/* What both ends know; self4 and self6 are those of each. */
extern struct sockaddr_storage host_addresses[4]; /* self4, self6, peer4, peer6 */
extern uint16_t base_port;

/* player.c */
void open_end(struct play *p, unsigned pause_us);
bool play_line(struct play *p, char *line);

/* show.c */
void show_changes(struct play *p);
void show_info(const struct rdma_addrinfo *info);

/* values.c: what the words of scripts stand for */
void parse_hosts(char **texts);
struct sockaddr *address_of(const char *host, const char *port, enum rdma_port_space ps);
enum rdma_port_space space_of(const char *word);
struct rdma_conn_param *param_of(const char *word);
void queue_pair_of(const char *word, struct ibv_qp_init_attr *attr);

/* calls.c */
bool make_call(struct play *p);
bool is_quiet(const char *line);

/* events.c */
struct slot *slot_of(struct play *p, const struct rdma_cm_id *id);
struct slot *put_in_slot(struct play *p, size_t number, struct rdma_cm_id *id);
struct slot *take_slot(struct play *p, struct rdma_cm_id *id);
void take_events(struct play *p, struct rdma_event_channel *channel, bool wait);
void hold_event(struct play *p, struct rdma_event_channel *channel);
void take_pause(const struct play *p);
void set_idle(const struct play *p, bool is_on);
void settle(struct play *p);
bool send_line_to_peer(struct play *p, const char *command);

/* thread.c: the second thread, which makes whole calls in turn with the first */
void hand_over(struct play *p, const char *line);
void let_thread_go_on(struct play *p);
bool is_in_thread(void);
void leave_turn(struct play *p);
int enter_turn(struct play *p, int result);

/* Let the other thread have turns during a call that may wait for it; errno is preserved. */
#define AWAIT(p, call) (leave_turn(p), enter_turn(p, call))

/* sockets.c */
void make_socket_call(struct play *p);
bool is_quiet_for_sockets(const char *word);

/* peer.c */
int serve(const char *port);

#endif
