/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between releases of the kernel: see kernel.h. */
#include "lib/device/kernel.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/env.h"

#define RELEASE(major, minor) ((major)*1000u + (minor))

/* In order. A row applies to releases before its own, from the one of the previous row on. */
static const struct {
	unsigned int before;
	struct kernel_habits habits;
} ages[] = {
	{ RELEASE(6, 0), { .packet_life_time = 18 } },
	{ RELEASE(6, 2), { .packet_life_time = 18, .reports_moves = true } },
	{ UINT_MAX, { .packet_life_time = 16, .reports_moves = true } },
};

static unsigned int parse_release(const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%3u.%3u", &major, &minor) != 2)
		return UINT_MAX - 1;
	return RELEASE(major, minor);
}

const struct kernel_habits *kernel_habits(const char *release)
{
	unsigned int i = 0, number = parse_release(release);

	while (number >= ages[i].before)
		i++;
	return &ages[i].habits;
}

const char *kernel_release(char room[KERNEL_RELEASE_BYTES])
{
	const char *imitated = env_get("PURECM_FABRIC_KERNEL");
	struct utsname host = { .release = "" };

	uname(&host); /* fails only for an invalid pointer */
	snprintf(room, KERNEL_RELEASE_BYTES, "%s", imitated ? imitated : host.release);
	return room;
}

static const struct kernel_habits *running;

static void look_once(void)
{
	char release[KERNEL_RELEASE_BYTES];

	running = kernel_habits(kernel_release(release));
}

const struct kernel_habits *kernel_running_habits(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_once);
	return running;
}
