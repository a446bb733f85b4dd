/* SPDX-License-Identifier: BSD-2-Clause */
/* A listening socket whose device accepts a request slowly: see run_accepting(). */
#include <errno.h>
#include <rdma/rsocket.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/rsocket/connecting.h"
#include "lib/rsocket/stream_wire.h"
#include "tests/unit/lib/rsocket/wire_device.h"
#include "tests/unit/test.h"

int __real_rdma_listen(struct rdma_cm_id *id, int backlog);
int __wrap_rdma_listen(struct rdma_cm_id *id, int backlog);
int __real_rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);
int __wrap_rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);
int __real_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);

static struct rdma_cm_id *request; /* the only one; NULL: none */
static sem_t accepting, accepted;

int __wrap_rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return request ? 0 : __real_rdma_listen(id, backlog);
}

int __wrap_rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	uint64_t count;

	if (!request)
		return __real_rdma_get_request(listen, id);
	ck_assert_int_eq(read(listen->channel->fd, &count, sizeof(count)), sizeof(count));
	*id = request;
	return 0;
}

int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (!request)
		return __real_rdma_accept(id, param);
	sem_post(&accepting);
	sem_wait(&accepted);
	errno = EAGAIN;
	return -1;
}

/* An id with a descriptor of its own, as a synchronous one has. */
static struct rdma_cm_id *own_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = wire_id();

	channel->fd = eventfd(0, EFD_CLOEXEC);
	id->channel = channel;
	return id;
}

static void ask(const struct rdma_cm_id *listener)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(listener->channel->fd, &one, sizeof(one)), sizeof(one));
	sem_wait(&accepting);
}

/* The device may try for a second to resolve an address that does not exist. */
TEST(accept_that_waits_for_the_device_holds_no_lock)
{
	struct rs_hello hello = { .version = RS_VERSION, .credits = 1, .table_entries = 2 };
	static uint8_t data[RS_HELLO_BYTES];
	static struct rdma_cm_event event = { .param.conn = { .private_data = data,
							      .private_data_len = sizeof(data) } };
	static struct rdma_event_channel channel[2];
	static struct stream *listener;
	struct stream *child;

	wire_begin();
	wire_encode(&rs_hello_layout, &hello, data);
	ck_assert_int_eq(sem_init(&accepting, 0, 0) | sem_init(&accepted, 0, 0), 0);
	request = own_id(&channel[1]);
	request->event = &event;
	ck_assert_int_eq(stream_new(own_id(&channel[0]), AF_INET, NULL, &listener), 0);
	ck_assert_int_eq(listen_start(&listener->base, 1), 0);
	ask(listener->id);
	service_lock();
	child = container_of(listener->pending.next, struct stream, sibling);
	ck_assert_ptr_eq(child->id, request);
	service_unlock();
	/* These ids are in no engine and cannot be freed: keep the socket. */
	rsock_hold(&child->base);
	sem_post(&accepted);
}
END_TEST

/* The service thread needs a descriptor, so it cannot start at this limit. */
TEST(listening_that_failed_can_be_tried_again)
{
	static struct rdma_event_channel channel;
	struct rlimit limit, none;
	static struct stream *listener;

	wire_begin();
	ck_assert_int_eq(sem_init(&accepting, 0, 0) | sem_init(&accepted, 0, 0), 0);
	request = own_id(&channel);
	ck_assert_int_eq(stream_new(request, AF_INET, NULL, &listener), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(listen_start(&listener->base, 1), -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(listen_start(&listener->base, 1), 0);
	ck_assert_int_eq(listener->cm.watch.fd, channel.fd);
}
END_TEST
