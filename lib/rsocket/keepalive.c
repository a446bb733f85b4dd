/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keepalives of stream sockets, SO_KEEPALIVE: the service thread sends an RDMA write of zero bytes
 * periodically. The peer's program does not notice; if the peer is gone, the write fails.
 */
#include <errno.h>
#include <stdio.h>

#include "lib/rsocket/memory.h"

#define DEFAULT_S 7200
#define MS_PER_S  1000
#define LONGEST_S 4000000 /* fits into 32 bits in milliseconds */

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

static void send_keepalive(struct serviced *serviced)
{
	struct stream *s = container_of(serviced, struct stream, keepalive);

	pthread_mutex_lock(&s->base.lock);
	stream_progress(&s->base);
	if (stream_can_send_messages(s->state) && s->out.ctrl_slots) {
		s->out.ctrl_slots--;
		if (memory_post(s, RS_OP_CTRL, 0, NULL, NULL, 0, false, (struct rs_entry){ 0 })) {
			s->out.ctrl_slots++;
			stream_apply(s, STREAM_EV_SEND_FAILED, -EIO);
		}
	}
	pthread_mutex_unlock(&s->base.lock);
	keepalive_update(s);
}

void keepalive_init(struct stream *s)
{
	serviced_init(&s->keepalive, NULL, send_keepalive);
}

void keepalive_update(struct stream *s)
{
	uint32_t ms = 0;

	pthread_mutex_lock(&s->base.lock);
	if (s->options.keepalive && stream_can_send_messages(s->state) && !s->base.closed) {
		int seconds = s->options.keepalive_s ? s->options.keepalive_s
						     : keepalive_default_s();

		ms = (uint32_t)(seconds < LONGEST_S ? seconds : LONGEST_S) * MS_PER_S;
	}
	pthread_mutex_unlock(&s->base.lock);
	service_expire_in(&s->keepalive, ms);
}
