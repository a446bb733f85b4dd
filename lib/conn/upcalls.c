/* SPDX-License-Identifier: BSD-2-Clause */
/* Upcalls to the folders above the engine: see upcalls.h. */
#include "lib/conn/upcalls.h"

#include <unistd.h>

#include "lib/conn/hotplug.h"
#include "lib/conn/listen.h"
#include "lib/conn/move.h"
#include "lib/conn/removal.h"
#include "lib/conn/core_report.h"
#include "lib/conn/resolve.h"
#include "lib/conn/stat_rows.h"
#include "lib/device/device.h"
#include "lib/engine/engine.h"
#include "lib/engine/cmportd.h"
#include "lib/engine/session.h"
#include "lib/id/claims.h"
#include "lib/net/membership.h"
#include "lib/path/path.h"
#include "lib/path/subnet.h"

#define EXIT_WAIT_MS	  200
#define CONTAINER_WAIT_MS 2000 /* an idle host needs far less */

/* --- of cmportd.c -------------------------------------------------------- */

static void receive_record(const struct portd_record *record)
{
	if (record->type == PORTD_SA_TOLD)
		subnet_answered(&record->sa_told);
	else if (record->type == PORTD_STAT_ASK)
		stat_asked(record->stat_ask.ask_id);
}

static void resend_all(struct portd_client *to)
{
	claims_resend(to);
	subnet_resend(to);
}

static void before_sleep(struct portd_client *client)
{
	stat_send_rows(client);
	hotplug_look();
}

static struct cm_time before_sleep_deadline(void)
{
	return cm_time_earlier(stat_deadline(), hotplug_deadline());
}

static const struct cmportd_upcalls of_cmportd = {
	.port_gone = hotplug_port_gone,
	.receive = receive_record,
	.resend = resend_all,
	.before_sleep = before_sleep,
	.deadline = before_sleep_deadline,
	.forget = stat_forget,
	.resumed = hotplug_check,
};

/* --- of the engine ------------------------------------------------------- */

static void handle_removal(struct device *device)
{
	removal_of_device(device);
	hotplug_expect();
}

static int set_upcalls(void)
{
	cmportd_set_upcalls(&of_cmportd);
	device_set_gone(handle_removal);
	return hotplug_start();
}

static void neighbour_changed(const struct net_event *event)
{
	resolve_neigh_changed(event);
	move_report_peer(event);
}

static void drop_parent_state(void)
{
	id_after_fork();
	membership_after_fork();
	device_after_fork();
	cmportd_after_fork();
	stat_after_fork();
}

static const struct engine_upcalls of_engine = {
	.start = set_upcalls,
	.stop = hotplug_stop,
	.report = report_dispatch,
	.prepare = path_prepare,
	.neighbour_changed = neighbour_changed,
	.interface_changed = move_report_interface,
	.interfaces_changed = hotplug_extend,
	.expire = resolve_expire,
	.before_sleep = cmportd_before_sleep,
	.deadline = cmportd_deadline,
	.after_fork = drop_parent_state,
};

int upcalls_start(void)
{
	return engine_start(&of_engine);
}

/*
 * A program that exits without destroying its ids leaves peers waiting. cmportd ends its
 * connections, as the kernel would. The ports of one that serves only this process are free for the
 * next program when it has; and when the first process of a container exits, all others there are
 * killed at once, including cmportd. It runs after the destructors without a number, such as that
 * of sockets whose data is still being sent.
 */
static void __attribute__((destructor(101))) end_connections(void)
{
	if (!engine_is_started() || !session_client() || cmportd_leave(EXIT_WAIT_MS))
		return;
	if (getpid() == 1 && engine_destroy_connections(EXIT_WAIT_MS))
		portd_drain(session_client(), CONTAINER_WAIT_MS);
}
