/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a host: lines on standard error. */
#include <stdarg.h>
#include <stdio.h>

#include "tools/fabric/host/host.h"

void host_log(const struct host *host, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "fabric: host %s: ", host->folder.host);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
