/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What cmportd says to systemd to get a control group of its own, and what it makes of the answer.
 * The answers are written before it asks. tests/portd/systemd_lab.py has a real systemd.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/cmportd/own_group.h"

#define PID  4711
#define AUTH "AUTH EXTERNAL 30\r\nBEGIN\r\n"

static int ours, systemds;
static uint8_t said[4096];
static size_t n_said, at;
static char reason[128];

static void set_up(void)
{
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ours = ends[0];
	systemds = ends[1];
	n_said = at = 0;
}

static void tear_down(void)
{
	close(ours);
	close(systemds);
}

static void answer(const void *bytes, size_t n)
{
	ck_assert_int_eq(write(systemds, bytes, n), (ssize_t)n);
}

static void answer_text(const char *text)
{
	answer(text, strlen(text));
}

/* A message with a header of one field, and a body that is a text if there is any. */
static void answer_message(uint8_t type, const char *text)
{
	uint8_t message[256] = { 'l', type, 0, 1, [8] = 1, [12] = 8, [16] = 5, 1, 'u', 0, 1 };
	size_t n_text = text ? strlen(text) : 0;

	if (text) {
		message[4] = (uint8_t)(n_text + 5);
		message[24] = (uint8_t)n_text;
		memcpy(message + 28, text, n_text);
	}
	answer(message, 24 + (size_t)message[4]);
}

/* Then systemd says nothing more. */
static int ask(void)
{
	ssize_t n;
	int err;

	shutdown(systemds, SHUT_WR);
	err = own_group_ask(ours, PID, reason);
	shutdown(ours, SHUT_WR);
	while ((n = read(systemds, said + n_said, sizeof(said) - n_said)) > 0)
		n_said += (size_t)n;
	return err;
}

/* --- reading what it has said: by the types of D-Bus ---------------------- */

static size_t message_at;

static void align(size_t to)
{
	while ((at - message_at) % to)
		ck_assert_uint_eq(said[at++], 0);
}

static uint32_t number(void)
{
	uint32_t value;

	align(4);
	ck_assert_uint_le(at + sizeof(value), n_said);
	memcpy(&value, said + at, sizeof(value));
	at += sizeof(value);
	return value;
}

static const char *text_of(size_t n)
{
	const char *text = (const char *)said + at;

	ck_assert_uint_lt(at + n, n_said);
	ck_assert_uint_eq(strlen(text), n);
	at += n + 1;
	return text;
}

static const char *string(void)
{
	return text_of(number());
}

static const char *signature(void)
{
	size_t n = said[at++];

	return text_of(n);
}

/* Writes a value as text. */
static void value_of(const char *type, char ret[128])
{
	uint64_t big;

	if (!strcmp(type, "s")) {
		snprintf(ret, 128, "%s", string());
	} else if (!strcmp(type, "b")) {
		snprintf(ret, 128, "%s", number() ? "yes" : "no");
	} else if (!strcmp(type, "au")) {
		ck_assert_uint_eq(number(), 4);
		snprintf(ret, 128, "%u", number());
	} else {
		ck_assert_str_eq(type, "t");
		align(8);
		memcpy(&big, said + at, sizeof(big));
		at += sizeof(big);
		snprintf(ret, 128, "%llu", (unsigned long long)big);
	}
}

static const char *properties(void)
{
	static char all[1024];
	uint32_t n_bytes = number();
	const char *name;
	char value[128];
	size_t begin, n = 0;

	align(8);
	for (begin = at; at < begin + n_bytes;) {
		align(8);
		name = string();
		value_of(signature(), value);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s=%s\n", name, value);
	}
	ck_assert_uint_eq(at, begin + n_bytes);
	return all;
}

static const char *header(void)
{
	static char all[1024];
	uint32_t n_bytes;
	const char *type;
	size_t begin, n = 0;

	n_bytes = number();
	for (begin = at; at < begin + n_bytes;) {
		align(8);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%u ", said[at++]);
		type = signature();
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s\n",
				      *type == 'g' ? signature() : string());
	}
	align(8);
	return all;
}

FIXTURE(set_up, tear_down);

TEST(it_asks_for_a_scope_with_itself)
{
	uint32_t n_body;

	answer_text("OK 0123456789abcdef\r\n");
	answer_message(2, NULL);
	ck_assert_int_eq(ask(), 0);
	ck_assert_uint_eq(said[0], 0);
	ck_assert_int_eq(memcmp(said + 1, AUTH, strlen(AUTH)), 0);
	message_at = at = 1 + strlen(AUTH);
	ck_assert_int_eq(memcmp(said + at, "l\1\0\1", 4), 0);
	at += 4;
	n_body = number();
	ck_assert_uint_eq(number(), 1);
	ck_assert_str_eq(header(), "1 /org/freedesktop/systemd1\n"
				   "2 org.freedesktop.systemd1.Manager\n"
				   "3 StartTransientUnit\n"
				   "6 org.freedesktop.systemd1\n"
				   "8 ssa(sv)a(sa(sv))\n");
	ck_assert_uint_eq(at + n_body, n_said);
	ck_assert_str_eq(string(), "cmportd-4711.scope");
	ck_assert_str_eq(string(), "fail");
	ck_assert_str_eq(properties(), "Description=cmportd, started by a program\n"
				       "PIDs=4711\n"
				       "DefaultDependencies=no\n"
				       "CollectMode=inactive-or-failed\n"
				       "MemoryMax=1073741824\n"
				       "TasksMax=16\n");
	ck_assert_uint_eq(number(), 0);
	align(8);
	ck_assert_uint_eq(at, n_said);
}

TEST(signals_before_the_answer_are_skipped)
{
	answer_text("OK 0123456789abcdef\r\n");
	answer_message(4, NULL);
	answer_message(4, "a unit is new");
	answer_message(2, "/org/freedesktop/systemd1/job/1");
	ck_assert_int_eq(ask(), 0);
}

TEST(it_tells_why_systemd_refuses)
{
	answer_text("OK 0123456789abcdef\r\n");
	answer_message(3, "Unit cmportd-4711.scope exists.");
	ck_assert_int_eq(ask(), -EREMOTEIO);
	ck_assert_str_eq(reason, "Unit cmportd-4711.scope exists.");
}

TEST(who_does_not_know_it_is_not_asked)
{
	answer_text("REJECTED EXTERNAL\r\n");
	ck_assert_int_eq(ask(), -EACCES);
	ck_assert_uint_eq(n_said, strlen("-AUTH EXTERNAL 30\r\n"));
}

TEST(a_systemd_that_goes_is_not_waited_for)
{
	ck_assert_int_eq(ask(), -ECONNRESET);
}

TEST(a_systemd_that_goes_in_an_answer_is_not_waited_for)
{
	answer_text("OK 0123456789abcdef\r\nl\2\0\1");
	ck_assert_int_eq(ask(), -ECONNRESET);
}

TEST(what_is_not_an_answer_is_refused)
{
	const uint8_t huge[16] = { 'l', 2, 0, 1, 255, 255, 255, 255 };

	answer_text("OK 0123456789abcdef\r\n");
	answer(huge, sizeof(huge));
	ck_assert_int_eq(ask(), -EPROTO);
}
