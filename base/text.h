/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes text of other users printable: names of processes, files and hosts may contain control
 * sequences for the terminal of root.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

/**
 * text_make_printable() - replace what may control a terminal by question marks
 *
 * UTF-8 is kept; control characters, also those from U+0080 to U+009F, and bytes that are not UTF-8
 * are replaced, each byte.
 *
 * Return: @text.
 */
char *text_make_printable(char *text);

#endif
