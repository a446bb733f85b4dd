/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parser of scripts: lines into words, words into statements. Each error message states what is
 * valid.
 */
#include "tools/purecm/drill_script.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES  2048
#define WORDS_MAX   64
#define SECONDS_MAX 600

/* State of the parser. */
struct reader {
	struct drill_script *script;
	struct drill_mistake *mistake;
	struct drill_line *line; /* being parsed */
	bool has_why;
	unsigned int n_words, at;
	char *word[WORDS_MAX];
	unsigned int n_names;
	char names[DRILL_VARS_MAX][DRILL_NAME_BYTES]; /* variables that are set at this point */
};

/* Variables set by drill_run.c. */
static const char *const first_names[] = {
	"ours",	    "theirs",	 "our_qpn",	 "their_qpn",  "our_psn",     "our_guid",
	"our_port", "our_ip",	 "their_ip",	 "ip_version", "here",	      "there",
	"lid",	    "hop_limit", "subnet_local", "port",       "tcp_service", "udp_service",
};

static int refuse_line(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse_line(struct reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reader->mistake->text, sizeof(reader->mistake->text), format, args);
	va_end(args);
	return -EINVAL;
}

static char *next_word(struct reader *reader)
{
	return reader->at < reader->n_words ? reader->word[reader->at++] : NULL;
}

static const char *or_end(const char *word)
{
	return word ? word : "the end of the line";
}

/* --- words --------------------------------------------------------------- */

/* Terminates a word; quotes preserve blanks. Return: where the next word may begin. */
static char *cut_word(char *at)
{
	bool is_quoted = false;

	while (*at && (is_quoted || !isspace((unsigned char)*at))) {
		if (*at == '"')
			is_quoted = !is_quoted;
		at++;
	}
	if (*at)
		*at++ = '\0';
	return is_quoted ? NULL : at;
}

static int cut_line(struct reader *reader, char *text)
{
	reader->n_words = reader->at = 0;
	for (;;) {
		while (isspace((unsigned char)*text))
			text++;
		if (!*text || *text == '#')
			return 0;
		if (reader->n_words == WORDS_MAX)
			return refuse_line(reader, "more than %d words", WORDS_MAX);
		reader->word[reader->n_words++] = text;
		text = cut_word(text);
		if (!text)
			return refuse_line(reader, "expected a closing \"");
	}
}

/* --- variables ----------------------------------------------------------- */

static bool is_known(const struct reader *reader, const char *name)
{
	unsigned int i;

	for (i = 0; i < reader->n_names; i++) {
		if (strcmp(reader->names[i], name) == 0)
			return true;
	}
	return false;
}

static int learn_name(struct reader *reader, const char *name)
{
	if (is_known(reader, name))
		return 0;
	if (reader->n_names == DRILL_VARS_MAX)
		return refuse_line(reader, "more than %d variables", DRILL_VARS_MAX);
	snprintf(reader->names[reader->n_names++], DRILL_NAME_BYTES, "%s", name);
	return 0;
}

/* --- settings ------------------------------------------------------------ */

static int split_setting(struct reader *reader, char *word, struct drill_setting *setting,
			 char **ret_value)
{
	char *sign = strchr(word, '=');

	if (!sign || sign == word)
		return refuse_line(reader, "expected NAME=VALUE, not `%s'", word);
	*ret_value = sign + 1;
	setting->is_not = sign[-1] == '!';
	sign[setting->is_not ? -1 : 0] = '\0';
	if (strlen(word) >= sizeof(setting->name))
		return refuse_line(reader, "`%s' is too long for a name", word);
	snprintf(setting->name, sizeof(setting->name), "%s", word);
	return 0;
}

/* Values to compare with and values to set differ in what they may be. */
static int check_use(struct reader *reader, const struct drill_setting *setting, const char *text)
{
	const struct drill_value *value = &setting->value;
	const bool is_asked = reader->line->verb == DRILL_EXPECT ||
			      reader->line->verb == DRILL_EVENT;

	if (value->kind == DRILL_VARIABLE && !is_known(reader, value->name))
		return refuse_line(reader,
				   "$%s has no value here: expected a variable that was given "
				   "one before",
				   value->name);
	if (!is_asked && (setting->is_not || value->kind == DRILL_ANY ||
			  value->kind == DRILL_CAPTURE || value->kind == DRILL_RANGE))
		return refuse_line(reader,
				   "`%s%s%s' asks, which only lines with < and event do: "
				   "expected %s=VALUE",
				   setting->name, setting->is_not ? "!=" : "=", text,
				   setting->name);
	if (is_asked && value->kind == DRILL_RANDOM)
		return refuse_line(reader, "nothing can be expected to be random");
	return value->kind == DRILL_CAPTURE ? learn_name(reader, value->name) : 0;
}

static int check_field(struct reader *reader, struct drill_setting *setting, const char *text)
{
	const char *message = reader->line->name;

	if (drill_field_find(reader->line->attr_id, setting->name, &setting->field))
		return refuse_line(reader,
				   "%s has no field `%s': expected one of `purecm drill --fields "
				   "%s'",
				   message, setting->name, message);
	switch (drill_field_takes(&setting->field, &setting->value)) {
	case 0:
		return 0;
	case -ERANGE:
		if (setting->field.bits)
			return refuse_line(reader, "%s has %u bits: expected less than %s",
					   setting->name, setting->field.bits, text);
		return refuse_line(reader, "%s has %u bytes: expected no more", setting->name,
				   setting->field.n_bytes);
	}
	return refuse_line(reader, "%s: expected %s, not `%s'", setting->name,
			   setting->field.bits ? "a number" : "\"text\", hex:... or a GID", text);
}

static int read_setting(struct reader *reader, char *word)
{
	struct drill_line *line = reader->line;
	struct drill_setting *setting = &line->setting[line->n_settings];
	char *text = word;
	int err;

	if (line->n_settings == DRILL_SETTINGS_MAX)
		return refuse_line(reader, "more than %d settings", DRILL_SETTINGS_MAX);
	err = split_setting(reader, word, setting, &text);
	if (err)
		return err;
	if (drill_value_parse(text, &setting->value))
		return refuse_line(reader,
				   "%s: expected a number, N..M, \"text\", hex:..., a GID, $name, "
				   "?name, random or *, not `%s'",
				   setting->name, text);
	if (line->attr_id)
		err = check_field(reader, setting, text);
	if (!err)
		err = check_use(reader, setting, text);
	line->n_settings++;
	return err;
}

static int read_settings(struct reader *reader)
{
	char *word;
	int err = 0;

	while (!err && (word = next_word(reader)) != NULL) {
		if (strcmp(word, "again") == 0 && reader->line->attr_id)
			reader->line->again = true;
		else
			err = read_setting(reader, word);
	}
	return err;
}

unsigned int drill_settings_read(const char *text, uint16_t attr_id,
				 struct drill_setting setting[DRILL_SETTINGS_MAX])
{
	struct drill_mistake mistake;
	struct drill_line line = { .verb = DRILL_LET, .attr_id = attr_id, .setting = setting };
	struct reader reader = { .mistake = &mistake, .line = &line };
	char copy[LINE_BYTES];
	size_t i;

	for (i = 0; i < sizeof(first_names) / sizeof(first_names[0]); i++)
		learn_name(&reader, first_names[i]);
	snprintf(copy, sizeof(copy), "%s", text);
	if (cut_line(&reader, copy) || read_settings(&reader))
		return 0;
	return line.n_settings;
}

/* --- statements ---------------------------------------------------------- */

static int read_message(struct reader *reader)
{
	struct drill_line *line = reader->line;
	const char *word = next_word(reader);

	line->attr_id = word ? drill_message_attr(word) : 0;
	if (!line->attr_id)
		return refuse_line(reader,
				   "expected a message (REQ, MRA, REJ, REP, RTU, DREQ, DREP, "
				   "SIDR_REQ, SIDR_REP, LAP, APR), not %s",
				   or_end(word));
	snprintf(line->name, sizeof(line->name), "%s", word);
	return read_settings(reader);
}

static int read_call(struct reader *reader)
{
	static const char *const calls[] = { "listen", "resolve",    "connect",
					     "accept", "reject",     "establish",
					     "notify", "disconnect", "destroy" };
	const size_t n_calls = sizeof(calls) / sizeof(calls[0]);
	struct drill_line *line = reader->line;
	const char *word = next_word(reader);
	unsigned int end = reader->n_words;
	size_t i;

	for (i = 0; word && i < n_calls; i++) {
		if (strcmp(word, calls[i]) == 0)
			break;
	}
	if (!word || i == n_calls)
		return refuse_line(reader,
				   "expected a call (listen, resolve, connect, accept, reject, "
				   "establish, notify, disconnect, destroy), not %s",
				   or_end(word));
	snprintf(line->name, sizeof(line->name), "%s", word);
	snprintf(line->result, sizeof(line->result), "0");
	if (end - reader->at >= 2 && strcmp(reader->word[end - 2], "=") == 0) {
		snprintf(line->result, sizeof(line->result), "%s", reader->word[end - 1]);
		reader->n_words -= 2;
	}
	reader->script->needs_agent = true;
	return read_settings(reader);
}

static int read_event(struct reader *reader)
{
	const char *word = next_word(reader);

	if (!word || strchr(word, '='))
		return refuse_line(reader, "expected an event, as ESTABLISHED, not %s",
				   or_end(word));
	snprintf(reader->line->name, sizeof(reader->line->name), "%s", word);
	reader->script->needs_agent = true;
	return read_settings(reader);
}

static int read_let(struct reader *reader)
{
	struct drill_line *line = reader->line;
	int err = read_settings(reader);
	unsigned int i;

	if (!err && !line->n_settings)
		return refuse_line(reader, "expected NAME=VALUE, not the end of the line");
	for (i = 0; !err && i < line->n_settings; i++)
		err = learn_name(reader, line->setting[i].name);
	return err;
}

/* Return: the rest of the text, or NULL. */
static const char *scan_seconds(const char *text, double *ret)
{
	/* strtod() alone would take the first dot of "1..2". */
	const char *end = text + strspn(text, "0123456789");
	char copy[32];

	if (*end == '.' && end[1] != '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (end == text || end - text >= (ptrdiff_t)sizeof(copy))
		return NULL;
	snprintf(copy, sizeof(copy), "%.*s", (int)(end - text), text);
	*ret = strtod(copy, NULL);
	return *ret <= SECONDS_MAX ? end : NULL;
}

static int read_quiet(struct reader *reader)
{
	const char *word = next_word(reader), *end = NULL;

	if (word)
		end = scan_seconds(word, &reader->line->to_s);
	if (!end || *end || reader->at < reader->n_words)
		return refuse_line(reader, "expected a number of seconds up to %d, not %s",
				   SECONDS_MAX, or_end(word));
	return 0;
}

/* clang-format off */
static const struct {
	const char *word;
	enum drill_verb verb;
	int (*read)(struct reader *reader);
} verbs[] = {
	{ ">", DRILL_SEND, read_message },
	{ "<", DRILL_EXPECT, read_message },
	{ "call", DRILL_CALL, read_call },
	{ "event", DRILL_EVENT, read_event },
	{ "let", DRILL_LET, read_let },
	{ "quiet", DRILL_QUIET, read_quiet },
};
/* clang-format on */

static int read_statement(struct reader *reader)
{
	struct drill_line *line = reader->line;
	const char *word = next_word(reader);
	size_t i;

	for (i = 0; word && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(word, verbs[i].word) == 0)
			break;
	}
	if (!word || i == sizeof(verbs) / sizeof(verbs[0]))
		return refuse_line(reader, "expected >, <, call, event, let, quiet or why, not %s",
				   or_end(word));
	line->verb = verbs[i].verb;
	if (line->has_time && line->from_s != line->to_s && line->verb != DRILL_EXPECT &&
	    line->verb != DRILL_EVENT)
		return refuse_line(reader,
				   "expected one time, as +%g: only what comes from the peer has "
				   "a range",
				   line->from_s);
	if (line->has_time && line->from_s == line->to_s &&
	    (line->verb == DRILL_EXPECT || line->verb == DRILL_EVENT))
		return refuse_line(reader,
				   "expected a range, as +%g..%g: nothing comes at a point of "
				   "time",
				   line->from_s, line->from_s + 1);
	return verbs[i].read(reader);
}

static int read_time(struct reader *reader)
{
	const char *word = next_word(reader), *end = scan_seconds(word + 1, &reader->line->from_s);

	reader->line->has_time = true;
	reader->line->to_s = reader->line->from_s;
	if (end && strncmp(end, "..", 2) == 0)
		end = scan_seconds(end + 2, &reader->line->to_s);
	if (!end || *end || reader->line->to_s < reader->line->from_s)
		return refuse_line(reader, "expected a time, as +0.5 or +0.5..2, not `%s'", word);
	return 0;
}

static int read_peer(struct reader *reader)
{
	char *word = next_word(reader);

	word[strlen(word) - 1] = '\0';
	if (!reader->has_why)
		return refuse_line(reader,
				   "expected a line `why REASON' before the first that is for %s "
				   "only",
				   word);
	if (strlen(word) >= sizeof(reader->line->peer))
		return refuse_line(reader, "`%s' is too long for a name", word);
	snprintf(reader->line->peer, sizeof(reader->line->peer), "%s", word);
	return 0;
}

static int read_line(struct reader *reader)
{
	const char *word = reader->word[0];
	int err = 0;

	if (strlen(word) > 1 && word[strlen(word) - 1] == ':')
		err = read_peer(reader);
	if (!err && reader->at < reader->n_words && *reader->word[reader->at] == '+')
		err = read_time(reader);
	return err ? err : read_statement(reader);
}

static int read_why(struct reader *reader)
{
	reader->has_why = reader->n_words > 1;
	return reader->has_why ? 0
			       : refuse_line(reader, "expected a reason, not the end of the line");
}

static struct drill_line *add_line(struct drill_script *script, unsigned int number)
{
	struct drill_line *lines, *line;

	lines = realloc(script->line, (script->n_lines + 1) * sizeof(*lines));
	if (!lines)
		return NULL;
	script->line = lines;
	line = &lines[script->n_lines];
	memset(line, 0, sizeof(*line));
	line->number = number;
	line->setting = calloc(DRILL_SETTINGS_MAX, sizeof(*line->setting));
	if (!line->setting)
		return NULL;
	script->n_lines++;
	return line;
}

static int take_line(struct reader *reader, char *text, unsigned int number)
{
	int err;

	reader->mistake->line = number;
	if (strlen(text) == LINE_BYTES - 1 && text[LINE_BYTES - 2] != '\n')
		return refuse_line(reader, "expected a line of less than %d characters",
				   LINE_BYTES - 1);
	if (strlen(text) == 0)
		return refuse_line(reader, "expected text, not a byte 0");
	err = cut_line(reader, text);
	if (err || !reader->n_words)
		return err;
	if (strcmp(reader->word[0], "why") == 0)
		return read_why(reader);
	reader->line = add_line(reader->script, number);
	return reader->line ? read_line(reader) : -ENOMEM;
}

int drill_script_read(FILE *in, const char *path, struct drill_script *ret,
		      struct drill_mistake *mistake)
{
	struct reader reader = { .script = ret, .mistake = mistake };
	char text[LINE_BYTES];
	unsigned int number = 0;
	size_t i;
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	memset(mistake, 0, sizeof(*mistake));
	ret->path = path;
	for (i = 0; i < sizeof(first_names) / sizeof(first_names[0]); i++)
		learn_name(&reader, first_names[i]);
	while (!err && fgets(text, sizeof(text), in))
		err = take_line(&reader, text, ++number);
	if (err)
		return err;
	if (ferror(in))
		return -EIO;
	mistake->line = number;
	return ret->n_lines ? 0 : refuse_line(&reader, "expected at least one line, not the end");
}

void drill_script_fini(struct drill_script *script)
{
	unsigned int i;

	for (i = 0; i < script->n_lines; i++)
		free(script->line[i].setting);
	free(script->line);
	*script = (struct drill_script){ 0 };
}
