/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids on the fake device: see fake_id.h. */
#include "tests/unit/lib/fake_id.h"
#include "tests/unit/test.h"

#include <stdlib.h>

struct device fake_device;
static struct channel *channel;

void fake_begin(void)
{
	fake_device = (struct device){ .verbs = fake_verbs_begin() };
	ck_assert_int_eq(channel_new(&channel), 0);
}

void fake_end(void)
{
	channel_close(channel);
	free(fake_device.xrcd);
}

struct device *fake_device_list(void)
{
	fake.listed = &fake.device_node;
	fake.n_listed = 1;
	ck_assert_int_eq(device_list_load(), 0);
	return device_of(&fake.verbs.context);
}

struct id *fake_id(enum ibv_qp_type qp_type)
{
	struct id *id;

	ck_assert_int_eq(id_new(channel, RDMA_PS_IB, &id), 0);
	id->attached = &fake_device;
	id->path.gid.verbs = &fake.verbs.context;
	id->path.gid.port_num = 1;
	id->pub.verbs = &fake.verbs.context;
	id->pub.pd = &fake.pd;
	id->pub.qp_type = qp_type;
	return id;
}

void fake_id_free(struct id *id)
{
	id_free(id);
}
