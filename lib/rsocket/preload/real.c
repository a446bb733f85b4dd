/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the preload library replaces: see preload.h.
 */
#include "lib/rsocket/preload/preload.h"

#include <dlfcn.h>
#include <pthread.h>
#include <rdma/rsocket.h>

static struct real functions;
static void *library; /* librdmacm's base address */

static void look_up_functions(void)
{
	Dl_info info;

#define X(type, name, ...) *(void **)&functions.name = dlsym(RTLD_NEXT, #name);
	REAL_SAME(X)
	REAL_OTHERS(X)
#undef X
	if (dladdr((void *)(uintptr_t)rsocket, &info))
		library = info.dli_fbase;
}

const struct real *real(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_up_functions);
	return &functions;
}

bool real_is_inside(const void *caller)
{
	Dl_info info;

	real();
	return library && dladdr(caller, &info) && info.dli_fbase == library;
}
