/* SPDX-License-Identifier: BSD-2-Clause */
/* Differences between releases of the kernel (lib/device/kernel.c). */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "lib/device/kernel.h"
#include "tests/unit/test.h"

static const struct {
	const char *release;
	uint8_t packet_life_time;
	bool is_older_than_6_0;
} kernels[] = {
	{ "4.18.0-553.el8_10.x86_64", 18, true },
	{ "5.15.0", 18, true },
	{ "6.0.0", 18, false },
	{ "6.1.0-37-amd64", 18, false },
	{ "6.1.192-2", 18, false },
	{ "6.2", 16, false },
	{ "6.2.0-rc1", 16, false },
	{ "6.12.48+deb13-amd64", 16, false },
	{ "6.18.44", 16, false },
	{ "7.0.0", 16, false },
	{ "10.0", 16, false },
	{ "", 16, false },
	{ "hurd", 16, false },
};

#define N_KERNELS ((int)(sizeof(kernels) / sizeof(kernels[0])))

TEST_LOOP(packet_life_time_is_that_of_the_release, 0, N_KERNELS)
{
	ck_assert_uint_eq(kernel_habits(kernels[_i].release)->packet_life_time,
			  kernels[_i].packet_life_time);
}

TEST_LOOP(changed_link_addresses_are_reported_since_6_0, 0, N_KERNELS)
{
	ck_assert_uint_eq(kernel_habits(kernels[_i].release)->reports_moves,
			  !kernels[_i].is_older_than_6_0);
}

TEST_LOOP(running_kernel_is_the_one_that_the_fabric_imitates, 0, N_KERNELS)
{
	setenv("PURECM_FABRIC_KERNEL", kernels[_i].release, 1);
	ck_assert_uint_eq(kernel_running_habits()->packet_life_time, kernels[_i].packet_life_time);
}

TEST(release_is_that_of_the_running_kernel)
{
	char room[KERNEL_RELEASE_BYTES];
	struct utsname running;

	unsetenv("PURECM_FABRIC_KERNEL");
	ck_assert_int_eq(uname(&running), 0);
	ck_assert_str_eq(kernel_release(room), running.release);
}
