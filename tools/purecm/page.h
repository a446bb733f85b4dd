/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text on a terminal, which may be narrow: words that are filled into its width.
 */
#ifndef TOOLS_PURECM_PAGE_H
#define TOOLS_PURECM_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_WIDTH_MIN 40

/** page_width() - columns of standard output: of the terminal, else $COLUMNS, else 0 for any. */
unsigned int page_width(void);

/**
 * page_fill() - print words, at a width
 * @text:   words, parted by blanks; none is broken
 * @column: where the cursor is
 * @indent: of all lines but the first, in columns
 * @width:  0 for no limit
 *
 * A newline follows the last word.
 */
void page_fill(const char *text, unsigned int column, unsigned int indent, unsigned int width,
	       FILE *out);

/** page_time() - print a time since 1970, "2026-11-22 09:35:58.123", as local time. */
void page_time(uint64_t time_ns, FILE *out);

#endif
