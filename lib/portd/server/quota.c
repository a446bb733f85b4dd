/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quotas: see quota.h.
 */
#include "lib/portd/server/quota.h"

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

/* A lower quota is for a user who takes too much, and leaves more for others. */
static uint32_t scale_of(const struct quotas *quotas, enum quota quota)
{
	const uint32_t is = quota_of(quotas, quota);

	return is > rows[quota].is ? is : rows[quota].is;
}

uint32_t quota_of_all(const struct quotas *quotas, enum quota quota)
{
	const uint64_t all = (uint64_t)QUOTA_ALL_USERS * scale_of(quotas, quota);

	return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

bool quota_leaves_share(const struct quotas *quotas, enum quota quota, uint32_t has, uint32_t all,
			uint32_t most)
{
	const bool is_alone = quota_of(quotas, quota) > most / QUOTA_ALL_USERS;
	const uint32_t left = all < most ? most - all : 0;

	if (has < rows[quota].is / QUOTA_LITTLE)
		return left > 0;
	return left > (uint64_t)most / 8 + (is_alone ? 0 : has);
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
