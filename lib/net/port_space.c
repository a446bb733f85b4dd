/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables behind port_space.h. A page is allocated for each 16 ports that are used, with a list
 * of holders for each port, newest first; a reserved port has none. A few pages are kept when they
 * are empty. Rules and errors are those of the kernel's connection manager.
 */
#include "lib/net/port_space.h"

#include <assert.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_KEPT 128

static_assert(PORT_SPACE_PAGES * PORT_PAGE_PORTS == UINT16_MAX + 1, "each port has its place");

struct port_page {
	struct port_claim *holders[PORT_PAGE_PORTS];
	uint32_t mark[PORT_PAGE_PORTS]; /* 0: not reserved */
};

static int table_of(uint16_t ps)
{
	switch (ps) {
	case RDMA_PS_IPOIB:
		return 0;
	case RDMA_PS_TCP:
		return 1;
	case RDMA_PS_UDP:
		return 2;
	case RDMA_PS_IB:
		return 3;
	}
	return -EPROTONOSUPPORT;
}

void port_space_init(struct port_space *space, const struct port_limits *limits, uint64_t seed)
{
	space->limits = *limits;
	space->random_state = seed;
	space->last_port = 0;
	space->n_looked_at = 0;
}

void port_space_fini(struct port_space *space)
{
	for (int table = 0; table < PORT_SPACE_TABLES; table++) {
		for (int i = 0; i < PORT_SPACE_PAGES; i++)
			free(space->pages[table][i]);
	}
	memset(space->pages, 0, sizeof(space->pages));
	space->n_pages = 0;
}

bool port_claim_accepts(const struct port_claim *claim, const union addr *dst)
{
	if (addr_is_ib(&claim->local) != addr_is_ib(dst))
		return false;
	if (addr_is_any(&claim->local) && !claim->afonly)
		return true;
	if (claim->local.sa.sa_family != dst->sa.sa_family)
		return false;
	return addr_is_any(&claim->local) || addr_same_ip(&claim->local, dst);
}

/* Return: the page, or NULL if it was never used, or there is no such port space. */
static struct port_page *page_of(const struct port_space *space, uint16_t ps, uint16_t port)
{
	int table = table_of(ps);

	return table < 0 ? NULL : space->pages[table][port / PORT_PAGE_PORTS];
}

struct port_claim *port_space_first(const struct port_space *space, uint16_t ps, uint16_t port)
{
	const struct port_page *page = page_of(space, ps, port);

	return page ? page->holders[port % PORT_PAGE_PORTS] : NULL;
}

/* The port space must exist. Return: the page, or NULL when out of memory. */
static struct port_page *make_page(struct port_space *space, uint16_t ps, uint16_t port)
{
	struct port_page **page = &space->pages[table_of(ps)][port / PORT_PAGE_PORTS];

	if (*page)
		return *page;
	*page = calloc(1, sizeof(**page));
	if (*page)
		space->n_pages++;
	return *page;
}

/* Keeps some, because ports that were used are used again. */
static void drop_empty_page(struct port_space *space, struct port_page **page)
{
	unsigned int i;

	if (space->n_pages <= PAGES_KEPT || !*page)
		return;
	for (i = 0; i < PORT_PAGE_PORTS; i++)
		if ((*page)->holders[i] || (*page)->mark[i])
			return;
	free(*page);
	*page = NULL;
	space->n_pages--;
}

static void drop_empty_page_of(struct port_space *space, uint16_t ps, uint16_t port)
{
	int table = table_of(ps);

	if (table >= 0)
		drop_empty_page(space, &space->pages[table][port / PORT_PAGE_PORTS]);
}

/* Makes @claim the newest holder of @port. */
static int hold_port(struct port_space *space, struct port_claim *claim, uint16_t port)
{
	struct port_page *page = make_page(space, claim->ps, port);
	struct port_claim **head;

	if (!page)
		return -ENOMEM;
	head = &page->holders[port % PORT_PAGE_PORTS];
	claim->next = *head;
	claim->link = head;
	if (claim->next)
		claim->next->link = &claim->next;
	*head = claim;
	addr_set_port(&claim->local, port);
	return 0;
}

void port_space_release(struct port_space *space, struct port_claim *claim)
{
	const uint16_t port = addr_port(&claim->local);

	if (!claim->link)
		return;
	*claim->link = claim->next;
	if (claim->next)
		claim->next->link = claim->link;
	claim->next = NULL;
	claim->link = NULL;
	drop_empty_page_of(space, claim->ps, port);
}

/* Checks whether @claim may hold a given port together with @other. */
static int check_conflict(const struct port_claim *claim, const struct port_claim *other,
			  bool reuseaddr)
{
	if (reuseaddr && other->reuseaddr)
		return 0;
	if (claim->afonly && other->afonly &&
	    claim->local.sa.sa_family != other->local.sa.sa_family)
		return 0;
	if (addr_is_any(&claim->local) || addr_is_any(&other->local))
		return -EADDRNOTAVAIL;
	return addr_same_ip(&claim->local, &other->local) ? -EADDRINUSE : 0;
}

static int check_holders(const struct port_space *space, const struct port_claim *claim,
			 bool reuseaddr)
{
	uint16_t port = addr_port(&claim->local);
	const struct port_claim *other = port_space_first(space, claim->ps, port);
	int rc = port_space_reserved(space, claim->ps, port) ? -EADDRNOTAVAIL : 0;

	for (; other && !rc; other = other->next) {
		if (other != claim)
			rc = check_conflict(claim, other, reuseaddr);
	}
	return rc;
}

static bool ips_differ(const union addr *a, const union addr *b)
{
	return a->sa.sa_family && b->sa.sa_family && !addr_is_any(a) && !addr_is_any(b) &&
	       !addr_same_ip(a, b);
}

/* Return: true if packets for the two claims differ, so that they can share a port. */
static bool claims_differ(const struct port_claim *a, const struct port_claim *b)
{
	uint16_t a_port = addr_port(&a->peer);
	uint16_t b_port = addr_port(&b->peer);

	return (a_port && b_port && a_port != b_port) || ips_differ(&a->local, &b->local) ||
	       ips_differ(&a->peer, &b->peer);
}

static bool may_share(const struct port_space *space, const struct port_claim *claim, uint16_t port)
{
	const struct port_claim *other = port_space_first(space, claim->ps, port);

	if (port_space_reserved(space, claim->ps, port))
		return false;
	while (other && claims_differ(claim, other))
		other = other->next;
	return !other;
}

/* splitmix64 (public domain, S. Vigna): any seed works, including zero. */
static uint64_t next_random(struct port_space *space)
{
	uint64_t x = space->random_state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static int find_ephemeral(struct port_space *space, const struct port_claim *claim, uint16_t *ret)
{
	uint32_t first = space->limits.ephemeral_first;
	uint32_t n_ports = space->limits.ephemeral_last - first + 1u;
	uint32_t start = next_random(space) % n_ports;

	for (uint32_t i = 0; i < n_ports; i++) {
		uint16_t port = first + (start + i) % n_ports;

		space->n_looked_at++;
		/* Avoid the last port: its former peer may still consider it connected. */
		if (port == space->last_port || !may_share(space, claim, port))
			continue;
		*ret = port;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

int port_space_bind(struct port_space *space, struct port_claim *claim)
{
	uint16_t port = addr_port(&claim->local);
	int rc;

	if (claim->link || !addr_bytes(&claim->local.sa))
		return -EINVAL;
	if (table_of(claim->ps) < 0)
		return -EPROTONOSUPPORT;
	if (!port) {
		rc = find_ephemeral(space, claim, &port);
		if (!rc)
			rc = hold_port(space, claim, port);
		if (!rc)
			space->last_port = port;
		return rc;
	}
	if (port < PORT_PRIVILEGED && !space->limits.may_bind_low)
		return -EACCES;
	rc = check_holders(space, claim, claim->reuseaddr);
	return rc ? rc : hold_port(space, claim, port);
}

int port_space_listen(struct port_space *space, struct port_claim *claim)
{
	int rc;

	if (!claim->link)
		return -EINVAL;
	if (!claim->reuseaddr)
		return 0;
	rc = check_holders(space, claim, false);
	if (!rc)
		claim->reuseaddr = false;
	return rc;
}

bool port_space_may_become(const struct port_space *space, const struct port_claim *claim,
			   const struct port_claim *to)
{
	const struct port_claim *other =
		port_space_first(space, claim->ps, addr_port(&claim->local));

	for (; other; other = other->next)
		if (other != claim && check_conflict(to, other, to->reuseaddr) &&
		    !check_conflict(claim, other, claim->reuseaddr))
			return false;
	return true;
}

/* --- reservations ---------------------------------------------------------- */

uint32_t port_space_reserved(const struct port_space *space, uint16_t ps, uint16_t port)
{
	const struct port_page *page = page_of(space, ps, port);

	return page ? page->mark[port % PORT_PAGE_PORTS] : 0;
}

int port_space_find_free(struct port_space *space, uint16_t ps, uint16_t *ret)
{
	const struct port_claim wildcard = { .ps = ps }; /* differs from no other claim */

	return table_of(ps) < 0 ? -EPROTONOSUPPORT : find_ephemeral(space, &wildcard, ret);
}

int port_space_reserve(struct port_space *space, uint16_t ps, uint16_t port, uint32_t mark)
{
	unsigned int i = port % PORT_PAGE_PORTS;
	struct port_page *page;

	assert(mark);
	if (table_of(ps) < 0)
		return -EPROTONOSUPPORT;
	page = make_page(space, ps, port);
	if (!page)
		return -ENOMEM;
	if (page->holders[i] || page->mark[i])
		return -EADDRINUSE;
	page->mark[i] = mark;
	return 0;
}

void port_space_unreserve(struct port_space *space, uint16_t ps, uint16_t port)
{
	struct port_page *page = page_of(space, ps, port);

	if (!page || !page->mark[port % PORT_PAGE_PORTS])
		return;
	page->mark[port % PORT_PAGE_PORTS] = 0;
	drop_empty_page_of(space, ps, port);
}

void port_space_unreserve_those(struct port_space *space, uint32_t mask, uint32_t mark)
{
	for (int i = 0; i < PORT_SPACE_TABLES * PORT_SPACE_PAGES; i++) {
		struct port_page **page = &space->pages[i / PORT_SPACE_PAGES][i % PORT_SPACE_PAGES];

		for (int port = 0; *page && port < PORT_PAGE_PORTS; port++) {
			if (!(*page)->mark[port] || ((*page)->mark[port] & mask) != mark)
				continue;
			(*page)->mark[port] = 0;
		}
		drop_empty_page(space, page);
	}
}
