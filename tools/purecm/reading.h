/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading all observations of a source, with error messages. */
#ifndef TOOLS_PURECM_READING_H
#define TOOLS_PURECM_READING_H

#include <argp.h>

#include "tools/purecm/flow.h"

/* The source of a subcommand: -r, -i, --recorded or --kernel; cmportd by default. */
struct reading {
	bool recorded;
	bool kernel;
	bool probes;		 /* show them, too */
	const char *kernel_file; /* NULL: live */
	const char *file;	 /* "-" for standard input */
	const char *interface;
	uint32_t pid; /* 0: all processes */
};

/** reading_argp - child parser for a subcommand; its input is a struct reading */
extern const struct argp reading_argp;

/**
 * reading_take - handle an observation
 *
 * Return: 0; -ENOBUFS if it could not be kept; any other -errno to end.
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

/** reading_run() - read the selected source, as reading_source() does */
int reading_run(const struct reading *reading, reading_take *take, void *arg);

/**
 * reading_flows() - read the flows of the selected source
 * @ret: to be released with flows_free(), also after SOURCE_CUT
 *
 * Return: as reading_run().
 */
int reading_flows(const struct reading *reading, struct flows **ret);

/** reading_name() - the name of the source, for titles */
const char *reading_name(const struct reading *reading);

/** reading_is_once() - return whether the source can be read only once */
bool reading_is_once(const struct reading *reading);

#endif
