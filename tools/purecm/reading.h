/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking all observations of a source, one after the other, with the complaints that this may call
 * for.
 */
#ifndef TOOLS_PURECM_READING_H
#define TOOLS_PURECM_READING_H

#include <argp.h>

#include "tools/purecm/flow.h"

/* Where a subcommand reads from: -r, -i, --recorded and --kernel; without them, cmportd. */
struct reading {
	bool recorded;
	bool kernel;
	const char *kernel_file; /* NULL: as they come */
	const char *file;	 /* "-" for standard input */
	const char *interface;
	uint32_t pid; /* 0: of all processes */
};

/** reading_argp - a child for the argp of a subcommand; its input is a struct reading. */
extern const struct argp reading_argp;

/** reading_take - what is called for each. Return: 0; -ENOBUFS if that one was too much to keep;
 * any other -errno to end. */
typedef int reading_take(void *arg, const struct observation *observation);

/**
 * reading_source() - take what a source has
 * @source: to its end; stays the caller's
 *
 * Return: 0; SOURCE_CUT, also if something was too much to keep; what ended @take; -errno of the
 * source. After a complaint, if not 0.
 */
int reading_source(struct source *source, reading_take *take, void *arg);

/** reading_run() - reading_source() of what was asked for. */
int reading_run(const struct reading *reading, reading_take *take, void *arg);

/**
 * reading_flows() - the flows of it
 * @ret: to be given back with flows_free(), also after SOURCE_CUT
 *
 * Return: as reading_run().
 */
int reading_flows(const struct reading *reading, struct flows **ret);

/** reading_name() - what it is called, for titles. */
const char *reading_name(const struct reading *reading);

/** reading_is_once() - can it be read but once? */
bool reading_is_once(const struct reading *reading);

#endif
