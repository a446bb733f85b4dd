/* SPDX-License-Identifier: BSD-2-Clause */
/* A full socket: queued packets leave when a program polls, with or without a thread. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/engine.h"

#define LOOPBACK                                           \
	{                                                  \
		.raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } \
	}

static bool is_full;
static unsigned int n_sent;

/* Replaces the log of single packets in this program. */
ssize_t sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to,
	       socklen_t to_bytes)
{
	(void)fd;
	(void)bytes;
	(void)flags;
	(void)to;
	(void)to_bytes;
	if (is_full) {
		errno = EAGAIN;
		return -1;
	}
	n_sent++;
	return (ssize_t)n;
}

static struct fab_page page;
static struct fab_device device = { .page = &page };
static struct fab_context *context;

static void set_up(void)
{
	context = calloc(1, sizeof(*context));
	ck_assert_ptr_nonnull(context);
	list_init(&context->unacked);
	list_init(&context->deferred);
	context->device = &device;
	context->carrier = &carrier_roce;
	context->has_thread = true; /* a thread that gets no processor */
	context->fd = context->udp_fd = context->wake_fd = -1;
	context->buffer = malloc(sizeof(struct fab_frames) + FAB_FRAMES_BYTES_MAX);
	ck_assert_ptr_nonnull(context->buffer);
	ck_assert_int_eq(udp_out_init(&context->out, 0, "/", 1), 0);
	n_sent = 0;
}

static void tear_down(void)
{
	udp_out_fini(&context->out);
	free(context->buffer);
	free(context);
}

FIXTURE(set_up, tear_down);

static void send_one(void)
{
	struct fab_packet packet = { .op = FAB_OP_ACK, .sgid = LOOPBACK, .dgid = LOOPBACK };

	carrier_roce.send(context, "", &packet, NULL);
	carrier_roce.flush(context);
}

TEST(queued_packets_are_sent_when_the_program_polls)
{
	is_full = true;
	send_one();
	send_one();
	ck_assert_uint_eq(n_sent, 0);
	context_progress(context, true);
	ck_assert_uint_eq(n_sent, 0);
	is_full = false;
	context_progress(context, true);
	ck_assert_uint_eq(n_sent, 2);
	context_progress(context, true);
	ck_assert_uint_eq(n_sent, 2);
}

/* Waiting packets also leave before the packets of a later post. */
TEST(queued_packets_are_sent_when_the_program_posts)
{
	is_full = true;
	send_one();
	is_full = false;
	send_one();
	ck_assert_uint_eq(n_sent, 2);
}
