/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated world: hosts with a core each, applications on them, a network that loses, duplicates
 * and delays messages, and oracles that check rules. Everything follows from one seed and happens
 * in virtual time, so that any run can be repeated. This header is shared by the parts; each has
 * one of its own: net.h, host.h, app.h, oracle.h, chart.h, world.h.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdio.h>

#include "cm/core.h"
#include "tests/sim/clock.h"
#include "tests/sim/order.h"
#include "tests/sim/rng.h"

#define SIM_HOSTS_MAX 64
#define SIM_SERVICE   UINT64_C(0x01061b58)
#define SIM_LOOKUP    UINT64_C(0x01111b58)
#define SIM_NOWHERE   UINT64_C(0x01060001)
#define SIM_NS_PER_US UINT64_C(1000)
#define SIM_NS_PER_S  UINT64_C(1000000000)

struct sim;
struct sim_host;

/* --- the network, net.h -------------------------------------------------- */

/* Faults of a link by kind of message; chances in 1000. */
struct net_fault {
	uint16_t lose;
	uint16_t duplicate;
	uint16_t corrupt;
	uint16_t delay;	       /* chance of a delay ... */
	uint32_t delay_max_us; /* ... up to this, mostly short: heavy tail */
};

#define NET_FATES_MAX 16
#define NET_KINDS     (CM_ATTR_APR - CM_ATTR_REQ + 1)

struct net_link {
	struct rng rng;
	struct net_fault fault[NET_KINDS]; /* by attribute */
	bool cut;			   /* in one direction */
	unsigned int n_queued;
	uint32_t held[NET_FATES_MAX]; /* packets that wait to be overtaken */
	unsigned int n_held;
	uint64_t held_ns; /* when they arrive at the latest */
};

struct net_packet {
	uint8_t from, to;
	bool late;
	bool broken;
	uint32_t next_free;
	struct mad_gid gid; /* of the sender at the time of sending */
	uint8_t mad[MAD_BYTES];
};

/* The fate of a transmission in an exhaustive pattern. */
enum net_fate {
	NET_DELIVER,
	NET_LOSE,
	NET_DUPLICATE,
	NET_PASS, /* arrives after the next one on this link */
	NET_N_FATES,
};

struct net {
	struct net_link *link;	/* one per pair: net_link_of() */
	unsigned int queue_max; /* maximum of packets on a link */
	uint32_t latency_us;
	struct net_packet *packet;
	uint32_t n_packets;
	uint32_t free; /* 0: none; packet 0 is never used */

	/* Fates of the first transmissions; the rest is delivered. */
	uint8_t fate[NET_FATES_MAX];
	unsigned int n_fates;
	unsigned int n_fated; /* transmissions since fates were set */
};

/* --- applications, app.h ------------------------------------------------- */

/* An id of an application: one connection, and its history. */
struct sim_id {
	struct sim_host *host;
	struct cm_conn *conn; /* NULL once destroyed, or after a crash of its host */
	uint32_t number;      /* in its host */
	uint32_t comm_id;
	uint32_t incarnation; /* of the host */
	uint8_t peer;	      /* number of the other host */
	struct sim_id *next;  /* next id with the same hash of the comm id */

	/* State of the oracles. */
	struct order order;
	bool begun;	 /* the order is checked */
	bool up;	 /* the application is connected */
	bool over_clean; /* was up, and both ends know of the end */
	bool destroyed;
	bool is_premature; /* called CM_CALL_ESTABLISH while the peer was not connected */
	bool dreq_healed;  /* sent DREQ after the network was healed */
	uint8_t n_letters;
	uint64_t last_ns;      /* time of the last event, by its host's clock */
	uint64_t history;      /* a hash of the events and their times */
	char letters[24];      /* the latest events, for messages */
	uint32_t peer_comm_id; /* as agreed in REP */
	uint32_t qpn;
	struct {
		uint8_t n;
		uint64_t last_ns; /* by its host's clock */
	} sent[4];		  /* REQ, REP, DREQ, SIDR_REQ */
	uint64_t mra_wait_ns;	  /* the longest that the peer requested */
	uint64_t asked_ns;	  /* when the wait for the peer began, by its host's clock */
};

/* Traits of an application; chances in 1000. */
struct app_traits {
	uint16_t accept; /* of a request; if neither of the three happens, it never answers */
	uint16_t reject;
	uint16_t forget;
	uint16_t patience;     /* sends MRA before the answer */
	uint16_t confirm;      /* a REP */
	uint16_t refuse_rep;   /* if it does not confirm */
	uint16_t answer;       /* a DREQ */
	uint16_t hang_up;      /* disconnects after a while, once it is connected */
	uint16_t destroy;      /* instead of its other reactions */
	uint16_t early;	       /* reports data of the peer before its RTU */
	uint16_t again;	       /* connects again after the end */
	uint32_t think_min_us; /* minimum time of a reaction, ... */
	uint32_t think_max_us; /* ... and maximum in addition: heavy tail */
	uint32_t life_max_us;  /* until it disconnects */
	bool destroy_over;     /* destroys ids after their end */
};

/* --- hosts, host.h ------------------------------------------------------- */

#define SIM_ID_BUCKETS 64

struct sim_host {
	struct sim *sim;
	uint8_t number;
	bool is_up;
	struct cm_core core;
	struct cm_port port;
	struct cm_service service, lookups;
	uint64_t guid;
	struct mad_gid gid;
	uint32_t next_qpn;
	uint32_t incarnation;
	uint64_t skew_ns;     /* offset of its clock to the world's */
	uint64_t asleep_ns;   /* until when it sleeps */
	uint64_t deadline_ns; /* of its core, by its own clock */
	struct rng rng;	      /* of its applications */
	struct app_traits traits;
	struct sim_id **id; /* all ids of this run, by number */
	uint32_t n_ids, n_room;
	struct sim_id *by_comm_id[SIM_ID_BUCKETS];
	bool is_liar;	  /* sends forged messages */
	bool has_crashed; /* at any time */
	uint64_t doubts;  /* a bit for each host that sent corrupted or forged messages */
	uint64_t odd_ns;  /* its sleep, plus jumps of its clock */
	/* Of the latest MRA of each peer, which is busy then: messages to it wait longer. */
	uint64_t busy_ns[SIM_HOSTS_MAX];
};

/* --- the world, world.h -------------------------------------------------- */

struct sim {
	uint64_t seed;
	uint64_t now_ns;
	struct clock clock;
	struct net net;
	struct sim_host *host;
	unsigned int n_hosts;
	struct cm_effects fx;
	bool is_healed; /* the network loses nothing more */
	bool is_ending; /* applications start nothing more */
	FILE *chart;	/* where to draw, or NULL */
	bool failed;
	char why[400];
	uint64_t n_calls, n_messages;			       /* in this run */
	void (*act)(struct sim *sim, const struct plan *plan); /* PLAN_WORLD */
	void *program;
};

/** net_link_of() - the link from one host to another. */
static inline struct net_link *net_link_of(const struct sim *sim, unsigned int from,
					   unsigned int to)
{
	return &sim->net.link[from * sim->n_hosts + to];
}

/** sim_fail() - report a broken rule: the first one is kept, and ends the run. */
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
