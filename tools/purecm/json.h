/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON, one object per line, for all subcommands: docs/json-schema.json says which. A member has
 * one type, and integers that a double cannot represent exactly are strings.
 */
#ifndef TOOLS_PURECM_JSON_H
#define TOOLS_PURECM_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** json_begin() - begin an object; @name: as a member; NULL: a line */
void json_begin(const char *name, FILE *out);

/** json_end() - end the object that was begun last, and the line with the first */
void json_end(FILE *out);

/* Members. A @text of NULL is left out. */
void json_text(const char *name, const char *text, FILE *out);
void json_uint(const char *name, uint64_t value, FILE *out);
void json_bool(const char *name, bool value, FILE *out);
void json_fixed(const char *name, double value, int digits, FILE *out);

/** json_time() - a time since 1970 in seconds, as text */
void json_time(uint64_t time_ns, FILE *out);

#endif
