/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets that a process sends with: without a free descriptor, or to one that does not read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/fabric/wire/peer.h"

#define N	   3
#define LONG_BYTES 32768
#define N_LONG	   5000

static char dir[TEMPORARY_BYTES];
static struct sockaddr_un to[N];
static int receiver[N], said[2];
static struct fab_peers peers;

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(name_temporary(dir)));
	for (int i = 0; i < N; i++) {
		to[i].sun_family = AF_UNIX;
		snprintf(to[i].sun_path, sizeof(to[i].sun_path), "%s/%d", dir, i);
		receiver[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		ck_assert_int_eq(bind(receiver[i], (struct sockaddr *)&to[i], sizeof(to[i])), 0);
	}
	ck_assert_int_eq(fab_peers_init(&peers, dir, 1), 0);
	ck_assert_int_eq(pipe2(said, O_NONBLOCK), 0);
	ck_assert_int_ge(dup2(said[1], STDERR_FILENO), 0);
}

static void tear_down(void)
{
	fab_peers_fini(&peers);
	for (int i = 0; i < N; i++)
		unlink(to[i].sun_path);
	rmdir(dir);
}

FIXTURE(set_up, tear_down);

/* Uses up all descriptors below the limit except @n_free. */
static void leave_free(unsigned int n_free)
{
	int next = dup(STDIN_FILENO);
	struct rlimit limit = { .rlim_cur = (rlim_t)next + n_free, .rlim_max = (rlim_t)next + N };

	close(next);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int send_to(int i)
{
	struct fab_packet packet = { .magic = FAB_MAGIC, .op = FAB_OP_DATAGRAM };

	return fab_peers_send(&peers, to[i].sun_path, &packet, NULL);
}

TEST(socket_to_a_new_peer_replaces_an_old_one_without_free_descriptors)
{
	struct fab_packet packet;

	leave_free(1);
	for (int i = 0; i < 2 * N; i++) {
		ck_assert_int_eq(send_to(i % N), 0);
		ck_assert_int_eq(read(receiver[i % N], &packet, sizeof(packet)), sizeof(packet));
	}
}

TEST(process_reports_once_that_it_cannot_send)
{
	char text[400] = "";

	leave_free(0);
	ck_assert_int_eq(send_to(0), -EMFILE);
	ck_assert_int_eq(send_to(1), -EMFILE);
	ck_assert_int_gt(read(said[0], text, sizeof(text) - 1), 0);
	ck_assert_ptr_nonnull(strstr(text, "has no descriptor left to send with"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

/* Reads what a receiver has, and what is still queued for it. Return: the number of packets. */
static int read_all(int i)
{
	static char bytes[sizeof(struct fab_packet) + LONG_BYTES];
	int n = 0;

	while (read(receiver[i], bytes, sizeof(bytes)) > 0) {
		n++;
		fab_peers_flush(&peers);
	}
	return n;
}

/* More than this is dropped, or nothing at all. */
static const struct {
	uint8_t op, service;
	int n_kept;
} services[] = {
	{ FAB_OP_DATAGRAM, FAB_SERVICE_UD, (16 << 20) / LONG_BYTES },
	{ FAB_OP_SEND, FAB_SERVICE_UC, (128 << 20) / LONG_BYTES },
	{ FAB_OP_SEND, FAB_SERVICE_RC, N_LONG },
};

TEST_LOOP(unreliable_packets_that_nobody_reads_are_dropped_beyond_a_limit, 0, 3)
{
	struct fab_packet packet = { .magic = FAB_MAGIC,
				     .op = services[_i].op,
				     .service = services[_i].service,
				     .bytes = LONG_BYTES };
	static char payload[LONG_BYTES];
	int n;

	for (int i = 0; i < N_LONG; i++)
		ck_assert_int_eq(fab_peers_send(&peers, to[0].sun_path, &packet, payload), 0);
	n = read_all(0);
	/* Those in the socket, and the headers, count differently. */
	ck_assert_int_ge(n, services[_i].n_kept - services[_i].n_kept / 10);
	ck_assert_int_le(n, services[_i].n_kept + services[_i].n_kept / 10);
}
