/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of purecm timeline: HTML with SVG, no script, nothing from elsewhere.
 */
#ifndef TOOLS_PURECM_TIMELINE_PAGE_H
#define TOOLS_PURECM_TIMELINE_PAGE_H

#include <stdio.h>

#include "tools/purecm/story.h"

/**
 * timeline_page() - write it
 * @story: what is drawn
 * @title: of the page: the capture's name
 */
void timeline_page(const struct story *story, const char *title, FILE *out);

#endif
