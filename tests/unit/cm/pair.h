/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts, each with a core, and a wire between them, in virtual time. A test sets the faults of
 * messages, connects the hosts, and compares the exchange with a chart:
 *
 * 	pair_fault(&pair, PAIR_SERVER, CM_ATTR_REP, 1, PAIR_DROP);
 * 	pair_connect(&pair);
 * 	pair_run(&pair);
 * 	ck_assert_chart(&pair, "REQ> <REP* REQ> <REP RTU>");
 *
 * In a chart the client is on the left; * is lost, + duplicated, ~ delayed.
 */
#ifndef TESTS_UNIT_CM_PAIR_H
#define TESTS_UNIT_CM_PAIR_H

#include "cm/core.h"
#include "tests/unit/test.h"

#define PAIR_SERVICE	 UINT64_C(0x01061b58)
#define PAIR_LATENCY_MS	 1
#define PAIR_DELAY_MS	 1500 /* longer than the first timeout for an answer */
#define PAIR_ENDS_MAX	 16
#define PAIR_FAULTS_MAX	 8
#define PAIR_PACKETS_MAX 64

enum pair_side {
	PAIR_CLIENT,
	PAIR_SERVER,
};

enum pair_fate {
	PAIR_DELIVER,
	PAIR_DROP,
	PAIR_DUPLICATE,
	PAIR_DELAY, /* arrives after the next message of its sender */
	PAIR_N_FATES,
};

/* The call of an application as soon as it is connected. */
enum pair_haste {
	PAIR_STAYS,
	PAIR_DISCONNECTS,
	PAIR_DESTROYS,
	PAIR_N_HASTES,
};

/* One half of a connection, with the reports of its caller. */
struct pair_end {
	struct pair_host *host;
	struct cm_conn *conn; /* NULL when destroyed */
	char log[256];	      /* "REQUEST, ESTABLISHED" */
};

struct pair_host {
	struct pair *pair;
	enum pair_side side;
	struct cm_core core;
	struct cm_port port;
	struct cm_service service;
	struct mad_path path; /* to the other host */
	struct pair_end end[PAIR_ENDS_MAX];
	unsigned int n_ends;

	/* Traits of its caller. */
	bool manual; /* makes no calls of its own; else accepts, confirms and answers a disconnect
		      */
	enum pair_haste haste;
	bool dead; /* sends and receives nothing */
};

struct pair_packet {
	struct cm_time due;
	struct pair_host *to; /* NULL: a free slot */
	uint64_t number;
	uint8_t mad[MAD_BYTES];
};

struct pair_fault {
	enum pair_side from;
	uint16_t attr;
	unsigned int nth; /* 1 is the first */
	enum pair_fate fate;
};

struct pair {
	struct cm_time now;
	struct pair_host host[2];
	struct pair_packet packet[PAIR_PACKETS_MAX];
	uint64_t n_packets; /* in total */
	struct pair_fault fault[PAIR_FAULTS_MAX];
	unsigned int n_faults;
	const enum pair_fate *fates; /* of the first transmissions, of any kind; or NULL */
	unsigned int n_fates;
	unsigned int n_transmissions;
	char chart[2048];
};

/** pair_init() - two hosts without connections. */
void pair_init(struct pair *pair);

/**
 * pair_fini() - destroy all connections, run until they have ended, and free the hosts
 *
 * Asserts that no connection, index entry, timer or send slot remains in use.
 */
void pair_fini(struct pair *pair);

/** pair_fault() - set the fault of the nth message of a kind from a side. */
void pair_fault(struct pair *pair, enum pair_side from, enum cm_attr attr, unsigned int nth,
		enum pair_fate fate);

/** pair_connect() - request a connection from the client. Return: the client's end. */
struct pair_end *pair_connect(struct pair *pair);

/** pair_look_up() - look up a datagram service from the client. Return: the client's end. */
struct pair_end *pair_look_up(struct pair *pair);

/** pair_call() - make a call on an end. Return: as cm_core_call(). */
int pair_call(struct pair_end *end, enum cm_event verb);

/** pair_end() - the nth connection of a side, from 0. */
struct pair_end *pair_end(struct pair *pair, enum pair_side side, unsigned int nth);

/** pair_run() - run until nothing more happens. */
void pair_run(struct pair *pair);

/** pair_deliver() - deliver all outstanding messages, without expiring timers. */
void pair_deliver(struct pair *pair);

/** pair_run_until() - run until an end of a side is in a state. */
void pair_run_until(struct pair *pair, enum pair_side side, enum cm_state state);

/** pair_run_until_sent() - run until a total number of messages has been sent. */
void pair_run_until_sent(struct pair *pair, unsigned int n);

/** pair_restart() - a host loses its state and restarts at once. */
void pair_restart(struct pair_host *host);

/** pair_ms() - the time that has passed. */
uint64_t pair_ms(const struct pair *pair);

/** pair_forget_chart() - start a new chart. */
void pair_forget_chart(struct pair *pair);

#define ck_assert_chart(pair, expected) ck_assert_str_eq((pair)->chart, expected)
#define ck_assert_log(end, expected)	ck_assert_str_eq((end)->log, expected)

#endif
