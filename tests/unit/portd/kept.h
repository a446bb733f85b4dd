/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracked connections in a file in a folder of the test's own, as the next cmportd finds them. */
#ifndef TESTS_UNIT_PORTD_KEPT_H
#define TESTS_UNIT_PORTD_KEPT_H

#include "lib/portd/server/files/state_file.h"
#include "lib/portd/server/files/tracked_file.h"
#include "tests/unit/portd/folder.h"

#define KEPT_CLIENT	 1
#define KEPT_PORT	 0
#define KEPT_HEAD_BYTES	 8192
#define KEPT_CHUNK_BYTES (TRACKED_CHUNK * sizeof(struct tracked))

extern struct tracker *kept_tracker;
extern const struct tracked_owner kept_owner; /* the owner of KEPT_CLIENT */

/** kept_set_up() - a file without tracked connections, in a folder of the test's own. */
void kept_set_up(void);

void kept_tear_down(void);

/** kept_open() - open the store of the file again. */
struct tracked_store *kept_open(void);

/** kept_begin() - start a cmportd with the present file. */
void kept_begin(void);

/** kept_begin_again() - end it, and start another one. */
void kept_begin_again(void);

/** kept_write() - write bytes to the tracked connections' part of the file. */
void kept_write(size_t at, const void *bytes, size_t n);

/** kept_read() - read @n bytes of that part from @at. */
void kept_read(size_t at, void *bytes, size_t n);

/** kept_bytes() - the length of that part. */
off_t kept_bytes(void);

/**
 * kept_version() - one of two versions of connection @n, which differ in everything but the comm
 * id.
 */
struct cm_record kept_version(uint32_t n, uint8_t v);

/** kept_is_version() - return whether a connection is exactly that version. */
bool kept_is_version(const struct tracked *tracked, uint8_t v);

/** kept_set() - KEPT_CLIENT reports connection @n. */
void kept_set(uint32_t n, uint8_t v);

/** kept_orphans() - the number of orphans. */
unsigned int kept_orphans(const struct tracker *of);

#endif
