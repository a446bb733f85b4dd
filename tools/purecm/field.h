/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A field of a message for people and for machines: by the rows of mad/, with what an encoded value
 * means.
 */
#ifndef TOOLS_PURECM_FIELD_H
#define TOOLS_PURECM_FIELD_H

#include <stdio.h>

#include "mad/cma_hdr.h"
#include "mad/wire.h"

/** field_uint() - the value of an integer; 0 for a field of bytes. */
uint64_t field_uint(const struct wire_field *field, const void *host);

/** field_is_zero() - all bits of it. */
bool field_is_zero(const struct wire_field *field, const void *host);

/** field_find() - by its name. Return: NULL if the layout has none of that name. */
const struct wire_field *field_find(const struct wire_layout *layout, const char *name);

/** field_is_part() - does it only hold further bits of a field that was there before? */
bool field_is_part(const struct wire_layout *layout, const struct wire_field *field);

/** field_print() - "0x1f", "7", "::1"; bytes in hexadecimal, up to the last that is not zero. */
void field_print(const struct wire_field *field, const void *host, FILE *out);

/**
 * field_print_note() - what the value means, " (1024 bytes)"; nothing where it speaks for itself
 */
void field_print_note(const struct wire_field *field, const void *host, FILE *out);

/** field_print_json() - "name":value */
void field_print_json(const struct wire_field *field, const void *host, FILE *out);

/** encoded_s() - a 5-bit encoded time, 4.096 us * 2^t, in seconds. */
double encoded_s(unsigned int t);

/** print_json_string() - with quotes; what JSON cannot have is escaped. */
void print_json_string(const char *text, FILE *out);

#endif
