/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs as text, for test vectors: hexadecimal digits, any white space between bytes, and comments
 * from '#' to the end of the line.
 */
#ifndef TESTS_UNIT_MAD_HEX_H
#define TESTS_UNIT_MAD_HEX_H

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/**
 * hex_read() - bytes from text
 * @text:  one MAD
 * @bytes: filled; zero after the end of the text
 * @n:     size of @bytes
 *
 * Return: number of bytes in the text, or -1 if it is not hexadecimal or too long.
 */
static inline int hex_read(const char *text, uint8_t *bytes, size_t n)
{
	size_t used = 0;

	memset(bytes, 0, n);
	while (*text) {
		if (isspace((unsigned char)*text))
			text++;
		else if (*text == '#')
			text += strcspn(text, "\n");
		else if (used < n && sscanf(text, "%2hhx", &bytes[used++]) == 1 && text[1])
			text += 2;
		else
			return -1;
	}
	return used;
}

#endif
