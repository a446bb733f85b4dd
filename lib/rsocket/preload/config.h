/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which sockets of which programs become ours: /etc/rdma/rsocket/preload_config, a line each:
 *
 *     program domain type protocol
 *
 * where a program is meant by the beginning of its name, and "*" means any. Without the file, or
 * without a line in it, all streams.
 */
#ifndef PRELOAD_CONFIG_H
#define PRELOAD_CONFIG_H

#include <stdbool.h>

/** config_wants() - is a socket of this kind, without SOCK_ flags, to be ours? */
bool config_wants(int domain, int type, int protocol);

/**
 * config_matches() - does a line mean this socket of this program?
 * @is_entry: says whether it was an entry at all, not empty and not a comment
 */
bool config_matches(const char *line, const char *program, int domain, int type, int protocol,
		    bool *is_entry);

#endif
