/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading all observations of a source, with error messages; and which of them are shown. The
 * options of both, common to all subcommands that read messages.
 */
#ifndef TOOLS_PURECM_READING_H
#define TOOLS_PURECM_READING_H

#include "tools/purecm/subcommand.h"
#include "tools/purecm/flow.h"

/* What is shown: --peer, --service, --message, --outcome and --connection. */
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

/* The source of a subcommand: -r, -i, --recorded or --kernel; cmportd by default. */
struct reading {
	bool recorded;
	bool kernel;
	bool probes;		 /* show them, too */
	const char *kernel_file; /* NULL: live */
	const char *file;	 /* "-" for standard input */
	const char *interface;
	uint32_t pid; /* 0: all processes */
	struct filter filter;
};

/* For inputs that begin with a struct reading: all options, and those of its filter only. */
extern const struct command_option reading_options[], filter_options[];

/** reading_take_file() - take a capture from an option or an argument; refuses a second one */
void reading_take_file(void *input, char *path, struct argp_state *state);

/** reading_check() - refuse sources that exclude each other */
void reading_check(const void *input, struct argp_state *state);

#define READING_ENOUGH (-ECANCELED)

/**
 * reading_take - handle an observation
 *
 * Return: 0; -ENOBUFS if it could not be kept; READING_ENOUGH to end without an error; any other
 * -errno to end.
 */
typedef int reading_take(void *arg, const struct observation *observation);

/**
 * reading_source() - read a source to its end
 * @source:      owned by the caller
 * @with_probes: also take probes of paths and the answers to them
 *
 * Return: 0; SOURCE_CUT, also if @take returned -ENOBUFS; other errors of @take; -errno of the
 * source. After an error message, if not 0.
 */
int reading_source(struct source *source, bool with_probes, reading_take *take, void *arg);

/**
 * reading_open() - open the selected source
 * @ret: to be released with its close()
 *
 * Return: 0; -errno, after an error message.
 */
int reading_open(const struct reading *reading, struct source **ret);

/** reading_run() - read the selected source, as reading_source() does */
int reading_run(const struct reading *reading, reading_take *take, void *arg);

/** reading_source_flows() - as reading_flows(), of a source as reading_source() */
int reading_source_flows(struct source *source, bool with_probes, struct flows **ret);

/**
 * reading_flows() - read the flows of the selected source
 * @ret: to be released with flows_free(), also after SOURCE_CUT
 *
 * Return: as reading_run().
 */
int reading_flows(const struct reading *reading, struct flows **ret);

/** reading_name() - the name of the source, for titles */
const char *reading_name(const struct reading *reading);

/**
 * reading_check_output() - refuse to replace the file that is read
 * @path: the output file; NULL if there is none, "-" for standard output
 *
 * Return: 0; -EINVAL, after an error message.
 */
int reading_check_output(const struct reading *reading, const char *path);

/** reading_is_once() - return whether the source can be read only once */
bool reading_is_once(const struct reading *reading);

/** filter_takes_flow() - return whether a flow is selected, by what is known so far */
bool filter_takes_flow(const struct filter *filter, const struct flow *flow);

/** filter_takes_outcome() - return whether an outcome is selected; true without --outcome */
bool filter_takes_outcome(const struct filter *filter, enum flow_outcome outcome);

/** filter_takes_message() - return whether a message is selected by kind */
bool filter_takes_message(const struct filter *filter, const struct cm_msg *msg);

/** filter_takes_other() - return whether a MAD without flow is selected */
bool filter_takes_other(const struct filter *filter, const struct observation *observation);

#endif
