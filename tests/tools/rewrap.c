/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For test_judged.py: writes the MADs of a capture as if they had been traced inside a host,
 * without the packets around them. usage: rewrap CAPTURE PCAPNG
 */
#include <stdio.h>

#include "tools/purecm/pcapng.h"
#include "tools/purecm/reading.h"

static int take(void *arg, const struct observation *observation)
{
	struct observation bare = *observation;

	bare.frame = NULL;
	pcapng_put(arg, &bare, "seen inside a host");
	return 0;
}

int main(int argc, char **argv)
{
	struct reading reading = { .file = NULL };
	struct pcapng *pcapng;
	int err;

	if (argc != 3) {
		fputs("usage: rewrap CAPTURE PCAPNG\n", stderr);
		return 2;
	}
	if (pcapng_open(argv[2], &pcapng))
		return 1;
	reading.file = argv[1];
	err = reading_run(&reading, take, pcapng);
	return pcapng_close(pcapng) || err ? 1 : 0;
}
