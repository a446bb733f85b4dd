/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles: see handles.h.
 */
#include "mad/handles.h"

#include <errno.h>
#include <string.h>

#define BUCKETS_FIRST 64

/*
 * Attributes that an address handle depends on. The flow label is left out: it only spreads data
 * over equal-cost paths, and would need one handle per connection.
 */
struct key {
	struct mad_gid dgid;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
};

struct handle {
	struct hash_node by_path;
	struct list link; /* in handles.used or handles.retired */
	struct key key;
	unsigned int epoch; /* at creation */
	struct ibv_ah *ah;  /* NULL: answers could not reach the inbox, so use umad */
};

int handles_init(struct handles *handles, struct ibv_pd *pd, uint8_t port_num, struct inbox *inbox)
{
	*handles = (struct handles){ .pd = pd, .port_num = port_num, .inbox = inbox };
	slab_init(&handles->slab, sizeof(struct handle));
	list_init(&handles->used);
	list_init(&handles->retired);
	return hash_init(&handles->by_path, BUCKETS_FIRST);
}

static void retire_handle(struct handles *handles, struct handle *handle)
{
	hash_remove(&handles->by_path, &handle->by_path);
	list_remove(&handle->link);
	handles->n_used--;
	list_append(&handles->retired, &handle->link);
	handles->n_retired++;
}

void handles_drain(struct handles *handles)
{
	struct handle *handle;

	while (handles->n_retired) {
		handle = container_of(handles->retired.next, struct handle, link);
		list_remove(&handle->link);
		handles->n_retired--;
		if (handle->ah)
			ibv_destroy_ah(handle->ah);
		slab_give(&handles->slab, handle);
	}
}

void handles_fini(struct handles *handles)
{
	while (handles->n_used)
		retire_handle(handles, container_of(handles->used.next, struct handle, link));
	handles_drain(handles);
	hash_fini(&handles->by_path);
	slab_fini(&handles->slab);
}

static struct key key_of(const struct mad_path *path)
{
	return (struct key){
		.dgid = path->dgid,
		.sgid_index = path->sgid_index,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.sl = path->sl,
	};
}

static struct handle *find_handle(struct handles *handles, const struct key *key)
{
	struct handle *handle;

	hash_for_each_match_entry (handle, &handles->by_path, hash_bytes(key, sizeof(*key)),
				   by_path) {
		if (!memcmp(&handle->key, key, sizeof(*key)))
			return handle;
	}
	return NULL;
}

static void use_handle(struct handles *handles, struct handle *handle)
{
	list_remove(&handle->link);
	list_append(&handles->used, &handle->link);
}

struct ibv_ah *handles_find(struct handles *handles, const struct mad_path *path)
{
	struct key key = key_of(path);
	struct handle *handle = find_handle(handles, &key);

	if (!handle || handle->epoch != handles->epoch)
		return NULL;
	use_handle(handles, handle);
	return handle->ah;
}

static int make_ah(struct handles *handles, const struct key *key, struct ibv_ah **ret)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = handles->port_num,
		.sl = key->sl,
		.grh = { .sgid_index = key->sgid_index,
			 .hop_limit = key->hop_limit,
			 .traffic_class = key->traffic_class },
	};

	*ret = NULL;
	if (!inbox_answers_for(handles->inbox, key->sgid_index))
		return 0;
	memcpy(&attr.grh.dgid, &key->dgid, sizeof(attr.grh.dgid));
	errno = 0;
	*ret = ibv_create_ah(handles->pd, &attr);
	return *ret ? 0 : errno ? -errno : -ENOMEM;
}

static int add_handle(struct handles *handles, const struct key *key, struct handle **ret)
{
	struct handle *handle;
	struct ibv_ah *ah;
	int err;

	if (handles->n_used == HANDLES_MAX)
		retire_handle(handles, container_of(handles->used.next, struct handle, link));
	err = hash_reserve(&handles->by_path, handles->n_used + 1);
	if (!err)
		err = make_ah(handles, key, &ah);
	if (err)
		return err;
	handle = slab_take(&handles->slab);
	if (!handle) {
		if (ah)
			ibv_destroy_ah(ah);
		return -ENOMEM;
	}
	*handle = (struct handle){ .key = *key, .epoch = handles->epoch, .ah = ah };
	list_init(&handle->link);
	hash_insert(&handles->by_path, &handle->by_path, hash_bytes(key, sizeof(*key)));
	handles->n_used++;
	*ret = handle;
	return 0;
}

int handles_make(struct handles *handles, const struct mad_path *path, struct ibv_ah **ret)
{
	struct key key = key_of(path);
	struct handle *handle = find_handle(handles, &key);
	int err = 0;

	if (!handle || handle->epoch != handles->epoch) {
		if (handles->n_retired == RETIRED_MAX)
			return -EAGAIN;
		if (handle)
			retire_handle(handles, handle);
		err = add_handle(handles, &key, &handle);
	}
	if (err)
		return err;
	use_handle(handles, handle);
	*ret = handle->ah;
	return *ret ? 0 : -EAGAIN;
}

void handles_forget(struct handles *handles)
{
	handles->epoch++;
}
