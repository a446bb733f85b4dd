/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the text formats that Prometheus reads: its own, and OpenMetrics. All goes to standard
 * output.
 */
#ifndef TOOLS_PURECM_METRIC_H
#define TOOLS_PURECM_METRIC_H

#include <stdbool.h>

/** metric_use_openmetrics() - from now on; at first it is Prometheus' own format. */
void metric_use_openmetrics(bool is_openmetrics);

/** metric_begin() - what the samples that follow are. @type: "counter" if @name ends in _total. */
void metric_begin(const char *name, const char *type, const char *help);

/** metric_label() - name="value", escaped. */
void metric_label(const char *name, const char *value);

/** metric_end() - after the last. */
void metric_end(void);

#endif
