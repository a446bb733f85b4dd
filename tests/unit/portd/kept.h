/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wills that lie in a file of a folder of the test's own, and what the next cmportd would find in
 * it.
 */
#ifndef TESTS_UNIT_PORTD_KEPT_H
#define TESTS_UNIT_PORTD_KEPT_H

#include "lib/portd/server/will_store.h"
#include "tests/unit/portd/folder.h"

#define KEPT_CLIENT	 1
#define KEPT_PORT	 0
#define KEPT_HEAD_BYTES	 8192
#define KEPT_CHUNK_BYTES (WILL_CHUNK * sizeof(struct will))

extern struct wills *kept_wills;
extern const struct will_owner kept_owner; /* of KEPT_CLIENT's */
extern char kept_path[160];

/** kept_tcase() - a test case, each of whose tests has a file with no wills. */
TCase *kept_tcase(const char *name);

/** kept_open() - the store of the file. */
struct will_store *kept_open(void);

/** kept_begin() - a cmportd begins, with the file as it is. */
void kept_begin(void);

/** kept_begin_again() - it ends, and another one begins. */
void kept_begin_again(void);

/** kept_write() - bytes are written into the file. */
void kept_write(size_t at, const void *bytes, size_t n);

/** kept_read() - bytes of the file, @n of them from @at. */
void kept_read(size_t at, void *bytes, size_t n);

/** kept_bytes() - how long the file is. */
off_t kept_bytes(void);

/** kept_version() - one of two wills of connection @n, all of which but the comm id differs. */
struct cm_record kept_version(uint32_t n, uint8_t v);

/** kept_is_version() - is it that, and nothing of another one? */
bool kept_is_version(const struct will *will, uint8_t v);

/** kept_set() - KEPT_CLIENT tells of connection @n. */
void kept_set(uint32_t n, uint8_t v);

/** kept_orphans() - how many there are. */
unsigned int kept_orphans(const struct wills *of);

#endif
