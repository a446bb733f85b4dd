/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which sockets of which programs become ours: /etc/rdma/rsocket/preload_config, a line each:
 *
 *     program domain type protocol
 *
 * A program is given by the beginning of its name; "*" means any. Without the file, or without a
 * line in it, all streams become ours.
 */
#ifndef PRELOAD_CONFIG_H
#define PRELOAD_CONFIG_H

#include <stdbool.h>

/** config_wants() - does a socket of this kind, without SOCK_ flags, become ours? */
bool config_wants(int domain, int type, int protocol);

/**
 * config_matches() - does a line select this socket of this program?
 * @is_entry: whether it is an entry, not empty and not a comment
 */
bool config_matches(const char *line, const char *program, int domain, int type, int protocol,
		    bool *is_entry);

#endif
