/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that clears its environment and writes over it before its first call still finds its
 * device and its cmportd. Runs on a host of a soft fabric: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/test.h"

static void clear(void)
{
	char **variable;

	for (variable = environ; *variable; variable++)
		memset(*variable, 'x', strlen(*variable));
	clearenv();
}

FIXTURE(clear, NULL);

TEST(device_is_found_without_an_environment)
{
	struct ibv_device **list;
	int n;

	list = ibv_get_device_list(&n);
	ck_assert_int_eq(n, 1);
	ibv_free_device_list(list);
}

TEST(umad_is_found_without_an_environment)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];

	ck_assert_int_eq(umad_get_cas_names(names, UMAD_MAX_DEVICES), 1);
}

TEST(cmportd_is_found_without_an_environment)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	ck_assert_ptr_nonnull(channel);
	ck_assert_int_eq(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	inet_pton(AF_INET, "10.77.0.1", &any.sin_addr);
	ck_assert_int_eq(rdma_bind_addr(id, (struct sockaddr *)&any), 0);
	ck_assert_int_eq(rdma_listen(id, 1), 0);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}
