/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services that the subnet administrator knows: see sa_service.h.
 */
#include "lib/names/sa_service.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "lib/api.h"
#include "lib/device/device.h"
#include "lib/device/port_info.h"
#include "lib/engine/engine.h"

#define TIMEOUT_MS 2000	 /* as stock */
#define WAIT_MS	   20000 /* the next cmportd asks again */

/* --- the question -------------------------------------------------------- */

/* Return: false if it is no number. */
static bool read_service_id(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return !errno && end != text && !*end;
}

/* Drops the records that were found: the next cmportd repeats the query, from the first record. */
static void start_again(struct service_query *query)
{
	rdma_freeaddrinfo(query->list);
	query->list = NULL;
	query->end = &query->list;
	query->err = 0;
}

static struct sockaddr *address_of(const struct mad_gid *gid, uint16_t pkey, uint64_t service_id,
				   socklen_t *ret_bytes)
{
	struct sockaddr_ib *sib = calloc(1, sizeof(*sib));

	if (!sib)
		return NULL;
	sib->sib_family = AF_IB;
	sib->sib_pkey = htobe16(pkey);
	memcpy(&sib->sib_addr, gid, sizeof(sib->sib_addr));
	sib->sib_sid = htobe64(service_id);
	sib->sib_sid_mask = service_id ? UINT64_MAX : 0;
	*ret_bytes = sizeof(*sib);
	return (struct sockaddr *)sib;
}

static int append_record(struct service_query *query, const struct sa_service *service)
{
	struct rdma_addrinfo *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	entry->ai_flags = RAI_SA;
	entry->ai_family = AF_IB;
	entry->ai_qp_type = IBV_QPT_RC;
	entry->ai_port_space = RDMA_PS_IB;
	entry->ai_src_addr =
		address_of(&query->port->cm.gid0, service->pkey, 0, &entry->ai_src_len);
	entry->ai_dst_addr =
		address_of(&service->gid, service->pkey, service->service_id, &entry->ai_dst_len);
	if (!entry->ai_src_addr || !entry->ai_dst_addr) {
		rdma_freeaddrinfo(entry);
		return -ENOMEM;
	}
	*query->end = entry;
	query->end = &entry->ai_next;
	return 0;
}

static bool service_answered(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	struct service_query *query = container_of(ask, struct service_query, ask);

	if (ask->is_first)
		start_again(query);
	if (!err)
		err = append_record(query, &answer->service);
	if (err)
		query->err = err;
	if (!ask->left)
		query->done(query, query->err);
	return false;
}

int service_query_init(struct service_query *query, const char *service)
{
	struct sa_msg *msg = &query->ask.msg;
	uint64_t service_id;

	memset(query, 0, sizeof(*query));
	query->end = &query->list;
	query->ask.timeout_ms = TIMEOUT_MS;
	query->ask.done = service_answered;
	if (read_service_id(service, &service_id)) {
		sa_msg_init(msg, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD, SA_SERVICE_ID, 0);
		msg->service.service_id = service_id;
		return 0;
	}
	if (!*service || strlen(service) >= SA_SERVICE_NAME_BYTES)
		return -EINVAL;
	sa_msg_init(msg, SA_METHOD_GET_TABLE, SA_ATTR_SERVICE_RECORD, SA_SERVICE_NAME, 0);
	memcpy(msg->service.name, service, strlen(service));
	return 0;
}

void service_query_begin(struct service_query *query, struct engine *engine, struct port *port,
			 struct portd_record *ret_record)
{
	query->port = port;
	subnet_ask(engine, &query->ask, port, ret_record);
}

bool service_query_fini(struct service_query *query, struct portd_record *ret_drop)
{
	bool is_dropped = subnet_drop(&query->ask, ret_drop);

	rdma_freeaddrinfo(query->list);
	query->list = NULL;
	if (query->port)
		port_put(query->port);
	query->port = NULL;
	return is_dropped;
}

/* --- waiting for the answer ---------------------------------------------- */

struct waiting {
	struct service_query query;
	sem_t ended;
	int err;
};

static void wake_asker(struct service_query *query, int err)
{
	struct waiting *waiting = container_of(query, struct waiting, query);

	waiting->err = err;
	sem_post(&waiting->ended);
}

static void end_waiting(void *arg)
{
	struct portd_record drop = { .type = PORTD_NONE };
	struct waiting *waiting = arg;

	engine_lock();
	service_query_fini(&waiting->query, &drop);
	engine_unlock();
	subnet_send(&drop);
	sem_destroy(&waiting->ended);
}

static int await_answer(struct waiting *waiting, int cancel_state)
{
	const struct timespec end = clock_after_ms(WAIT_MS);
	int err;

	do {
		api_leave(cancel_state);
		err = sem_clockwait(&waiting->ended, CLOCK_MONOTONIC, &end) ? errno : 0;
		api_enter();
	} while (err == EINTR);
	return err ? -err : waiting->err;
}

/* @port: a reference, which is released here */
static int ask_port(struct port *port, const char *service, int cancel_state,
		    struct rdma_addrinfo **ret)
{
	struct portd_record question;
	struct waiting waiting;
	int err = service_query_init(&waiting.query, service);

	if (err) {
		port_put(port);
		return err;
	}
	waiting.query.done = wake_asker;
	sem_init(&waiting.ended, 0, 0);
	service_query_begin(&waiting.query, engine_lock(), port, &question);
	engine_unlock();
	subnet_send(&question);
	pthread_cleanup_push(end_waiting, &waiting);
	err = await_answer(&waiting, cancel_state);
	if (!err) {
		*ret = waiting.query.list;
		waiting.query.list = NULL;
	}
	pthread_cleanup_pop(1);
	return err;
}

static bool is_on_subnet(const struct device *device, uint8_t port_num)
{
	struct port_info info;

	return !port_info(device, port_num, &info) && info.state == IBV_PORT_ACTIVE &&
	       info.is_infiniband;
}

/* Opens the nth port that is on a subnet. Return: false if there are fewer. */
static bool open_subnet_port(int nth, struct port **ret, int *ret_err)
{
	const struct device_list *list;
	bool found = false;
	uint8_t num;
	int i;

	device_list_enter();
	list = device_list();
	for (i = 0; i < list->n && !found; i++)
		for (num = 1; num <= list->device[i]->n_ports && !found; num++) {
			found = is_on_subnet(list->device[i], num) && nth-- == 0;
			if (found)
				*ret_err = device_port_open(list->device[i], num, ret);
		}
	device_list_leave();
	return found;
}

int service_find(const char *service, int cancel_state, struct rdma_addrinfo **ret)
{
	struct port *port;
	int err = device_list_load();
	int i, found = -ENOENT;

	if (err)
		return err;
	for (i = 0; open_subnet_port(i, &port, &err); i++) {
		if (!err)
			err = ask_port(port, service, cancel_state, ret);
		if (!err || err == -EINVAL)
			return err;
		found = err == -ENOENT ? found : err;
	}
	return found;
}
