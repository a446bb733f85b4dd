/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Differences between releases of the kernel's connection manager that peers and programs can
 * notice.
 */
#ifndef LIB_DEVICE_KERNEL_H
#define LIB_DEVICE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_habits {
	uint8_t packet_life_time; /* of its RoCE paths, 4.096 us * 2^t */
	bool reports_moves;	  /* RDMA_CM_EVENT_UNREACHABLE when a peer's link address changes */
};

/**
 * kernel_habits() - behaviour of a kernel release
 * @release: as from uname(), "6.1.0-37-amd64"; if unreadable, a new release is assumed
 */
const struct kernel_habits *kernel_habits(const char *release);

/**
 * kernel_release() - release of the running kernel, or of the one that the soft fabric imitates
 * @room: filled in
 *
 * Return: @room.
 */
#define KERNEL_RELEASE_BYTES 65
const char *kernel_release(char room[KERNEL_RELEASE_BYTES]);

/** kernel_running_habits() - kernel_habits() of kernel_release(), cached. */
const struct kernel_habits *kernel_running_habits(void);

#endif
