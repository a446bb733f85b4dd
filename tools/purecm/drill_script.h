/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A script of purecm drill: what each line says. purecm(1) has the grammar. Read as a whole before
 * anything is sent, so that a mistake in the last line is found first.
 */
#ifndef TOOLS_PURECM_DRILL_SCRIPT_H
#define TOOLS_PURECM_DRILL_SCRIPT_H

#include <stdio.h>

#include "tools/purecm/drill_mad.h"
#include "tools/purecm/drill_value.h"

#define DRILL_SETTINGS_MAX 32

enum drill_verb {
	DRILL_SEND,   /* > REQ field=value ... */
	DRILL_EXPECT, /* < REP field=value ... */
	DRILL_CALL,   /* call accept key=value ... = result */
	DRILL_EVENT,  /* event ESTABLISHED key=value ... */
	DRILL_LET,    /* let name=value ... */
	DRILL_QUIET,  /* quiet seconds */
};

/* One `name=value`. */
struct drill_setting {
	char name[DRILL_NAME_BYTES];
	bool is_not;		  /* != */
	struct drill_field field; /* of messages */
	struct drill_value value;
};

struct drill_line {
	unsigned int number; /* in the file, from 1 */
	enum drill_verb verb;
	char peer[DRILL_NAME_BYTES]; /* for this peer only; empty: for all */
	bool has_time;
	double from_s; /* since the end of the line before; of calls and messages to send, when */
	double to_s;
	char name[DRILL_NAME_BYTES]; /* of the message, the call, the event */
	uint16_t attr_id;
	bool again;
	char result[DRILL_NAME_BYTES]; /* of a call: "0", "EINVAL", "*" */
	unsigned int n_settings;
	struct drill_setting *setting;
};

struct drill_script {
	const char *path;
	unsigned int n_lines;
	struct drill_line *line;
	bool needs_agent;
};

/* What is wrong with a script, and where. */
struct drill_mistake {
	unsigned int line;
	char text[256];
};

/**
 * drill_script_read() - read a script
 * @in:      read to its end
 * @path:    for messages; must live as long as the script
 * @ret:     to be given to drill_script_fini(), also after a mistake
 * @mistake: filled if there is one
 *
 * Return: 0; -EINVAL if the script is wrong; -ENOMEM; -EIO.
 */
int drill_script_read(FILE *in, const char *path, struct drill_script *ret,
		      struct drill_mistake *mistake);

/**
 * drill_settings_read() - read defaults, which are settings and nothing else
 * @text:    "local_comm_id=$ours reason=28"
 * @attr_id: of the message
 * @setting: room for DRILL_SETTINGS_MAX
 *
 * Return: how many there are; it is a mistake of ours if one is wrong.
 */
unsigned int drill_settings_read(const char *text, uint16_t attr_id,
				 struct drill_setting setting[DRILL_SETTINGS_MAX]);

/** drill_script_fini() - free what was read. */
void drill_script_fini(struct drill_script *script);

#endif
