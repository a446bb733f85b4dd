/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of quirks: see quirks.h.
 */
#include "tools/fabric/wire/quirks.h"

#include <string.h>

static const char *const names[] = {
#define X(name, text) text,
	FAB_QUIRKS(X)
#undef X
};

bool fab_quirk_find(const char *name, enum fab_quirk *ret)
{
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*ret = (enum fab_quirk)i;
		return true;
	}
	return false;
}
