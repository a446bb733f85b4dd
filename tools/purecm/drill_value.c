/* SPDX-License-Identifier: BSD-2-Clause */
/* Values: parsing, formatting, variables. */
#include "tools/purecm/drill_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HEX_PREFIX   "hex:"
#define GID_BYTES    16
#define RANDOM_BYTES 3 /* 24 bits, which fit into every relevant field */

static int hex_digit(char c)
{
	if (!isxdigit((unsigned char)c))
		return -1;
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static int parse_hex(const char *text, struct drill_value *ret)
{
	size_t i, n = strlen(text);

	if (n % 2 || n / 2 > sizeof(ret->bytes))
		return -EINVAL;
	for (i = 0; i < n / 2; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		ret->bytes[i] = (uint8_t)(high << 4 | low);
	}
	ret->kind = DRILL_BYTES;
	ret->n_bytes = n / 2;
	return 0;
}

static int parse_string(const char *text, struct drill_value *ret)
{
	size_t n = strlen(text);

	if (n < 2 || text[n - 1] != '"' || n - 2 > sizeof(ret->bytes))
		return -EINVAL;
	ret->kind = DRILL_BYTES;
	ret->n_bytes = n - 2;
	memcpy(ret->bytes, text + 1, n - 2);
	return 0;
}

/* Return: the text after the number, or NULL if there is none. */
static const char *scan_number(const char *text, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)text[*text == '-']))
		return NULL;
	errno = 0;
	*ret = *text == '-' ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	return errno ? NULL : end;
}

static int parse_number(const char *text, struct drill_value *ret)
{
	const char *end = scan_number(text, &ret->number);

	ret->kind = DRILL_NUMBER;
	if (end && strncmp(end, "..", 2) == 0) {
		ret->kind = DRILL_RANGE;
		end = scan_number(end + 2, &ret->last);
		if (end && ret->last < ret->number)
			return -EINVAL;
	}
	return end && !*end ? 0 : -EINVAL;
}

static size_t name_length(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return n;
}

static int parse_name(const char *text, enum drill_kind kind, struct drill_value *ret)
{
	const size_t n = name_length(text);
	const char *end = text + n;

	if (n == 0 || n >= sizeof(ret->name))
		return -EINVAL;
	memcpy(ret->name, text, n);
	ret->name[n] = '\0';
	ret->kind = kind;
	if (kind == DRILL_VARIABLE && (*end == '+' || *end == '-')) {
		const char sign = *end;

		end = scan_number(end + 1, &ret->number);
		if (sign == '-')
			ret->number = -ret->number;
	}
	return end && !*end ? 0 : -EINVAL;
}

static int parse_word(const char *text, struct drill_value *ret)
{
	const size_t n = strlen(text);

	if (n == 0 || n != name_length(text))
		return -EINVAL;
	ret->kind = strcmp(text, "random") == 0 ? DRILL_RANDOM : DRILL_WORD;
	ret->n_bytes = n;
	memcpy(ret->bytes, text, n);
	return 0;
}

static int parse_gid(const char *text, struct drill_value *ret)
{
	if (inet_pton(AF_INET6, text, ret->bytes) != 1)
		return -EINVAL;
	ret->kind = DRILL_BYTES;
	ret->n_bytes = GID_BYTES;
	return 0;
}

int drill_value_parse(const char *text, struct drill_value *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (strlen(text) > sizeof(ret->bytes) * 2)
		return -EINVAL;
	if (strcmp(text, "*") == 0) {
		ret->kind = DRILL_ANY;
		return 0;
	}
	if (*text == '$' || *text == '?')
		return parse_name(text + 1, *text == '$' ? DRILL_VARIABLE : DRILL_CAPTURE, ret);
	if (*text == '"')
		return parse_string(text, ret);
	if (strncmp(text, HEX_PREFIX, strlen(HEX_PREFIX)) == 0)
		return parse_hex(text + strlen(HEX_PREFIX), ret);
	if (strchr(text, ':'))
		return parse_gid(text, ret);
	if (isdigit((unsigned char)*text) || *text == '-')
		return parse_number(text, ret);
	return parse_word(text, ret);
}

static uint64_t random_number(void)
{
	static uint64_t spare = 1;
	uint8_t bytes[RANDOM_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return spare++;
	/* 0 and all ones are excluded: both are special in some fields. */
	return 2 + ((uint64_t)bytes[0] << 16 | bytes[1] << 8 | bytes[2]) % 0xfffff0;
}

int drill_value_of(const struct drill_value *value, const struct drill_vars *vars,
		   struct drill_value *ret)
{
	const struct drill_value *found = value;

	if (value->kind == DRILL_RANDOM) {
		*ret = (struct drill_value){ .kind = DRILL_NUMBER, .number = random_number() };
		return 0;
	}
	if (value->kind == DRILL_VARIABLE)
		found = drill_vars_find(vars, value->name);
	if (!found)
		return -ENOENT;
	*ret = *found;
	if (value->kind != DRILL_VARIABLE || !value->number)
		return 0;
	if (found->kind != DRILL_NUMBER)
		return -EINVAL;
	ret->number += value->number;
	return 0;
}

static void bytes_str(const struct drill_value *value, char *text, size_t bytes)
{
	size_t i, at = (size_t)snprintf(text, bytes, HEX_PREFIX);

	for (i = 0; i < value->n_bytes && at + 3 <= bytes; i++)
		at += (size_t)snprintf(text + at, bytes - at, "%02x", value->bytes[i]);
}

void drill_value_str(const struct drill_value *value, char *text, size_t bytes)
{
	switch (value->kind) {
	case DRILL_NUMBER:
		snprintf(text, bytes, value->number > UINT16_MAX ? "0x%" PRIx64 : "%" PRIu64,
			 value->number);
		if ((int64_t)value->number < 0)
			snprintf(text, bytes, "%" PRId64, (int64_t)value->number);
		return;
	case DRILL_RANGE:
		snprintf(text, bytes, "%" PRIu64 "..%" PRIu64, value->number, value->last);
		return;
	case DRILL_BYTES:
		bytes_str(value, text, bytes);
		return;
	case DRILL_WORD:
	case DRILL_RANDOM:
		snprintf(text, bytes, "%.*s", (int)value->n_bytes, (const char *)value->bytes);
		return;
	case DRILL_VARIABLE:
		snprintf(text, bytes, value->number ? "$%s%+" PRId64 : "$%s", value->name,
			 (int64_t)value->number);
		return;
	case DRILL_ANY:
		snprintf(text, bytes, "*");
		return;
	case DRILL_CAPTURE:
		snprintf(text, bytes, "?%s", value->name);
		return;
	}
}

/* --- variables ----------------------------------------------------------- */

const struct drill_value *drill_vars_find(const struct drill_vars *vars, const char *name)
{
	unsigned int i;

	for (i = 0; i < vars->n; i++) {
		if (strcmp(vars->var[i].name, name) == 0)
			return &vars->var[i].value;
	}
	return NULL;
}

int drill_vars_put(struct drill_vars *vars, const char *name, const struct drill_value *value)
{
	struct drill_var *var = vars->var;

	while (var < vars->var + vars->n && strcmp(var->name, name) != 0)
		var++;
	if (var == vars->var + DRILL_VARS_MAX)
		return -ENOSPC;
	if (var == vars->var + vars->n)
		vars->n++;
	snprintf(var->name, sizeof(var->name), "%s", name);
	var->value = *value;
	return 0;
}

int drill_vars_put_number(struct drill_vars *vars, const char *name, uint64_t number)
{
	const struct drill_value value = { .kind = DRILL_NUMBER, .number = number };

	return drill_vars_put(vars, name, &value);
}

int drill_vars_put_bytes(struct drill_vars *vars, const char *name, const void *bytes, size_t n)
{
	struct drill_value value = { .kind = DRILL_BYTES, .n_bytes = n };

	memcpy(value.bytes, bytes, n);
	return drill_vars_put(vars, name, &value);
}
