/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON: see json.h. There is one line at a time. */
#include "tools/purecm/json.h"

#include <inttypes.h>

#include "base/clock.h"

static unsigned int depth; /* of the present object */
static bool has_members;

static void put_string(const char *text, FILE *out)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			putc(*text, out);
	}
	putc('"', out);
}

static void put_name(const char *name, FILE *out)
{
	if (has_members)
		putc(',', out);
	put_string(name, out);
	putc(':', out);
	has_members = true;
}

void json_begin(const char *name, FILE *out)
{
	if (name)
		put_name(name, out);
	putc('{', out);
	depth++;
	has_members = false;
}

void json_end(FILE *out)
{
	putc('}', out);
	has_members = true;
	if (--depth == 0) {
		putc('\n', out);
		has_members = false;
	}
}

void json_text(const char *name, const char *text, FILE *out)
{
	if (!text)
		return;
	put_name(name, out);
	put_string(text, out);
}

void json_uint(const char *name, uint64_t value, FILE *out)
{
	put_name(name, out);
	fprintf(out, "%" PRIu64, value);
}

void json_bool(const char *name, bool value, FILE *out)
{
	put_name(name, out);
	fputs(value ? "true" : "false", out);
}

void json_fixed(const char *name, double value, int digits, FILE *out)
{
	put_name(name, out);
	fprintf(out, "%.*f", digits, value);
}

void json_time(uint64_t time_ns, FILE *out)
{
	put_name("time", out);
	fprintf(out, "\"%" PRIu64 ".%09" PRIu64 "\"", time_ns / CLOCK_NS_PER_S,
		time_ns % CLOCK_NS_PER_S);
}
