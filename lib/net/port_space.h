/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port spaces: the holders of the ports of each RDMA_PS_*. Four tables of 65536 ports, independent
 * of each other and of the sockets layer. cmportd has them, for all processes of a host.
 *
 * Pure: no clock, no system call, no lock (the caller holds one). A claim is embedded in its owner,
 * so binding allocates at most one page of the table.
 */
#ifndef LIB_NET_PORT_SPACE_H
#define LIB_NET_PORT_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/net/addr.h"

#define PORT_SPACE_TABLES 4 /* IPOIB, TCP, UDP, IB */
#define PORT_SPACE_PAGES  4096
#define PORT_PAGE_PORTS	  16   /* few: ephemeral ports are scattered, and new memory is slow */
#define PORT_PRIVILEGED	  1024 /* upper limit; fixed, as in stock */

/* Limits of the host, from port_limits_read(); tests and remote clients fill them in. */
struct port_limits {
	uint16_t ephemeral_first;    /* inclusive; net.ipv4.ip_local_port_range */
	uint16_t ephemeral_last;     /* inclusive */
	uint16_t unprivileged_first; /* of sockets, net.ipv4.ip_unprivileged_port_start */
	bool may_bind_low;	     /* the caller may bind privileged ports */
	bool v6_only;		     /* net.ipv6.bindv6only: default of afonly for AF_INET6 ids */
	unsigned int max_backlog;    /* net.rdma_ucm.max_backlog, 1024 if absent */
};

/**
 * port_limits_read() - read the limits of this host and this thread
 * @ret: filled in; with the kernel's default for settings that cannot be read
 */
void port_limits_read(struct port_limits *ret);

/**
 * port_limits_reread() - update ip_local_port_range and ip_unprivileged_port_start
 * @limits: settings that cannot be read are unchanged
 *
 * For frequent calls by cmportd: keeps two descriptors open, and so stays with the network
 * namespace of the first call. For one thread only.
 */
void port_limits_reread(struct port_limits *limits);

/*
 * A holder of a port. The first block belongs to the caller and is set before binding; it may
 * change afterwards, except port and ps (an id learns its source address and its peer). Zero it
 * before first use.
 */
struct port_claim {
	uint16_t ps;	/* RDMA_PS_* */
	bool reuseaddr; /* cleared on listening */
	bool afonly;
	union addr local; /* port 0: port_space_bind() assigns an ephemeral one */
	union addr peer;  /* family AF_UNSPEC if there is none */

	struct port_claim *next;  /* older holder of the same port */
	struct port_claim **link; /* the pointer to this claim; NULL without a port */
};

struct port_page;

struct port_space {
	struct port_limits limits; /* may be replaced at any time */
	uint64_t random_state;
	uint16_t last_port; /* the latest ephemeral port */
	unsigned int n_pages;
	uint64_t n_looked_at; /* ports that searches for an ephemeral one have passed so far */
	struct port_page *pages[PORT_SPACE_TABLES][PORT_SPACE_PAGES];
};

/**
 * port_space_init() - initialise four empty tables
 * @space:  zeroed, or after port_space_fini(); its 128 KiB are touched only where ports are used
 * @limits: copied
 * @seed:   for ephemeral ports; any number
 */
void port_space_init(struct port_space *space, const struct port_limits *limits, uint64_t seed);

/**
 * port_space_fini() - free the tables
 *
 * Claims that are still in them are not touched, and must not be released afterwards.
 */
void port_space_fini(struct port_space *space);

/**
 * port_space_bind() - claim the port of @claim->local, or any ephemeral one if it is 0
 * @space: the tables
 * @claim: without a port; owned by the caller, linked until port_space_release()
 *
 * A given port conflicts with each holder unless both have reuseaddr, or both have afonly and
 * differ in family, or both have specific addresses that differ. Addresses for which addr_is_any()
 * holds are not specific.
 *
 * An ephemeral port may be shared with a holder that differs in source address, peer address or
 * peer port, if both have them.
 *
 * Return: 0, with the port in @claim->local. -EACCES: the port is privileged. -EADDRINUSE: held for
 * the same address. -EADDRNOTAVAIL: held, and one of the two is a wildcard, or no ephemeral port is
 * left. -EPROTONOSUPPORT: no such port space. -EINVAL: the claim has a port, or its address no
 * family. -ENOMEM.
 */
int port_space_bind(struct port_space *space, struct port_claim *claim);

/**
 * port_space_listen() - upgrade a bound claim to listen
 *
 * With reuseaddr, checks again without it, and clears the flag.
 *
 * Return: 0; -EADDRINUSE or -EADDRNOTAVAIL as from port_space_bind(), with flag and claim
 * unchanged; -EINVAL if the claim has no port.
 */
int port_space_listen(struct port_space *space, struct port_claim *claim);

/**
 * port_space_may_become() - return whether a bound claim may change as described by @to
 *
 * False if it would conflict with a holder with which it has been in no conflict.
 */
bool port_space_may_become(const struct port_space *space, const struct port_claim *claim,
			   const struct port_claim *to);

/** port_space_release() - release the port; no effect if the claim has none */
void port_space_release(struct port_space *space, struct port_claim *claim);

/**
 * port_space_find_free() - find an ephemeral port that is neither held nor reserved
 *
 * Return: 0 with the port in @ret; -EADDRNOTAVAIL, -EPROTONOSUPPORT.
 */
int port_space_find_free(struct port_space *space, uint16_t ps, uint16_t *ret);

/**
 * port_space_reserve() - reserve a port without a claim, as for a wildcard address of all families
 * @mark: identifies the reservation; not 0
 *
 * Needs almost no memory.
 *
 * Return: 0; -EADDRINUSE if it is held or reserved; -EPROTONOSUPPORT; -ENOMEM.
 */
int port_space_reserve(struct port_space *space, uint16_t ps, uint16_t port, uint32_t mark);

/** port_space_reserved() - Return: the mark of a reserved port, else 0. */
uint32_t port_space_reserved(const struct port_space *space, uint16_t ps, uint16_t port);

/** port_space_unreserve() - release a reserved port; no effect if it is not reserved. */
void port_space_unreserve(struct port_space *space, uint16_t ps, uint16_t port);

/** port_space_unreserve_those() - release all whose mark, masked with @mask, is @mark. */
void port_space_unreserve_those(struct port_space *space, uint32_t mask, uint32_t mark);

/**
 * port_space_first() - get the holders of a port, most recently bound first
 *
 * Continue with @claim->next. While iterating, release only claims already passed.
 *
 * Return: the first holder, or NULL.
 */
struct port_claim *port_space_first(const struct port_space *space, uint16_t ps, uint16_t port);

/** port_claim_accepts() - true if a listening claim accepts requests for this address. */
bool port_claim_accepts(const struct port_claim *claim, const union addr *dst);

#endif
