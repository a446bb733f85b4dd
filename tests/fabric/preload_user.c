/* SPDX-License-Identifier: BSD-2-Clause */
/* A library of a program's own that opens a socket: see test_preload.c. */
#include <sys/socket.h>

__attribute__((visibility("default"))) int user_socket(void);

int user_socket(void)
{
	volatile int fd = socket(AF_INET, SOCK_STREAM, 0); /* the call is to return here */

	return fd;
}
