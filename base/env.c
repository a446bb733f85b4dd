/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of a library: see env.h. */
#include "base/env.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define KEPT_MAX 32

static char *kept[KEPT_MAX + 1]; /* "NAME=value", up to NULL */

static bool is_kept(const char *variable)
{
	static const char *const prefixes[] = { "PURECM_", "RS_", "RDMAV_", "LD_LIBRARY_PATH=" };
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static void keep_all(void)
{
	size_t i, n = 0;

	for (i = 0; environ && environ[i] && n < KEPT_MAX; i++)
		if (is_kept(environ[i]) && (kept[n] = strdup(environ[i])))
			n++;
}

/* Also from the constructor of another library, which may run first. */
__attribute__((constructor)) static void keep_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, keep_all);
}

const char *env_get(const char *name)
{
	const char *now = getenv(name);
	size_t i, n = strlen(name);

	if (getauxval(AT_SECURE))
		return NULL;
	if (now)
		return now;
	keep_once();
	for (i = 0; kept[i]; i++)
		if (strncmp(kept[i], name, n) == 0 && kept[i][n] == '=')
			return kept[i] + n + 1;
	return NULL;
}
