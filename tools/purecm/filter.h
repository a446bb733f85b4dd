/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which messages are shown: the options --peer, --service, --message, --outcome and --connection,
 * which trace, explain and timeline have in common.
 */
#ifndef TOOLS_PURECM_FILTER_H
#define TOOLS_PURECM_FILTER_H

#include <argp.h>

#include "tools/purecm/flow.h"

struct filter {
	bool has_peer;
	bool has_service;
	bool has_sa; /* --message named the SA */
	struct mad_gid peer;
	uint64_t service;    /* up to 0xffff: a port; above: a service id */
	uint32_t messages;   /* a bit for each, 0 for all */
	uint32_t outcomes;   /* likewise */
	uint32_t connection; /* 0 for all */
};

/** filter_argp - a child for the argp of a subcommand; its input is a struct filter. */
extern const struct argp filter_argp;

/**
 * reading_and_filter - the children of a subcommand that reads exchanges and chooses among them;
 * input 0 is a struct reading, input 1 a struct filter
 */
extern const struct argp_child reading_and_filter[];

/** filter_takes_flow() - does it let a flow through, by what is known of it? */
bool filter_takes_flow(const struct filter *filter, const struct flow *flow);

/** filter_takes_outcome() - by how it stands; true where none was asked for. */
bool filter_takes_outcome(const struct filter *filter, enum flow_outcome outcome);

/** filter_takes_message() - by its kind. */
bool filter_takes_message(const struct filter *filter, const struct cm_msg *msg);

/** filter_takes_other() - a MAD that belongs to no flow. */
bool filter_takes_other(const struct filter *filter, const struct observation *observation);

#endif
