/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for a terminal, filled to its width. */
#ifndef TOOLS_PURECM_PAGE_H
#define TOOLS_PURECM_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_WIDTH_MIN 40

/**
 * page_width() - columns of standard output: of the terminal, else $COLUMNS, else 0 for no limit
 */
unsigned int page_width(void);

/**
 * page_fill() - print words, filled to a width
 * @text:   words separated by blanks; words are not broken
 * @column: the present column
 * @indent: of all lines except the first, in columns
 * @width:  0 for no limit
 */
void page_fill(const char *text, unsigned int column, unsigned int indent, unsigned int width,
	       FILE *out);

/** page_time() - print a time since 1970, "2026-11-22 09:35:58.123", as local time. */
void page_time(uint64_t time_ns, FILE *out);

#endif
