/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a text about a flow may name, as facts, and the conditions that decide which text fits: the
 * rows of advice.c are made of both.
 */
#ifndef TOOLS_PURECM_CONTEXT_H
#define TOOLS_PURECM_CONTEXT_H

#include <stdio.h>

#include "tools/purecm/flow.h"

/* A flow, and the capture around it. */
struct context {
	const struct flows *flows;
	const struct flow *flow;
	uint64_t end_ns; /* of the last message of all */
};

/**
 * context_print() - print a text, with facts in place of {words}
 * @text: from the table of advice.c
 *
 * A word that is not known is an error of the table; a test looks for them.
 *
 * Return: 0; -EINVAL if the text names a fact that there is not.
 */
int context_print(const struct context *context, const char *text, FILE *out);

/** context_question - does a text fit? */
typedef bool context_question(const struct context *context);

/* Of the request. */
context_question context_got_mra;
context_question context_has_just_begun;   /* the trace ends before an answer is due */
context_question context_is_received_here; /* by the connection manager that is asked */
context_question context_peer_speaks;	   /* who does not answer has sent something else */
context_question context_is_infiniband;
context_question context_is_roce_v1;
context_question context_answer_was_late;   /* it came after all, to nobody */
context_question context_has_no_ip_header;  /* where private data has to begin with one */
context_question context_has_foreign_gid;   /* REQ names another GID than its packet's */
context_question context_has_other_address; /* IP CM header and path disagree */
context_question context_has_other_pkey;    /* REQ names another pkey than the default */

/* Of the answer. */
context_question context_has_older;	   /* an older connection with that queue pair was seen */
context_question context_has_private_data; /* the refusal says something itself */
context_question context_was_rejected_by_active;
context_question context_was_established;
context_question context_dreq_names_other_qpn;

/** context_older() - the connection that a stale one is mistaken for; NULL if it was not seen. */
const struct flow *context_older(const struct context *context);

#endif
