/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes text printable: see text.h. */
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

#define FIRST_BEYOND_CONTROL 0xa0 /* overlong forms of others are below it, too */

/* Return: the bytes of the character that begins there; 0 if it is not to be printed. */
static size_t printable_bytes(const unsigned char *text)
{
	const size_t n = *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
	uint32_t code = *text & (0x7fu >> n);
	size_t i;

	if (*text < 0x80)
		return *text >= ' ' && *text != 0x7f;
	if (*text < 0xc2 || *text > 0xf4)
		return 0;
	for (i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	return code >= FIRST_BEYOND_CONTROL ? n : 0;
}

char *text_make_printable(char *text)
{
	char *at = text;
	size_t n;

	while (*at) {
		n = printable_bytes((const unsigned char *)at);
		if (!n)
			*at = '?';
		at += n ? n : 1;
	}
	return text;
}
