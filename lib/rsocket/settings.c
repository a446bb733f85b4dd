/* SPDX-License-Identifier: BSD-2-Clause */
/* The administrator's settings: see settings.h. One row per file. */
#include "lib/rsocket/settings.h"

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/rsocket/stream_wire.h"

#define FOLDER	       "/etc/rdma/rsocket"
#define SEND_BYTES_MIN 2048
#define SEND_BYTES_LOW 4096 /* minimum of the send buffer */

static struct settings current = {
	.polling_us = 10,
	.wake_up_ms = 500,
	.sq_size = 384,
	.rq_size = 384,
	.inline_size = 64,
	.recv_bytes = 131072,
	.send_bytes = 131072,
};

static const struct {
	const char *file;
	uint32_t *value;
} rows[] = {
	{ "polling_time", &current.polling_us }, { "sqsize_default", &current.sq_size },
	{ "rqsize_default", &current.rq_size },	 { "inline_default", &current.inline_size },
	{ "mem_default", &current.recv_bytes },	 { "wmem_default", &current.send_bytes },
	{ "iomap_size", &current.iomap_size },
};

static void read_number(const char *file, int *value)
{
	char path[128];
	int number;
	FILE *in;

	snprintf(path, sizeof(path), FOLDER "/%s", file);
	in = fopen(path, "re");
	if (!in)
		return;
	if (fscanf(in, "%d", &number) == 1)
		*value = number;
	fclose(in);
}

static void load_settings(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int number = (int)*rows[i].value;

		read_number(rows[i].file, &number);
		if (number >= 0)
			*rows[i].value = (uint32_t)number;
	}
	read_number("wake_up_interval", &current.wake_up_ms);
	if (current.wake_up_ms <= 0)
		current.wake_up_ms = INT_MAX;
	if (current.recv_bytes < 1)
		current.recv_bytes = 1;
	if (current.send_bytes < SEND_BYTES_MIN)
		current.send_bytes = SEND_BYTES_LOW;
	current.iomap_size = rs_scale_decode(rs_scale_encode(current.iomap_size));
}

const struct settings *settings(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_settings);
	return &current;
}
