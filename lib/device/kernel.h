/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's own connection manager does in one release and not in another, where peers and
 * programs can tell.
 */
#ifndef LIB_DEVICE_KERNEL_H
#define LIB_DEVICE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_habits {
	uint8_t packet_life_time; /* of the RoCE paths that it makes, 4.096 us * 2^t */
	bool reports_moves;	  /* RDMA_CM_EVENT_UNREACHABLE when a peer's link address changes */
};

/**
 * kernel_habits() - what a kernel does
 * @release: as uname() has it, "6.1.0-37-amd64"; what cannot be read is a new one
 */
const struct kernel_habits *kernel_habits(const char *release);

/**
 * kernel_release() - of the running kernel, or of that which the soft fabric imitates
 * @room: where it is written
 *
 * Return: @room.
 */
#define KERNEL_RELEASE_BYTES 65
const char *kernel_release(char room[KERNEL_RELEASE_BYTES]);

/** kernel_running_habits() - kernel_habits() of kernel_release(), looked up once. */
const struct kernel_habits *kernel_running_habits(void);

#endif
