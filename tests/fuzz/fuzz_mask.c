/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text and MAD for purecm report --mask: masking a text is deterministic, and an address behind
 * any text is masked; a masked MAD can be masked again.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/mask.h"

#define ADDRESS "192.0.2.77" /* no alias */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char *masked(struct mask *mask, const char *text)
{
	char *ret = NULL;
	size_t bytes;
	FILE *out = open_memstream(&ret, &bytes);

	mask_text(mask, text, out);
	fclose(out);
	return ret;
}

static void check_text(struct mask *mask, const char *text)
{
	char *first = masked(mask, text), *second = masked(mask, text);

	if (strcmp(first, second) != 0 || strcmp(strrchr(first, ' ') + 1, ADDRESS) == 0)
		abort();
	free(first);
	free(second);
}

static void check_mad(struct mask *mask, const uint8_t *data, size_t bytes)
{
	struct observation observation = { .time_ns = 0 };

	memcpy(observation.mad, data, bytes < MAD_BYTES ? bytes : MAD_BYTES);
	if (mask_observation(mask, &observation) && !mask_observation(mask, &observation))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + sizeof(" " ADDRESS));
	struct mask *mask = mask_new();

	if (bytes)
		memcpy(text, data, bytes);
	strcpy(text + bytes, " " ADDRESS);
	if (!memchr(text, '\0', bytes))
		check_text(mask, text);
	check_mad(mask, data, bytes);
	mask_free(mask);
	free(text);
	return 0;
}
