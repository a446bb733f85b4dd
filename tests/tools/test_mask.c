/* SPDX-License-Identifier: BSD-2-Clause */
/* Masked text contains none of its original addresses, whatever surrounds them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/mask.h"

#define N_TEXTS	 20000
#define N_PARTS	 8
#define TEXT_MAX 2048
#define ADDR_MAX 80

static unsigned int seed = 1;

static unsigned int below(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

static unsigned int octet(void)
{
	return 1 + below(254);
}

/* Two bytes in full hexadecimal digits. */
static unsigned int group(void)
{
	return 0x1000 + below(0xefff);
}

static void join_pairs(char *text, unsigned int n, char separator)
{
	for (unsigned int i = 0; i < n; i++)
		text += sprintf(text, "%02x%.*s", 0x80 | below(0x7f), i + 1 < n && separator,
				&separator);
}

/* An address of any form; of 192.0.2.0/24 or fd00::/8, which no alias has, or of random digits. */
static void make_address(char text[ADDR_MAX])
{
	switch (below(9)) {
	case 0:
		sprintf(text, "192.0.2.%u", octet());
		break;
	case 1:
		sprintf(text, "fd%02x:%x::%x", octet(), group(), group());
		break;
	case 2:
		sprintf(text, "::ffff:192.0.2.%u", octet());
		break;
	case 3:
		join_pairs(text, 6, ':');
		break;
	case 4:
		join_pairs(text, 6, '-');
		break;
	case 5:
		join_pairs(text, 20, ':');
		break;
	case 6:
		sprintf(text, "0x%x%04x%04x", group(), group(), group());
		break;
	case 7:
		sprintf(text, "%04x:%04x:%04x:%04x", group(), group(), group(), group());
		break;
	default:
		sprintf(text, "fd%02x%04x", octet(), group());
		join_pairs(text + 8, 12, 0);
	}
}

static const char *const between[] = { " ",	 ", ",	"-",  "..", "/24 ",   "=",   ":7174 ",
				       "%eth0 ", "] [", "\n", "@",  " eth0:", ".\n", "->",
				       "(",	 "\"",	"_",  ";",  ",ib0:",  " to " };

static char *masked(struct mask *mask, const char *text)
{
	char *found = NULL;
	size_t bytes;
	FILE *out = open_memstream(&found, &bytes);

	mask_text(mask, text, out);
	fclose(out);
	return found;
}

/* In an IPv6 address a digit may follow what was one; so no separator is a letter of them. */
START_TEST(masked_text_has_no_address)
{
	char address[N_PARTS][ADDR_MAX], text[TEXT_MAX];
	struct mask *mask = mask_new();
	unsigned int i, k;
	char *found;
	size_t n;

	for (i = 0; i < N_TEXTS; i++) {
		for (n = 0, k = 0; k < N_PARTS; k++) {
			make_address(address[k]);
			n += (size_t)sprintf(text + n, "%s%s",
					     between[below(sizeof(between) / sizeof(*between))],
					     address[k]);
		}
		found = masked(mask, text);
		for (k = 0; k < N_PARTS; k++)
			ck_assert_msg(!strstr(found, address[k]), "%s is left of %s: %s",
				      address[k], text, found);
		free(found);
		if (i % 64 == 0) { /* few aliases: they are searched one by one */
			mask_free(mask);
			mask = mask_new();
		}
	}
	mask_free(mask);
}
END_TEST

/* Text that is no address is unchanged. */
START_TEST(other_text_is_kept)
{
	static const char text[] =
		"added 12:34:56 0xd6e84fd2 service_id=0x1061c06 TCP port 7174, 6.1.0-9 dead:beef "
		"time 1795843325.357407952 face, bond1.100: 127.0.0.1 ::1 :: - 10.77 eth0.5\n";
	struct mask *mask = mask_new();
	char *found = masked(mask, text);

	ck_assert_str_eq(found, text);
	free(found);
	mask_free(mask);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mask");
	TCase *tcase = tcase_create("mask");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, masked_text_has_no_address);
	tcase_add_test(tcase, other_text_is_kept);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
