/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Showing all messages of this host to clients that look on, such as the program purecm. They miss
 * what they are too slow for; the numbers tell them. Called by station.c and router.c, for which it
 * costs a comparison while nobody looks on.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net/gid.h"
#include "portd/state.h"

#define GID_IS_GOOD_MS 10
#define ROOM	       (8 * BACKLOG_MAX) /* 20,000 messages; who looks on is trusted with it */

static uint64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* To look at the table costs a system call, so not for every message: what it says is good for a
 * moment. */
static struct mad_gid local_gid(struct station *station, const struct mad_path *path,
				struct cm_time now)
{
	struct onlook_gid *known = &station->shown_gid;
	struct gid_entry entry;

	if (!path->grh)
		return station->cm.gid0;
	if (known->is_known && known->index == path->sgid_index &&
	    !cm_time_reached(cm_time_after(known->at, GID_IS_GOOD_MS * CM_NS_PER_MS), now))
		return known->gid;
	if (gid_by_index(station->verbs, station->port_num, path->sgid_index, &entry))
		return station->cm.gid0;
	*known = (struct onlook_gid){ .is_known = true, .index = path->sgid_index, .at = now };
	memcpy(&known->gid, &entry.gid, sizeof(known->gid));
	return known->gid;
}

static void show(struct server *server, const struct portd_record *record)
{
	unsigned int i;

	for (i = 0; i < GUESTS_MAX; i++)
		if (server->guest[i] && server->guest[i]->looks_on)
			guest_show(server, server->guest[i], record, ROOM);
}

void onlook_message(struct server *server, struct station *station, enum portd_way way,
		    const struct guest *whose, const struct mad_path *path,
		    const uint8_t mad[MAD_BYTES])
{
	struct portd_record record = { .type = PORTD_SEEN };
	struct portd_seen *seen = &record.seen;

	if (!server->n_onlookers)
		return;
	seen->number = ++server->n_seen;
	seen->time_ns = wall_clock_ns();
	seen->pid = whose ? (uint32_t)whose->pid : 0;
	seen->way = (uint8_t)way;
	seen->port_num = station->port_num;
	memcpy(seen->device, station->device, sizeof(seen->device));
	seen->local_gid = local_gid(station, path, server->now);
	seen->path = *path;
	memcpy(seen->mad, mad, MAD_BYTES);
	show(server, &record);
}

/* What others say to each other is for root, and for whoever runs this cmportd. */
int onlook_begin(struct server *server, struct guest *guest)
{
	if (guest->uid != 0 && guest->uid != geteuid())
		return -EPERM;
	server->n_onlookers += !guest->looks_on;
	guest->looks_on = true;
	return 0;
}

void onlook_end(struct server *server, struct guest *guest)
{
	server->n_onlookers -= guest->looks_on;
	guest->looks_on = false;
}
