/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads defaults of ids' options from the environment: see defaults.h. One row per variable. */
#include "lib/diag/defaults.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "lib/diag/warning.h"

/* Return: the text behind the number; NULL if there is none, or it is out of range. */
static const char *take_number(const char *text, uint32_t max, uint32_t *ret)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno || value > max)
		return NULL;
	*ret = (uint32_t)value;
	return end;
}

static bool is_number(const char *text, uint32_t max, uint32_t *ret)
{
	const char *rest = take_number(text, max, ret);

	return rest && !*rest;
}

static bool set_connect_timeout(const char *text, struct id_options *options)
{
	uint32_t ms;

	if (!is_number(text, UINT32_MAX, &ms) || ms == 0)
		return false;
	options->give_up_ns = ms * CM_NS_PER_MS;
	return true;
}

static bool set_retries(const char *text, struct id_options *options)
{
	uint32_t retries;

	if (!is_number(text, DEFAULTS_RETRIES_MAX, &retries))
		return false;
	options->waits.transmissions_max = (uint8_t)(retries + 1);
	return true;
}

static bool set_retry_waits(const char *text, struct id_options *options)
{
	uint32_t first_ms, last_ms;
	const char *rest = take_number(text, UINT32_MAX, &first_ms);

	if (!rest || *rest != ',' || !is_number(rest + 1, UINT32_MAX, &last_ms) || first_ms == 0 ||
	    first_ms > last_ms)
		return false;
	options->waits.first_ms = first_ms;
	options->waits.last_ms = last_ms;
	return true;
}

static bool set_tos(const char *text, struct id_options *options)
{
	uint32_t tos;

	if (!is_number(text, UINT8_MAX, &tos))
		return false;
	options->tos = (uint8_t)tos;
	options->has_tos = true;
	return true;
}

static const struct {
	const char *name;
	bool (*set)(const char *text, struct id_options *options);
} variables[] = {
	{ "PURECM_CONNECT_TIMEOUT_MS", set_connect_timeout },
	{ "PURECM_RETRIES", set_retries },
	{ "PURECM_RETRY_WAITS_MS", set_retry_waits },
	{ "PURECM_TOS", set_tos },
};

void defaults_read(struct id_options *ret)
{
	const char *text;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		text = env_get(variables[i].name);
		if (text && *text && !variables[i].set(text, ret))
			warning_of_variable(variables[i].name, text);
	}
}

static struct id_options defaults;

static void read_once(void)
{
	defaults_read(&defaults);
}

const struct id_options *defaults_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_once);
	return &defaults;
}
