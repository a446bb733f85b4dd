/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracked connections that lie in a file of a folder of the test's own, and what the next cmportd
 * would find in it.
 */
#ifndef TESTS_UNIT_PORTD_KEPT_H
#define TESTS_UNIT_PORTD_KEPT_H

#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/files/tracked_file.h"
#include "tests/unit/portd/folder.h"

#define KEPT_CLIENT	 1
#define KEPT_PORT	 0
#define KEPT_HEAD_BYTES	 8192
#define KEPT_PORTS_AT	 56 /* the names of handles */
#define KEPT_PORT_BYTES	 72
#define KEPT_NAME_AT	 5
#define KEPT_CHUNK_BYTES (TRACKED_CHUNK * sizeof(struct tracked))

extern struct tracker *kept_tracker;
extern const struct tracked_owner kept_owner; /* of KEPT_CLIENT's */

/** kept_set_up() - a file with no tracked connections, in a folder of the test's own. */
void kept_set_up(void);

void kept_tear_down(void);

/** kept_open() - the store of the file, opened anew. */
struct tracked_store *kept_open(void);

/** kept_begin() - a cmportd begins, with the file as it is. */
void kept_begin(void);

/** kept_begin_again() - it ends, and another one begins. */
void kept_begin_again(void);

/** kept_write() - bytes are written into the tracked connections' part of the file. */
void kept_write(size_t at, const void *bytes, size_t n);

/** kept_read() - bytes of that part, @n of them from @at. */
void kept_read(size_t at, void *bytes, size_t n);

/** kept_bytes() - how long that part is. */
off_t kept_bytes(void);

/** kept_version() - one of two tracked connections of connection @n, all of which but the comm id
 * differs. */
struct cm_record kept_version(uint32_t n, uint8_t v);

/** kept_is_version() - is it that, and nothing of another one? */
bool kept_is_version(const struct tracked *tracked, uint8_t v);

/** kept_set() - KEPT_CLIENT tells of connection @n. */
void kept_set(uint32_t n, uint8_t v);

/** kept_orphans() - how many there are. */
unsigned int kept_orphans(const struct tracker *of);

#endif
