/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks for tests: a namespace of the test process's own, and a second one behind a veth pair.
 * All of it ends with the process.
 */
#ifndef TESTS_UNIT_NET_NETNS_H
#define TESTS_UNIT_NET_NETNS_H

#include <stdbool.h>

#include "lib/net/addr.h"

/**
 * netns_allowed() - return whether this process can make network namespaces; prints the reason if
 * not.
 */
bool netns_allowed(void);

/** netns_enter() - move this process to an empty network namespace, lo up; or fail the test. */
void netns_enter(void);

/** run() - run a shell command (printf format); fail the test if the command fails. */
void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * peer_start() - create a second namespace: veth0 here, veth1 there, both up, without IPv4
 * addresses
 *
 * Resolution on veth0 fails after some 100 ms.
 */
void peer_start(void);

/** wait_until() - run() a command repeatedly until its status is 0; fails after 30 s. */
void wait_until(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** peer_run() - run() in the peer's namespace. */
void peer_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** drop_net_admin() - drop CAP_NET_ADMIN, except for run(). */
void drop_net_admin(void);

/** ip() - parse an address, "10.0.0.1" or "fe80::1%veth0"; or fail the test. */
union addr ip(const char *text);

/** ip_text() - the text of an address, in a static buffer. */
const char *ip_text(union addr addr);

#endif
