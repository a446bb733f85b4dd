/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wills of those who are gone: of clients, until their connections have been brought to an
 * end, and of a cmportd before us, until somebody comes back or is known not to. Part of will.h.
 */
#include <errno.h>
#include <string.h>

#include "lib/portd/server/will_store.h"
#include "lib/portd/server/will_view.h"

/* --- the dead ------------------------------------------------------------ */

/* All others end with one message, which is sent by then. */
static bool takes_long(const struct will *will)
{
	return will_is_in(will, WILL_IN(ESTABLISHED) | WILL_IN(DREQ_SENT)) &&
	       will->is.local_comm_id;
}

static void take(struct wills *wills, struct will *will, struct cm_record *ret)
{
	*ret = will->is;
	if (takes_long(will))
		will_bury(wills, will);
	else
		will_remove(wills, will);
}

bool wills_take(struct wills *wills, uint16_t client, struct cm_record *ret)
{
	if (wills_count(wills, client) == 0)
		return false;
	take(wills, will_at(wills, wills->client[client].first), ret);
	return true;
}

void wills_buried(struct wills *wills, uint32_t local_comm_id)
{
	struct will *will = will_left_behind(wills, local_comm_id);

	if (will && !will->is_orphan)
		will_remove(wills, will);
}

/* --- orphans ------------------------------------------------------------- */

/* What any bytes could say has to be asked of each member whose values have a bound. */
static bool is_will(const struct wills *wills, struct will *will)
{
	const char *device;
	uint8_t port_num, grh;

	memcpy(&grh, &will->is.path.grh, sizeof(grh));
	if (will->is.state >= CM_N_STATES || grh > 1 ||
	    !will_store_port(wills->store, will->is.handle, &device, &port_num) ||
	    will_left_behind(wills, will->is.local_comm_id))
		return false;
	if (!wills->store->is_same_view)
		will->owner.pid = 0;
	return true;
}

int wills_keep(struct wills *wills, struct will_store *store)
{
	wills->store = store;
	if (!will_adopt_chunks(wills, is_will))
		return -ENOMEM;
	if (wills->n_wills == 0 && wills->n_chunks) {
		will_forget_chunks(wills);
		will_store_trim(store);
	}
	return 0;
}

int wills_own(struct wills *wills, uint16_t client, const struct will_owner *owner)
{
	if (!will_has_client(wills, client))
		return -ENOMEM;
	wills->client[client].owner = *owner;
	return 0;
}

const struct will *wills_orphan(const struct wills *wills, const struct will *after)
{
	return will_at(wills, after ? after->client_next : wills->orphans.first);
}

static bool holds_block(const struct wills *wills, const struct will_client *list, uint16_t block)
{
	const struct will *will = will_at(wills, list->first);

	while (will && will->is.local_comm_id / CM_ID_BLOCK != block)
		will = will_at(wills, will->client_next);
	return will != NULL;
}

bool wills_hold_block(const struct wills *wills, uint16_t block)
{
	return holds_block(wills, &wills->orphans, block) ||
	       holds_block(wills, &wills->dead, block);
}

void wills_drop(struct wills *wills, const struct will *orphan)
{
	will_remove(wills, will_at(wills, orphan->index));
}

void wills_inherit(struct wills *wills, const struct will *orphan, struct cm_record *ret)
{
	take(wills, will_at(wills, orphan->index), ret);
}

/* --- ports --------------------------------------------------------------- */

bool wills_port(const struct wills *wills, uint8_t handle, const char **ret_device,
		uint8_t *ret_port_num)
{
	return wills->store && will_store_port(wills->store, handle, ret_device, ret_port_num);
}

static bool is_port(const struct wills *wills, uint8_t handle, const char *device, uint8_t port_num)
{
	uint8_t its_num;
	const char *its;

	return wills_port(wills, handle, &its, &its_num) && its_num == port_num &&
	       strcmp(its, device) == 0;
}

/* One that means nothing yet is the better choice: there may be orphans of the others. */
static int choose_handle(const struct wills *wills, const char *device, uint8_t port_num,
			 uint64_t in_use)
{
	int free_one = -ENOSPC, unknown = -ENOSPC;
	const char *its;
	uint8_t its_num;
	int i;

	for (i = WILL_PORTS - 1; i >= 0; i--) {
		if (in_use >> i & 1)
			continue;
		if (is_port(wills, (uint8_t)i, device, port_num))
			return i;
		free_one = i;
		if (!wills_port(wills, (uint8_t)i, &its, &its_num))
			unknown = i;
	}
	return unknown >= 0 ? unknown : free_one;
}

int wills_handle(struct wills *wills, const char *device, uint8_t port_num, uint64_t in_use)
{
	int handle = choose_handle(wills, device, port_num, in_use);

	if (handle < 0 || !wills->store || is_port(wills, (uint8_t)handle, device, port_num))
		return handle;
	wills_port_gone(wills, (uint8_t)handle);
	will_store_name_port(wills->store, (uint8_t)handle, device, port_num);
	return handle;
}
