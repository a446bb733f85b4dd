/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selection of messages: the options --peer, --service, --message, --outcome and --connection,
 * common to trace, explain and timeline.
 */
#ifndef TOOLS_PURECM_FILTER_H
#define TOOLS_PURECM_FILTER_H

#include <argp.h>

#include "tools/purecm/flow.h"

struct filter {
	bool has_peer;
	bool has_service;
	bool has_sa; /* --message includes the SA */
	struct mad_gid peer;
	uint64_t service;    /* up to 0xffff: a port; above: a service id */
	uint32_t messages;   /* bitmap; 0 for all */
	uint32_t outcomes;   /* bitmap; 0 for all */
	uint32_t connection; /* 0 for all */
};

/** filter_argp - child parser for a subcommand; its input is a struct filter */
extern const struct argp filter_argp;

/**
 * reading_and_filter - child parsers of a subcommand that reads and filters messages; input 0 is a
 * struct reading, input 1 a struct filter
 */
extern const struct argp_child reading_and_filter[];

/** filter_takes_flow() - return whether a flow is selected, by what is known so far */
bool filter_takes_flow(const struct filter *filter, const struct flow *flow);

/** filter_takes_outcome() - return whether an outcome is selected; true without --outcome */
bool filter_takes_outcome(const struct filter *filter, enum flow_outcome outcome);

/** filter_takes_message() - return whether a message is selected by kind */
bool filter_takes_message(const struct filter *filter, const struct cm_msg *msg);

/** filter_takes_other() - return whether a MAD without flow is selected */
bool filter_takes_other(const struct filter *filter, const struct observation *observation);

#endif
