/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to cmportd, and records from it: see cmportd.h. */
#include "lib/engine/cmportd.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/loop.h"
#include "lib/diag/lock_order.h"
#include "lib/diag/warning.h"
#include "lib/engine/engine.h"
#include "lib/engine/session.h"
#include "lib/net/netlink.h"
#include "mad/umad_owner.h"

#define IDS_LOW	     8192
#define TRY_AGAIN_NS (500 * CM_NS_PER_MS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct cmportd_upcalls *upcalls;
static struct watch watch; /* of the descriptor to cmportd */
static bool started;
static bool has_own;			    /* cmportd serves only us; set with the client */
static bool is_exiting;			    /* atomic */
static struct port *ports[PORTD_PORTS_MAX]; /* open, each with a reference; under the lock */
static struct cm_time resume_at;	    /* used by the engine's thread only */

static void cmportd_receive(struct watch *of);

void cmportd_set_upcalls(const struct cmportd_upcalls *above)
{
	upcalls = above;
}

/* --- finding cmportd ------------------------------------------------------ */

static int lend_ids(const struct portd_ids *ids)
{
	struct engine *engine = engine_lock();
	int err = cm_core_lend_ids(&engine->core, ids->first, ids->count);

	if (!err)
		engine->core.released = session_note_released;
	engine_unlock();
	return err;
}

static int meet_portd(void)
{
	const char *mode = env_get("PURECM_PORTD");
	struct portd_client *found;
	struct portd_ids ids;
	struct portd_why why;
	int err;

	has_own = mode && strcmp(mode, "inline") == 0;
	err = has_own ? portd_client_open_by(&found, portd_start_own, &ids, &why)
		      : portd_client_open(&found, &ids, &why);
	if (err) {
		warning_of_cmportd(why.text, err);
		return err;
	}
	err = lend_ids(&ids);
	if (err) {
		portd_client_close(found);
		return err;
	}
	resume_at = CM_TIME_NEVER;
	session_begin(found);
	return 0;
}

int cmportd_start(void)
{
	int err = 0;

	if (__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		return 0;
	lock_take(&lock, LOCK_HOST);
	/*
	 * Keep a cmportd that was found, even if it cannot be watched yet: the core has its comm
	 * ids.
	 */
	if (!started && !session_client())
		err = meet_portd();
	if (!started && !err)
		err = engine_watch(&watch, portd_client_fd(session_client()), cmportd_receive);
	if (!err)
		__atomic_store_n(&started, true, __ATOMIC_RELEASE);
	lock_give(&lock, LOCK_HOST);
	return err;
}

void cmportd_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	session_after_fork();
	started = false;
	has_own = false;
	is_exiting = false;
	memset(ports, 0, sizeof(ports));
}

/* --- ports --------------------------------------------------------------- */

/* The device's other port may be the one whose handle is shown. */
static void publish_handle(const struct port *port, int before, int handle)
{
	if (handle >= 0)
		__atomic_store_n(port->shown_handle, handle, __ATOMIC_RELEASE);
	else
		__atomic_compare_exchange_n(port->shown_handle, &before, -1, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Return: the place of an open port, or a free one; NULL if all are taken. The lock is held. */
static struct port **find_place(const struct port *port)
{
	unsigned int i;

	for (i = 0; i < PORTD_PORTS_MAX; i++)
		if (ports[i] == port)
			return &ports[i];
	return port ? find_place(NULL) : NULL;
}

static void set_handle(struct port *port, int handle)
{
	struct port **place, *before = NULL;

	lock_take(&lock, LOCK_HOST);
	place = find_place(port);
	if (handle >= 0 && place && !*place)
		*place = port_get(port);
	if (handle < 0 && place && *place) {
		before = *place;
		*place = NULL;
	}
	publish_handle(port, port->handle, handle);
	port->handle = handle;
	lock_give(&lock, LOCK_HOST);
	if (before)
		port_put(before);
}

static int open_at_cmportd(struct port *port, portd_opened_fn *opened)
{
	struct portd_why why = { "" };
	int err;

	umad_device_name(port->device->verbs->device->dev_name, port->name);
	err = portd_open_port(session_client(), port->name, port->port_num, opened, port, &why);
	if (err && err != -EPIPE)
		warning_of_port(port->name, port->port_num, err, why.text, "");
	return err;
}

int cmportd_await(void)
{
	return portd_await(session_client());
}

static void reopened(const struct portd_reply *reply, void *arg)
{
	set_handle(arg, reply->handle);
}

static void opened(const struct portd_reply *reply, void *arg)
{
	struct port *port = arg;

	cm_port_init(&port->cm, reply->ca_guid, &reply->gid0);
	port->tos = reply->tos;
	reopened(reply, port);
}

int cmportd_open_port(struct port *port)
{
	memcpy(port->name, port->device->verbs->device->name, sizeof(port->name));
	return open_at_cmportd(port, opened);
}

int cmportd_reopen_port(struct port *port)
{
	return port->handle < 0 ? open_at_cmportd(port, reopened) : 0;
}

void cmportd_close_port(struct port *port)
{
	set_handle(port, -1);
}

unsigned int cmportd_get_ports(struct port *ret[PORTD_PORTS_MAX])
{
	unsigned int i, n = 0;

	lock_take(&lock, LOCK_HOST);
	for (i = 0; i < PORTD_PORTS_MAX; i++)
		if (ports[i])
			ret[n++] = port_get(ports[i]);
	lock_give(&lock, LOCK_HOST);
	return n;
}

struct port *cmportd_find_port(uint8_t handle)
{
	struct port *port = NULL;
	unsigned int i;

	lock_take(&lock, LOCK_HOST);
	for (i = 0; i < PORTD_PORTS_MAX && !port; i++)
		if (ports[i] && ports[i]->handle == handle)
			port = port_get(ports[i]);
	lock_give(&lock, LOCK_HOST);
	return port;
}

/* --- messages ------------------------------------------------------------ */

/* Return: the handle of the record's port, or -1. */
static int handle_of(const struct portd_record *record)
{
	if (record->type == PORTD_MAD)
		return record->mad.port;
	if (record->type == PORTD_GONE)
		return record->gone.port;
	return record->type == PORTD_PORT_TOS ? record->port_tos.port : -1;
}

static void take_record(const struct portd_record *record, void *arg)
{
	int handle = handle_of(record);
	struct port *port;

	(void)arg;
	if (handle < 0) {
		upcalls->receive(record);
		return;
	}
	port = cmportd_find_port((uint8_t)handle);
	if (!port) {
		engine_lock();
		if (record->type == PORTD_MAD)
			session_count_mad();
		engine_unlock();
		return;
	}
	if (record->type == PORTD_GONE)
		upcalls->port_gone(port);
	else if (record->type == PORTD_PORT_TOS)
		__atomic_store_n(&port->tos, record->port_tos.tos, __ATOMIC_RELAXED);
	else
		engine_receive(port, &record->mad.path, record->mad.mad);
	port_put(port);
}

static void cmportd_receive(struct watch *of)
{
	int err;

	net_batch_begin();
	err = portd_receive(session_client(), take_record, NULL);
	net_batch_end();
	engine_received_all();
	if (err == -EPIPE) {
		log_debug("cmportd is gone");
		session_set_up(false);
		engine_unwatch(of);
		engine_lock();
		session_reset_count();
		engine_unlock();
		upcalls->forget();
		resume_at = clock_now();
	}
}

/* --- the state, for the next cmportd -------------------------------------- */

static struct cm_record record_of(const struct cm_conn *conn)
{
	struct cm_record record = cm_conn_record(conn);

	record.handle = (uint8_t)port_of(conn->port)->handle;
	return record;
}

struct conn_records {
	struct cm_record *tracked;
	size_t n, room;
};

static void collect_record(struct cm_conn *conn, void *arg)
{
	struct conn_records *records = arg;

	if (conn->port && port_of(conn->port)->handle >= 0 && records->n < records->room)
		records->tracked[records->n++] = record_of(conn);
}

static void resend_tracked(struct portd_client *to)
{
	struct engine *engine = engine_lock();
	struct conn_records records = { .room = engine->core.n_conns };
	size_t i;

	records.tracked = calloc(records.room + 1, sizeof(*records.tracked));
	if (records.tracked)
		cm_core_walk(&engine->core, collect_record, &records);
	engine_unlock();
	for (i = 0; i < records.n; i++)
		portd_tell_tracked(to, &records.tracked[i]);
	if (!records.tracked)
		warning_of_untracked();
	free(records.tracked);
}

/* A device may have been renamed. A port is lost only if cmportd refuses it. */
static void resend_port(struct portd_client *to, struct port *port)
{
	struct portd_reply reply;

	umad_device_name(port->device->verbs->device->dev_name, port->name);
	if (portd_tell_port(to, port->name, port->port_num, &reply))
		return;
	if (reply.error) {
		warning_of_port_lost(port->name, port->port_num, -reply.error);
		device_mark_unsettled(port->device);
	}
	set_handle(port, reply.error ? -reply.error : reply.handle);
}

static void resend_all(struct portd_client *to, void *arg)
{
	struct port *open[PORTD_PORTS_MAX];
	unsigned int i, n = cmportd_get_ports(open);

	(void)arg;
	for (i = 0; i < n; i++) {
		resend_port(to, open[i]);
		port_put(open[i]);
	}
	upcalls->resend(to);
	resend_tracked(to);
}

static void resume_portd(void)
{
	int err = portd_resume(session_client(), resend_all, NULL);

	if (!err)
		err = engine_watch(&watch, portd_client_fd(session_client()), cmportd_receive);
	session_set_up(!err);
	if (err)
		warning_of_cmportd_lost(err);
	else
		log_debug("the next cmportd knows everything");
	if (!err)
		upcalls->resumed();
	resume_at = err ? cm_time_after(clock_now(), TRY_AGAIN_NS) : CM_TIME_NEVER;
}

bool cmportd_leave(int ms)
{
	if (!has_own)
		return false;
	__atomic_store_n(&is_exiting, true, __ATOMIC_RELEASE);
	portd_client_leave(session_client(), ms);
	return true;
}

bool cmportd_record_of(const struct cm_conn *conn, struct cm_record *ret)
{
	if (!conn->port)
		return false;
	*ret = record_of(conn);
	return true;
}

/* --- before the thread sleeps --------------------------------------------- */

static void fetch_ids(void)
{
	struct engine *engine = engine_lock();
	bool low = cm_core_ids_left(&engine->core) < IDS_LOW;
	struct portd_ids ids;

	engine_unlock();
	if (low && portd_lease_ids(session_client(), &ids) == 0)
		lend_ids(&ids);
}

void cmportd_before_sleep(void)
{
	if (!session_client())
		return;
	if (cm_time_reached(resume_at, clock_now()) &&
	    !__atomic_load_n(&is_exiting, __ATOMIC_ACQUIRE))
		resume_portd();
	if (resume_at.ns == UINT64_MAX)
		fetch_ids();
	upcalls->before_sleep(session_client());
}

struct cm_time cmportd_deadline(void)
{
	return session_client() ? cm_time_earlier(resume_at, upcalls->deadline()) : CM_TIME_NEVER;
}
