/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of a host, for all clients of a cmportd: which client has claimed each port,
 * listens on it or leases it as an ephemeral port. lib/net/port_space.h has the rules.
 *
 * No clock, no locks. The memory of leases is shared with the clients, see lease.h.
 */
#ifndef LIB_PORTD_SERVER_PORTS_PORTS_H
#define LIB_PORTD_SERVER_PORTS_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/cm_msg.h"
#include "lib/net/port_space.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/limits.h"

#define PORTS_NOBODY	   UINT16_MAX
#define PORTS_NOT_FOR_THEM (UINT16_MAX - 1)
#define PORTS_GO_MAX	   8 /* claims released at once */

struct ports;

/** ports_new() - create empty tables; arguments as port_space_init(). Return: NULL on ENOMEM. */
struct ports *ports_new(const struct port_limits *limits, uint64_t seed);

/** ports_free() - free the tables; NULL is allowed */
void ports_free(struct ports *ports);

/**
 * ports_limits() - the limits, to be refreshed before each bind; may_bind_low depends on the client
 */
struct port_limits *ports_limits(struct ports *ports);

/**
 * ports_bind() - claim a port for a client
 * @client: the server's index of the client, below 65535
 * @claim:  the port and address; local_port 0 asks for an ephemeral port. A port that the client
 *          leases is turned into this claim.
 * @ret:    the port
 *
 * A port that another client leases but does not use is taken from that client. An identical claim
 * gets the same port again.
 *
 * Return: 0, or as port_space_bind(); -EINVAL also if the claim id belongs to a claim of another
 * port or address, or if the family is neither 4 nor 6; -ENOSPC when the client has
 * PORTS_CLAIMS_MAX, or the port PORTS_SHARED_MAX.
 */
int ports_bind(struct ports *ports, uint16_t client, const struct portd_claim *claim,
	       uint16_t *ret);

/**
 * ports_listen() - update a claim, and accept requests for it
 *
 * Return: 0, or as port_space_listen(); -ENOENT if the client has no such claim; -ENOSPC when the
 * port has PORTS_LISTEN_MAX listeners; -EADDRINUSE also if the update would conflict with another
 * claim.
 */
int ports_listen(struct ports *ports, uint16_t client, const struct portd_claim *claim);

/**
 * ports_update() - update the addresses and flags of a claim, but not its port
 *
 * No effect if the claim would conflict with another one: a client could take the requests for
 * another client's address.
 */
void ports_update(struct ports *ports, uint16_t client, const struct portd_claim *claim);

/** ports_release() - release a claim */
void ports_release(struct ports *ports, uint16_t client, uint32_t claim_id);

/**
 * ports_lease() - lease ephemeral ports to a client, on its page
 * @ps:        RDMA_PS_*
 * @count:     number of ports requested
 * @ret_first: the first port; the others are consecutive if possible; NULL is allowed
 *
 * Return: the number of ports leased, 0 if none is free; -EPROTONOSUPPORT; -ENOENT if the client
 * has no page.
 */
int ports_lease(struct ports *ports, uint16_t client, uint16_t ps, unsigned int count,
		uint16_t *ret_first);

/** ports_count_event() - show a client on its page, if it has one, that a port has had an event */
void ports_count_event(struct ports *ports, uint16_t client, unsigned int handle);

/**
 * ports_page_new() - create the page of a new client
 *
 * Return: a file descriptor to be sent to the client, owned by the caller; -errno.
 */
int ports_page_new(struct ports *ports, uint16_t client);

/**
 * ports_page_resume() - map the page that a client had from a previous cmportd
 * @fd: sent by the client, so its content is not trusted; owned by the callee, also on error
 *
 * Return: 0, -EINVAL if it is not a page of ours, -errno.
 */
int ports_page_resume(struct ports *ports, uint16_t client, int fd);

/**
 * ports_resume_leases() - lease the ports on the page of ports_page_resume(), if there is one
 * @room: maximum number of ports for the client
 *
 * Words that name ports which are not ephemeral, are held by another client or reserved for one, or
 * exceed @room are revoked.
 */
void ports_resume_leases(struct ports *ports, uint16_t client, uint32_t room);

/**
 * ports_keep_holders() - record holders in a table, and reserve the ports recorded there already
 * @table: of port_holders_map(); must outlive @ports; NULL is allowed
 */
void ports_keep_holders(struct ports *ports, uint16_t *table);

/** ports_identify() - the first block of comm ids of a client; before it claims or leases ports */
void ports_identify(struct ports *ports, uint16_t client, uint16_t block);

/** ports_is_reserved() - return whether a port is reserved for another client, not here yet */
bool ports_is_reserved(const struct ports *ports, uint16_t client, uint16_t ps, uint16_t port);

/** ports_end_reservations() - the clients of the previous cmportd have resumed, or will not */
void ports_end_reservations(struct ports *ports);

/* A REQ or SIDR_REQ that has arrived. */
struct ports_request {
	uint64_t service_id;
	const uint8_t *data;  /* private data, which begins with the CMA header (annex A11) */
	uint64_t handles;     /* bitmap of all ports of the device that it arrived at */
	unsigned int ifindex; /* the interface that it arrived at; 0: unknown */
};

/**
 * ports_listener() - find the listener of a request
 *
 * Listeners on addresses of other devices do not count, nor do those on link-local addresses of
 * other interfaces.
 *
 * Return: the client that listens on the port and address; PORTS_NOT_FOR_THEM if all listeners of
 * the port are bound to other addresses, or if the header is invalid; PORTS_NOBODY.
 */
uint16_t ports_listener(const struct ports *ports, const struct ports_request *request);

/**
 * ports_share() - add the port count of a client without ports to a shared counter
 * @count: the counter; must outlive the client
 *
 * Return: false when out of memory.
 */
bool ports_share(struct ports *ports, uint16_t client, uint32_t *count);

/** ports_take_back() - revoke the leases that a client does not use */
void ports_take_back(struct ports *ports, uint16_t client);

/** ports_has() - return whether the client has claimed or leased a port. */
bool ports_has(const struct ports *ports, uint16_t client, uint16_t ps, uint16_t port);

/**
 * ports_client_goes() - release PORTS_GO_MAX of the claims of a client, or, when there are none,
 * its leases
 *
 * Return: false if it had nothing left.
 */
bool ports_client_goes(struct ports *ports, uint16_t client);

/** ports_client_gone() - release all claims and leases of a client */
void ports_client_gone(struct ports *ports, uint16_t client);

#endif
