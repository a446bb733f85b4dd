/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of a script: its fields by name, found in the rows of mad/, set and compared.
 *
 * Besides the rows of the message there are `mad.NAME`, the rows of the common header; `ip.NAME`,
 * those of the header that the RDMA IP CM puts in front of private data; `user_data`, what follows
 * it; and `byte.N`, any byte of the MAD.
 */
#ifndef TOOLS_PURECM_DRILL_MAD_H
#define TOOLS_PURECM_DRILL_MAD_H

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "tools/purecm/drill_value.h"

enum drill_part {
	DRILL_IN_BODY,
	DRILL_IN_HEADER,
	DRILL_IN_IP,
	DRILL_IN_RAW, /* a part of the MAD as it is on the wire */
};

struct drill_field {
	enum drill_part part;
	const struct wire_field *row; /* NULL in the raw MAD */
	unsigned int at;	      /* in the raw MAD */
	unsigned int bits;	      /* how wide a number is; 0 for bytes */
	unsigned int n_bytes;	      /* how many bytes there are; 0 for a number */
};

struct drill_mad {
	struct cm_msg msg;
	struct cma_hdr ip; /* of messages that have private data for it */
	uint8_t raw[MAD_BYTES];
};

/** drill_message_attr() - "REQ": its attribute id. Return: 0 if there is no such message. */
uint16_t drill_message_attr(const char *name);

/** drill_message_defaults() - what a message is sent with unless the script says otherwise. */
const char *drill_message_defaults(uint16_t attr_id);

/**
 * drill_field_find() - find a field by its name
 * @attr_id: of the message
 * @ret:     filled
 *
 * Return: 0; -ENOENT if the message has none of that name.
 */
int drill_field_find(uint16_t attr_id, const char *name, struct drill_field *ret);

/**
 * drill_field_takes() - can the field have that value?
 * @value: neither variable nor random
 *
 * Return: 0; -ERANGE if it is too large; -EINVAL if it is bytes for a number or the reverse.
 */
int drill_field_takes(const struct drill_field *field, const struct drill_value *value);

/** drill_mad_begin() - an empty message of that kind, its header filled. */
void drill_mad_begin(struct drill_mad *mad, uint16_t attr_id, uint64_t tid);

/**
 * drill_mad_set() - set a field
 * @field: of the body or the IP header before drill_mad_encode(); any other after it
 * @value: what drill_field_takes(), a number or bytes
 */
void drill_mad_set(struct drill_mad *mad, const struct drill_field *field,
		   const struct drill_value *value);

/** drill_mad_encode() - write the raw MAD. */
void drill_mad_encode(struct drill_mad *mad);

/** drill_mad_decode() - read a raw MAD. Return: 0, or as cm_msg_decode() does. */
int drill_mad_decode(const uint8_t raw[MAD_BYTES], struct drill_mad *ret);

/** drill_mad_get() - the value of a field. */
void drill_mad_get(const struct drill_mad *mad, const struct drill_field *field,
		   struct drill_value *ret);

/** drill_mad_is_same() - the same message, but for what a repetition may have new: the tid. */
bool drill_mad_is_same(const uint8_t a[MAD_BYTES], const uint8_t b[MAD_BYTES]);

/**
 * drill_value_matches() - is it what was wanted?
 * @wanted: a number, a range, bytes (as many as are given), a word, any, or a capture
 */
bool drill_value_matches(const struct drill_value *wanted, const struct drill_value *value);

#endif
