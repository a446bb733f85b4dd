/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of a drill: the CM class of a local port, and by TCP the agent, which makes the
 * calls on the peer's side (agent.c). Input from both is queued.
 */
#ifndef TOOLS_PURECM_DRILL_LINK_H
#define TOOLS_PURECM_DRILL_LINK_H

#include "mad/port.h"
#include "mad/sender.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/pcapng.h"

#define DRILL_QUEUE_MAX	 64
#define DRILL_TEXT_BYTES 2048

struct drill_heard {
	uint64_t at_ns;
	union {
		uint8_t mad[MAD_BYTES];
		char text[DRILL_TEXT_BYTES]; /* "ESTABLISHED id=id status=0 ..." */
	};
};

struct drill_queue {
	unsigned int n;
	struct drill_heard heard[DRILL_QUEUE_MAX];
};

struct drill_link {
	struct mad_port *port;
	struct mad_sender *sender; /* NULL: send through umad */
	struct mad_path path;	   /* to the peer */
	struct mad_gid local_gid;
	struct pcapng *file; /* for all messages; owned by the opener; may be NULL */
	int agent;	     /* -1: none */
	size_t n_text;
	char text[DRILL_TEXT_BYTES]; /* from the agent, an incomplete line */
	struct drill_queue mads;     /* from the peer, in order */
	struct drill_queue events;
	struct drill_queue replies; /* results of calls */
	unsigned int n_lost;	    /* dropped, because a queue was full */
};

/**
 * drill_link_open() - take the CM class of the port that leads to an address
 * @checkup: with the path
 * @by_qp1:  send through umad, which sets transaction ids
 *
 * Return: 0; -errno, after an error message.
 */
int drill_link_open(const struct checkup *checkup, bool by_qp1, struct drill_link *ret);

/**
 * drill_link_call_agent() - connect to the agent
 * @host:     its host
 * @port:     its TCP port
 * @ret_peer: "purecm" or "stock"; DRILL_NAME_BYTES
 *
 * Return: 0; -errno, after an error message.
 */
int drill_link_call_agent(struct drill_link *link, const char *host, const char *port,
			  char *ret_peer);

/** drill_link_leave_agent() - disconnect from the agent, which destroys all ids */
void drill_link_leave_agent(struct drill_link *link);

/** drill_link_close() - release the port */
void drill_link_close(struct drill_link *link);

/** drill_link_send() - send a MAD unchanged. Return: 0 or -errno. */
int drill_link_send(struct drill_link *link, const uint8_t mad[MAD_BYTES]);

/** drill_link_say() - send a line to the agent, given without newline. Return: 0 or -errno. */
int drill_link_say(struct drill_link *link, const char *line);

/**
 * drill_link_wait() - wait for input
 * @until_ns: deadline on the clock of clock_ns()
 *
 * Return: 0; -ETIMEDOUT; -EPIPE if the agent has disconnected; -errno of the port; -EINTR.
 */
int drill_link_wait(struct drill_link *link, uint64_t until_ns);

/** drill_queue_take() - remove the oldest entry. Return: false if there is none. */
bool drill_queue_take(struct drill_queue *queue, struct drill_heard *ret);

#endif
