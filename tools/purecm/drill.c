/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm drill: scripts of messages and calls, executed against any connection manager on another
 * host.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/command.h"
#include "tools/purecm/drill_run.h"
#include "tools/purecm/field.h"

#define PORT_DEFAULT	  7471
#define AGENT_PORT	  "7470"
#define TIMEOUT_DEFAULT_S 5
#define SECONDS_MAX	  600
#define TARGET_BYTES	  256

enum key {
	KEY_TO = 't',
	KEY_PORT = 'p',
	KEY_AGENT = 'P',
	KEY_PEER = 'n',
	KEY_TIMEOUT = 'W',
	KEY_VERBOSE = 'v',
	KEY_JSON = 'j',
	KEY_CHECK = 'c',
	KEY_FIELDS = 'f',
	KEY_QP1 = '1',
	KEY_WRITE = 'w',
};

struct drill {
	const char *to;
	char agent[TARGET_BYTES];
	const char *agent_port;
	const char *peer;
	uint16_t port;
	double timeout_s;
	bool verbose, json, check, by_qp1;
	const char *fields;
	const char *write;
	char **paths;
	unsigned int n_paths;
	struct checkup *checkup;
	struct drill_link *link;
	uint64_t ca_guid;
};

/* clang-format off */
static const struct argp_option option_table[] = {
	{ "to", KEY_TO, "ADDRESS", 0, "the host whose connection manager is drilled", 0 },
	{ "port", KEY_PORT, "N", 0, "$port, which scripts listen at and ask for (7471)", 0 },
	{ "agent", KEY_AGENT, "HOST[:PORT]", 0,
	  "where purecm-agent makes the calls (ADDRESS:7470)", 0 },
	{ "peer", KEY_PEER, "NAME", 0, "which lines count (what the agent says it runs on)", 0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0, "for what has no time of its own (5)", 0 },
	{ "verbose", KEY_VERBOSE, NULL, 0, "every message, call and event", 0 },
	{ "json", KEY_JSON, NULL, 0, "an object a script", 0 },
	{ "write", KEY_WRITE, "FILE", 0,
	  "write what is sent and received as pcapng, for trace, diff or Wireshark", 0 },
	{ "qp1", KEY_QP1, NULL, 0,
	  "send from QP1, where a device or a switch drops what comes from elsewhere", 0 },
	{ "check", KEY_CHECK, NULL, 0, "only read the scripts", 0 },
	{ "fields", KEY_FIELDS, "MESSAGE", 0, "list the fields of a message, and end", 0 },
	{ 0 },
};
/* clang-format on */

/* --- the command line ---------------------------------------------------- */

static double parse_number(const char *text, double max, const char *what, struct argp_state *state)
{
	char *end;
	double number = strtod(text, &end);

	if (*end || end == text || !(number > 0) || number > max)
		argp_error(state, "%s: %s is no number from 0 to %g", what, text, max);
	return number;
}

static void parse_agent(struct drill *drill, const char *text, struct argp_state *state)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);

	if (colon)
		drill->agent_port = colon + 1;
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= sizeof(drill->agent))
		argp_error(state, "--agent: expected HOST[:PORT]");
	snprintf(drill->agent, sizeof(drill->agent), "%.*s", (int)n, text);
}

static void check_arguments(const struct drill *drill, struct argp_state *state)
{
	if (drill->fields && !drill_message_attr(drill->fields))
		argp_error(state, "--fields: there is no message %s", drill->fields);
	if (!drill->fields && !drill->n_paths)
		argp_error(state, "which script?");
	if (!drill->fields && !drill->check && !drill->to)
		argp_error(state, "against whom? --to=ADDRESS");
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
	struct drill *drill = state->input;

	switch (key) {
	case KEY_TO:
		drill->to = value;
		return 0;
	case KEY_PORT:
		drill->port = (uint16_t)parse_number(value, UINT16_MAX, "--port", state);
		return 0;
	case KEY_AGENT:
		parse_agent(drill, value, state);
		return 0;
	case KEY_PEER:
		drill->peer = value;
		return 0;
	case KEY_TIMEOUT:
		drill->timeout_s = parse_number(value, SECONDS_MAX, "--timeout", state);
		return 0;
	case KEY_VERBOSE:
		drill->verbose = true;
		return 0;
	case KEY_JSON:
		drill->json = true;
		return 0;
	case KEY_QP1:
		drill->by_qp1 = true;
		return 0;
	case KEY_CHECK:
		drill->check = true;
		return 0;
	case KEY_FIELDS:
		drill->fields = value;
		return 0;
	case KEY_WRITE:
		drill->write = value;
		return 0;
	case ARGP_KEY_ARGS:
		drill->paths = state->argv + state->next;
		drill->n_paths = (unsigned int)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		check_arguments(drill, state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = option_table,
	.parser = parse_option,
	.args_doc = "SCRIPT...",
	.doc = "Carries out scripts of messages and calls against a connection manager, and says "
	       "where it does something else than the script.\v"
	       "purecm(1) has the language. The port's CM class must be free: neither ib_cm nor "
	       "cmportd has it. The exit status is 0 if all went as the scripts say, 1 if one did "
	       "not, 2 if one cannot be read.",
};

/* --- fields -------------------------------------------------------------- */

static void print_rows(const struct wire_layout *layout, const char *prefix)
{
	const struct wire_field *row;
	struct drill_field field;
	size_t i;

	for (i = 0; i < layout->n_fields; i++) {
		row = &layout->field[i];
		if (field_is_part(layout, row))
			continue;
		printf("%s%s", prefix, row->name);
		if (row->kind == WIRE_BYTES)
			printf("  %u bytes\n", row->size);
		else if (*prefix)
			printf("  %u bits\n", row->width);
		else if (!drill_field_find(drill_message_attr(layout->name), row->name, &field))
			printf("  %u bits\n", field.bits);
	}
}

static void print_fields(const char *message)
{
	const uint16_t attr_id = drill_message_attr(message);
	struct drill_field field;

	print_rows(cm_msg_layout(attr_id), "");
	if (!drill_field_find(attr_id, "user_data", &field)) {
		printf("user_data  %u bytes\n", field.n_bytes);
		print_rows(&cma_hdr_layout, "ip.");
	}
	print_rows(&mad_hdr_layout, "mad.");
	printf("byte.N  8 bits, N = 0 to %d\n\nis sent with\n  %s\n", MAD_BYTES - 1,
	       drill_message_defaults(attr_id));
}

/* --- a script ------------------------------------------------------------ */

static int read_script(const char *path, struct drill_script *ret)
{
	struct drill_mistake mistake;
	FILE *in = fopen(path, "re");
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!in) {
		complain("%s: %s", path, strerror(errno));
		return -ENOENT;
	}
	err = drill_script_read(in, path, ret, &mistake);
	fclose(in);
	if (err == -EINVAL)
		fprintf(stderr, "%s:%u: %s\n", path, mistake.line, mistake.text);
	else if (err)
		complain("%s: %s", path, strerror(-err));
	return err;
}

static void say_result(const struct drill *drill, const struct drill_run *run, const char *path,
		       double s, int err)
{
	const unsigned int line = run->line ? run->line->number : 0;

	if (drill->json) {
		fputs("{\"script\":", stdout);
		print_json_string(path, stdout);
		fputs(",\"peer\":", stdout);
		print_json_string(run->peer, stdout);
		printf(",\"result\":\"%s\",\"seconds\":%.3f", err ? "failed" : "ok", s);
		if (err) {
			printf(",\"line\":%u,\"text\":", line);
			print_json_string(run->why, stdout);
		}
		puts("}");
	} else if (err) {
		printf("FAIL %s:%u: %s\n", path, line, run->why);
	} else {
		printf("ok   %s (%.2f s)\n", path, s);
	}
	fflush(stdout);
}

static int call_agent(const struct drill *drill, struct drill_run *run)
{
	const char *host = drill->agent[0] ? drill->agent : drill->to;
	int err = 0;

	if (run->script->needs_agent)
		err = drill_link_call_agent(drill->link, host, drill->agent_port, run->peer);
	if (drill->peer)
		snprintf(run->peer, sizeof(run->peer), "%s", drill->peer);
	return err;
}

static int run_script(const struct drill *drill, const struct drill_script *script)
{
	struct drill_run *run = calloc(1, sizeof(*run));
	double s;
	int err;

	if (!run)
		return -ENOMEM;
	run->link = drill->link;
	run->script = script;
	run->timeout_s = drill->timeout_s;
	run->trace = drill->verbose ? stderr : NULL;
	err = call_agent(drill, run);
	if (!err) {
		drill_run_begin(run, drill->checkup, drill->port, drill->ca_guid);
		err = drill_run_all(run);
		s = (double)(clock_ns() - run->begun_ns) / 1e9;
		if (err && !run->why[0])
			snprintf(run->why, sizeof(run->why), "%s", strerror(-err));
		say_result(drill, run, script->path, s, err);
		drill_run_end(run);
	}
	free(run);
	return err;
}

static int open_link(struct drill *drill)
{
	struct ibv_device_attr attr;
	int err;

	drill->checkup->target = drill->to;
	err = checkup_find_way(drill->checkup);
	if (err)
		return err;
	if (!ibv_query_device(drill->checkup->gid.verbs, &attr))
		drill->ca_guid = be64toh(attr.node_guid);
	err = drill_link_open(drill->checkup, drill->by_qp1, drill->link);
	if (!err && drill->write) {
		err = pcapng_open(drill->write, &drill->link->file);
		if (err)
			drill_link_close(drill->link);
	}
	return err;
}

static int run_scripts(struct drill *drill, const struct drill_script *scripts)
{
	unsigned int i;
	int status = STATUS_OK;

	if (drill->check)
		return STATUS_OK;
	drill->checkup = calloc(1, sizeof(*drill->checkup));
	drill->link = calloc(1, sizeof(*drill->link));
	if (!drill->checkup || !drill->link || open_link(drill)) {
		status = STATUS_FAILED;
	} else {
		for (i = 0; i < drill->n_paths; i++) {
			if (run_script(drill, &scripts[i]))
				status = STATUS_FAILED;
		}
		if (pcapng_close(drill->link->file))
			status = STATUS_FAILED;
		drill_link_close(drill->link);
	}
	if (drill->checkup)
		checkup_fini(drill->checkup);
	free(drill->checkup);
	free(drill->link);
	return status;
}

int drill_main(int argc, char **argv)
{
	struct drill drill = { .port = PORT_DEFAULT,
			       .agent_port = AGENT_PORT,
			       .timeout_s = TIMEOUT_DEFAULT_S };
	struct drill_script *scripts;
	unsigned int i;
	int status = STATUS_OK;

	command_parse(&argp, argc, argv, 0, &drill);
	if (drill.fields) {
		print_fields(drill.fields);
		return STATUS_OK;
	}
	scripts = calloc(drill.n_paths, sizeof(*scripts));
	if (!scripts)
		return STATUS_FAILED;
	/* Report all errors in all scripts before executing any. */
	for (i = 0; i < drill.n_paths; i++) {
		if (read_script(drill.paths[i], &scripts[i]))
			status = STATUS_USAGE;
	}
	if (status == STATUS_OK)
		status = run_scripts(&drill, scripts);
	for (i = 0; i < drill.n_paths; i++)
		drill_script_fini(&scripts[i]);
	free(scripts);
	return status;
}
