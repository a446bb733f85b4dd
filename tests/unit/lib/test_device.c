/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices (lib/device/device.c) on a host where devices are added and removed. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/device/device.h"
#include "lib/device/device_list.h"
#include "tests/unit/fake_verbs.h"
#include "tests/unit/test.h"

#define N_AT_ONCE 100
#define N_TIMES	  200
#define N_READERS 3

static struct ibv_device plugged[N_AT_ONCE + N_TIMES];

/* --- the host ------------------------------------------------------------ */

static void plug(int first, int n)
{
	int i;

	for (i = first; i < first + n; i++)
		snprintf(plugged[i].dev_name, sizeof(plugged[i].dev_name), "uverbs%d", i);
	fake.listed = plugged + first;
	fake.n_listed = n;
}

/* Return: the context of the only device, as a program gets it. */
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

/* The device is removed without an announcement. */
static void swap(int first, int n)
{
	fake.gone_errno = EIO;
	plug(first, n);
}

static void unplug(struct ibv_context *verbs)
{
	ck_assert(device_gone(device_of(verbs)));
	fake.n_listed = 0;
	ck_assert_int_eq(device_count(), 0);
}

/* --- tests --------------------------------------------------------------- */

TEST(device_without_memory_for_a_query_is_not_gone)
{
	struct device *device;

	plug(0, 1);
	device = device_of(only_device());
	fake.gone_errno = ENOMEM;
	fake.n_listed = 0;
	ck_assert(device_answers(device));
	fake.gone_errno = EIO;
	ck_assert(!device_answers(device));
}

TEST(device_may_be_added_and_removed_repeatedly)
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

TEST(ids_of_a_removed_device_still_find_it)
{
	struct ibv_context *verbs;
	struct device *device;

	plug(0, 1);
	verbs = only_device();
	device = device_of(verbs);
	device_get(device);
	unplug(verbs);
	plug(1, 1);
	ck_assert_ptr_ne(device_of(only_device()), device);
	ck_assert_ptr_eq(device_of(verbs), device);
	ck_assert(device_is_gone(device));
	ck_assert(!device_gone(device)); /* not reported again */
}

TEST(host_may_have_any_number_of_devices)
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

TEST(unlisted_device_is_removed)
{
	plug(0, 1);
	only_device();
	swap(1, 1);
	ck_assert_ptr_eq(only_device()->device, &plugged[1]);
}

TEST(last_unlisted_device_is_removed)
{
	plug(0, 1);
	only_device();
	swap(0, 0);
	ck_assert_ptr_null(rdma_get_devices(NULL));
	ck_assert_str_eq(strerrorname_np(errno), "ENODEV");
}

/* As after chroot(): sysfs is not visible. */
TEST(responding_device_stays_although_unlisted)
{
	struct ibv_context *verbs;

	plug(0, 1);
	verbs = only_device();
	fake.n_listed = 0;
	ck_assert_ptr_eq(only_device(), verbs);
}

/* --- protection domains ------------------------------------------------------ */

static int count_devices(void)
{
	struct ibv_context **list;
	int n;

	list = rdma_get_devices(&n);
	if (list)
		rdma_free_devices(list);
	return n;
}

TEST(device_without_a_protection_domain_is_omitted_once)
{
	plug(0, 3);
	fake.fail_at = 2;
	ck_assert_int_eq(count_devices(), 2);
	ck_assert_int_eq(count_devices(), 3);
}

TEST(only_device_without_a_protection_domain_is_an_error)
{
	plug(0, 1);
	fake.fail_at = 1;
	ck_assert_int_eq(count_devices(), 0);
	ck_assert_str_eq(strerrorname_np(errno), strerrorname_np(FAKE_ERROR));
}

/* --- closing ----------------------------------------------------------------- */

static void expect_closed(int n)
{
	device_close_unused(true);
	ck_assert_int_eq(fake.n_closed, n);
}

TEST(list_keeps_a_removed_device_open)
{
	struct ibv_context **list;

	plug(0, 1);
	list = rdma_get_devices(NULL);
	unplug(list[0]);
	expect_closed(0);
	rdma_free_devices(list);
	expect_closed(1);
	ck_assert_int_eq(fake.n_pds, 0);
}

TEST(next_list_closes_a_removed_device)
{
	plug(0, 1);
	only_device();
	swap(1, 1);
	only_device();
	ck_assert_int_eq(fake.n_closed, 1);
}

TEST(device_is_not_closed_while_a_thread_reads_the_list)
{
	plug(0, 1);
	unplug(only_device());
	device_list_enter();
	expect_closed(0);
	device_list_leave();
	expect_closed(1);
}

/* The program may use it until its next call. */
TEST(device_known_to_the_program_is_closed_in_its_calls_only)
{
	plug(0, 1);
	unplug(only_device());
	device_close_unused(false);
	ck_assert_int_eq(fake.n_closed, 0);
	expect_closed(1);
}

TEST(device_that_a_reader_kept_open_in_a_call_is_closed_by_the_reader)
{
	plug(0, 1);
	unplug(only_device());
	device_list_enter();
	expect_closed(0);
	device_list_leave();
	device_close_unused(false);
	ck_assert_int_eq(fake.n_closed, 1);
}

TEST(device_unknown_to_the_program_is_closed_by_any_thread)
{
	plug(0, 1);
	ck_assert_int_eq(device_list_load(), 0);
	device_list_enter();
	device_gone(device_of_node(plugged[0].dev_name));
	device_list_leave();
	device_close_unused(false);
	ck_assert_int_eq(fake.n_closed, 1);
}

TEST(present_device_is_not_closed)
{
	plug(0, 1);
	only_device();
	expect_closed(0);
}

/* --- readers ----------------------------------------------------------------- */

static atomic_bool is_over;

/* Whatever the list contains: no pointer in it refers to freed memory. */
static void *read_list(void *arg)
{
	const struct device_list *list;
	int i;

	(void)arg;
	while (!is_over) {
		device_list_enter();
		list = device_list();
		for (i = 0; i < list->n; i++)
			if (device_of(list->verbs[i]) != list->device[i])
				ck_abort_msg("another device has this context");
		device_list_leave();
	}
	return NULL;
}

static int query_device_of_today(struct ibv_context *context,
				 const struct ibv_query_device_ex_input *input,
				 struct ibv_device_attr_ex *attr, size_t bytes)
{
	(void)context, (void)input;
	memset(attr, 0, bytes);
	attr->orig_attr.phys_port_cnt = 1;
	attr->device_cap_flags_ex = 1ULL << 38 | 1ULL << 39;
	return 0;
}

TEST(device_with_flush_grants_it_to_peers)
{
	fake_verbs_begin();
	fake.verbs.query_device_ex = query_device_of_today;
	fake.listed = &fake.device_node;
	fake.n_listed = 1;
	ck_assert_uint_eq(device_of(only_device())->flush_access, 0x300);
}

TEST(list_may_be_read_while_it_changes)
{
	pthread_t reader[N_READERS];
	int i;

	for (i = 0; i < N_READERS; i++)
		pthread_create(&reader[i], NULL, read_list, NULL);
	for (i = 0; i < N_TIMES; i++) {
		plug(i, 2);
		ck_assert_int_eq(device_list_refresh(), 0);
		device_gone(device_of_node(plugged[i].dev_name));
		device_close_unused(true);
	}
	is_over = true;
	for (i = 0; i < N_READERS; i++)
		pthread_join(reader[i], NULL);
	expect_closed(N_TIMES);
}

TEST(renamed_device_is_the_same_device)
{
	struct ibv_context *verbs;

	plug(0, 2);
	fake.n_listed = 1;
	strcpy(plugged[0].name, "rxe0");
	verbs = only_device();
	strcpy(plugged[1].dev_name, plugged[0].dev_name);
	strcpy(plugged[1].name, "roceo1");
	fake.listed = &plugged[1];
	ck_assert_ptr_eq(only_device(), verbs);
}

/* --- forks before the first id ------------------------------------------------- */

static sem_t has_lock, may_go_on;

/* As a call does while it opens devices. */
static void *hold_lock(void *unused)
{
	device_list_lock();
	sem_post(&has_lock);
	sem_wait(&may_go_on);
	device_list_unlock();
	return unused;
}

TEST(child_of_a_fork_while_devices_are_opened_can_open_them)
{
	pthread_t thread;
	int status;
	pid_t child;

	plug(0, 1);
	sem_init(&has_lock, 0, 0);
	sem_init(&may_go_on, 0, 0);
	pthread_create(&thread, NULL, hold_lock, NULL);
	sem_wait(&has_lock);
	child = fork();
	if (!child) {
		alarm(20);
		only_device();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	sem_post(&may_go_on);
	pthread_join(thread, NULL);
	ck_assert_int_eq(status, 0);
}
