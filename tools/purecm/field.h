/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of messages for people and for programs, by the rows of mad/, with the meaning of encoded
 * values.
 */
#ifndef TOOLS_PURECM_FIELD_H
#define TOOLS_PURECM_FIELD_H

#include <stdio.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "mad/wire.h"

/** field_uint() - the value of an integer; 0 for a field of bytes. */
uint64_t field_uint(const struct wire_field *field, const void *host);

/** field_is_zero() - return whether all bits are zero */
bool field_is_zero(const struct wire_field *field, const void *host);

/** field_find() - find a field by name. Return: NULL if the layout has no such field. */
const struct wire_field *field_find(const struct wire_layout *layout, const char *name);

/** field_is_part() - return whether the field holds more bits of an earlier field */
bool field_is_part(const struct wire_layout *layout, const struct wire_field *field);

/** field_print() - print "0x1f", "7", "::1"; bytes in hexadecimal, without trailing zeros */
void field_print(const struct wire_field *field, const void *host, FILE *out);

/** field_print_note() - print the meaning of a value, " (1024 bytes)", unless obvious */
void field_print_note(const struct wire_field *field, const void *host, FILE *out);

/** field_print_json() - print a member of json.h: a number, or a string of bytes and of 64 bits */
void field_print_json(const struct wire_field *field, const void *host, FILE *out);

/** ip_header_of() - the IP CM header that a message's private data begins with; NULL: none */
const uint8_t *ip_header_of(const struct cm_msg *msg);

/** service_space() - the port space of a service id, "TCP"; NULL: none of rdma_cm */
const char *service_space(uint64_t service_id);

/** encoded_s() - decode a 5-bit time, 4.096 us * 2^t, to seconds */
double encoded_s(unsigned int t);

#endif
