/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution of the lines of a script: sending, expecting, calls of the agent. */
#include "tools/purecm/drill_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NS_PER_S       1000000000ull
#define PS_TCP	       0x0106ull
#define PS_UDP	       0x0111ull
#define PERMISSIVE_LID 0xffff
#define CALL_TIMEOUT_S 20
#define FAREWELL_S     0.1
#define FAREWELLS_MAX  20

static int fail_line(struct drill_run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int fail_line(struct drill_run *run, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(run->why, sizeof(run->why), format, args);
	va_end(args);
	return -EPROTO;
}

static uint64_t after_ns(const struct drill_run *run, double s)
{
	return run->step_ns + (uint64_t)(s * (double)NS_PER_S);
}

static double since_s(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)NS_PER_S : 0;
}

/* --- initial variables ---------------------------------------------------- */

static void put_ip(struct drill_vars *vars, const char *name, const union addr *addr)
{
	uint8_t ip[16] = { 0 };

	addr_pack(addr, ip);
	drill_vars_put_bytes(vars, name, ip, sizeof(ip));
}

static void put_random(struct drill_vars *vars, const char *name)
{
	const struct drill_value random = { .kind = DRILL_RANDOM };
	struct drill_value value;

	drill_value_of(&random, vars, &value);
	drill_vars_put(vars, name, &value);
}

void drill_run_begin(struct drill_run *run, const struct checkup *checkup, uint16_t port,
		     uint64_t ca_guid)
{
	struct drill_vars *vars = &run->vars;
	const uint8_t hop_limit = checkup->route.hop_limit;

	put_random(vars, "ours");
	put_random(vars, "our_qpn");
	put_random(vars, "our_psn");
	drill_vars_put_number(vars, "theirs", 0);
	drill_vars_put_number(vars, "their_qpn", 0);
	drill_vars_put_number(vars, "our_guid", ca_guid);
	drill_vars_put_number(vars, "our_port", 40000);
	drill_vars_put_number(vars, "port", port);
	drill_vars_put_number(vars, "tcp_service", PS_TCP << 16 | port);
	drill_vars_put_number(vars, "udp_service", PS_UDP << 16 | port);
	drill_vars_put_number(vars, "ip_version", checkup->dst.sa.sa_family == AF_INET ? 4 : 6);
	put_ip(vars, "our_ip", &checkup->route.src);
	put_ip(vars, "their_ip", &checkup->dst);
	drill_vars_put_bytes(vars, "here", &checkup->gid.gid, sizeof(checkup->gid.gid));
	drill_vars_put_bytes(vars, "there", &run->link->path.dgid, sizeof(run->link->path.dgid));
	drill_vars_put_number(vars, "hop_limit", hop_limit);
	drill_vars_put_number(vars, "subnet_local", hop_limit <= 1);
	drill_vars_put_number(vars, "lid", hop_limit <= 1 ? 0 : PERMISSIVE_LID);
	run->begun_ns = run->step_ns = clock_ns();
	run->tid = run->begun_ns;
}

static void trace_mad(const struct drill_run *run, char way, const uint8_t mad[MAD_BYTES])
{
	struct cm_msg msg;

	if (!run->trace)
		return;
	fprintf(run->trace, "%9.3f %c ", since_s(run->begun_ns, clock_ns()), way);
	if (cm_msg_decode(mad, MAD_BYTES, &msg))
		fprintf(run->trace, "not a CM message");
	else
		cm_msg_print(&msg, run->trace);
	putc('\n', run->trace);
}

static void show_text(const struct drill_run *run, const char *what, const char *text)
{
	if (run->trace)
		fprintf(run->trace, "%9.3f %s %s\n", since_s(run->begun_ns, clock_ns()), what,
			text);
}

/* --- sending ------------------------------------------------------------- */

static int wait_until(struct drill_run *run, uint64_t until_ns)
{
	int err = 0;

	while (!err && clock_ns() < until_ns)
		err = drill_link_wait(run->link, until_ns);
	return err == -ETIMEDOUT ? 0 : err;
}

static bool is_late(const struct drill_setting *setting)
{
	return setting->field.part == DRILL_IN_HEADER || setting->field.part == DRILL_IN_RAW;
}

static int set_some(struct drill_run *run, struct drill_mad *mad,
		    const struct drill_setting *setting, unsigned int n, bool late)
{
	struct drill_value value;
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (is_late(&setting[i]) != late)
			continue;
		if (drill_value_of(&setting[i].value, &run->vars, &value) ||
		    drill_field_takes(&setting[i].field, &value))
			return fail_line(run, "%s cannot be $%s", setting[i].name,
					 setting[i].value.name);
		drill_mad_set(mad, &setting[i].field, &value);
	}
	return 0;
}

static int make_message(struct drill_run *run, const struct drill_line *line, struct drill_mad *mad)
{
	struct drill_setting usual[DRILL_SETTINGS_MAX];
	unsigned int n;
	int err;

	memset(usual, 0, sizeof(usual));
	n = drill_settings_read(drill_message_defaults(line->attr_id), line->attr_id, usual);
	drill_mad_begin(mad, line->attr_id, ++run->tid);
	err = set_some(run, mad, usual, n, false);
	if (!err)
		err = set_some(run, mad, line->setting, line->n_settings, false);
	if (err)
		return err;
	drill_mad_encode(mad);
	return set_some(run, mad, line->setting, line->n_settings, true);
}

static void note_ours(struct drill_run *run, uint32_t comm_id)
{
	unsigned int i;

	for (i = 0; i < run->n_ours; i++) {
		if (run->ours[i] == comm_id)
			return;
	}
	run->ours[run->n_ours++ % (sizeof(run->ours) / sizeof(run->ours[0]))] = comm_id;
}

static int run_send(struct drill_run *run, const struct drill_line *line)
{
	struct drill_mad mad;
	uint8_t *last = run->sent[line->attr_id];
	int err = wait_until(run, after_ns(run, line->from_s));

	if (err)
		return err;
	if (line->again && !run->has_sent[line->attr_id])
		return fail_line(run, "no %s was sent that could be sent again", line->name);
	if (!line->again) {
		err = make_message(run, line, &mad);
		if (err)
			return err;
		memcpy(last, mad.raw, MAD_BYTES);
		/* The first field of every message that we send, except SIDR_REP, is our id. */
		if (line->attr_id != CM_ATTR_SIDR_REP)
			note_ours(run, mad.msg.rtu.local_comm_id);
		run->has_sent[line->attr_id] = true;
	}
	trace_mad(run, '>', last);
	err = drill_link_send(run->link, last);
	return err ? fail_line(run, "%s cannot be sent: %s", line->name, strerror(-err)) : 0;
}

/* --- expecting ----------------------------------------------------------- */

/* Return: whether a message is for a connection of an earlier script. A DREQ is answered. */
static bool is_for_others(struct drill_run *run, const struct cm_msg *msg)
{
	struct cm_msg drep;
	uint8_t raw[MAD_BYTES];
	unsigned int i;

	if (msg->hdr.attr_id == CM_ATTR_REQ || msg->hdr.attr_id == CM_ATTR_SIDR_REQ ||
	    msg->hdr.attr_id == CM_ATTR_SIDR_REP || !msg->rtu.remote_comm_id)
		return false;
	for (i = 0; i < run->n_ours && i < sizeof(run->ours) / sizeof(run->ours[0]); i++) {
		if (run->ours[i] == msg->rtu.remote_comm_id)
			return false;
	}
	if (msg->hdr.attr_id != CM_ATTR_DREQ)
		return true;
	cm_msg_init(&drep, CM_ATTR_DREP, msg->hdr.tid);
	drep.drep.local_comm_id = msg->dreq.remote_comm_id;
	drep.drep.remote_comm_id = msg->dreq.local_comm_id;
	cm_msg_encode(&drep, raw);
	trace_mad(run, '>', raw);
	drill_link_send(run->link, raw);
	return true;
}

static int take_mad(struct drill_run *run, uint64_t end_ns, struct drill_mad *ret,
		    struct drill_heard *heard)
{
	int err;

	for (;;) {
		while (!drill_queue_take(&run->link->mads, heard)) {
			err = drill_link_wait(run->link, end_ns);
			if (err)
				return err;
		}
		trace_mad(run, '<', heard->mad);
		if (drill_mad_decode(heard->mad, ret))
			return fail_line(run, "the peer sent what is no CM message");
		if (!is_for_others(run, &ret->msg))
			return 0;
	}
}

static int put_captured(struct drill_run *run, const struct drill_setting *setting,
			const struct drill_value *value)
{
	if (setting->value.kind != DRILL_CAPTURE)
		return 0;
	return drill_vars_put(&run->vars, setting->value.name, value);
}

static int compare_field(struct drill_run *run, const struct drill_setting *setting,
			 const struct drill_value *value)
{
	struct drill_value wanted;
	char is[160], want[160];
	int err = drill_value_of(&setting->value, &run->vars, &wanted);

	if (err)
		return fail_line(run, "%s: $%s has no value", setting->name, setting->value.name);
	if (drill_value_matches(&wanted, value) != setting->is_not)
		return put_captured(run, setting, value);
	drill_value_str(&wanted, want, sizeof(want));
	drill_value_str(value, is, sizeof(is));
	return fail_line(run, "expected %s %s%s=%s, got %s=%s", run->line->name, setting->name,
			 setting->is_not ? "!" : "", want, setting->name, is);
}

static void learn_theirs(struct drill_run *run, const struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REQ || msg->hdr.attr_id == CM_ATTR_REP ||
	    msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		drill_vars_put_number(&run->vars, "theirs", msg->req.local_comm_id);
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		drill_vars_put_number(&run->vars, "their_qpn", msg->req.local_qpn);
	if (msg->hdr.attr_id == CM_ATTR_REP)
		drill_vars_put_number(&run->vars, "their_qpn", msg->rep.local_qpn);
}

static int check_message(struct drill_run *run, const struct drill_line *line,
			 const struct drill_mad *mad)
{
	struct drill_value value;
	unsigned int i;
	int err = 0;

	if (mad->msg.hdr.attr_id != line->attr_id)
		return fail_line(run, "expected %s, got %s", line->name,
				 cm_msg_layout(mad->msg.hdr.attr_id)->name);
	for (i = 0; !err && i < line->n_settings; i++) {
		drill_mad_get(mad, &line->setting[i].field, &value);
		err = compare_field(run, &line->setting[i], &value);
	}
	if (!err)
		learn_theirs(run, &mad->msg);
	return err;
}

static int check_time(struct drill_run *run, const struct drill_line *line, uint64_t at_ns)
{
	const double s = since_s(run->step_ns, at_ns);

	if (line->has_time && s < line->from_s)
		return fail_line(run,
				 "expected %s %g to %g s after the line before, came after %.3f",
				 line->name, line->from_s, line->to_s, s);
	run->step_ns = at_ns;
	return 0;
}

static uint64_t end_of(const struct drill_run *run, const struct drill_line *line)
{
	return after_ns(run, line->has_time ? line->to_s : run->timeout_s);
}

static bool is_repetition(const struct drill_run *run, const struct drill_mad *mad)
{
	const uint16_t attr_id = mad->msg.hdr.attr_id;

	return run->has_heard[attr_id] && drill_mad_is_same(run->heard[attr_id], mad->raw);
}

static int run_expect(struct drill_run *run, const struct drill_line *line)
{
	const uint64_t end_ns = end_of(run, line);
	struct drill_heard heard;
	struct drill_mad mad;
	bool repeated, wanted;
	int err;

	do {
		err = take_mad(run, end_ns, &mad, &heard);
		if (err == -ETIMEDOUT)
			return fail_line(run, "expected %s%s within %.1f s, nothing came",
					 line->name, line->again ? " again" : "",
					 since_s(run->step_ns, end_ns));
		if (err)
			return err;
		repeated = is_repetition(run, &mad);
		wanted = line->again && mad.msg.hdr.attr_id == line->attr_id;
	} while (repeated && !wanted);
	if (line->again && !repeated && wanted)
		return fail_line(run, "expected the same %s again, got another", line->name);
	memcpy(run->heard[mad.msg.hdr.attr_id], mad.raw, MAD_BYTES);
	run->has_heard[mad.msg.hdr.attr_id] = true;
	err = check_message(run, line, &mad);
	return err ? err : check_time(run, line, heard.at_ns);
}

/* --- the agent ------------------------------------------------------------ */

static int run_call(struct drill_run *run, const struct drill_line *line)
{
	char text[DRILL_TEXT_BYTES], value_text[600];
	struct drill_heard heard;
	struct drill_value value;
	size_t at = (size_t)snprintf(text, sizeof(text), "%s", line->name);
	unsigned int i;
	int err = wait_until(run, after_ns(run, line->from_s));

	for (i = 0; !err && i < line->n_settings; i++) {
		err = drill_value_of(&line->setting[i].value, &run->vars, &value);
		drill_value_str(&value, value_text, sizeof(value_text));
		if (!err && at < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %s=%s",
					       line->setting[i].name, value_text);
	}
	if (!err)
		err = drill_link_say(run->link, text);
	show_text(run, "call", text);
	run->step_ns = clock_ns();
	while (!err && !drill_queue_take(&run->link->replies, &heard))
		err = drill_link_wait(run->link, after_ns(run, CALL_TIMEOUT_S));
	if (err)
		return fail_line(run, "the agent does not answer: %s", strerror(-err));
	show_text(run, "=", heard.text);
	if (strcmp(line->result, "*") != 0 && strcmp(line->result, heard.text) != 0)
		return fail_line(run, "expected %s = %s, got %s", line->name, line->result,
				 heard.text);
	return 0;
}

/* Return: the value of `key=...` in an event; NULL if there is none. */
static const char *find_key(const char *text, const char *key, char *to, size_t bytes)
{
	const size_t n = strlen(key);
	const char *at = text;

	while ((at = strchr(at, ' ')) != NULL) {
		at++;
		if (strncmp(at, key, n) == 0 && at[n] == '=') {
			snprintf(to, bytes, "%.*s", (int)strcspn(at + n + 1, " "), at + n + 1);
			return to;
		}
	}
	return NULL;
}

static int check_event(struct drill_run *run, const struct drill_line *line, const char *text)
{
	const size_t n = strcspn(text, " ");
	char value_text[600];
	struct drill_value value;
	unsigned int i;
	int err = 0;

	if (n != strlen(line->name) || strncmp(text, line->name, n) != 0)
		return fail_line(run, "expected event %s, got %s", line->name, text);
	for (i = 0; !err && i < line->n_settings; i++) {
		const struct drill_setting *setting = &line->setting[i];

		if (!find_key(text, setting->name, value_text, sizeof(value_text)) ||
		    drill_value_parse(value_text, &value))
			return fail_line(run, "%s has no `%s'", line->name, setting->name);
		err = compare_field(run, setting, &value);
	}
	return err;
}

static int run_event(struct drill_run *run, const struct drill_line *line)
{
	const uint64_t end_ns = end_of(run, line);
	struct drill_heard heard;
	int err = 0;

	while (!drill_queue_take(&run->link->events, &heard) && !err)
		err = drill_link_wait(run->link, end_ns);
	if (err == -ETIMEDOUT)
		return fail_line(run, "expected event %s within %.1f s, none came", line->name,
				 since_s(run->step_ns, end_ns));
	if (err)
		return fail_line(run, "the agent is gone: %s", strerror(-err));
	show_text(run, "event", heard.text);
	err = check_event(run, line, heard.text);
	return err ? err : check_time(run, line, heard.at_ns);
}

/* --- the rest ------------------------------------------------------------ */

static int run_let(struct drill_run *run, const struct drill_line *line)
{
	struct drill_value value;
	unsigned int i;

	for (i = 0; i < line->n_settings; i++) {
		if (drill_value_of(&line->setting[i].value, &run->vars, &value) ||
		    drill_vars_put(&run->vars, line->setting[i].name, &value))
			return fail_line(run, "%s cannot have that value", line->setting[i].name);
	}
	return 0;
}

static int run_quiet(struct drill_run *run, const struct drill_line *line)
{
	const uint64_t end_ns = after_ns(run, line->to_s);
	struct drill_heard heard;
	struct drill_mad mad;
	int err = take_mad(run, end_ns, &mad, &heard);

	if (!err)
		return fail_line(run, "expected %g s without messages, got %s", line->to_s,
				 cm_msg_layout(mad.msg.hdr.attr_id)->name);
	if (err == -ETIMEDOUT || err == 0)
		err = wait_until(run, end_ns);
	if (!err && drill_queue_take(&run->link->events, &heard))
		return fail_line(run, "expected %g s without events, got %s", line->to_s,
				 heard.text);
	return err;
}

static int run_line(struct drill_run *run, const struct drill_line *line)
{
	switch (line->verb) {
	case DRILL_SEND:
		return run_send(run, line);
	case DRILL_EXPECT:
		return run_expect(run, line);
	case DRILL_CALL:
		return run_call(run, line);
	case DRILL_EVENT:
		return run_event(run, line);
	case DRILL_LET:
		return run_let(run, line);
	case DRILL_QUIET:
		return run_quiet(run, line);
	}
	return -EINVAL;
}

int drill_run_all(struct drill_run *run)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < run->script->n_lines; i++) {
		run->line = &run->script->line[i];
		if (run->line->peer[0] && strcmp(run->line->peer, run->peer) != 0)
			continue;
		err = run_line(run, run->line);
		/* An expected message or event has set step_ns to its arrival. */
		if (run->line->verb != DRILL_EXPECT && run->line->verb != DRILL_EVENT)
			run->step_ns = clock_ns();
	}
	return err;
}

void drill_run_end(struct drill_run *run)
{
	const uint64_t last_ns = clock_ns() + NS_PER_S;
	struct drill_heard heard;
	struct drill_mad mad;
	unsigned int n = 0;

	drill_link_leave_agent(run->link);
	/* No comm id is ours any more, so every DREQ is answered. */
	run->n_ours = 0;
	run->line = NULL;
	do
		run->step_ns = clock_ns();
	while (n++ < FAREWELLS_MAX && run->step_ns < last_ns &&
	       !take_mad(run, after_ns(run, FAREWELL_S), &mad, &heard));
}
