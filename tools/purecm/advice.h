/* SPDX-License-Identifier: BSD-2-Clause */
/* Explanations of failed connections: a table of texts. */
#ifndef TOOLS_PURECM_ADVICE_H
#define TOOLS_PURECM_ADVICE_H

#include "tools/purecm/context.h"

#define ADVICE_ANY (-1)

/* {words} in the texts are facts, see context.h. */
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

#endif
