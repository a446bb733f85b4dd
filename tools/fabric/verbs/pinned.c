/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages that a program has registered: see pinned.h. */
#include "tools/fabric/verbs/pinned.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_pinned;
static pid_t owner; /* a child begins with none */

static bool is_exempt(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 0 } };

	return !syscall(SYS_capget, &head, data) &&
	       data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

static uint64_t pages_max(const struct fab_page *page, uint64_t page_bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur == page->memlock || is_exempt())
		return UINT64_MAX;
	return limit.rlim_cur / page_bytes;
}

int pinned_take(const struct fab_page *page, const void *addr, size_t bytes, uint64_t *ret)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = (uintptr_t)addr / page_bytes;
	uint64_t n = ((uintptr_t)addr + bytes + page_bytes - 1) / page_bytes - first;
	bool fits;

	pthread_mutex_lock(&lock);
	if (owner != getpid())
		n_pinned = 0;
	owner = getpid();
	fits = n_pinned + n <= pages_max(page, page_bytes);
	if (fits)
		n_pinned += n;
	pthread_mutex_unlock(&lock);
	if (!fits)
		return ENOMEM;
	*ret = n;
	return 0;
}

void pinned_drop(uint64_t n_pages)
{
	pthread_mutex_lock(&lock);
	if (owner == getpid() && n_pinned >= n_pages)
		n_pinned -= n_pages;
	pthread_mutex_unlock(&lock);
}
