/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ids have of the options of <purecm/purecm.h> unless the program sets them: from the
 * environment, so that programs that know nothing of purecm can be told.
 */
#ifndef LIB_DIAG_DEFAULTS_H
#define LIB_DIAG_DEFAULTS_H

#include "lib/id/id.h"

#define DEFAULTS_RETRIES_MAX 254

/** defaults_get() - read at the first call, and the same from then on. */
const struct id_options *defaults_get(void);

/** defaults_read() - what the environment says now. Return: in @ret, all of it written. */
void defaults_read(struct id_options *ret);

#endif
