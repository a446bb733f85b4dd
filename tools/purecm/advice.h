/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What to say of a connection that failed: one table of texts.
 */
#ifndef TOOLS_PURECM_ADVICE_H
#define TOOLS_PURECM_ADVICE_H

#include "tools/purecm/context.h"

#define ADVICE_ANY (-1)

/* Facts stand in braces, see context.h. */
struct advice {
	enum flow_outcome outcome;
	bool is_sidr;
	int reason;		   /* of the REJ, or status of the SIDR_REP; ADVICE_ANY */
	context_question *fits[2]; /* all of them have to; NULL: yes */
	const char *what;
	const char *cause;
	const char *remedy;
};

/** advice_find() - what fits. Return: NULL for a flow that has not failed. */
const struct advice *advice_find(const struct context *context);

/** advice_get() - all of them, for tests. Return: NULL beyond the last. */
const struct advice *advice_get(size_t index);

#endif
