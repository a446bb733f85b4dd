/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port spaces: who holds which port of which RDMA_PS_*. Four tables of 65536 ports, apart from each
 * other and from the sockets layer. Whoever keeps the ports of a host asks: cmportd for all
 * processes, a library that runs without it for itself.
 *
 * Pure: no clock, no system call, no lock (the caller holds one). A claim is embedded in what
 * claims the port, so binding allocates at most one page of the table.
 */
#ifndef LIB_NET_PORT_SPACE_H
#define LIB_NET_PORT_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/net/addr.h"

#define PORT_SPACE_TABLES 4 /* IPOIB, TCP, UDP, IB */
#define PORT_SPACE_PAGES  4096
#define PORT_PAGE_PORTS	  16   /* few: ephemeral ports are far apart, and memory is slow at first */
#define PORT_PRIVILEGED	  1024 /* below it; as stock, which has no setting for it */

/* What the host allows; port_limits_read() gathers it, tests and remote clients fill it in. */
struct port_limits {
	uint16_t ephemeral_first;    /* inclusive; net.ipv4.ip_local_port_range */
	uint16_t ephemeral_last;     /* inclusive */
	uint16_t unprivileged_first; /* of sockets, net.ipv4.ip_unprivileged_port_start */
	bool may_bind_low;	     /* the caller may have privileged ports */
	bool v6_only;		     /* net.ipv6.bindv6only: default of afonly for AF_INET6 ids */
	unsigned int max_backlog;    /* net.rdma_ucm.max_backlog, 1024 where it is absent */
};

/**
 * port_limits_read() - what this host and this thread are allowed, read afresh
 * @ret: filled; where a setting cannot be read, with the kernel's default
 */
void port_limits_read(struct port_limits *ret);

/**
 * port_limits_reread() - ip_local_port_range and ip_unprivileged_port_start, by now
 * @limits: what cannot be read stays
 *
 * For cmportd, which asks all the time: it keeps two descriptors, and with them the network
 * namespace that it was in. One thread.
 */
void port_limits_reread(struct port_limits *limits);

/*
 * One holder of a port. The first block belongs to the caller and is set before binding; it may
 * change afterwards (an id learns its source address and its peer) except for the port and ps.
 * All of it is zero before first use.
 */
struct port_claim {
	uint16_t ps;	/* RDMA_PS_* */
	bool reuseaddr; /* listening clears it */
	bool afonly;
	union addr local; /* port 0: any ephemeral one, filled in by port_space_bind() */
	union addr peer;  /* family AF_UNSPEC while there is none */

	struct port_claim *next;  /* older holder of the same port */
	struct port_claim **link; /* what points to this claim; NULL while it holds no port */
};

struct port_page;

struct port_space {
	struct port_limits limits; /* may be replaced at any time */
	uint64_t random_state;
	uint16_t last_port; /* the ephemeral port handed out last */
	struct port_page *pages[PORT_SPACE_TABLES][PORT_SPACE_PAGES];
};

/**
 * port_space_init() - four empty tables
 * @space:  all zero, or after port_space_fini(): its 128 KiB are touched only where ports are used
 * @limits: copied
 * @seed:   of the ephemeral ports; any number
 */
void port_space_init(struct port_space *space, const struct port_limits *limits, uint64_t seed);

/**
 * port_space_fini() - free the tables
 *
 * Claims that are still in them are not touched, and must not be released afterwards.
 */
void port_space_fini(struct port_space *space);

/**
 * port_space_bind() - claim the port of @claim->local, or any ephemeral one if that is 0
 * @space: where
 * @claim: holds no port yet; owned by the caller, stays linked until port_space_release()
 *
 * A given port conflicts with each holder unless both have reuseaddr, or both have afonly and
 * differ in family, or both are specific addresses that differ. Addresses in the sense of
 * addr_is_any() are not specific.
 *
 * An ephemeral port may be shared with a holder that differs in source address, peer address or
 * peer port, counting only what both have.
 *
 * Return: 0, with the port in @claim->local. -EACCES: the port is privileged.
 * -EADDRINUSE: held for the same address. -EADDRNOTAVAIL: held, and one of the two is a wildcard,
 * or no ephemeral port is left. -EPROTONOSUPPORT: no such port space. -EINVAL: the claim holds a
 * port, or its address has no family. -ENOMEM.
 */
int port_space_bind(struct port_space *space, struct port_claim *claim);

/**
 * port_space_hold() - note a claim whose port somebody else has granted, without asking for
 * conflicts
 *
 * Return: 0, -EPROTONOSUPPORT, -ENOMEM; -EINVAL if the claim holds a port or its address has none.
 */
int port_space_hold(struct port_space *space, struct port_claim *claim);

/**
 * port_space_listen() - make a bound claim fit to listen
 *
 * With reuseaddr the port must now be unique by the rules without it, and the flag is cleared.
 *
 * Return: 0, -EADDRINUSE or -EADDRNOTAVAIL as from port_space_bind() (flag and claim stay as they
 * are), -EINVAL if the claim holds no port.
 */
int port_space_listen(struct port_space *space, struct port_claim *claim);

/**
 * port_space_release() - let go of the port; harmless if the claim holds none
 */
void port_space_release(struct port_space *space, struct port_claim *claim);

/**
 * port_space_find_free() - any ephemeral port that nobody holds, and that is not reserved
 *
 * Return: 0 with the port in @ret; -EADDRNOTAVAIL, -EPROTONOSUPPORT.
 */
int port_space_find_free(struct port_space *space, uint16_t ps, uint16_t *ret);

/**
 * port_space_reserve() - hold a port without a claim, as a wildcard address of all families does
 * @mark: what the caller knows it by; not 0
 *
 * It costs next to no memory. Return: 0; -EADDRINUSE if it is held or reserved; -EPROTONOSUPPORT;
 * -ENOMEM.
 */
int port_space_reserve(struct port_space *space, uint16_t ps, uint16_t port, uint32_t mark);

/** port_space_reserved() - Return: the mark of a port that is reserved, else 0. */
uint32_t port_space_reserved(const struct port_space *space, uint16_t ps, uint16_t port);

/** port_space_unreserve() - let go of it; harmless if it is not reserved. */
void port_space_unreserve(struct port_space *space, uint16_t ps, uint16_t port);

/** port_space_unreserve_those() - let go of all whose mark, under @mask, is @mark. */
void port_space_unreserve_those(struct port_space *space, uint32_t mask, uint32_t mark);

/**
 * port_space_first() - the holders of a port, most recently bound first
 *
 * Go on with @claim->next. Do not release while walking, except the claim already passed.
 *
 * Return: NULL if nobody holds it.
 */
struct port_claim *port_space_first(const struct port_space *space, uint16_t ps, uint16_t port);

/** port_claim_accepts() - does one that listens want a request for this address? */
bool port_claim_accepts(const struct port_claim *claim, const union addr *dst);

/** port_claim_is_bound() - does it hold a port? */
bool port_claim_is_bound(const struct port_claim *claim);

#endif
