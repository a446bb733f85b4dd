/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's interface to cmportd: see portd_client.h. Messages are sent without a lock: each
 * call sends one datagram.
 */
#include "lib/portd/client/portd_client.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/net/foreign.h"
#include "lib/net/low_port.h"
#include "lib/net/port_space.h"
#include "lib/portd/client/portd_requests.h"
#include "lib/portd/proto/datagram.h"

#define DRAIN_LOOK_NS 1000000
#define TURN_NS	      50000000 /* usually 1 ms */
#define LEASE_FIRST   256
#define LEASE_LOW     64 /* below, more are requested ahead of need */
#define LEASE_MAX     512

static struct portd_client *latest; /* of this process, from before it is connected; or NULL */

/* --- beginning and end --------------------------------------------------- */

static int open_client(struct portd_client **ret, bool visits,
		       int (*reach)(int *ret_fd, struct portd_why *ret_why),
		       struct portd_ids *ret_ids, struct portd_why *ret_why)
{
	struct portd_client *client = malloc(sizeof(*client));
	int err;

	ret_why->text[0] = '\0';
	if (!client)
		return -ENOMEM;
	memset(client, 0, offsetof(struct portd_client, held)); /* held is large */
	client->held.bytes = 0;
	client->visits = visits;
	client->reach = reach;
	client->control_fd = -1;
	client->data_fd = -1;
	client->page_fd = -1;
	client->turn_fd = -1;
	client->passed[0] = client->passed[1] = -1;
	__atomic_store_n(&latest, client, __ATOMIC_RELEASE);
	client->lease_count = LEASE_FIRST;
	pthread_mutex_init(&client->lock, NULL);
	pthread_mutex_init(&client->data_lock, NULL);
	pthread_mutex_init(&client->held_lock, NULL);
	pthread_cond_init(&client->resumed, NULL);
	err = reach ? 0 : socket_path_find(client->path);
	if (!err)
		err = request_start(client, false, ret_ids, ret_why);
	if (err) {
		portd_client_close(client);
		return err;
	}
	*ret = client;
	return 0;
}

int portd_client_open(struct portd_client **ret, struct portd_ids *ret_ids,
		      struct portd_why *ret_why)
{
	return open_client(ret, false, NULL, ret_ids, ret_why);
}

int portd_client_open_by(struct portd_client **ret,
			 int (*reach)(int *ret_fd, struct portd_why *ret_why),
			 struct portd_ids *ret_ids, struct portd_why *ret_why)
{
	return open_client(ret, false, reach, ret_ids, ret_why);
}

int portd_client_visit(struct portd_client **ret, struct portd_why *ret_why)
{
	struct portd_ids none;

	return open_client(ret, true, NULL, &none, ret_why);
}

static void free_client(struct portd_client *client)
{
	if (client->page)
		munmap(client->page, LEASE_PAGE_BYTES);
	fd_close(&client->page_fd);
	fd_close(&client->control_fd);
	fd_close(&client->data_fd);
	fd_close(&client->turn_fd);
	fd_close(&client->passed[0]);
	fd_close(&client->passed[1]);
	if (latest == client)
		latest = NULL;
	free(client);
}

void portd_client_close(struct portd_client *client)
{
	if (!client)
		return;
	portd_send_held(client);
	pthread_mutex_destroy(&client->lock);
	pthread_mutex_destroy(&client->data_lock);
	pthread_mutex_destroy(&client->held_lock);
	pthread_cond_destroy(&client->resumed);
	free_client(client);
}

void portd_client_leave(struct portd_client *client, int ms)
{
	struct pollfd poll_fd = { .fd = client->control_fd };

	shutdown(client->control_fd, SHUT_WR);
	shutdown(client->data_fd, SHUT_WR);
	poll(&poll_fd, 1, ms);
}

void portd_client_after_fork(void)
{
	if (latest)
		free_client(latest);
}

int portd_client_fd(const struct portd_client *client)
{
	return client->data_fd;
}

/* --- ports and ids ------------------------------------------------------- */

static struct portd_record open_record(const char *device, uint8_t port_num)
{
	struct portd_record record = { .type = PORTD_OPEN_PORT,
				       .open_port = { .port_num = port_num } };

	strncpy(record.open_port.device, device, sizeof(record.open_port.device) - 1);
	return record;
}

void portd_keep_reply(const struct portd_reply *reply, void *arg)
{
	*(struct portd_reply *)arg = *reply;
}

int portd_open_port(struct portd_client *client, const char *device, uint8_t port_num,
		    portd_opened_fn *opened, void *arg, struct portd_why *ret_why)
{
	struct portd_record record = open_record(device, port_num);
	struct portd_reply reply = { .error = 0 };
	int netns = net_foreign_socket();
	int err;

	pthread_mutex_lock(&client->lock);
	err = request_try(client, &record, netns, &reply);
	if (!err)
		opened(&reply, arg);
	pthread_mutex_unlock(&client->lock);
	fd_close(&netns);
	if (err != -EPIPE)
		memcpy(ret_why->text, reply.text, sizeof(ret_why->text));
	return err;
}

/*
 * The proof that this thread may bind a privileged port, see net/low_port.h. Return: -1 if the port
 * needs none, or the thread may not; cmportd decides.
 */
static int prove_port(const struct portd_claim *claim)
{
	int fd = -1;

	if (claim->local_port && claim->local_port < PORT_PRIVILEGED)
		low_port_prove(claim->local_port, &fd);
	return fd;
}

int portd_bind(struct portd_client *client, struct portd_claim *claim)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = *claim };
	struct portd_reply reply;
	int proof = prove_port(claim);
	int err = request_ask(client, &record, proof, &reply);

	fd_close(&proof);
	if (!err)
		claim->local_port = reply.port;
	return err;
}

int portd_listen(struct portd_client *client, const struct portd_claim *claim)
{
	struct portd_record record = { .type = PORTD_LISTEN, .claim = *claim };
	struct portd_reply reply;

	return request_ask(client, &record, -1, &reply);
}

void portd_update(struct portd_client *client, const struct portd_claim *claim)
{
	struct portd_record record = { .type = PORTD_UPDATE, .claim = *claim };

	request_tell(client, &record);
}

void portd_release(struct portd_client *client, uint32_t claim_id)
{
	struct portd_record record = { .type = PORTD_RELEASE, .claim = { .claim_id = claim_id } };

	request_tell(client, &record);
}

static int *n_free(struct portd_client *client, uint16_t ps)
{
	return &client->n_free[lease_space(ps)];
}

static struct portd_record lease_record(struct portd_client *client, enum portd_type type,
					uint16_t ps)
{
	struct portd_record record = { .type = type, .lease_ports = { .ps = ps } };

	pthread_mutex_lock(&client->lock);
	record.lease_ports.count = (uint16_t)client->lease_count;
	if (client->lease_count < LEASE_MAX)
		client->lease_count *= 2;
	pthread_mutex_unlock(&client->lock);
	return record;
}

static bool lease_more(struct portd_client *client, uint16_t ps)
{
	struct portd_record record = lease_record(client, PORTD_LEASE_PORTS, ps);
	struct portd_reply reply;
	int err = request_ask(client, &record, -1, &reply);

	if (err)
		return false;
	lease_look_at(reply.port);
	__atomic_store_n(n_free(client, ps), (int)reply.count, __ATOMIC_RELAXED);
	return reply.count;
}

/* Before the first lease the page is empty, and is not touched. */
uint16_t portd_take_port(struct portd_client *client, uint16_t ps)
{
	bool *has_leased = &client->has_leased[lease_space(ps)];
	struct portd_record record;
	uint16_t port = 0;

	if (__atomic_exchange_n(has_leased, true, __ATOMIC_RELAXED))
		port = lease_take(client->page, ps);

	if (!port && lease_more(client, ps))
		port = lease_take(client->page, ps);
	/* Once each time the page runs low: the estimate includes requested ports. */
	if (port && __atomic_sub_fetch(n_free(client, ps), 1, __ATOMIC_RELAXED) == LEASE_LOW) {
		record = lease_record(client, PORTD_LEASE_AHEAD, ps);
		__atomic_add_fetch(n_free(client, ps), record.lease_ports.count, __ATOMIC_RELAXED);
		request_tell(client, &record);
	}
	return port;
}

bool portd_give_port(struct portd_client *client, uint16_t ps, uint16_t port)
{
	bool given = lease_give_back(client->page, ps, port);

	if (given)
		__atomic_add_fetch(n_free(client, ps), 1, __ATOMIC_RELAXED);
	return given;
}

uint32_t portd_port_events(const struct portd_client *client, int handle)
{
	return lease_events(client->page, (unsigned int)handle);
}

int portd_lease_ids(struct portd_client *client, struct portd_ids *ret)
{
	struct portd_record record = { .type = PORTD_LEASE_IDS };
	struct portd_reply reply;
	int err;

	pthread_mutex_lock(&client->lock);
	err = request_ask_locked(client, &record, -1, &reply);
	/* The next cmportd must be told of it, which may come at once. */
	if (!err)
		*ret = request_keep_block(client, &reply);
	pthread_mutex_unlock(&client->lock);
	return err;
}

/* Not sent to the next cmportd, which knows no more than the caller. */
int portd_stat(struct portd_client *client, uint32_t pid, struct portd_reply *ret)
{
	struct portd_record record = { .type = PORTD_STAT, .stat = { .pid = pid } };
	int err;

	pthread_mutex_lock(&client->lock);
	err = request_exchange(client, &record, -1, ret, NULL);
	pthread_mutex_unlock(&client->lock);
	return err ? err : -ret->error;
}

void portd_track(struct portd_client *client, const struct cm_record *tracked)
{
	struct portd_record record = { .type = PORTD_TRACK, .tracked = *tracked };

	request_tell(client, &record);
}

/* --- messages ------------------------------------------------------------ */

static int send_datagram(struct portd_client *client, const struct portd_datagram *out)
{
	return out->bytes ? portd_datagram_send(client->data_fd, out, NULL, 0) : 0;
}

void portd_hold(struct portd_client *client, const struct portd_record *record)
{
	pthread_mutex_lock(&client->held_lock);
	if (!portd_put(&client->held, record)) {
		send_datagram(client, &client->held);
		client->held.bytes = 0;
		portd_put(&client->held, record);
	}
	pthread_mutex_unlock(&client->held_lock);
}

int portd_send_held(struct portd_client *client)
{
	struct portd_datagram out; /* large, so not cleared */

	pthread_mutex_lock(&client->held_lock);
	memcpy(out.data, client->held.data, client->held.bytes);
	out.bytes = client->held.bytes;
	client->held.bytes = 0;
	pthread_mutex_unlock(&client->held_lock);
	return send_datagram(client, &out);
}

static int send_data(struct portd_client *client, const struct portd_record *record, int flags)
{
	struct portd_datagram out; /* large, so not cleared */

	out.bytes = 0;
	portd_put(&out, record);
	return portd_datagram_send(client->data_fd, &out, NULL, flags);
}

int portd_put_data(struct portd_client *client, const struct portd_record *record)
{
	const bool waits = record->type != PORTD_SA_REVALIDATE;
	int err = waits ? pthread_mutex_lock(&client->data_lock)
			: pthread_mutex_trylock(&client->data_lock);

	if (err)
		return -err;
	err = send_data(client, record, waits ? 0 : MSG_DONTWAIT);
	pthread_mutex_unlock(&client->data_lock);
	return err;
}

int portd_try_data(struct portd_client *client, const struct portd_datagram *datagram)
{
	return portd_datagram_send(client->data_fd, datagram, NULL, MSG_DONTWAIT);
}

void portd_drain(struct portd_client *client, int ms)
{
	const struct timespec wait = { .tv_nsec = DRAIN_LOOK_NS }, turn = { .tv_nsec = TURN_NS };
	int unread = 0;

	for (; ms > 0 && !ioctl(client->data_fd, SIOCOUTQ, &unread) && unread; ms--)
		nanosleep(&wait, NULL);
	nanosleep(&turn, NULL);
}

void portd_resume_here(void)
{
	request_is_resumer = true;
}

int portd_receive(struct portd_client *client,
		  void (*take)(const struct portd_record *record, void *arg), void *arg)
{
	struct portd_datagram in;
	struct portd_record record;
	ssize_t n;

	portd_resume_here();
	n = portd_datagram_receive(client->data_fd, &in, NULL, MSG_DONTWAIT);
	if (n <= 0)
		return n && errno == EAGAIN ? -EAGAIN : -EPIPE;
	while (portd_get(&in, &record) == 0)
		if (portd_is_told(record.type))
			take(&record, arg);
	return 0;
}

/* --- the next cmportd ----------------------------------------------------- */

static int resume_once(struct portd_client *client,
		       void (*tell)(struct portd_client *client, void *arg), void *arg)
{
	struct portd_record hold = { .type = PORTD_HOLD_IDS }, resumed = { .type = PORTD_RESUMED };
	struct portd_why why = { "" };
	struct portd_reply reply;
	unsigned int i;
	int err = request_start(client, true, NULL, &why);

	for (i = 0; !err && i < client->n_blocks; i++) {
		hold.ids = client->block[i];
		err = request_exchange(client, &hold, -1, &reply, NULL);
		err = err ? err : -reply.error;
	}
	if (!err) {
		tell(client, arg);
		err = request_exchange(client, &resumed, -1, &reply, NULL);
	}
	return err;
}

/* The next cmportd may be killed as well, while it is told: then it is the one after it. */
int portd_resume(struct portd_client *client, void (*tell)(struct portd_client *client, void *arg),
		 void *arg)
{
	unsigned int i;
	int err = -EPIPE;

	pthread_mutex_lock(&client->data_lock);
	pthread_mutex_lock(&client->lock);
	client->broken = true;
	for (i = 0; i < REQUEST_TRIES_MAX && request_is_hang_up(err); i++)
		err = resume_once(client, tell, arg);
	if (!err) {
		client->broken = false;
		client->life++;
	} else {
		client->n_failed++;
	}
	pthread_cond_broadcast(&client->resumed);
	pthread_mutex_unlock(&client->lock);
	pthread_mutex_unlock(&client->data_lock);
	return err;
}

int portd_tell_port(struct portd_client *client, const char *device, uint8_t port_num,
		    struct portd_reply *ret)
{
	struct portd_record record = open_record(device, port_num);
	int netns = net_foreign_socket();
	int err = request_exchange(client, &record, netns, ret, NULL);

	fd_close(&netns);
	return err;
}

int portd_tell_claim(struct portd_client *client, const struct portd_claim *claim, bool listens)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = *claim };
	struct portd_reply reply = { .error = 0 };
	int proof = prove_port(claim);
	int err = request_exchange(client, &record, proof, &reply, NULL);

	fd_close(&proof);
	if (!err && !reply.error && listens) {
		record.type = PORTD_LISTEN;
		err = request_exchange(client, &record, -1, &reply, NULL);
	}
	return err ? err : -reply.error;
}

int portd_tell_data(struct portd_client *client, const struct portd_record *record)
{
	int err = send_data(client, record, 0);

	if (err)
		portd_tell_failed(client);
	return err;
}

void portd_tell_tracked(struct portd_client *client, const struct cm_record *tracked)
{
	struct portd_record record = { .type = PORTD_TRACK, .tracked = *tracked };

	if (request_send(client->control_fd, &record, -1))
		portd_tell_failed(client);
}

/* There may be thousands of records more, and each would wait. */
void portd_tell_failed(struct portd_client *client)
{
	shutdown(client->control_fd, SHUT_RDWR);
	shutdown(client->data_fd, SHUT_RDWR);
}
