/* SPDX-License-Identifier: BSD-2-Clause */
/* The effects of a step as text: see text.h. */
#include "tests/unit/cm/text.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

static const char *const answered[] = { "REQ", "REP", "other", "3" };

const char *text_of_msg(const struct cm_msg *msg, char *text, size_t bytes)
{
	const char *name = cm_msg_layout(msg->hdr.attr_id)->name;

	if (msg->hdr.attr_id == CM_ATTR_REJ)
		snprintf(text, bytes, "%s(%s) %u", name, answered[msg->rej.message],
			 msg->rej.reason);
	else if (msg->hdr.attr_id == CM_ATTR_MRA)
		snprintf(text, bytes, "%s(%s)", name, answered[msg->mra.message]);
	else if (msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		snprintf(text, bytes, "%s %u", name, msg->sidr_rep.status);
	else
		snprintf(text, bytes, "%s", name);
	return text;
}

static void append(char *text, size_t bytes, const char *item)
{
	size_t used = strlen(text);

	snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", item);
}

const char *text_of_sends(const struct cm_effects *effects, char *text, size_t bytes)
{
	struct cm_msg msg;
	char item[32];

	text[0] = '\0';
	for (unsigned int i = 0; i < effects->n_sends; i++) {
		ck_assert_int_eq(cm_msg_decode(effects->send[i].mad, MAD_BYTES, &msg), 0);
		append(text, bytes, text_of_msg(&msg, item, sizeof(item)));
	}
	return text;
}

static const char *const kinds[] = {
	[CM_REPORT_REQUEST] = "REQUEST",
	[CM_REPORT_RESPONSE] = "RESPONSE",
	[CM_REPORT_ESTABLISHED] = "ESTABLISHED",
	[CM_REPORT_REJECTED] = "REJECTED",
	[CM_REPORT_UNREACHABLE] = "UNREACHABLE",
	[CM_REPORT_DISCONNECTED] = "DISCONNECTED",
	[CM_REPORT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
	[CM_REPORT_ANSWERED] = "ANSWERED",
};

const char *text_of_report(const struct cm_report *report, char *text, size_t bytes)
{
	if (report->status)
		snprintf(text, bytes, "%s %d", kinds[report->kind], report->status);
	else
		snprintf(text, bytes, "%s", kinds[report->kind]);
	return text;
}

const char *text_of_reports(const struct cm_effects *effects, char *text, size_t bytes)
{
	char item[32];

	text[0] = '\0';
	for (unsigned int i = 0; i < effects->n_reports; i++)
		append(text, bytes, text_of_report(&effects->report[i], item, sizeof(item)));
	return text;
}
