/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of purecm timeline: HTML with SVG, no script, nothing from elsewhere.
 */
#ifndef TOOLS_PURECM_TIMELINE_PAGE_H
#define TOOLS_PURECM_TIMELINE_PAGE_H

#include <stdio.h>

#include "tools/purecm/message_log.h"

/**
 * timeline_page() - write it
 * @log: what is drawn
 * @title: of the page: the capture's name
 */
void timeline_page(const struct message_log *log, const char *title, FILE *out);

#endif
