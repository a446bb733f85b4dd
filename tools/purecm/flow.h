/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections as they show in the messages that pass: which message belongs to which connection,
 * which state it leads both ends to by the table of cm/fsm.c, and how it all ended. A flow is a
 * connection, or a SIDR exchange. Pure: fed by the subcommands with one message after the other.
 *
 * A packet that is captured on several interfaces of one host is there several times, at almost the
 * same time. A tracer does not know whether a message arrives. It is taken to arrive; a
 * repetition shows that it, or its answer, did not.
 */
#ifndef TOOLS_PURECM_FLOW_H
#define TOOLS_PURECM_FLOW_H

#include "base/hash.h"
#include "cm/conn.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/observation.h"

#define FLOWS_MAX     (1u << 20) /* who explains keeps all of them, up to this many */
#define FLOWS_ROLLING (1u << 16) /* who only shows what passes forgets the oldest */
#define FLOW_MESSAGES (CM_ATTR_APR - CM_ATTR_REQ + 1)

enum flow_end {
	FLOW_ACTIVE,  /* who sent the REQ or the SIDR_REQ */
	FLOW_PASSIVE, /* whom it went to */
	FLOW_ENDS,
};

/* How a flow stands; after the last message: how it ended. X(name, word for filters, text) */
#define FLOW_OUTCOMES(X)                                                        \
	X(ASKED, "unanswered", "a request without an answer")                   \
	X(ANSWERED, "unconfirmed", "an answer that was not confirmed")          \
	X(REJECTED, "rejected", "refused by the other end")                     \
	X(GIVEN_UP, "gave-up", "the end that asked withdrew its request")       \
	X(ESTABLISHED, "established", "established")                            \
	X(CLOSING, "unclosed", "a disconnect without an answer")                \
	X(CLOSED, "closed", "established and disconnected")                     \
	X(RESOLVED, "resolved", "a queue pair of a datagram service was named") \
	X(FRAGMENT, "fragment", "its beginning was not seen, and nothing ended")

enum flow_outcome {
#define X(name, word, text) FLOW_##name,
	FLOW_OUTCOMES(X)
#undef X
	FLOW_N_OUTCOMES,
};

/* One kind of message of a flow, of either end. */
struct flow_seen {
	uint16_t count;
	enum flow_end by; /* of the first */
	uint64_t first_ns;
	uint64_t last_ns;
};

struct flow {
	uint32_t number; /* from 1, as they began */
	bool is_sidr;
	bool is_whole;			 /* its beginning was seen */
	bool has_cma;			 /* a CMA header that makes sense */
	struct cm_record end[FLOW_ENDS]; /* as far as messages tell of it; each path has a GID */
	enum flow_outcome outcome;
	enum observation_network network;
	uint64_t service_id;
	struct cma_hdr cma;
	struct flow_seen seen[FLOW_MESSAGES];
	uint64_t first_ns;
	uint64_t last_ns;

	/* The first of each; zero if it was not seen. */
	struct cm_req req;
	struct cm_rep rep;
	struct cm_rej rej;
	struct cm_mra mra;
	struct cm_dreq dreq;
	struct cm_sidr_req sidr_req;
	struct cm_sidr_rep sidr_rep;
	uint64_t last_hash[FLOW_ENDS];		  /* of the last MAD of each end ... */
	uint64_t last_sent_ns[FLOW_ENDS];	  /* ... and when ... */
	enum observation_way last_way[FLOW_ENDS]; /* ... and where it was seen */
	struct hash_node by_name[FLOW_ENDS];	  /* by GID and comm id of the end */
};

/* What a message did to its flow. */
struct flow_step {
	struct flow *flow;
	enum flow_end from;
	unsigned int nth; /* the how manieth of its kind from this end */
	bool is_stray;	  /* it meant nothing to the end that it reached */
	bool is_copy;	  /* the same packet, captured a second time: it counts for nothing */
	enum cm_state state[FLOW_ENDS];
};

struct flows;

/**
 * flows_new() - nothing seen yet
 * @max:     how many are kept
 * @forgets: when there are more, the oldest is forgotten; else there can be no more
 *
 * Return: NULL for want of memory.
 */
struct flows *flows_new(uint32_t max, bool forgets);

/** flows_free() - forget all; NULL is allowed. */
void flows_free(struct flows *flows);

/**
 * flows_take() - a message passes
 * @observation: of the CM class
 * @msg:      decoded
 * @ret:      what it did; the flow lives as long as @flows, or until it is forgotten
 *
 * Return: 0; -ENOMEM; -ENOBUFS if it began one more than may be.
 */
int flows_take(struct flows *flows, const struct observation *observation, const struct cm_msg *msg,
	       struct flow_step *ret);

/** flows_count() - how many have begun. */
uint32_t flows_count(const struct flows *flows);

/** flows_get() - by @index from 0, as they began; NULL if it was forgotten. */
struct flow *flows_get(const struct flows *flows, uint32_t index);

/** flows_has_spoken() - was any message of this sender seen? */
bool flows_has_spoken(const struct flows *flows, const struct mad_gid *gid);

/** flow_gid() - the address of an end: where the other one reaches it. */
static inline const struct mad_gid *flow_gid(const struct flow *flow, enum flow_end end)
{
	return &flow->end[!end].path.dgid;
}

/** flow_seen() - what was seen of one kind of message. */
const struct flow_seen *flow_seen(const struct flow *flow, enum cm_attr attr);

/** flow_outcome_word() - "rejected", as filters and JSON have it. */
const char *flow_outcome_word(enum flow_outcome outcome);

/** flow_outcome_text() - in words. */
const char *flow_outcome_text(enum flow_outcome outcome);

/** flow_has_failed() - is that an outcome that nobody wanted? */
bool flow_has_failed(const struct flow *flow);

#define FLOW_WHO_BYTES 64

/**
 * flow_who() - an end by address and, if it is known, port: "10.77.0.1:7174", "[fd00::1]:7174"
 *
 * Return: @buf.
 */
const char *flow_who(const struct flow *flow, enum flow_end end, char buf[FLOW_WHO_BYTES]);

/** flow_service() - "TCP port 7174", "service 0x1234". Return: @buf. */
const char *flow_service(const struct flow *flow, char buf[FLOW_WHO_BYTES]);

#endif
