/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's own connection manager does in one release and not in another, where peers and
 * programs can tell.
 */
#ifndef LIB_DEVICE_KERNEL_H
#define LIB_DEVICE_KERNEL_H

#include <stdint.h>

/**
 * kernel_packet_life_time() - that of the RoCE paths which a kernel makes
 * @release: as uname() has it, "6.1.0-37-amd64"; what cannot be read is a new one
 *
 * Return: encoded, 4.096 us * 2^t: 18 before Linux 6.2, then 16.
 */
uint8_t kernel_packet_life_time(const char *release);

/**
 * kernel_release() - of the running kernel, or of that which the soft fabric imitates
 * @room: where it is written
 *
 * Return: @room.
 */
#define KERNEL_RELEASE_BYTES 65
const char *kernel_release(char room[KERNEL_RELEASE_BYTES]);

/** kernel_running_life_time() - kernel_packet_life_time() of kernel_release(), looked up once. */
uint8_t kernel_running_life_time(void);

#endif
