/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of a script: its fields are found by name in the rows of mad/, set and compared.
 *
 * In addition to the rows of the message, `mad.NAME` are the rows of the common header, `ip.NAME`
 * those of the header that the RDMA IP CM puts in front of private data, `user_data` is the data
 * after it, and `byte.N` any byte of the MAD.
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
	DRILL_IN_RAW, /* bytes of the encoded MAD */
};

struct drill_field {
	enum drill_part part;
	const struct wire_field *row; /* NULL for DRILL_IN_RAW */
	unsigned int at;	      /* for DRILL_IN_RAW */
	unsigned int bits;	      /* width of a number; 0 for bytes */
	unsigned int n_bytes;	      /* 0 for a number */
};

struct drill_mad {
	struct cm_msg msg;
	struct cma_hdr ip; /* if the private data begins with one */
	uint8_t raw[MAD_BYTES];
};

/** drill_message_attr() - the attribute id of "REQ". Return: 0 if there is no such message. */
uint16_t drill_message_attr(const char *name);

/** drill_message_defaults() - the values of fields that the script does not set */
const char *drill_message_defaults(uint16_t attr_id);

/**
 * drill_field_find() - find a field by name
 * @attr_id: of the message
 * @ret:     the field
 *
 * Return: 0; -ENOENT if the message has no such field.
 */
int drill_field_find(uint16_t attr_id, const char *name, struct drill_field *ret);

/**
 * drill_field_takes() - check whether a field can have a value
 * @value: neither variable nor random
 *
 * Return: 0; -ERANGE if it is too large; -EINVAL if it is bytes for a number or the reverse.
 */
int drill_field_takes(const struct drill_field *field, const struct drill_value *value);

/** drill_mad_begin() - make an empty message with its header */
void drill_mad_begin(struct drill_mad *mad, uint16_t attr_id, uint64_t tid);

/**
 * drill_mad_set() - set a field
 * @field: of the body or the IP header before drill_mad_encode(); others after it
 * @value: a number or bytes, accepted by drill_field_takes()
 */
void drill_mad_set(struct drill_mad *mad, const struct drill_field *field,
		   const struct drill_value *value);

/** drill_mad_encode() - encode the MAD */
void drill_mad_encode(struct drill_mad *mad);

/** drill_mad_decode() - decode a MAD. Return: 0, or as cm_msg_decode(). */
int drill_mad_decode(const uint8_t raw[MAD_BYTES], struct drill_mad *ret);

/** drill_mad_get() - get the value of a field */
void drill_mad_get(const struct drill_mad *mad, const struct drill_field *field,
		   struct drill_value *ret);

/** drill_mad_is_same() - compare messages, ignoring the tid, which a retransmission may change */
bool drill_mad_is_same(const uint8_t a[MAD_BYTES], const uint8_t b[MAD_BYTES]);

/**
 * drill_value_matches() - return whether a value is as expected
 * @wanted: a number, a range, bytes (a prefix), a word, any, or a capture
 */
bool drill_value_matches(const struct drill_value *wanted, const struct drill_value *value);

#endif
