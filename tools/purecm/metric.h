/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics in the text formats read by Prometheus: its own, and OpenMetrics, on standard output. */
#ifndef TOOLS_PURECM_METRIC_H
#define TOOLS_PURECM_METRIC_H

#include <stdbool.h>

/** metric_use_openmetrics() - select the format; the default is Prometheus' own */
void metric_use_openmetrics(bool is_openmetrics);

/** metric_begin() - print the head of a metric. @type: "counter" if @name ends in _total. */
void metric_begin(const char *name, const char *type, const char *help);

/** metric_label() - print name="value", escaped */
void metric_label(const char *name, const char *value);

/** metric_end() - to be called after the last metric */
void metric_end(void);

#endif
