/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection of a host to itself, in a program with librspreload.so preloaded. Included by the
 * test programs.
 */
#ifndef TESTS_FABRIC_PRELOAD_RIG_H
#define TESTS_FABRIC_PRELOAD_RIG_H

#include <netinet/in.h>
#include <stdbool.h>

#define WAIT_MS 20000

struct preload_rig {
	int first; /* the lowest descriptor used here */
	int listener, here, there;
	struct sockaddr_in addr;
};

extern struct preload_rig the;

/* The C library's own functions, which bypass librspreload.so. */
struct preload_behind {
	int (*close)(int fd);
	int (*dup2)(int from, int to);
};

extern struct preload_behind behind;

/** is_rdma() - return whether a socket is an rsocket */
bool is_rdma(int fd);

/** connect_pair() - connect the.here, and accept the.there */
void connect_pair(void);

/** listen_and_connect() - the fixture: a listener and a pair */
void listen_and_connect(void);

/** assert_sends() - write a text to one end and receive it at the other */
void assert_sends(int from, int to, const char *text);

/** assert_got() - receive a text */
void assert_got(int fd, const char *text);

#endif
