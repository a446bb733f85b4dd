/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between releases of the kernel: see kernel.h. */
#include "lib/device/kernel.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#define RELEASE(major, minor) ((major)*1000u + (minor))

/* In order. The value holds from the release before up to, but without, this one. */
static const struct {
	unsigned int before;
	uint8_t packet_life_time;
} ages[] = {
	{RELEASE(6, 2), 18 },
	{ UINT_MAX,	    16 },
};

static unsigned int parse(const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%3u.%3u", &major, &minor) != 2)
		return UINT_MAX - 1;
	return RELEASE(major, minor);
}

uint8_t kernel_packet_life_time(const char *release)
{
	unsigned int i = 0, number = parse(release);

	while (number >= ages[i].before)
		i++;
	return ages[i].packet_life_time;
}

const char *kernel_release(char room[KERNEL_RELEASE_BYTES])
{
	const char *imitated = secure_getenv("PURECM_FABRIC_KERNEL");
	struct utsname running = { .release = "" };

	uname(&running); /* fails for a bad pointer only */
	snprintf(room, KERNEL_RELEASE_BYTES, "%s", imitated ? imitated : running.release);
	return room;
}

static uint8_t running_life_time;

static void look_once(void)
{
	char release[KERNEL_RELEASE_BYTES];

	running_life_time = kernel_packet_life_time(kernel_release(release));
}

uint8_t kernel_running_life_time(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_once);
	return running_life_time;
}
