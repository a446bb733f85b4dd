/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits: see limits.h.
 */
#include "lib/portd/server/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 1000000000

static const struct row {
	const char *name;
	uint32_t is;
	const char *unit;
} rows[N_QUOTAS] = {
#define X(number, name, is, unit) [QUOTA_##number] = { name, is, unit },
	QUOTAS(X)
#undef X
};

uint32_t quota_of(const struct quotas *quotas, enum quota quota)
{
	return quotas->is[quota] ? quotas->is[quota] : rows[quota].is;
}

const char *quota_name(enum quota quota)
{
	return rows[quota].name;
}

const char *quota_unit(enum quota quota)
{
	return rows[quota].unit;
}

bool quota_set(struct quotas *quotas, const char *text)
{
	const char *value = strchr(text, '=');
	enum quota quota = 0;
	long number;
	char *end;

	if (!value || value[1] < '0' || value[1] > '9')
		return false;
	errno = 0;
	number = strtol(value + 1, &end, 10);
	if (errno || *end || number < 1 || number > NUMBER_MAX)
		return false;
	for (; quota < N_QUOTAS; quota++) {
		if (strlen(rows[quota].name) == (size_t)(value - text) &&
		    strncmp(rows[quota].name, text, (size_t)(value - text)) == 0) {
			quotas->is[quota] = (uint32_t)number;
			return true;
		}
	}
	return false;
}
