/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of a datagram socket's queue pair, over a device in memory that refuses what is not
 * inside registered memory; and its UDP side.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/rsocket/dgram.h"
#include "lib/rsocket/wait.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

static const struct {
	uint32_t sq_size, rq_size, n_slots;
} sizes[] = {
	{1,    1,		16},
	 { 16,  16,	   16},
	   { 17,	 400,	      17},
	{ 400, 33,	   33},
	 { 384, 384,	     64},
	   { 0,	UINT32_MAX, 16},
};

/* A socket of the fake device; the queue pair is for dgram_qp_make(). */
static struct rsock *open_with(struct dgram_qp *qp)
{
	struct rsock *rs;

	wire_begin();
	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	list_init(&qp->link);
	qp->id = wire_id();
	return rs;
}

static void close_with(struct rsock *rs, struct dgram_qp *qp)
{
	struct rdma_cm_id *id = qp->id;

	rdma_destroy_qp(id);
	qp->id = NULL;
	dgram_qp_free(dgram_of(rs), qp);
	wire_id_free(id);
	rsock_put(rs);
	wire_end();
}

/* Stock's ds_init_ep() makes a list of more buffers than it has memory for. */
TEST_LOOP(ds_init_ep_out_of_bounds_all_slots_are_inside_the_memory, 0,
	  sizeof(sizes) / sizeof(sizes[0]))
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct dgram_dest dest = { .qp = qp };
	static uint8_t data[DGRAM_SLOT_BYTES];
	struct iovec iov = { data, DGRAM_SLOT_BYTES - DGRAM_UD_BYTES_MAX };
	const struct rs_transfer out = { .iov = &iov, .n_iov = 1 };
	uint8_t header[DGRAM_UD_BYTES_MAX] = { 0 };
	struct rsock *rs = open_with(qp);

	dgram_of(rs)->sq_size = sizes[_i].sq_size;
	dgram_of(rs)->rq_size = sizes[_i].rq_size;
	/* Every slot is posted to be received into, and then to be sent from. */
	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	ck_assert_uint_eq(qp->n_slots, sizes[_i].n_slots);
	for (uint32_t i = 0; i < qp->n_slots; i++)
		ck_assert_int_eq(dgram_qp_send(&dest, header, sizeof(header), &out), 0);
	ck_assert_int_ne(dgram_qp_send(&dest, header, sizeof(header), &out), 0);
	close_with(rs, qp);
}
END_TEST

static bool was_told;

static void note(struct watcher *watch)
{
	(void)watch;
	was_told = true;
}

/* Otherwise a reader that sleeps while another thread sends first misses the answer. */
TEST(a_new_queue_pair_notifies_the_watches_of_the_socket)
{
	struct dgram_qp *qp = calloc(1, sizeof(*qp));
	struct watcher watch = { .changed = note };
	struct rsock *rs = open_with(qp);

	watch_add(rs, &watch);
	ck_assert_int_eq(dgram_qp_make(dgram_of(rs), qp), 0);
	ck_assert(was_told);
	rs->ops->arm(rs, POLLIN);
	ck_assert(qp->armed);
	close_with(rs, qp);
}
END_TEST

/* --- over UDP ------------------------------------------------------------ */

/* A UDP socket of the loopback interface. */
static int listen_udp(union addr *ret)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t bytes = sizeof(*ret);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(getsockname(fd, &ret->sa, &bytes), 0);
	return fd;
}

/* As with any UDP socket, connect() sets only the default receiver. */
TEST(a_connected_socket_sends_to_the_address_it_is_given)
{
	struct ibv_qp pair = { .qp_num = 1 };
	struct rdma_cm_id id = { .qp = &pair };
	struct dgram_qp qp = { .id = &id };
	struct dgram_dest dest = { .qp = &qp };
	union addr peer;
	int peer_fd = listen_udp(&peer), other_fd = listen_udp(&dest.addr);
	struct rsock *rs;
	char got[64];

	qp.local = peer;
	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	ck_assert_int_eq(rs->ops->connect(rs, &peer.sa, sizeof(peer.in4)), 0);
	ck_assert_int_eq(dgram_udp_send(dgram_of(rs), &dest, DGRAM_DATA, NULL, 0), 0);
	ck_assert_int_gt(recv(other_fd, got, sizeof(got), 0), 0);
	ck_assert_int_lt(recv(peer_fd, got, sizeof(got), 0), 0);
	rs->ops->close(rs);
	rsock_put(rs);
	close(peer_fd);
	close(other_fd);
}
END_TEST

/* A call may be inside while another thread closes the socket. */
TEST(a_closed_socket_is_not_served_again)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rsock *rs;

	ck_assert_int_eq(dgram_open(AF_INET, &rs), 0);
	rs->ops->close(rs);
	ck_assert_int_eq(rs->ops->bind(rs, (struct sockaddr *)&any, sizeof(any)), -EBADF);
	ck_assert_int_eq(dgram_of(rs)->udp.watch.fd, -1);
	rsock_put(rs);
}
END_TEST

#define N_TRIES 500

static struct rsock *unbound;
static pthread_barrier_t together;

static void *connect_first(void *unused)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };

	(void)unused;
	pthread_barrier_wait(&together);
	return (void *)(intptr_t)unbound->ops->connect(unbound, (struct sockaddr *)&to, sizeof(to));
}

TEST(two_threads_may_be_the_first_to_use_a_socket)
{
	pthread_t threads[2];
	void *err;

	pthread_barrier_init(&together, NULL, 2);
	for (int try = 0; try < N_TRIES; try++) {
		ck_assert_int_eq(dgram_open(AF_INET, &unbound), 0);
		for (int i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, connect_first, NULL);
		for (int i = 0; i < 2; i++) {
			pthread_join(threads[i], &err);
			ck_assert_ptr_null(err);
		}
		unbound->ops->close(unbound);
		rsock_put(unbound);
	}
	pthread_barrier_destroy(&together);
}
END_TEST
