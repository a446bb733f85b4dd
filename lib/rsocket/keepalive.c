/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keepalives of stream sockets: see keepalive.h.
 */
#include "lib/rsocket/keepalive.h"

#include <errno.h>
#include <stdio.h>

#include "lib/rsocket/memory.h"

#define DEFAULT_S 7200
#define MS_PER_S  1000
#define LONGEST_S 4000000 /* in milliseconds it has to fit in 32 bits */

int keepalive_default_s(void)
{
	FILE *in = fopen("/proc/sys/net/ipv4/tcp_keepalive_time", "re");
	int seconds;

	if (!in)
		return DEFAULT_S;
	if (fscanf(in, "%d", &seconds) != 1 || seconds <= 0)
		seconds = DEFAULT_S;
	fclose(in);
	return seconds;
}

static void say(struct stream *s)
{
	if (!stream_can_talk(s->state) || !s->out.ctrl_slots)
		return;
	s->out.ctrl_slots--;
	if (memory_post(s, RS_OP_CTRL, 0, NULL, NULL, 0, false, (struct rs_entry){ 0 })) {
		s->out.ctrl_slots++;
		stream_happen(s, STREAM_EV_SEND_FAILED, -EIO);
	}
}

static void expired(struct serviced *serviced)
{
	struct stream *s = container_of(serviced, struct stream, keepalive);

	pthread_mutex_lock(&s->base.lock);
	stream_progress(&s->base);
	say(s);
	pthread_mutex_unlock(&s->base.lock);
	keepalive_update(s);
}

void keepalive_init(struct stream *s)
{
	serviced_init(&s->keepalive, NULL, expired);
}

int keepalive_update(struct stream *s)
{
	uint32_t ms = 0;

	pthread_mutex_lock(&s->base.lock);
	if (s->options.keepalive && stream_can_talk(s->state) && !s->base.closed) {
		int seconds = s->options.keepalive_s ? s->options.keepalive_s
						     : keepalive_default_s();

		ms = (uint32_t)(seconds < LONGEST_S ? seconds : LONGEST_S) * MS_PER_S;
	}
	pthread_mutex_unlock(&s->base.lock);
	service_expire_in(&s->keepalive, ms);
	return 0;
}
