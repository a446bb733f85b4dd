/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of a host: see ports.h. A claim and a lease are both holders of a port in the
 * tables of net/port_space.h; a lease is that of its port's wildcard address.
 */
#include "portd/ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cm/index.h"
#include "cm/list.h"
#include "mad/cma_hdr.h"
#include "portd/lease.h"

#define CLIENTS_MAX 65535

struct holder {
	struct port_claim claim; /* first */
	struct list of_tenant;
	struct cm_node by_claim_id; /* not of a lease */
	uint16_t client;
	bool listening;
	bool is_lease;
	unsigned int word; /* of a lease */
};

struct tenant {
	struct list holders;
	unsigned int n_claims;
	struct lease_page *page; /* NULL before it has one */
	int page_fd;
	uint64_t is_leased[LEASE_WORDS / 64]; /* which words are, whatever the page says */
};

struct ports {
	struct port_space space;
	struct cm_index by_claim_id;
	struct tenant *tenant[CLIENTS_MAX];
};

struct ports *ports_new(const struct port_limits *limits, uint64_t seed)
{
	struct ports *ports = calloc(1, sizeof(*ports));

	if (!ports)
		return NULL;
	if (cm_index_init(&ports->by_claim_id, seed)) {
		free(ports);
		return NULL;
	}
	port_space_init(&ports->space, limits, seed);
	return ports;
}

void ports_free(struct ports *ports)
{
	uint16_t i;

	if (!ports)
		return;
	for (i = 0; i < CLIENTS_MAX; i++)
		ports_client_gone(ports, i);
	cm_index_fini(&ports->by_claim_id);
	port_space_fini(&ports->space);
	free(ports);
}

struct port_limits *ports_limits(struct ports *ports)
{
	return &ports->space.limits;
}

/* --- tenants and holders ------------------------------------------------- */

static struct tenant *tenant_of(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = ports->tenant[client];

	if (tenant)
		return tenant;
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return NULL;
	list_init(&tenant->holders);
	tenant->page_fd = -1;
	ports->tenant[client] = tenant;
	return tenant;
}

static struct cm_key claim_key(uint16_t client, uint32_t claim_id)
{
	return (struct cm_key){ .guid = client, .id = claim_id };
}

static struct holder *find(const struct ports *ports, uint16_t client, uint32_t claim_id)
{
	struct cm_key key = claim_key(client, claim_id);
	struct cm_node *node = cm_index_find(&ports->by_claim_id, &key);

	return node ? container_of(node, struct holder, by_claim_id) : NULL;
}

static struct holder *holder_new(struct tenant *tenant, uint16_t client)
{
	struct holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	holder->client = client;
	list_append(&tenant->holders, &holder->of_tenant);
	return holder;
}

static void holder_free(struct ports *ports, struct holder *holder)
{
	struct tenant *tenant = ports->tenant[holder->client];

	if (holder->is_lease)
		tenant->is_leased[holder->word / 64] &= ~(UINT64_C(1) << holder->word % 64);
	else if (holder->by_claim_id.link)
		tenant->n_claims--;
	cm_index_remove(&ports->by_claim_id, &holder->by_claim_id);
	port_space_release(&ports->space, &holder->claim);
	list_remove(&holder->of_tenant);
	free(holder);
}

/* --- leases -------------------------------------------------------------- */

/* Return: false if its client uses the port. */
static bool take_back(struct ports *ports, struct holder *lease)
{
	struct lease_page *page = ports->tenant[lease->client]->page;

	if (!lease_revoke(page, lease->word, lease->claim.ps, addr_port(&lease->claim.local)))
		return false;
	holder_free(ports, lease);
	return true;
}

static void take_back_all(struct ports *ports)
{
	struct list *node, *after;
	struct holder *holder;
	uint16_t i;

	for (i = 0; i < CLIENTS_MAX; i++) {
		if (!ports->tenant[i])
			continue;
		list_for_each_safe (node, after, &ports->tenant[i]->holders) {
			holder = container_of(node, struct holder, of_tenant);
			if (holder->is_lease)
				take_back(ports, holder);
		}
	}
}

/* Where a new lease of a port is to stand; LEASE_WORDS if the page is full. */
static unsigned int free_word(const struct tenant *tenant, uint16_t port)
{
	unsigned int i, word;

	for (i = 0; i < LEASE_WORDS; i++) {
		word = (port + i) % LEASE_WORDS;
		if (!(tenant->is_leased[word / 64] >> word % 64 & 1))
			return word;
	}
	return LEASE_WORDS;
}

static void set_word(struct tenant *tenant, unsigned int word, uint32_t value)
{
	__atomic_store_n(&tenant->page->word[word], value, __ATOMIC_RELEASE);
}

static int bind_any(struct ports *ports, struct port_claim *claim)
{
	int err = port_space_bind(&ports->space, claim);

	if (err != -EADDRNOTAVAIL)
		return err;
	take_back_all(ports);
	return port_space_bind(&ports->space, claim);
}

static bool may_be_leased(const struct ports *ports, uint16_t ps, uint16_t port)
{
	const struct port_limits *limits = &ports->space.limits;

	return port >= limits->ephemeral_first && port <= limits->ephemeral_last &&
	       !port_space_first(&ports->space, ps, port);
}

/* The ports of a lease follow each other where they can, which keeps both sides' tables small. */
static int bind_after(struct ports *ports, struct port_claim *claim, uint16_t before)
{
	uint16_t port = (uint16_t)(before + 1);

	if (!before || !may_be_leased(ports, claim->ps, port))
		return port_space_bind(&ports->space, claim);
	addr_set_port(&claim->local, port);
	return port_space_hold(&ports->space, claim);
}

/* A wildcard address can be told from no other, so such a port is held by nobody else. */
static int lease_one(struct ports *ports, struct tenant *tenant, uint16_t client, uint16_t ps,
		     uint16_t *port)
{
	struct holder *lease = holder_new(tenant, client);
	int err;

	if (!lease)
		return -ENOMEM;
	lease->claim.ps = ps;
	addr_set_any(&lease->claim.local, AF_INET);
	err = bind_after(ports, &lease->claim, *port);
	if (!err) {
		*port = addr_port(&lease->claim.local);
		lease->word = free_word(tenant, *port);
		err = lease->word == LEASE_WORDS ? -ENOSPC : 0;
	}
	if (err) {
		holder_free(ports, lease);
		return err;
	}
	lease->is_lease = true;
	tenant->is_leased[lease->word / 64] |= UINT64_C(1) << lease->word % 64;
	set_word(tenant, lease->word, lease_word(ps, *port, LEASE_FREE));
	return 0;
}

int ports_lease(struct ports *ports, uint16_t client, uint16_t ps, unsigned int count)
{
	struct tenant *tenant = ports->tenant[client];
	uint16_t port = 0;
	unsigned int n;
	int err = 0;

	if (!tenant || !tenant->page)
		return -ENOENT;
	for (n = 0; n < count && n < LEASE_WORDS && !err; n += !err)
		err = lease_one(ports, tenant, client, ps, &port);
	if (n == 0 && err == -EADDRNOTAVAIL) {
		take_back_all(ports);
		n = !lease_one(ports, tenant, client, ps, &port);
	}
	return err == -EPROTONOSUPPORT ? err : (int)n;
}

static int map_page(struct tenant *tenant, int fd)
{
	void *page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	tenant->page = page;
	tenant->page_fd = fd;
	return 0;
}

int ports_page_new(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = tenant_of(ports, client);
	int err = 0;
	int fd;

	if (!tenant || tenant->page)
		return tenant ? -EEXIST : -ENOMEM;
	fd = memfd_create("purecm ports", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, LEASE_PAGE_BYTES) || fcntl(fd, F_ADD_SEALS, LEASE_SEALS))
		err = -errno;
	if (!err)
		err = map_page(tenant, fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

static void resume_word(struct ports *ports, struct tenant *tenant, uint16_t client,
			unsigned int word)
{
	uint32_t value = __atomic_load_n(&tenant->page->word[word], __ATOMIC_ACQUIRE);
	struct holder *lease = NULL;
	uint16_t ps, port;

	if (lease_read(value, &ps, &port) == LEASE_EMPTY)
		return;
	if (may_be_leased(ports, ps, port))
		lease = holder_new(tenant, client);
	if (lease) {
		lease->claim.ps = ps;
		addr_set_any(&lease->claim.local, AF_INET);
		addr_set_port(&lease->claim.local, port);
	}
	if (!lease || port_space_hold(&ports->space, &lease->claim)) {
		set_word(tenant, word, LEASE_EMPTY);
		if (lease)
			holder_free(ports, lease);
		return;
	}
	lease->is_lease = true;
	lease->word = word;
	tenant->is_leased[word / 64] |= UINT64_C(1) << word % 64;
}

int ports_page_resume(struct ports *ports, uint16_t client, int fd)
{
	struct tenant *tenant = tenant_of(ports, client);
	unsigned int word;
	int err = tenant ? 0 : -ENOMEM;

	if (!err && (tenant->page || !lease_is_page(fd)))
		err = -EINVAL;
	if (!err)
		err = map_page(tenant, fd);
	if (err) {
		close(fd);
		return err;
	}
	for (word = 0; word < LEASE_WORDS; word++)
		resume_word(ports, tenant, client, word);
	return 0;
}

/* --- claims -------------------------------------------------------------- */

static int set_addr(union addr *addr, uint8_t family, const uint8_t bytes[16], uint16_t port,
		    uint32_t scope)
{
	memset(addr, 0, sizeof(*addr));
	if (family == 4) {
		addr->in4.sin_family = AF_INET;
		memcpy(&addr->in4.sin_addr, bytes + 12, 4);
	} else if (family == 6) {
		addr->in6.sin6_family = AF_INET6;
		memcpy(&addr->in6.sin6_addr, bytes, 16);
		addr->in6.sin6_scope_id = scope;
	} else if (family == PORTD_FAMILY_IB) {
		addr->ib.sib_family = AF_IB;
		memcpy(&addr->ib.sib_addr, bytes, 16);
	} else {
		return -EINVAL;
	}
	addr_set_port(addr, port);
	return 0;
}

static int fill(struct port_claim *claim, const struct portd_claim *from)
{
	claim->reuseaddr = from->reuseaddr != 0;
	claim->afonly = from->afonly != 0;
	memset(&claim->peer, 0, sizeof(claim->peer));
	if (from->peer_family && set_addr(&claim->peer, from->peer_family, from->peer_addr,
					  from->peer_port, from->peer_scope))
		return -EINVAL;
	return set_addr(&claim->local, from->local_family, from->local_addr, from->local_port,
			from->local_scope);
}

/* What is leased and not in use gives way; a lease of the client's own turns into its claim. */
static void clear_way(struct ports *ports, uint16_t client, uint16_t ps, uint16_t port)
{
	struct port_claim *claim = port_space_first(&ports->space, ps, port);
	struct holder *holder;

	while (claim) {
		holder = (struct holder *)claim;
		claim = claim->next;
		if (!holder->is_lease)
			continue;
		if (holder->client != client) {
			take_back(ports, holder);
			continue;
		}
		set_word(ports->tenant[client], holder->word, LEASE_EMPTY);
		holder_free(ports, holder);
	}
}

static int enter(struct ports *ports, struct tenant *tenant, struct holder *holder,
		 uint32_t claim_id)
{
	struct cm_key key = claim_key(holder->client, claim_id);

	if (cm_index_reserve(&ports->by_claim_id, ports->by_claim_id.n_nodes + 1))
		return -ENOMEM;
	cm_index_insert(&ports->by_claim_id, &holder->by_claim_id, &key);
	tenant->n_claims++;
	return 0;
}

/* A client asks again whose cmportd died in the middle: it has told us of the claim already. */
static int bind_again(const struct holder *holder, const struct portd_claim *claim, uint16_t *ret)
{
	uint16_t port = addr_port(&holder->claim.local);
	struct port_claim is = { .ps = claim->ps };

	if (fill(&is, claim) || is.ps != holder->claim.ps ||
	    !addr_same_ip(&is.local, &holder->claim.local) ||
	    (claim->local_port && claim->local_port != port))
		return -EINVAL;
	*ret = port;
	return 0;
}

int ports_bind(struct ports *ports, uint16_t client, const struct portd_claim *claim, uint16_t *ret)
{
	struct tenant *tenant = tenant_of(ports, client);
	struct holder *holder;
	int err;

	if (!tenant)
		return -ENOMEM;
	holder = find(ports, client, claim->claim_id);
	if (holder)
		return bind_again(holder, claim, ret);
	if (tenant->n_claims == PORTS_CLAIMS_MAX)
		return -ENOSPC;
	holder = holder_new(tenant, client);
	if (!holder)
		return -ENOMEM;
	holder->claim.ps = claim->ps;
	err = fill(&holder->claim, claim);
	if (!err && claim->local_port)
		clear_way(ports, client, claim->ps, claim->local_port);
	if (!err)
		err = claim->local_port ? port_space_bind(&ports->space, &holder->claim)
					: bind_any(ports, &holder->claim);
	if (!err)
		err = enter(ports, tenant, holder, claim->claim_id);
	if (err)
		holder_free(ports, holder);
	else
		*ret = addr_port(&holder->claim.local);
	return err;
}

void ports_update(struct ports *ports, uint16_t client, const struct portd_claim *claim)
{
	struct holder *holder = find(ports, client, claim->claim_id);
	struct port_claim is;

	if (!holder || addr_port(&holder->claim.local) != claim->local_port ||
	    holder->claim.ps != claim->ps)
		return;
	if (fill(&is, claim))
		return;
	/* A listener's port is its own: it cannot be made sharable afterwards. */
	holder->claim.reuseaddr = is.reuseaddr && !holder->listening;
	holder->claim.afonly = is.afonly;
	holder->claim.local = is.local;
	holder->claim.peer = is.peer;
}

int ports_listen(struct ports *ports, uint16_t client, const struct portd_claim *claim)
{
	struct holder *holder = find(ports, client, claim->claim_id);
	int err;

	if (!holder)
		return -ENOENT;
	ports_update(ports, client, claim);
	err = port_space_listen(&ports->space, &holder->claim);
	holder->listening = holder->listening || !err;
	return err;
}

void ports_release(struct ports *ports, uint16_t client, uint32_t claim_id)
{
	struct holder *holder = find(ports, client, claim_id);

	if (holder)
		holder_free(ports, holder);
}

static bool wants(const struct port_claim *claim, const union addr *dst)
{
	union addr scoped = *dst;

	/* Which GID it was for, the listener itself will see. */
	if (addr_is_ib(dst))
		return addr_is_ib(&claim->local);
	/* A header has no scope; the request came by the interface that the claim is of. */
	if (addr_is_link_local(dst))
		scoped.in6.sin6_scope_id = addr_scope(&claim->local);
	return port_claim_accepts(claim, &scoped);
}

/* Private data that does not begin with the header of the IP CM service is an AF_IB request's. */
static union addr addressee(const uint8_t *data, uint16_t port)
{
	struct cma_hdr hdr;
	union addr dst;

	wire_decode(&cma_hdr_layout, data, &hdr);
	if (!hdr.cma_version && (hdr.ip_version == 4 || hdr.ip_version == 6))
		set_addr(&dst, hdr.ip_version, hdr.dst_addr, port, 0);
	else
		set_addr(&dst, PORTD_FAMILY_IB, hdr.dst_addr, port, 0);
	return dst;
}

uint16_t ports_listener(const struct ports *ports, uint64_t service_id, const uint8_t *data)
{
	uint16_t ps = (uint16_t)(service_id >> 16);
	uint16_t port = (uint16_t)service_id;
	uint16_t found = PORTS_NOBODY;
	const struct port_claim *claim;
	union addr dst;

	if (service_id != cma_service_id(ps, port))
		return PORTS_NOBODY;
	dst = addressee(data, port);
	for (claim = port_space_first(&ports->space, ps, port); claim; claim = claim->next) {
		const struct holder *holder = (const struct holder *)claim;

		if (!holder->listening)
			continue;
		if (wants(claim, &dst))
			return holder->client;
		found = PORTS_NOT_FOR_THEM;
	}
	return found;
}

void ports_client_gone(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = ports->tenant[client];
	struct list *node, *after;

	if (!tenant)
		return;
	list_for_each_safe (node, after, &tenant->holders)
		holder_free(ports, container_of(node, struct holder, of_tenant));
	if (tenant->page)
		munmap(tenant->page, LEASE_PAGE_BYTES);
	if (tenant->page_fd >= 0)
		close(tenant->page_fd);
	free(tenant);
	ports->tenant[client] = NULL;
}
