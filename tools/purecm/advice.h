/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations of failed connections: a table of texts, the conditions that select them, and the
 * facts that they contain.
 */
#ifndef TOOLS_PURECM_ADVICE_H
#define TOOLS_PURECM_ADVICE_H

#include <stdio.h>

#include "tools/purecm/flow.h"

/* A flow, and its capture. */
struct context {
	const struct flows *flows;
	const struct flow *flow;
	uint64_t end_ns; /* of the last message of the capture */
};

/**
 * context_print() - print a text, replacing {words} by facts
 * @text: from the table of advice.c
 *
 * A test checks that all words of the table are known.
 *
 * Return: 0; -EINVAL if the text has an unknown word.
 */
int context_print(const struct context *context, const char *text, FILE *out);

/** context_question - return whether a condition of a text holds */
typedef bool context_question(const struct context *context);

/* About the request. */
context_question context_got_mra;
context_question context_has_just_begun;   /* the trace ends before a response is due */
context_question context_waited_briefly;   /* it gave up before the first retransmission */
context_question context_is_received_here; /* by the CM that should respond */
context_question context_peer_speaks;	   /* the silent peer has sent other messages */
context_question context_is_infiniband;
context_question context_is_roce_v1;
context_question context_answer_was_late;   /* it arrived after the sender gave up */
context_question context_has_no_ip_header;  /* but the service requires one */
context_question context_has_foreign_gid;   /* REQ has another GID than its packet */
context_question context_has_other_address; /* IP CM header and path differ */
context_question context_has_other_pkey;    /* REQ has a P_Key other than the default */

/* About the response. */
context_question context_has_older;	   /* an older connection of that queue pair was seen */
context_question context_has_private_data; /* of the REJ */
context_question context_was_rejected_by_active;
context_question context_was_established;
context_question context_dreq_names_other_qpn;

#define ADVICE_ANY (-1)

/* {words} in the texts are facts. */
struct advice {
	enum flow_outcome outcome;
	bool is_sidr;
	int reason;		   /* of the REJ, or status of the SIDR_REP; or ADVICE_ANY */
	context_question *fits[2]; /* all must hold; NULL: always true */
	const char *what;
	const char *cause;
	const char *remedy;
};

/** advice_find() - find the explanation of a flow. Return: NULL if the flow has not failed. */
const struct advice *advice_find(const struct context *context);

/** advice_get() - iterate over the table, for tests. Return: NULL beyond the last row. */
const struct advice *advice_get(size_t index);

/**
 * explain_text() - a text with its facts
 * @text: as for context_print(); NULL: where the time of the flow went, which has not failed
 *
 * Return: to be freed; NULL without memory.
 */
char *explain_text(const struct context *context, const char *text);

#endif
