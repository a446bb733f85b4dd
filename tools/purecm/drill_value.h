/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values in scripts of purecm drill, and the variables that hold them. A value is what stands
 * behind the "=" of a field; purecm(1) has the grammar.
 */
#ifndef TOOLS_PURECM_DRILL_VALUE_H
#define TOOLS_PURECM_DRILL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRILL_NAME_BYTES 40
#define DRILL_BYTES_MAX	 232 /* the body of a message */
#define DRILL_VARS_MAX	 64

enum drill_kind {
	DRILL_NUMBER,	/* 7, -110, 0x1f; negative ones as two's complement */
	DRILL_RANGE,	/* 1..7 */
	DRILL_BYTES,	/* "text", hex:00ff, a GID */
	DRILL_WORD,	/* udp */
	DRILL_VARIABLE, /* $ours, $ours+1 */
	DRILL_RANDOM,	/* random */
	DRILL_ANY,	/* * */
	DRILL_CAPTURE,	/* ?name */
};

struct drill_value {
	enum drill_kind kind;
	uint64_t number; /* also the first of a range, and what is added to a variable */
	uint64_t last;	 /* of a range */
	char name[DRILL_NAME_BYTES];
	size_t n_bytes; /* of a word, too */
	uint8_t bytes[DRILL_BYTES_MAX];
};

struct drill_var {
	char name[DRILL_NAME_BYTES];
	struct drill_value value;
};

struct drill_vars {
	struct drill_var var[DRILL_VARS_MAX];
	unsigned int n;
};

/**
 * drill_value_parse() - read a value
 * @text: nothing but the value
 * @ret:  filled
 *
 * Return: 0; -EINVAL if it is none.
 */
int drill_value_parse(const char *text, struct drill_value *ret);

/**
 * drill_value_of() - the value that a value stands for
 * @value: a variable or "random" is looked up, anything else is itself
 * @ret:   filled
 *
 * Return: 0; -ENOENT if there is no such variable; -EINVAL if something is added to bytes.
 */
int drill_value_of(const struct drill_value *value, const struct drill_vars *vars,
		   struct drill_value *ret);

/**
 * drill_value_str() - as a script would have it
 * @text: filled, cut if need be
 */
void drill_value_str(const struct drill_value *value, char *text, size_t bytes);

/** drill_vars_find() - Return: the value of a variable, or NULL. */
const struct drill_value *drill_vars_find(const struct drill_vars *vars, const char *name);

/** drill_vars_put() - give a variable a value. Return: 0; -ENOSPC. */
int drill_vars_put(struct drill_vars *vars, const char *name, const struct drill_value *value);

/** drill_vars_put_number() - the same for a number. */
int drill_vars_put_number(struct drill_vars *vars, const char *name, uint64_t number);

/** drill_vars_put_bytes() - the same for bytes, at most DRILL_BYTES_MAX. */
int drill_vars_put_bytes(struct drill_vars *vars, const char *name, const void *bytes, size_t n);

#endif
