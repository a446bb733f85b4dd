/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of purecm timeline: HTML with SVG, without scripts and external resources. */
#ifndef TOOLS_PURECM_TIMELINE_PAGE_H
#define TOOLS_PURECM_TIMELINE_PAGE_H

#include <stdio.h>

#include "tools/purecm/message_log.h"

/**
 * timeline_page() - write the page
 * @log: messages to draw
 * @title: of the page: the capture's name
 */
void timeline_page(const struct message_log *log, const char *title, FILE *out);

#endif
