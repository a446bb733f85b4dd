/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is to be said of a flow: the facts that a text may name, and the questions that decide which
 * text fits. Called by advice.c, whose rows ask, and by explain.c.
 */
#ifndef TOOLS_PURECM_PLIGHT_H
#define TOOLS_PURECM_PLIGHT_H

#include <stdio.h>

#include "tools/purecm/flow.h"

/* A flow and what surrounds it. */
struct plight {
	const struct flows *flows;
	const struct flow *flow;
	uint64_t end_ns; /* of the last message of all */
};

/**
 * plight_print() - print a text, with facts in place of {words}
 * @text: from the table of advice.c
 *
 * A word that is not known is an error of the table; a test looks for them.
 *
 * Return: 0; -EINVAL if the text names a fact that there is not.
 */
int plight_print(const struct plight *plight, const char *text, FILE *out);

/** plight_question - does a text fit? */
typedef bool plight_question(const struct plight *plight);

/* Of the request. */
plight_question plight_was_asked_for_patience; /* a MRA came */
plight_question plight_has_just_begun;	       /* the trace ends before an answer is due */
plight_question plight_peer_speaks;	       /* who does not answer has sent something else */
plight_question plight_answer_was_late;	       /* it came after all, to nobody */
plight_question plight_has_no_ip_header;       /* where private data has to begin with one */
plight_question plight_has_foreign_gid;	       /* REQ names another GID than its packet's */
plight_question plight_has_other_address;      /* IP CM header and path disagree */
plight_question plight_has_other_pkey;	       /* REQ names another pkey than the default */

/* Of the answer. */
plight_question plight_has_older;	 /* an older connection with that queue pair was seen */
plight_question plight_has_private_data; /* the refusal says something itself */
plight_question plight_was_rejected_by_active;
plight_question plight_was_established;
plight_question plight_dreq_names_other_qpn;

/** plight_older() - the connection that a stale one is mistaken for; NULL if it was not seen. */
const struct flow *plight_older(const struct plight *plight);

#endif
