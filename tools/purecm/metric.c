/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics as text: see metric.h.
 */
#include "tools/purecm/metric.h"

#include <stdio.h>
#include <string.h>

#define TOTAL "_total"

static bool uses_openmetrics;

void metric_use_openmetrics(bool is_openmetrics)
{
	uses_openmetrics = is_openmetrics;
}

/* In OpenMetrics, a counter's name lacks the suffix of its samples. */
void metric_begin(const char *name, const char *type, const char *help)
{
	size_t n = strlen(name);

	if (uses_openmetrics && strcmp(type, "counter") == 0 && n > strlen(TOTAL) &&
	    strcmp(name + n - strlen(TOTAL), TOTAL) == 0)
		n -= strlen(TOTAL);
	printf("# HELP %.*s %s\n# TYPE %.*s %s\n", (int)n, name, help, (int)n, name, type);
}

/* Backslash, quote and newline are escaped; bytes that are not text are omitted. */
void metric_label(const char *name, const char *value)
{
	printf("%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			putchar('\\');
		if ((unsigned char)*value >= ' ' && (unsigned char)*value < 0x7f)
			putchar(*value);
	}
	putchar('"');
}

void metric_end(void)
{
	if (uses_openmetrics)
		puts("# EOF");
}
