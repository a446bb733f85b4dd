/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Realms: the port spaces of the network namespaces whose processes are our clients. As in the
 * kernel each namespace has ports of its own, and a request belongs to the one that the RDMA
 * devices' interfaces are in, which is the one that cmportd runs in: home. Called by server.c,
 * client.c and router.c; answer.c asks the realm of its client.
 */
#ifndef LIB_PORTD_SERVER_REALM_H
#define LIB_PORTD_SERVER_REALM_H

#include "base/list.h"
#include "lib/portd/server/ports.h"

struct realm {
	struct list link; /* of all others in those of home */
	uint64_t cookie;  /* the kernel's name of the namespace, 0 if it does not say */
	unsigned int n_clients;
	uint64_t seed;
	struct ports *ports;
};

/** realm_home() - make our own one. Return: NULL when out of memory. */
struct realm *realm_home(uint64_t seed);

/** realm_home_free() - and whatever other is left; NULL is allowed. */
void realm_home_free(struct realm *home);

/**
 * realm_enter() - a client has connected
 * @fd: its socket, which the kernel made in the namespace of whoever connected
 *
 * Return: where it comes from, to be given back with realm_leave(); NULL when out of memory.
 */
struct realm *realm_enter(struct realm *home, int fd);

/**
 * realm_made() - was a socket made in the realm's network namespace?
 *
 * Return: false also if the kernel does not say.
 */
bool realm_made(const struct realm *realm, int fd);

/** realm_leave() - it has gone, and holds no port any more. */
void realm_leave(struct realm *home, struct realm *realm);

/** realm_listener() - as ports_listener(), at home; listeners elsewhere are not for any request. */
uint16_t realm_listener(struct realm *home, uint64_t service_id, const uint8_t *data);

#endif
