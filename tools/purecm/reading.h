/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking all sightings of a source, one after the other, with the complaints that this may call
 * for. Called by the subcommands.
 */
#ifndef TOOLS_PURECM_READING_H
#define TOOLS_PURECM_READING_H

#include "tools/purecm/flow.h"

/** reading_take - what is called for each. Return: 0 to go on, -errno to end. */
typedef int reading_take(void *arg, const struct sighting *sighting);

/**
 * reading_source() - take what a source has
 * @source: to its end; stays the caller's
 *
 * Return: 0; what @take returned; -errno of the source. After a complaint, if not 0.
 */
int reading_source(struct source *source, reading_take *take, void *arg);

/** reading_file() - reading_source() of a capture file, "-" for standard input. */
int reading_file(const char *path, reading_take *take, void *arg);

/**
 * reading_flows() - the flows of a capture file
 * @ret: to be given back with flows_free()
 *
 * Return: as reading_file().
 */
int reading_flows(const char *path, struct flows **ret);

#endif
