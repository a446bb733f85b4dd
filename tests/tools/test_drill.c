/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of purecm drill: what they may say, what is said of those that are wrong, and what their
 * values do to messages.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/drill_mad.h"
#include "tools/purecm/drill_script.h"

static struct drill_script script;
static struct drill_mistake mistake;

static int read_bytes(const char *text, size_t bytes)
{
	FILE *in = tmpfile();
	int err;

	ck_assert_ptr_nonnull(in);
	ck_assert_uint_eq(fwrite(text, 1, bytes, in), bytes);
	rewind(in);
	err = drill_script_read(in, "test", &script, &mistake);
	fclose(in);
	return err;
}

static void setup(void)
{
	memset(&script, 0, sizeof(script));
}

static void teardown(void)
{
	drill_script_fini(&script);
}

static const struct drill_line *only_line(const char *text)
{
	ck_assert_msg(!read_bytes(text, strlen(text)), "%s: %s", text, mistake.text);
	ck_assert_uint_eq(script.n_lines, 1);
	return &script.line[0];
}

/* --- what is right ------------------------------------------------------- */

START_TEST(a_message_to_send_has_its_fields)
{
	const struct drill_line *line = only_line("+0.5 > REQ starting_psn=7 user_data=\"a b\"");

	ck_assert_int_eq(line->verb, DRILL_SEND);
	ck_assert_int_eq(line->attr_id, CM_ATTR_REQ);
	ck_assert_uint_eq(line->n_settings, 2);
	ck_assert_str_eq(line->setting[0].name, "starting_psn");
	ck_assert_uint_eq(line->setting[0].value.number, 7);
	ck_assert_mem_eq(line->setting[1].value.bytes, "a b", 3);
	ck_assert_double_eq(line->from_s, 0.5);
}
END_TEST

START_TEST(a_message_to_expect_has_a_range_of_time)
{
	const struct drill_line *line = only_line("+.5..2 < REP again local_qpn!=0");

	ck_assert_int_eq(line->verb, DRILL_EXPECT);
	ck_assert(line->again);
	ck_assert(line->setting[0].is_not);
	ck_assert_double_eq(line->from_s, 0.5);
	ck_assert_double_eq(line->to_s, 2);
}
END_TEST

START_TEST(whole_seconds_have_a_range_too)
{
	const struct drill_line *line = only_line("+1..9 < REP");

	ck_assert_double_eq(line->from_s, 1);
	ck_assert_double_eq(line->to_s, 9);
}
END_TEST

START_TEST(a_call_has_a_result)
{
	const struct drill_line *line = only_line("call accept qpn=3 = EINVAL # no");

	ck_assert_str_eq(line->name, "accept");
	ck_assert_str_eq(line->result, "EINVAL");
	ck_assert_uint_eq(line->n_settings, 1);
	ck_assert(script.needs_agent);
}
END_TEST

START_TEST(a_call_succeeds_unless_something_else_is_said)
{
	ck_assert_str_eq(only_line("call destroy")->result, "0");
}
END_TEST

START_TEST(messages_alone_need_no_agent)
{
	only_line("> RTU");
	ck_assert(!script.needs_agent);
}
END_TEST

START_TEST(what_is_for_one_peer_only_is_marked)
{
	const struct drill_line *line = only_line("why it differs\n\nstock: +1 > RTU");

	ck_assert_str_eq(line->peer, "stock");
	ck_assert_uint_eq(line->number, 3);
}
END_TEST

START_TEST(what_was_kept_can_be_used)
{
	const char text[] = "< REP starting_psn=?psn\nlet next=$psn+1\n> RTU local_comm_id=$next";

	ck_assert_int_eq(read_bytes(text, strlen(text)), 0);
}
END_TEST

START_TEST(defaults_of_every_message_can_be_read)
{
	struct drill_setting setting[DRILL_SETTINGS_MAX];
	const char *defaults = drill_message_defaults((uint16_t)_i), *at = defaults;
	unsigned int n = 0;

	memset(setting, 0, sizeof(setting));
	while ((at = strchr(at, '=')) != NULL) {
		at++;
		n++;
	}
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_eq(drill_settings_read(defaults, (uint16_t)_i, setting), n);
}
END_TEST

/* --- what is wrong ------------------------------------------------------- */

/* clang-format off */
static const struct {
	const char *text;
	unsigned int line;
	const char *complaint;
} mistakes[] = {
	{ "", 0, "expected at least one line" },
	{ "# nothing\n", 1, "expected at least one line" },
	{ "> RTU\nsend RTU", 2, "expected >, <, call, event, let, quiet or why, not send" },
	{ ">", 1, "expected a message (REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, "
		  "LAP, APR), not the end" },
	{ "> req", 1, "expected a message" },
	{ "> REQ psn=1", 1, "REQ has no field `psn': expected one of `purecm drill --fields REQ'" },
	{ "> RTU user_data=\"a\"", 1, "RTU has no field `user_data'" },
	{ "> REQ starting_psn", 1, "expected NAME=VALUE, not `starting_psn'" },
	{ "> REQ =1", 1, "expected NAME=VALUE, not `=1'" },
	{ "> REQ starting_psn=0x1000000", 1, "has 24 bits: expected less than 0x1000000" },
	{ "> REQ starting_psn=-1", 1, "has 24 bits" },
	{ "> REQ starting_psn=\"7\"", 1, "starting_psn: expected a number, not `\"7\"'" },
	{ "> REQ starting_psn=7x", 1, "starting_psn: expected a number, N..M" },
	{ "> REQ private_data=7", 1, "expected \"text\", hex:... or a GID, not `7'" },
	{ "> REQ private_data=hex:7", 1, "private_data: expected a number, N..M" },
	{ "> REQ primary.local_gid=fe80:::1", 1, "primary.local_gid: expected" },
	{ "> REQ private_data=\"a", 1, "expected a closing \"" },
	{ "> REQ byte.256=1", 1, "REQ has no field `byte.256'" },
	{ "> REQ byte.0=256", 1, "byte.0 has 8 bits" },
	{ "> REQ starting_psn=*", 1, "`starting_psn=*' asks, which only lines with < and event do" },
	{ "> REQ starting_psn=?a", 1, "asks" },
	{ "> REQ starting_psn=1..2", 1, "asks" },
	{ "> REQ starting_psn!=1", 1, "asks" },
	{ "> REQ starting_psn=$a", 1, "$a has no value here" },
	{ "< REQ starting_psn=random", 1, "nothing can be expected to be random" },
	{ "< REP starting_psn=2..1", 1, "expected a number, N..M" },
	{ "call", 1, "expected a call (listen," },
	{ "call fork", 1, "not fork" },
	{ "event", 1, "expected an event" },
	{ "event id=id", 1, "expected an event" },
	{ "let", 1, "expected NAME=VALUE" },
	{ "let a", 1, "expected NAME=VALUE, not `a'" },
	{ "quiet", 1, "expected a number of seconds up to 600, not the end" },
	{ "quiet soon", 1, "not soon" },
	{ "quiet 1 2", 1, "expected a number of seconds" },
	{ "quiet 601", 1, "up to 600" },
	{ "+ > RTU", 1, "expected a time, as +0.5 or +0.5..2, not `+'" },
	{ "+2..1 < RTU", 1, "expected a time" },
	{ "+1..2 > RTU", 1, "expected one time, as +1" },
	{ "+1 < RTU", 1, "expected a range, as +1..2" },
	{ "+1", 1, "not the end of the line" },
	{ "stock: > RTU", 1, "expected a line `why REASON' before the first that is for stock only" },
	{ "why", 1, "expected a reason" },
};
/* clang-format on */

#define N_MISTAKES ((int)(sizeof(mistakes) / sizeof(mistakes[0])))

START_TEST(a_mistake_is_told_with_its_line_and_what_was_expected)
{
	const char *text = mistakes[_i].text;

	ck_assert_int_eq(read_bytes(text, strlen(text)), -EINVAL);
	ck_assert_msg(strstr(mistake.text, mistakes[_i].complaint) != NULL, "%s: %s", text,
		      mistake.text);
	ck_assert_uint_eq(mistake.line, mistakes[_i].line);
}
END_TEST

START_TEST(a_line_can_be_too_long)
{
	char text[4000];

	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(read_bytes(text, sizeof(text)), -EINVAL);
	ck_assert_str_eq(mistake.text, "expected a line of less than 2047 characters");
}
END_TEST

START_TEST(a_line_may_not_begin_with_a_byte_0)
{
	ck_assert_int_eq(read_bytes("\0> RTU\n", 7), -EINVAL);
	ck_assert_str_eq(mistake.text, "expected text, not a byte 0");
}
END_TEST

START_TEST(a_message_can_have_too_many_settings)
{
	char text[1000] = "> REQ";
	int i;

	for (i = 0; i <= DRILL_SETTINGS_MAX; i++)
		strcat(text, " starting_psn=1");
	ck_assert_int_eq(read_bytes(text, strlen(text)), -EINVAL);
	ck_assert_str_eq(mistake.text, "more than 32 settings");
}
END_TEST

/* --- messages ------------------------------------------------------------ */

static void set(struct drill_mad *mad, uint16_t attr_id, const char *name, const char *text)
{
	struct drill_field field;
	struct drill_value value;

	ck_assert_int_eq(drill_field_find(attr_id, name, &field), 0);
	ck_assert_int_eq(drill_value_parse(text, &value), 0);
	ck_assert_int_eq(drill_field_takes(&field, &value), 0);
	drill_mad_set(mad, &field, &value);
}

static uint64_t get(const struct drill_mad *mad, uint16_t attr_id, const char *name)
{
	struct drill_field field;
	struct drill_value value;

	ck_assert_int_eq(drill_field_find(attr_id, name, &field), 0);
	drill_mad_get(mad, &field, &value);
	return value.number;
}

START_TEST(what_is_set_is_read_back)
{
	struct drill_mad mad, read;

	drill_mad_begin(&mad, CM_ATTR_REQ, 0x1234);
	set(&mad, CM_ATTR_REQ, "starting_psn", "0xabcdef");
	set(&mad, CM_ATTR_REQ, "ip.ip_version", "6");
	set(&mad, CM_ATTR_REQ, "ip.src_port", "7471");
	drill_mad_encode(&mad);
	set(&mad, CM_ATTR_REQ, "user_data", "\"hello\"");
	ck_assert_int_eq(drill_mad_decode(mad.raw, &read), 0);
	ck_assert_uint_eq(get(&read, CM_ATTR_REQ, "starting_psn"), 0xabcdef);
	ck_assert_uint_eq(get(&read, CM_ATTR_REQ, "ip.src_port"), 7471);
	ck_assert_uint_eq(get(&read, CM_ATTR_REQ, "mad.tid"), 0x1234);
	ck_assert_mem_eq(read.msg.req.private_data + CMA_HDR_BYTES, "hello", 5);
}
END_TEST

START_TEST(a_field_that_the_wire_splits_is_one)
{
	struct drill_mad mad, read;

	drill_mad_begin(&mad, CM_ATTR_REP, 1);
	set(&mad, CM_ATTR_REP, "vendor_id", "0x123456");
	drill_mad_encode(&mad);
	ck_assert_int_eq(drill_mad_decode(mad.raw, &read), 0);
	ck_assert_uint_eq(get(&read, CM_ATTR_REP, "vendor_id"), 0x123456);
}
END_TEST

START_TEST(another_attribute_does_not_change_the_body)
{
	struct drill_mad mad, same;

	drill_mad_begin(&mad, CM_ATTR_REQ, 1);
	set(&mad, CM_ATTR_REQ, "starting_psn", "7");
	drill_mad_encode(&mad);
	same = mad;
	set(&mad, CM_ATTR_REQ, "mad.attr_id", "0x99");
	ck_assert_mem_eq(mad.raw + MAD_HDR_BYTES, same.raw + MAD_HDR_BYTES, CM_BODY_BYTES);
	ck_assert_uint_eq(cm_mad_attr(mad.raw), 0x99);
}
END_TEST

START_TEST(a_byte_is_what_it_is_told_to_be)
{
	struct drill_mad mad;

	drill_mad_begin(&mad, CM_ATTR_RTU, 1);
	drill_mad_encode(&mad);
	set(&mad, CM_ATTR_RTU, "byte.255", "0xa5");
	ck_assert_uint_eq(mad.raw[255], 0xa5);
	ck_assert_uint_eq(get(&mad, CM_ATTR_RTU, "byte.255"), 0xa5);
}
END_TEST

START_TEST(a_new_transaction_makes_no_new_message)
{
	struct drill_mad a, b;

	drill_mad_begin(&a, CM_ATTR_RTU, 1);
	drill_mad_begin(&b, CM_ATTR_RTU, 2);
	drill_mad_encode(&a);
	drill_mad_encode(&b);
	ck_assert(drill_mad_is_same(a.raw, b.raw));
	b.raw[MAD_HDR_BYTES]++;
	ck_assert(!drill_mad_is_same(a.raw, b.raw));
}
END_TEST

/* --- values -------------------------------------------------------------- */

/* clang-format off */
static const struct {
	const char *wanted, *value;
	bool matches;
} pairs[] = {
	{ "7", "7", true },	     { "7", "8", false },	    { "1..7", "7", true },
	{ "1..7", "8", false },	     { "*", "7", true },	    { "?a", "7", true },
	{ "\"ab\"", "\"abc\"", true }, { "\"abc\"", "\"ab\"", false }, { "ab", "ab", true },
	{ "ab", "abc", false },	     { "\"7\"", "7", false },	    { "-110", "-110", true },
	{ "hex:6162", "\"ab\"", true }, { "::1", "::1", true },	    { "::1", "::2", false },
};
/* clang-format on */

START_TEST(values_match_as_the_manual_says)
{
	struct drill_value wanted, value;

	ck_assert_int_eq(drill_value_parse(pairs[_i].wanted, &wanted), 0);
	ck_assert_int_eq(drill_value_parse(pairs[_i].value, &value), 0);
	ck_assert_msg(drill_value_matches(&wanted, &value) == pairs[_i].matches, "%s %s",
		      pairs[_i].wanted, pairs[_i].value);
}
END_TEST

START_TEST(a_variable_can_be_added_to)
{
	struct drill_vars vars = { .n = 0 };
	struct drill_value value, sum;

	drill_vars_put_number(&vars, "a", 40);
	ck_assert_int_eq(drill_value_parse("$a+2", &value), 0);
	ck_assert_int_eq(drill_value_of(&value, &vars, &sum), 0);
	ck_assert_uint_eq(sum.number, 42);
	ck_assert_int_eq(drill_value_parse("$a-1", &value), 0);
	ck_assert_int_eq(drill_value_of(&value, &vars, &sum), 0);
	ck_assert_uint_eq(sum.number, 39);
}
END_TEST

START_TEST(nothing_can_be_added_to_bytes)
{
	struct drill_vars vars = { .n = 0 };
	struct drill_value value, sum;

	drill_vars_put_bytes(&vars, "a", "abc", 3);
	ck_assert_int_eq(drill_value_parse("$a+2", &value), 0);
	ck_assert_int_eq(drill_value_of(&value, &vars, &sum), -EINVAL);
	ck_assert_int_eq(drill_value_parse("$b", &value), 0);
	ck_assert_int_eq(drill_value_of(&value, &vars, &sum), -ENOENT);
}
END_TEST

START_TEST(there_is_an_end_to_variables)
{
	struct drill_vars vars = { .n = 0 };
	char name[DRILL_NAME_BYTES];
	unsigned int i;

	for (i = 0; i < DRILL_VARS_MAX; i++) {
		snprintf(name, sizeof(name), "v%u", i);
		ck_assert_int_eq(drill_vars_put_number(&vars, name, i), 0);
	}
	ck_assert_int_eq(drill_vars_put_number(&vars, "one_more", 0), -ENOSPC);
	ck_assert_int_eq(drill_vars_put_number(&vars, "v0", 7), 0);
	ck_assert_uint_eq(drill_vars_find(&vars, "v0")->number, 7);
}
END_TEST

static Suite *drill_suite(void)
{
	Suite *suite = suite_create("tools/purecm/drill");
	TCase *tcase = tcase_create("scripts");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_message_to_send_has_its_fields);
	tcase_add_test(tcase, a_message_to_expect_has_a_range_of_time);
	tcase_add_test(tcase, whole_seconds_have_a_range_too);
	tcase_add_test(tcase, a_call_has_a_result);
	tcase_add_test(tcase, a_call_succeeds_unless_something_else_is_said);
	tcase_add_test(tcase, messages_alone_need_no_agent);
	tcase_add_test(tcase, what_is_for_one_peer_only_is_marked);
	tcase_add_test(tcase, what_was_kept_can_be_used);
	tcase_add_loop_test(tcase, defaults_of_every_message_can_be_read, CM_ATTR_REQ,
			    CM_ATTR_APR + 1);
	tcase_add_loop_test(tcase, a_mistake_is_told_with_its_line_and_what_was_expected, 0,
			    N_MISTAKES);
	tcase_add_test(tcase, a_line_can_be_too_long);
	tcase_add_test(tcase, a_line_may_not_begin_with_a_byte_0);
	tcase_add_test(tcase, a_message_can_have_too_many_settings);
	tcase_add_test(tcase, what_is_set_is_read_back);
	tcase_add_test(tcase, a_field_that_the_wire_splits_is_one);
	tcase_add_test(tcase, another_attribute_does_not_change_the_body);
	tcase_add_test(tcase, a_byte_is_what_it_is_told_to_be);
	tcase_add_test(tcase, a_new_transaction_makes_no_new_message);
	tcase_add_loop_test(tcase, values_match_as_the_manual_says, 0,
			    (int)(sizeof(pairs) / sizeof(pairs[0])));
	tcase_add_test(tcase, a_variable_can_be_added_to);
	tcase_add_test(tcase, nothing_can_be_added_to_bytes);
	tcase_add_test(tcase, there_is_an_end_to_variables);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(drill_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
