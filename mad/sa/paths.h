/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache of paths from the subnet administrator, by request. A thousand connections to one service
 * need one request; entries expire after a minute, or when the port's subnet attributes change.
 * Pure.
 */
#ifndef MAD_SA_PATHS_H
#define MAD_SA_PATHS_H

#include "base/time.h"
#include "mad/sa_msg.h"

#define SA_PATHS_SETS	256 /* a power of 2 */
#define SA_PATHS_WAYS	4
#define SA_PATH_LIFE_NS (60000 * CM_NS_PER_MS)
#define SA_PATH_BYTES	58

/* The key: component mask and record of the request. */
struct sa_question {
	uint8_t comp_mask[8];
	uint8_t record[SA_PATH_BYTES];
};

struct sa_known_path {
	struct sa_question question;
	struct sa_msg answer;
	struct cm_time expires; /* 0 ns: free */
};

struct sa_paths {
	struct sa_known_path known[SA_PATHS_SETS][SA_PATHS_WAYS];
	uint8_t victim[SA_PATHS_SETS];
};

/**
 * sa_paths_find() - look up the response to a request
 * @since: responses of then or before do not count; 0 ns: all do
 *
 * Return: the cached response, or NULL.
 */
const struct sa_msg *sa_paths_find(const struct sa_paths *paths, const struct sa_msg *question,
				   struct cm_time since, struct cm_time now);

/** sa_paths_keep() - cache a response; it replaces an older one. */
void sa_paths_keep(struct sa_paths *paths, const struct sa_msg *question,
		   const struct sa_msg *answer, struct cm_time now);

/** sa_paths_forget() - drop all. */
void sa_paths_forget(struct sa_paths *paths);

#endif
