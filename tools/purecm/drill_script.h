/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parsed script of purecm drill. purecm(1) has the grammar. A script is parsed completely before
 * anything is sent, so that all errors are found first.
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
	unsigned int number; /* line number in the file, from 1 */
	enum drill_verb verb;
	char peer[DRILL_NAME_BYTES]; /* the only peer it applies to; empty: all */
	bool has_time;
	double from_s; /* after the previous line; when to call or send */
	double to_s;
	char name[DRILL_NAME_BYTES]; /* of the message, call or event */
	uint16_t attr_id;
	bool again;
	char result[DRILL_NAME_BYTES]; /* expected result of a call: "0", "EINVAL", "*" */
	unsigned int n_settings;
	struct drill_setting *setting;
};

struct drill_script {
	const char *path;
	unsigned int n_lines;
	struct drill_line *line;
	bool needs_agent;
};

/* An error in a script, and its place. */
struct drill_mistake {
	unsigned int line;
	char text[256];
};

/**
 * drill_script_read() - parse a script
 * @in:      read to its end
 * @path:    for messages; must outlive the script
 * @ret:     to be released with drill_script_fini(), also on error
 * @mistake: set if the script is invalid
 *
 * Return: 0; -EINVAL if the script is invalid; -ENOMEM; -EIO.
 */
int drill_script_read(FILE *in, const char *path, struct drill_script *ret,
		      struct drill_mistake *mistake);

/**
 * drill_settings_read() - parse defaults, which consist of settings only
 * @text:    "local_comm_id=$ours reason=28"
 * @attr_id: of the message
 * @setting: room for DRILL_SETTINGS_MAX
 *
 * Return: number of settings; an invalid one is a bug in the defaults.
 */
unsigned int drill_settings_read(const char *text, uint16_t attr_id,
				 struct drill_setting setting[DRILL_SETTINGS_MAX]);

/** drill_script_fini() - free a script */
void drill_script_fini(struct drill_script *script);

#endif
