/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defaults for the options of <purecm/purecm.h>, from the environment, for programs that do not
 * know purecm.
 */
#ifndef LIB_DIAG_DEFAULTS_H
#define LIB_DIAG_DEFAULTS_H

#include "lib/id/id.h"

#define DEFAULTS_RETRIES_MAX 254

/** defaults_get() - the defaults, read on the first call. */
const struct id_options *defaults_get(void);

/** defaults_read() - read the environment now; sets all of @ret. */
void defaults_read(struct id_options *ret);

#endif
