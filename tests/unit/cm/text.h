/* SPDX-License-Identifier: BSD-2-Clause */
/* The effects of a step as text, for tests: "REJ(REP) 10, DREQ"; "DISCONNECTED -110". */
#ifndef TESTS_UNIT_CM_TEXT_H
#define TESTS_UNIT_CM_TEXT_H

#include "cm/core.h"

/** text_of_msg() - a message: its name, the message that it answers, and the reason of a REJ. */
const char *text_of_msg(const struct cm_msg *msg, char *text, size_t bytes);

/** text_of_sends() - the messages of a step, with ", " between them. */
const char *text_of_sends(const struct cm_effects *effects, char *text, size_t bytes);

/** text_of_report() - a report: its name, and its status if there is one. */
const char *text_of_report(const struct cm_report *report, char *text, size_t bytes);

/** text_of_reports() - the reports of a step, with ", " between them. */
const char *text_of_reports(const struct cm_effects *effects, char *text, size_t bytes);

#endif
