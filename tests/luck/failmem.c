/* SPDX-License-Identifier: BSD-2-Clause */
/* To be preloaded: allocations of librdmacm fail, but no others. Controlled by scarce.c. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void failmem_nth(long n);
EXPORT long failmem_count(void);
EXPORT void *malloc(size_t bytes);
EXPORT void *calloc(size_t n, size_t bytes);
EXPORT void *realloc(void *old, size_t bytes);

/* glibc's own functions, under names that a replacement can call. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static atomic_long left = -1; /* allocations before the failing one; negative: none fails */
static atomic_long n_failed;
static uintptr_t begin, end; /* of librdmacm's code */

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	int i;

	(void)size;
	(void)arg;
	if (!strstr(info->dlpi_name, "librdmacm.so"))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
			continue;
		begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		end = begin + info->dlpi_phdr[i].p_memsz;
	}
	return 1;
}

/* Makes the allocation after the next n of the library fail; -1: none. */
void failmem_nth(long n)
{
	dl_iterate_phdr(find_library, NULL);
	atomic_store(&n_failed, 0);
	atomic_store(&left, n);
}

/* Return: number of failures since. */
long failmem_count(void)
{
	return atomic_load(&n_failed);
}

static bool is_refused(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	if (at < begin || at >= end || atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) != 0)
		return false;
	atomic_fetch_add(&n_failed, 1);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return is_refused(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return is_refused(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return is_refused(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}
