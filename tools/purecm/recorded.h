/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recording of this host's cmportd, for readers that follow it: see
 * lib/portd/proto/trace_ring.h.
 */
#ifndef TOOLS_PURECM_RECORDED_H
#define TOOLS_PURECM_RECORDED_H

#include <limits.h>

#include "lib/portd/proto/trace_ring.h"
#include "tools/purecm/observation.h"

/**
 * recorded_file() - open the recording
 * @ret_path: its path; empty if the socket's path is invalid
 *
 * Return: a descriptor for reading, or -errno.
 */
int recorded_file(char ret_path[PATH_MAX]);

/** recorded_observe() - convert a recorded message to an observation */
void recorded_observe(const struct trace_entry *seen, struct observation *ret);

#endif
