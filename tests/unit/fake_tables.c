/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices, their ports, P_Keys and GIDs, in place of libibverbs: see fake_verbs.h. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc((size_t)fake.n_listed + 1, sizeof(*list));
	int i;

	ck_assert_ptr_nonnull(list);
	for (i = 0; i < fake.n_listed; i++)
		list[i] = &fake.listed[i];
	if (num)
		*num = fake.n_listed;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;

	if (fake.open_errno) {
		errno = fake.open_errno;
		return NULL;
	}
	fake.n_opened++;
	if (device == &fake.device_node)
		return &fake.verbs.context;
	context = calloc(1, sizeof(*context));
	ck_assert_ptr_nonnull(context);
	context->device = device;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	fake.n_closed++;
	if (context != &fake.verbs.context)
		free(context);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){ .phys_port_cnt = fake.n_ports ? fake.n_ports : 1,
					  .max_qp_rd_atom = FAKE_READS,
					  .max_qp_init_rd_atom = FAKE_READS,
					  .max_qp_wr = fake.max_qp_wr,
					  .local_ca_ack_delay = 15 };
	return 0;
}

static void count_query(void)
{
	fake.n_queries++;
	if (fake.queried)
		fake.queried();
}

static bool is_listed(const struct ibv_device *device)
{
	return device >= fake.listed && device < fake.listed + fake.n_listed;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *ret)
{
	count_query();
	if (fake.gone_errno && !is_listed(context->device))
		return fake.gone_errno;
	if (port_num > FAKE_PORTS)
		return EINVAL;
	memcpy(ret, &fake.port[port_num - 1], sizeof(fake.port[0]));
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *ret)
{
	int err = fake.pkey_error;

	(void)context, (void)port_num;
	count_query();
	fake.pkey_error = 0;
	if (!err)
		*ret = htobe16(fake.pkey[index]);
	return err;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_bytes)
{
	(void)context;
	count_query();
	fake.n_looks++;
	if (flags || (size_t)fake.n_gids > max_entries)
		return -EINVAL;
	memcpy(entries, fake.gid, fake.n_gids * entry_bytes);
	return fake.n_gids;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_bytes)
{
	(void)context;
	(void)flags;
	count_query();
	for (int i = 0; i < fake.n_gids; i++) {
		if (fake.gid[i].gid_index != gid_index || fake.gid[i].port_num != port_num)
			continue;
		memcpy(entry, &fake.gid[i], entry_bytes);
		return 0;
	}
	return ENODATA;
}

struct mad_gid fake_gid_of(const char *address)
{
	struct mad_gid gid = { 0 };

	if (strchr(address, ':')) {
		ck_assert_int_eq(inet_pton(AF_INET6, address, gid.raw), 1);
		return gid;
	}
	memset(gid.raw + 10, 0xff, 2);
	ck_assert_int_eq(inet_pton(AF_INET, address, gid.raw + 12), 1);
	return gid;
}

void fake_add_gid(const char *address, uint32_t index, enum ibv_gid_type type)
{
	struct mad_gid gid = fake_gid_of(address);
	struct ibv_gid_entry *entry = &fake.gid[fake.n_gids++];

	*entry = (struct ibv_gid_entry){ .gid_index = index, .port_num = 1, .gid_type = type };
	memcpy(&entry->gid, &gid, sizeof(gid));
}
