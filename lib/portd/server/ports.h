/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of a host, for all clients of a cmportd: who has claimed which port, who listens
 * on it, and which ephemeral ports are leased to whom. The rules are those of lib/net/port_space.h.
 *
 * No clock, no lock; the memory of leases is shared with the clients, see lease.h.
 */
#ifndef LIB_PORTD_SERVER_PORTS_H
#define LIB_PORTD_SERVER_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/cm_msg.h"
#include "lib/net/port_space.h"
#include "lib/portd/proto/proto.h"

#define PORTS_NOBODY	   UINT16_MAX
#define PORTS_NOT_FOR_THEM (UINT16_MAX - 1)
#define PORTS_CLAIMS_MAX   65536 /* of one client */
#define PORTS_SHARED_MAX   1024	 /* of one port: a request is compared with each */

struct ports;

/** ports_new() - empty tables; as port_space_init(). NULL: ENOMEM. */
struct ports *ports_new(const struct port_limits *limits, uint64_t seed);

/** ports_free() - forget everything; NULL is allowed. */
void ports_free(struct ports *ports);

/** ports_limits() - to be read afresh before a bind, and changed: may_bind_low is the client's. */
struct port_limits *ports_limits(struct ports *ports);

/**
 * ports_bind() - a client claims a port
 * @client: an index below 65535, the server's
 * @claim:  what; local_port 0 for any ephemeral one. A port that the client holds on lease is
 *          turned into this claim.
 * @ret:    the port
 *
 * A port that is leased to another client, and not in use there, is taken from it.
 *
 * The same claim again is the same port again.
 *
 * Return: 0, or as port_space_bind(); -EINVAL also for a claim id that stands for another port or
 * address, or a family that is neither 4 nor 6; -ENOSPC when the client has PORTS_CLAIMS_MAX, or
 * the port PORTS_SHARED_MAX.
 */
int ports_bind(struct ports *ports, uint16_t client, const struct portd_claim *claim,
	       uint16_t *ret);

/** ports_listen() - take over what the claim says now, and welcome requests for it.
 *
 * Return: 0, or as port_space_listen(); -ENOENT if the client has no such claim. */
int ports_listen(struct ports *ports, uint16_t client, const struct portd_claim *claim);

/** ports_update() - the addresses and flags of a claim have changed, its port has not. */
void ports_update(struct ports *ports, uint16_t client, const struct portd_claim *claim);

/** ports_release() - a claim is given back. */
void ports_release(struct ports *ports, uint16_t client, uint32_t claim_id);

/**
 * ports_lease() - lease ephemeral ports to a client, on its page
 * @ps:        RDMA_PS_*
 * @count:     wanted
 * @ret_first: the first of them, where others follow if they can; NULL is allowed
 *
 * Return: how many; 0 when none is to be had; -EPROTONOSUPPORT; -ENOENT if it has no page.
 */
int ports_lease(struct ports *ports, uint16_t client, uint16_t ps, unsigned int count,
		uint16_t *ret_first);

/**
 * ports_page_new() - make the page of a new client
 *
 * Return: a file descriptor to be sent to the client, owned by the caller; -errno.
 */
int ports_page_new(struct ports *ports, uint16_t client);

/**
 * ports_page_resume() - take back the page that a client had from an earlier cmportd
 * @room: how many ports the client may have
 * @fd: sent by the client, so nothing about it is believed; owned by ports from now on, also when
 *      it is refused
 *
 * Words that name ports which are not ephemeral, or are held by others, or are too many, are
 * revoked.
 *
 * Return: 0, -EINVAL if it is not a page of ours, -errno.
 */
int ports_page_resume(struct ports *ports, uint16_t client, int fd, uint32_t room);

/**
 * ports_listener() - for whom is a request?
 * @service_id: of a REQ or SIDR_REQ
 * @data:       its private data, of which the CMA header (annex A11) comes first
 * @handles:    of all ports of the device that it came to, a bit each: listeners on addresses of
 *              other devices do not count
 *
 * Return: the client that listens on the port and address; PORTS_NOT_FOR_THEM if there are
 * listeners on the port, but for other addresses, or the header makes no sense; PORTS_NOBODY.
 */
uint16_t ports_listener(const struct ports *ports, uint64_t service_id, const uint8_t *data,
			uint64_t handles);

/**
 * ports_share() - count the port numbers of a client, who has none yet, together with others'
 * @count: of all of them; must live as long as the client
 *
 * Return: false when out of memory.
 */
bool ports_share(struct ports *ports, uint16_t client, uint32_t *count);

/** ports_has() - return whether the client has claimed or leased a port. */
bool ports_has(const struct ports *ports, uint16_t client, uint16_t ps, uint16_t port);

/** ports_client_gone() - release all that a client has. */
void ports_client_gone(struct ports *ports, uint16_t client);

#endif
