/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values in scripts of purecm drill, and variables. A value is the text after the "=" of a field;
 * purecm(1) has the grammar.
 */
#ifndef TOOLS_PURECM_DRILL_VALUE_H
#define TOOLS_PURECM_DRILL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRILL_NAME_BYTES 40
#define DRILL_BYTES_MAX	 232 /* body of a message */
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
	uint64_t number; /* also first of a range, and addend of a variable */
	uint64_t last;	 /* of a range */
	char name[DRILL_NAME_BYTES];
	size_t n_bytes; /* also of a word */
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
 * drill_value_parse() - parse a value
 * @text: the value only
 * @ret:  the value
 *
 * Return: 0; -EINVAL if it is invalid.
 */
int drill_value_parse(const char *text, struct drill_value *ret);

/**
 * drill_value_of() - evaluate a value
 * @value: variables and "random" are evaluated, other values copied
 * @ret:   the result
 *
 * Return: 0; -ENOENT if there is no such variable; -EINVAL if a number is added to bytes.
 */
int drill_value_of(const struct drill_value *value, const struct drill_vars *vars,
		   struct drill_value *ret);

/**
 * drill_value_str() - format a value as in a script
 * @text: the result, truncated if necessary
 */
void drill_value_str(const struct drill_value *value, char *text, size_t bytes);

/** drill_vars_find() - Return: the value of a variable, or NULL. */
const struct drill_value *drill_vars_find(const struct drill_vars *vars, const char *name);

/** drill_vars_put() - set a variable. Return: 0; -ENOSPC. */
int drill_vars_put(struct drill_vars *vars, const char *name, const struct drill_value *value);

/** drill_vars_put_number() - set a variable to a number */
int drill_vars_put_number(struct drill_vars *vars, const char *name, uint64_t number);

/** drill_vars_put_bytes() - set a variable to bytes, at most DRILL_BYTES_MAX */
int drill_vars_put_bytes(struct drill_vars *vars, const char *name, const void *bytes, size_t n);

#endif
