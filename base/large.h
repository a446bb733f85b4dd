/* SPDX-License-Identifier: BSD-2-Clause */
/* The section for large static arrays. */
#ifndef BASE_LARGE_H
#define BASE_LARGE_H

/*
 * For a zeroed array of many pages of which a process uses few. The linker puts all of them behind
 * the other static data, which otherwise would lie between them on pages of their own.
 */
#ifdef __SANITIZE_ADDRESS__
#define LARGE_STATIC /* AddressSanitizer does not check arrays in a section of their own */
#else
#define LARGE_STATIC __attribute__((section(".bss.zlarge")))
#endif

#endif
