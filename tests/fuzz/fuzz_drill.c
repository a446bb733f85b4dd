/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a script of purecm drill: read, or refused with a line and a reason; and what can be
 * sent of it has a message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/drill_mad.h"
#include "tools/purecm/drill_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void make(const struct drill_line *line)
{
	const struct drill_vars vars = { .n = 0 };
	struct drill_value value;
	struct drill_mad mad;
	char text[64];
	unsigned int i;

	drill_mad_begin(&mad, line->attr_id, 1);
	drill_mad_encode(&mad);
	for (i = 0; i < line->n_settings; i++) {
		drill_value_str(&line->setting[i].value, text, sizeof(text));
		if (!drill_value_of(&line->setting[i].value, &vars, &value) &&
		    !drill_field_takes(&line->setting[i].field, &value))
			drill_mad_set(&mad, &line->setting[i].field, &value);
	}
	drill_mad_decode(mad.raw, &mad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct drill_mistake mistake;
	struct drill_script script;
	unsigned int i;
	FILE *in;
	int err;

	if (!bytes)
		return 0;
	in = tmpfile();
	if (!in || fwrite(data, 1, bytes, in) != bytes)
		abort();
	rewind(in);
	err = drill_script_read(in, "input", &script, &mistake);
	fclose(in);
	if (err && !mistake.text[0])
		abort();
	for (i = 0; !err && i < script.n_lines; i++) {
		if (script.line[i].verb == DRILL_SEND)
			make(&script.line[i]);
	}
	drill_script_fini(&script);
	return 0;
}
