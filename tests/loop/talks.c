/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversations (tests/luck/talk.h) over the loop-back device, one after the other.
 *
 * talks N: one more if the last one failed, as the obstacle may be gone by then. Exit status 0 if
 * the final one succeeded; prints one line for each failure
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/loop/device.h"
#include "tests/luck/talk.h"

#define PORT	"7201"
#define WAIT_MS 30000
#define ALARM_S 600

int main(int argc, char **argv)
{
	int i, n = argc > 1 ? atoi(argv[1]) : 1;
	struct outcome outcome = { .what = "nothing" };

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(ALARM_S);
	for (i = 1; i <= n || (i == n + 1 && outcome.what); i++) {
		outcome = talk(LOOP_ADDR, PORT, WAIT_MS);
		if (outcome.what)
			printf("conversation %d: %s: %s%s\n", i, outcome.what,
			       strerror(abs(outcome.err)), outcome.is_silent ? ", silence" : "");
	}
	return outcome.what ? 1 : 0;
}
