/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections reconstructed from messages: the connection of each message, the states of both ends
 * by the table of cm/fsm.c, and the outcome. A flow is a connection, or a SIDR exchange. Pure: the
 * subcommands pass one message after the other.
 *
 * A packet captured on several interfaces of one host appears several times, at almost the same
 * time. A tracer does not know whether a message arrives. It is assumed to arrive; a retransmission
 * shows that it, or its response, did not.
 */
#ifndef TOOLS_PURECM_FLOW_H
#define TOOLS_PURECM_FLOW_H

#include <stdio.h>
#include "base/hash.h"
#include "cm/conn.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/observation.h"

#define FLOWS_MAX     (1u << 20) /* limit for a file */
#define FLOWS_ROLLING (1u << 14) /* limit of live output, which drops the oldest: 37 MB */
#define FLOW_MESSAGES (CM_ATTR_APR - CM_ATTR_REQ + 1)

enum flow_end {
	FLOW_ACTIVE,  /* sender of the REQ or SIDR_REQ */
	FLOW_PASSIVE, /* its receiver */
	FLOW_ENDS,
};

/* The outcome of a flow so far. X(name, word for filters, text) */
#define FLOW_OUTCOMES(X)                                                        \
	X(ASKED, "unanswered", "a request without an answer")                   \
	X(ANSWERED, "unconfirmed", "an answer that was not confirmed")          \
	X(REJECTED, "rejected", "refused by the other end")                     \
	X(GIVEN_UP, "gave-up", "the end that asked withdrew its request")       \
	X(ESTABLISHED, "established", "established")                            \
	X(CLOSING, "unclosed", "a disconnect without an answer")                \
	X(CLOSED, "closed", "established and disconnected")                     \
	X(RESOLVED, "resolved", "a queue pair of a datagram service was named") \
	X(PROBED, "probed", "answered: a connection manager is there")          \
	X(FRAGMENT, "fragment", "its beginning was not seen, and nothing ended")

enum flow_outcome {
#define X(name, word, text) FLOW_##name,
	FLOW_OUTCOMES(X)
#undef X
	FLOW_N_OUTCOMES,
};

/* Messages of one kind in a flow, from both ends. */
struct flow_seen {
	uint16_t count;
	uint16_t n_before; /* the first answer, such as RTU for REP */
	uint16_t n_after; /* it, so long that they do not cross it, from the end that sent the first
			   */
	enum flow_end by; /* sender of the first */
	uint64_t first_ns;
	uint64_t last_ns;
};

struct flow {
	uint32_t number; /* consecutive, from 1 */
	bool is_sidr;
	bool is_whole;			 /* its first message was seen */
	bool has_cma;			 /* has a valid CMA header */
	struct cm_record end[FLOW_ENDS]; /* as known from messages; each path has a GID */
	enum flow_outcome outcome;
	enum observation_network network;
	uint64_t service_id;
	struct cma_hdr cma;
	struct flow_seen seen[FLOW_MESSAGES];
	uint64_t mra_ns[FLOW_ENDS]; /* first MRA of each end; 0 if none was seen */
	uint64_t first_ns;
	uint64_t last_ns;

	/* First message of each kind; zero if not seen. */
	struct cm_req req;
	struct cm_rep rep;
	struct cm_rej rej;
	struct cm_mra mra;
	struct cm_dreq dreq;
	struct cm_sidr_req sidr_req;
	struct cm_sidr_rep sidr_rep;
	uint64_t last_hash[FLOW_ENDS];		  /* of the latest MAD of each end */
	uint64_t last_sent_ns[FLOW_ENDS];	  /* its time */
	enum observation_way last_way[FLOW_ENDS]; /* its direction */
	struct hash_node by_name[FLOW_ENDS];	  /* keyed by GID and comm id of the end */
};

/* The effect of a message on its flow. */
struct flow_step {
	struct flow *flow;
	enum flow_end from;
	unsigned int nth; /* ordinal among messages of its kind from this end */
	bool is_stray;	  /* not valid in the receiver's state */
	bool is_copy;	  /* the same packet, captured again: ignored */
	enum cm_state state[FLOW_ENDS];
};

struct flows;

/**
 * flows_new() - create an empty set of flows
 * @max:     limit
 * @forgets: drop the oldest flow at the limit; otherwise refuse new ones
 *
 * Return: NULL on ENOMEM.
 */
struct flows *flows_new(uint32_t max, bool forgets);

/** flows_free() - free all flows; NULL is allowed */
void flows_free(struct flows *flows);

/**
 * flows_take() - apply a message
 * @observation: of the CM class
 * @msg:      the decoded message
 * @ret:      its effect; the flow is valid as long as @flows, or until it is dropped
 *
 * Return: 0; -ENOMEM; -ENOBUFS if it begins a flow beyond the limit.
 */
int flows_take(struct flows *flows, const struct observation *observation, const struct cm_msg *msg,
	       struct flow_step *ret);

/** flows_count() - number of flows ever begun */
uint32_t flows_count(const struct flows *flows);

/** flows_get() - get a flow by @index from 0, in order of beginning; NULL if it was dropped */
struct flow *flows_get(const struct flows *flows, uint32_t index);

/**
 * flows_has_spoken() - return whether any message from a sender was seen
 *
 * At most as many senders as flows are known, and none where flows are dropped.
 */
bool flows_has_spoken(const struct flows *flows, const struct mad_gid *gid);

/** flow_gid() - the address of an end, as used by the other end */
static inline const struct mad_gid *flow_gid(const struct flow *flow, enum flow_end end)
{
	return &flow->end[!end].path.dgid;
}

/** flow_is_one_sided() - return whether only messages of one end were seen */
static inline bool flow_is_one_sided(const struct flow *flow)
{
	return !flow->last_sent_ns[FLOW_ACTIVE] || !flow->last_sent_ns[FLOW_PASSIVE];
}

/** flow_seen() - the messages of one kind in a flow */
const struct flow_seen *flow_seen(const struct flow *flow, enum cm_attr attr);

/** flow_outcome_word() - the word for filters and JSON, such as "rejected" */
const char *flow_outcome_word(enum flow_outcome outcome);

/** flow_outcome_text() - the outcome in words */
const char *flow_outcome_text(enum flow_outcome outcome);

/** flow_has_failed() - return whether the outcome is a failure */
bool flow_has_failed(const struct flow *flow);

#define FLOW_WHO_BYTES 64

/**
 * flow_who() - format an end with its port, if known: "10.77.0.1:7174", "[fd00::1]:7174"
 *
 * Return: @buf.
 */
const char *flow_who(const struct flow *flow, enum flow_end end, char buf[FLOW_WHO_BYTES]);

/** flow_service() - format "TCP port 7174", "service 0x1234". Return: @buf. */
const char *flow_service(const struct flow *flow, char buf[FLOW_WHO_BYTES]);

#define FLOW_TITLE_BYTES (3 * FLOW_WHO_BYTES + 32)

/** flow_title() - format "#1 10.77.0.1:42212 to 10.77.0.2:7000, TCP port 7000". Return: @buf. */
const char *flow_title(const struct flow *flow, char buf[FLOW_TITLE_BYTES]);

/* --- the effect of a message on the flow that flow.c has found ------------ */

/* An identical message within this time is the same packet, captured again. */
#define FLOW_COPY_NS 5000000

/* Messages of both ends that are sent within this time may cross each other. */
#define FLOW_CROSSING_NS 20000000

/*
 * The usual states of both ends for a message. IDLE, in which most messages are invalid, means
 * none.
 */
struct flow_usual {
	enum cm_state sender;
	enum cm_state receiver;
};

/** flow_step_usual() - for messages of flows whose first message was not seen */
const struct flow_usual *flow_step_usual(enum cm_attr attr);

/**
 * flow_step_take() - advance both ends, and store the message's data
 * @step: flow and from are inputs, the rest is set
 */
void flow_step_take(struct flow_step *step, const struct observation *observation,
		    const struct cm_msg *msg);

enum delay_part {
	DELAY_REQUEST, /* REQ to REP */
	DELAY_CONFIRM, /* REP to RTU */
	DELAY_ARRIVAL, /* of the RTU; nobody sees how long it takes */
	DELAY_CLOSE,   /* DREQ to DREP */
	DELAY_N_PARTS,
};

enum delay_cause {
	DELAY_NONE,    /* not seen, or too short to matter */
	DELAY_PROGRAM, /* at the end that answers */
	DELAY_LOSS,
	DELAY_EITHER,
};

/** delay_cause() - what took the time of a part */
enum delay_cause delay_cause(const struct flow *flow, enum delay_part part);

/** delay_print() - describe the times of a connection that did not fail, in sentences */
void delay_print(const struct flow *flow, FILE *out);

#endif
