/* SPDX-License-Identifier: BSD-2-Clause */
/* A library of the program that opens a socket: see test_preload.c. */
#include <sys/socket.h>

__attribute__((visibility("default"))) int user_socket(void);

int user_socket(void)
{
	volatile int fd = socket(AF_INET, SOCK_STREAM, 0); /* the call must return to here */

	return fd;
}
