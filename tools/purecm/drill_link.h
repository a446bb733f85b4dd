/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a drill has to do with: the CM class of a local port, which is its own, and the agent, the
 * program that makes the calls at the peer's side (agent.c), by TCP. What comes from both waits in
 * queues.
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
	struct mad_sender *sender; /* NULL: through umad */
	struct mad_path path;	   /* to the peer */
	struct mad_gid local_gid;
	struct pcapng *file; /* the opener's: gets all that is sent and received; NULL */
	int agent;	     /* -1: there is none */
	size_t n_text;
	char text[DRILL_TEXT_BYTES]; /* of the agent, not yet a line */
	struct drill_queue mads;     /* from the peer, in order */
	struct drill_queue events;
	struct drill_queue replies; /* of calls */
	unsigned int n_lost;	    /* for which there was no room */
};

/**
 * drill_link_open() - own the CM class of the port that leads to an address
 * @checkup: its way is known
 * @by_qp1:  send through umad, which sets transaction ids
 *
 * Return: 0; -errno, after a complaint.
 */
int drill_link_open(const struct checkup *checkup, bool by_qp1, struct drill_link *ret);

/**
 * drill_link_call_agent() - connect to the agent
 * @host:     where it is
 * @port:     its TCP port
 * @ret_peer: "purecm" or "stock"; DRILL_NAME_BYTES
 *
 * Return: 0; -errno, after a complaint.
 */
int drill_link_call_agent(struct drill_link *link, const char *host, const char *port,
			  char *ret_peer);

/** drill_link_leave_agent() - it lets go of all ids. */
void drill_link_leave_agent(struct drill_link *link);

/** drill_link_close() - give the port back. */
void drill_link_close(struct drill_link *link);

/** drill_link_send() - a MAD as it is. Return: 0 or -errno. */
int drill_link_send(struct drill_link *link, const uint8_t mad[MAD_BYTES]);

/** drill_link_say() - a line to the agent, without its end. Return: 0 or -errno. */
int drill_link_say(struct drill_link *link, const char *line);

/**
 * drill_link_wait() - until something comes, or a time
 * @until_ns: as clock_ns()
 *
 * Return: 0; -ETIMEDOUT; -EPIPE if the agent has gone; -errno of the port; -EINTR.
 */
int drill_link_wait(struct drill_link *link, uint64_t until_ns);

/** drill_queue_take() - the oldest. Return: false if there is none. */
bool drill_queue_take(struct drill_queue *queue, struct drill_heard *ret);

#endif
