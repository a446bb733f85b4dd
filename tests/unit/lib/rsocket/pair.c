/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected stream sockets without a connection manager: see pair.h. */
#include "pair.h"

#include <rdma/rsocket.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/rsocket/iomap.h"
#include "lib/rsocket/memory.h"
#include "lib/rsocket/wait.h"
#include "wire_device.h"
#include "tests/unit/test.h"

static struct stream *make(struct stream_sizes sizes)
{
	struct stream *s;

	ck_assert_int_eq(stream_new(wire_id(), AF_INET, NULL, &s), 0);
	s->sizes = sizes;
	s->base.fd = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(memory_make(s), 0);
	ck_assert_int_eq(stream_apply(s, STREAM_EV_ACCEPT, 0), 0);
	ck_assert_int_eq(table_add(&s->base), 0);
	return s;
}

static void connect_to(struct stream *s, const struct stream *peer)
{
	struct rs_hello hello = memory_hello(peer);

	ck_assert_int_eq(memory_learn(s, &hello), 0);
}

static void establish(struct stream *s)
{
	pthread_mutex_lock(&s->base.lock);
	ck_assert_int_eq(stream_apply(s, STREAM_EV_ESTABLISHED, 0), 0);
	pthread_mutex_unlock(&s->base.lock);
}

struct pair pair_make(struct stream_sizes sizes)
{
	struct pair pair = { .end = { make(sizes), make(sizes) } };

	wire_pair(pair.end[0]->id->qp, pair.end[1]->id->qp);
	connect_to(pair.end[0], pair.end[1]);
	connect_to(pair.end[1], pair.end[0]);
	for (int i = 0; i < 2; i++) {
		establish(pair.end[i]);
		pair.fd[i] = pair.end[i]->base.fd;
	}
	return pair;
}

/* As rsock_ops.end, except for the id, which is in no engine. */
static void drop(struct stream *s)
{
	struct rsock *rs = table_take(s->base.fd);

	if (rs)
		rs->ops->close(rs);
	iomap_free_all(s);
	memory_free(s);
	close(s->base.fd);
	wire_id_free(s->id);
	token_fini(&s->send_token);
	token_fini(&s->recv_token);
	rsock_unhold(&s->base);
}

void pair_free(struct pair *pair)
{
	drop(pair->end[0]);
	drop(pair->end[1]);
}

struct stream_sizes pair_small(void)
{
	return (struct stream_sizes){ .sq_size = 16,
				      .rq_size = 16,
				      .inline_size = 64,
				      .send_bytes = 4096,
				      .recv_bytes = 4096,
				      .iomap_size = 4 };
}
