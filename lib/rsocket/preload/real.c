/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the preload library replaces: see preload.h.
 */
#include "lib/rsocket/preload/preload.h"

#include <dlfcn.h>
#include <pthread.h>

static struct real functions;

static void look_up_functions(void)
{
#define X(type, name, ...) *(void **)&functions.name = dlsym(RTLD_NEXT, #name);
	REAL_SAME(X)
	REAL_OTHERS(X)
#undef X
}

const struct real *real(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_up_functions);
	return &functions;
}
