/* SPDX-License-Identifier: BSD-2-Clause */
/* The port spaces of a host, for the files that implement ports.h. */
#ifndef LIB_PORTD_SERVER_PORTS_PORTS_OWN_H
#define LIB_PORTD_SERVER_PORTS_PORTS_OWN_H

#include "cm/index.h"
#include "base/list.h"
#include "lib/portd/proto/lease.h"
#include "lib/portd/server/ports/ports.h"

#define TENANTS_MAX 65535

struct holder {
	struct port_claim claim; /* first */
	struct list of_tenant;
	struct cm_node by_claim_id;
	struct cm_node by_port; /* while it listens */
	uint16_t client;
	uint8_t heard_at; /* as in struct portd_claim */
	bool listening;
};

struct tenant {
	uint16_t block; /* of comm ids, the client's first; 0: none */
	struct list holders;
	uint32_t *shared; /* count of the user's tenants, or NULL */
	unsigned int n_claims;
	struct lease_page *page; /* NULL: none yet */
	unsigned int n_leases;
	uint16_t last_leased;		      /* 0: none yet */
	uint64_t is_leased[LEASE_WORDS / 64]; /* leased words, regardless of the page */
};

struct ports {
	struct port_space space;
	struct cm_index by_claim_id;
	struct cm_index listeners; /* holders by port space and port */
	uint16_t n_tenants;	   /* highest index ever used, plus one */
	struct tenant *tenant[TENANTS_MAX];
	uint16_t *holders; /* see port_holders.h; NULL: they are not kept */
};

/** ports_tenant() - what a client has; made if it has nothing. Return: NULL when out of memory. */
struct tenant *ports_tenant(struct ports *ports, uint16_t client);

/** ports_add_listener() - have a holder found by ports_listener(). Return: 0, -ENOSPC, -ENOMEM. */
int ports_add_listener(struct ports *ports, struct holder *holder);

#endif
