/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices (lib/device/device.c) on a host where devices come and go. libibverbs is
 * here.
 */
#include <check.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/device.h"

#define N_AT_ONCE 100
#define N_TIMES	  200
#define N_READERS 3

static struct ibv_device plugged[N_AT_ONCE + N_TIMES];
static int first_plugged, n_plugged; /* what the kernel has: a range of them */

/* --- libibverbs ---------------------------------------------------------- */

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc((size_t)n_plugged + 1, sizeof(struct ibv_device *));
	int i;

	ck_assert_ptr_nonnull(list);
	for (i = 0; i < n_plugged; i++)
		list[i] = &plugged[first_plugged + i];
	if (num)
		*num = n_plugged;
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

struct ibv_context *ibv_open_device(struct ibv_device *which)
{
	struct ibv_context *verbs = calloc(1, sizeof(*verbs));

	ck_assert_ptr_nonnull(verbs);
	verbs->device = which;
	return verbs;
}

int ibv_close_device(struct ibv_context *verbs)
{
	free(verbs);
	return 0;
}

int ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr)
{
	(void)verbs;
	*attr = (struct ibv_device_attr){ .phys_port_cnt = 1 };
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *verbs)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	ck_assert_ptr_nonnull(pd);
	pd->context = verbs;
	return pd;
}

/* --- the host ------------------------------------------------------------ */

static void plug(int first, int n)
{
	int i;

	for (i = first; i < first + n; i++)
		snprintf(plugged[i].dev_name, sizeof(plugged[i].dev_name), "uverbs%d", i);
	first_plugged = first;
	n_plugged = n;
}

/* Return: the context of the only device, as a program sees it. */
static struct ibv_context *only_device(void)
{
	struct ibv_context **list, *verbs;
	int n;

	list = rdma_get_devices(&n);
	ck_assert_ptr_nonnull(list);
	ck_assert_int_eq(n, 1);
	verbs = list[0];
	rdma_free_devices(list);
	return verbs;
}

static void unplug(struct ibv_context *verbs)
{
	ck_assert(device_gone(device_of(verbs)));
	n_plugged = 0;
	ck_assert_int_eq(device_count(), 0);
}

/* --- tests --------------------------------------------------------------- */

START_TEST(device_may_come_and_go_any_number_of_times)
{
	struct ibv_context *verbs;
	int i;

	for (i = 0; i < N_TIMES; i++) {
		plug(i, 1);
		verbs = only_device();
		ck_assert_ptr_eq(verbs->device, &plugged[i]);
		ck_assert_ptr_nonnull(device_of_node(plugged[i].dev_name));
		unplug(verbs);
		ck_assert_ptr_null(device_of_node(plugged[i].dev_name));
	}
}
END_TEST

START_TEST(ids_of_a_device_that_has_gone_still_find_it)
{
	struct ibv_context *verbs;
	struct device *device;

	plug(0, 1);
	verbs = only_device();
	device = device_of(verbs);
	unplug(verbs);
	plug(1, 1);
	ck_assert_ptr_ne(device_of(only_device()), device);
	ck_assert_ptr_eq(device_of(verbs), device);
	ck_assert(device_is_gone(device));
	ck_assert(!device_gone(device)); /* no news */
}
END_TEST

START_TEST(host_may_have_any_number_of_devices)
{
	struct ibv_context **list;
	int i, n;

	plug(0, N_AT_ONCE);
	list = rdma_get_devices(&n);
	ck_assert_int_eq(n, N_AT_ONCE);
	for (i = 0; i < n; i++) {
		ck_assert_ptr_eq(list[i]->device, &plugged[i]);
		ck_assert_ptr_nonnull(device_of(list[i]));
	}
	ck_assert_ptr_null(list[n]);
	rdma_free_devices(list);
}
END_TEST

static atomic_bool is_over;

/* Whatever the list says: no pointer in it leads to what was freed. */
static void *read_list(void *arg)
{
	const struct device_list *list;
	int i;

	(void)arg;
	while (!is_over) {
		list = device_list();
		for (i = 0; i < list->n; i++)
			ck_assert_ptr_eq(device_of(list->verbs[i]), list->device[i]);
	}
	return NULL;
}

START_TEST(list_may_be_read_while_it_changes)
{
	pthread_t reader[N_READERS];
	int i;

	for (i = 0; i < N_READERS; i++)
		pthread_create(&reader[i], NULL, read_list, NULL);
	for (i = 0; i < N_TIMES; i++) {
		plug(i, 2);
		ck_assert_int_eq(device_list_refresh(), 0);
		device_gone(device_of_node(plugged[i].dev_name));
	}
	is_over = true;
	for (i = 0; i < N_READERS; i++)
		pthread_join(reader[i], NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device");
	TCase *tcase = tcase_create("list");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, device_may_come_and_go_any_number_of_times);
	tcase_add_test(tcase, ids_of_a_device_that_has_gone_still_find_it);
	tcase_add_test(tcase, host_may_have_any_number_of_devices);
	tcase_add_test(tcase, list_may_be_read_while_it_changes);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
