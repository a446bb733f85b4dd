/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port spaces of a host: see ports.h. A claim is a holder of its port in the tables of
 * lib/net/port_space.h. A lease is a port reserved there, with a mark that has the client and the
 * word of its page.
 */
#include "lib/portd/server/ports/ports.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/portd/server/files/port_holders.h"
#include "lib/portd/server/ports/ports_own.h"

/* The mark of a leased port: the client in the lower half, and the word of its page. */
#define MARK_LEASE	(UINT32_C(1) << 31)
#define MARK_WORD_SHIFT 16
#define SEARCH_MAX	65536 /* ports passed in search of those to be leased at once */
static_assert(LEASE_WORDS <= 1 << (31 - MARK_WORD_SHIFT), "each word has its mark");

struct ports *ports_new(const struct port_limits *limits, uint64_t seed)
{
	struct ports *ports = calloc(1, sizeof(*ports));

	if (!ports)
		return NULL;
	port_space_init(&ports->space, limits, seed);
	if (!cm_index_init(&ports->by_claim_id, seed) && !cm_index_init(&ports->listeners, seed))
		return ports;
	ports_free(ports);
	return NULL;
}

void ports_free(struct ports *ports)
{
	uint16_t i;

	if (!ports)
		return;
	for (i = 0; i < ports->n_tenants; i++)
		ports_client_gone(ports, i);
	cm_index_fini(&ports->by_claim_id);
	cm_index_fini(&ports->listeners);
	port_space_fini(&ports->space);
	free(ports);
}

struct port_limits *ports_limits(struct ports *ports)
{
	return &ports->space.limits;
}

void ports_keep_holders(struct ports *ports, uint16_t *table)
{
	ports->holders = table;
	port_holders_reserve(table, &ports->space);
}

void ports_end_reservations(struct ports *ports)
{
	port_holders_end(ports->holders, &ports->space);
}

bool ports_is_reserved(const struct ports *ports, uint16_t client, uint16_t ps, uint16_t port)
{
	const struct tenant *tenant = ports->tenant[client];

	return port_holders_reserves(&ports->space, ps, port, tenant ? tenant->block : 0);
}

/* --- tenants and holders ------------------------------------------------- */

struct tenant *ports_tenant(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = ports->tenant[client];

	if (tenant)
		return tenant;
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return NULL;
	list_init(&tenant->holders);
	ports->tenant[client] = tenant;
	if (client >= ports->n_tenants)
		ports->n_tenants = (uint16_t)(client + 1);
	return tenant;
}

void ports_identify(struct ports *ports, uint16_t client, uint16_t block)
{
	ports->tenant[client]->block = block;
}

bool ports_share(struct ports *ports, uint16_t client, uint32_t *count)
{
	struct tenant *tenant = ports_tenant(ports, client);

	if (tenant)
		tenant->shared = count;
	return tenant;
}

static void count_for(struct tenant *tenant, unsigned int *n, int by)
{
	*n += (unsigned int)by;
	if (tenant->shared)
		*tenant->shared += (uint32_t)by;
}

static struct holder *find_holder(const struct ports *ports, uint16_t client, uint32_t claim_id)
{
	struct cm_key key = { .guid = client, .id = claim_id };
	struct cm_node *node = cm_index_find(&ports->by_claim_id, &key);

	return node ? container_of(node, struct holder, by_claim_id) : NULL;
}

static void holder_free(struct ports *ports, struct holder *holder)
{
	struct tenant *tenant = ports->tenant[holder->client];
	const uint16_t port = addr_port(&holder->claim.local);

	if (hash_is_in(&holder->by_claim_id.link))
		count_for(tenant, &tenant->n_claims, -1);
	cm_index_remove(&ports->by_claim_id, &holder->by_claim_id);
	cm_index_remove(&ports->listeners, &holder->by_port);
	port_space_release(&ports->space, &holder->claim);
	port_holders_forget(ports->holders, &ports->space, holder->claim.ps, port);
	list_remove(&holder->of_tenant);
	free(holder);
}

/* --- leases -------------------------------------------------------------- */

static uint32_t mark_of(uint16_t client, unsigned int word)
{
	return MARK_LEASE | word << MARK_WORD_SHIFT | client;
}

static unsigned int word_of(uint32_t mark)
{
	return (mark & ~MARK_LEASE) >> MARK_WORD_SHIFT;
}

static int reserve_lease(struct ports *ports, uint16_t client, uint16_t ps, uint16_t port,
			 unsigned int word)
{
	struct tenant *tenant = ports->tenant[client];
	int err = port_space_reserve(&ports->space, ps, port, mark_of(client, word));

	if (err)
		return err;
	port_holders_note(ports->holders, &ports->space, ps, port, tenant->block);
	tenant->is_leased[word / 64] |= UINT64_C(1) << word % 64;
	count_for(tenant, &tenant->n_leases, 1);
	return 0;
}

static void unreserve_lease(struct ports *ports, struct tenant *tenant, uint16_t ps, uint16_t port)
{
	unsigned int word = word_of(port_space_reserved(&ports->space, ps, port));

	port_space_unreserve(&ports->space, ps, port);
	port_holders_forget(ports->holders, &ports->space, ps, port);
	tenant->is_leased[word / 64] &= ~(UINT64_C(1) << word % 64);
	count_for(tenant, &tenant->n_leases, -1);
}

/* @port is leased. Return: false if its client uses it. */
static bool revoke_if_unused(struct ports *ports, uint16_t ps, uint16_t port)
{
	uint32_t mark = port_space_reserved(&ports->space, ps, port);
	struct tenant *tenant = ports->tenant[(uint16_t)mark];

	if (!lease_revoke(tenant->page, word_of(mark), ps, port))
		return false;
	unreserve_lease(ports, tenant, ps, port);
	return true;
}

typedef void lease_fn(struct ports *ports, struct tenant *tenant, uint16_t ps, uint16_t port);

/* Calls @act for all leases of a client that match its page; @act may end them. */
static void for_each_lease(struct ports *ports, uint16_t client, lease_fn *act)
{
	struct tenant *tenant = ports->tenant[client];
	unsigned int i, word;
	uint16_t ps, port;
	uint64_t left;

	for (i = 0; i < LEASE_WORDS / 64 && tenant->n_leases; i++) {
		for (left = tenant->is_leased[i]; left; left &= left - 1) {
			word = i * 64 + (unsigned int)__builtin_ctzll(left);
			lease_read(__atomic_load_n(&tenant->page->word[word], __ATOMIC_RELAXED),
				   &ps, &port);
			/* The page is trusted only if the mark of the port agrees. */
			if (port_space_reserved(&ports->space, ps, port) == mark_of(client, word))
				act(ports, tenant, ps, port);
		}
	}
}

static void revoke_one(struct ports *ports, struct tenant *tenant, uint16_t ps, uint16_t port)
{
	(void)tenant;
	revoke_if_unused(ports, ps, port);
}

/* A client that falsifies a word keeps the port, as if it were in use. */
void ports_take_back(struct ports *ports, uint16_t client)
{
	if (ports->tenant[client])
		for_each_lease(ports, client, revoke_one);
}

static void revoke_all_unused(struct ports *ports)
{
	uint16_t i;

	for (i = 0; i < ports->n_tenants; i++)
		ports_take_back(ports, i);
}

/* Also ends leases whose words the client has falsified. */
static void end_leases(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = ports->tenant[client];

	for_each_lease(ports, client, unreserve_lease);
	if (tenant->n_leases)
		port_space_unreserve_those(&ports->space, MARK_LEASE | UINT16_MAX,
					   MARK_LEASE | client);
	count_for(tenant, &tenant->n_leases, -(int)tenant->n_leases);
}

/* Return: the word for a new lease of a port; LEASE_WORDS if the page is full. */
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
	revoke_all_unused(ports);
	return port_space_bind(&ports->space, claim);
}

static bool may_be_leased(const struct ports *ports, uint16_t port)
{
	const struct port_limits *limits = &ports->space.limits;

	return port >= limits->ephemeral_first && port <= limits->ephemeral_last;
}

static int lease_port(struct ports *ports, uint16_t client, uint16_t ps, uint16_t port)
{
	struct tenant *tenant = ports->tenant[client];
	unsigned int word = free_word(tenant, port);
	int err = word < LEASE_WORDS ? reserve_lease(ports, client, ps, port, word) : -ENOSPC;

	if (err)
		return err;
	set_word(tenant, word, lease_word(ps, port, LEASE_FREE));
	tenant->last_leased = port;
	return 0;
}

/* Prefers consecutive ports, which keeps the tables of both sides small. */
static int lease_one(struct ports *ports, uint16_t client, uint16_t ps)
{
	uint16_t before = ports->tenant[client]->last_leased;
	uint16_t port = (uint16_t)(before + 1);
	int err = -EADDRINUSE;

	if (before && may_be_leased(ports, port))
		err = lease_port(ports, client, ps, port);
	if (err != -EADDRINUSE)
		return err;
	err = port_space_find_free(&ports->space, ps, &port);
	return err ? err : lease_port(ports, client, ps, port);
}

int ports_lease(struct ports *ports, uint16_t client, uint16_t ps, unsigned int count,
		uint16_t *ret_first)
{
	const uint64_t until = ports->space.n_looked_at + SEARCH_MAX;
	struct tenant *tenant = ports->tenant[client];
	unsigned int n;
	int err = 0;

	if (!tenant || !tenant->page)
		return -ENOENT;
	if (count > LEASE_WORDS)
		count = LEASE_WORDS;
	for (n = 0; n < count && ports->space.n_looked_at < until && !err; n += !err) {
		err = lease_one(ports, client, ps);
		if (n == 0 && err == -EADDRNOTAVAIL) {
			revoke_all_unused(ports);
			err = lease_one(ports, client, ps);
			count = 1;
		}
		if (n == 0 && !err && ret_first)
			*ret_first = tenant->last_leased;
	}
	return err == -EPROTONOSUPPORT ? err : (int)n;
}

void ports_resume_leases(struct ports *ports, uint16_t client, uint32_t room)
{
	struct tenant *tenant = ports->tenant[client];
	unsigned int word;
	uint16_t ps, port;
	uint32_t value;

	for (word = 0; tenant->page && word < LEASE_WORDS; word++) {
		value = __atomic_load_n(&tenant->page->word[word], __ATOMIC_ACQUIRE);
		if (lease_read(value, &ps, &port) != LEASE_EMPTY &&
		    (tenant->n_leases >= room || !may_be_leased(ports, port) ||
		     !port_holders_give(&ports->space, ps, port, tenant->block) ||
		     reserve_lease(ports, client, ps, port, word)))
			set_word(tenant, word, LEASE_EMPTY);
	}
}

/* --- claims -------------------------------------------------------------- */

static int read_claim(struct port_claim *claim, const struct portd_claim *from)
{
	claim->reuseaddr = from->reuseaddr != 0;
	claim->afonly = from->afonly != 0;
	memset(&claim->peer, 0, sizeof(claim->peer));
	if (from->peer_family && addr_unpack(from->peer_family, from->peer_addr, from->peer_port,
					     from->peer_scope, &claim->peer))
		return -EINVAL;
	return addr_unpack(from->local_family, from->local_addr, from->local_port,
			   from->local_scope, &claim->local);
}

/* Revokes an unused lease of another client; a lease of the client's own becomes its claim. */
static void end_lease(struct ports *ports, uint16_t client, uint16_t ps, uint16_t port)
{
	uint32_t mark;

	if (!port_holders_give(&ports->space, ps, port, ports->tenant[client]->block))
		return;
	mark = port_space_reserved(&ports->space, ps, port);
	if (!mark)
		return;
	if ((uint16_t)mark != client) {
		revoke_if_unused(ports, ps, port);
		return;
	}
	set_word(ports->tenant[client], word_of(mark), LEASE_EMPTY);
	unreserve_lease(ports, ports->tenant[client], ps, port);
}

/* The client repeats a request whose cmportd died meanwhile, and has reported the claim already. */
static int bind_again(const struct holder *holder, const struct portd_claim *claim, uint16_t *ret)
{
	uint16_t port = addr_port(&holder->claim.local);
	struct port_claim is = { .ps = claim->ps };

	if (read_claim(&is, claim) || is.ps != holder->claim.ps ||
	    !addr_same_ip(&is.local, &holder->claim.local) ||
	    (claim->local_port && claim->local_port != port))
		return -EINVAL;
	*ret = port;
	return 0;
}

/* Return: the number of claims of a port, with which a new one is compared. */
static unsigned int count_claims(const struct ports *ports, uint16_t ps, uint16_t port)
{
	const struct port_claim *claim = port_space_first(&ports->space, ps, port);
	unsigned int n;

	for (n = 0; claim; n++)
		claim = claim->next;
	return n;
}

int ports_bind(struct ports *ports, uint16_t client, const struct portd_claim *claim, uint16_t *ret)
{
	struct cm_key key = { .guid = client, .id = claim->claim_id };
	struct tenant *tenant = ports_tenant(ports, client);
	struct holder *holder;
	int err;

	if (!tenant)
		return -ENOMEM;
	holder = find_holder(ports, client, claim->claim_id);
	if (holder)
		return bind_again(holder, claim, ret);
	if (tenant->n_claims == PORTS_CLAIMS_MAX ||
	    (claim->local_port &&
	     count_claims(ports, claim->ps, claim->local_port) >= PORTS_SHARED_MAX))
		return -ENOSPC;
	holder = calloc(1, sizeof(*holder));
	if (!holder)
		return -ENOMEM;
	holder->client = client;
	list_append(&tenant->holders, &holder->of_tenant);
	holder->claim.ps = claim->ps;
	err = read_claim(&holder->claim, claim);
	if (!err && claim->local_port)
		end_lease(ports, client, claim->ps, claim->local_port);
	if (!err)
		err = claim->local_port ? port_space_bind(&ports->space, &holder->claim)
					: bind_any(ports, &holder->claim);
	if (!err && cm_index_reserve(&ports->by_claim_id, ports->by_claim_id.table.n_nodes + 1))
		err = -ENOMEM;
	if (err) {
		holder_free(ports, holder);
		return err;
	}
	cm_index_insert(&ports->by_claim_id, &holder->by_claim_id, &key);
	count_for(tenant, &tenant->n_claims, 1);
	*ret = addr_port(&holder->claim.local);
	port_holders_note(ports->holders, &ports->space, claim->ps, *ret, tenant->block);
	return 0;
}

static int update_holder(struct ports *ports, struct holder *holder,
			 const struct portd_claim *claim)
{
	struct port_claim is = { .ps = claim->ps };

	if (addr_port(&holder->claim.local) != claim->local_port || holder->claim.ps != claim->ps ||
	    read_claim(&is, claim))
		return -EINVAL;
	/* A listener's port is exclusive and cannot become shared later. */
	is.reuseaddr = is.reuseaddr && !holder->listening;
	if (!port_space_may_become(&ports->space, &holder->claim, &is))
		return -EADDRINUSE;
	holder->claim.reuseaddr = is.reuseaddr;
	holder->claim.afonly = is.afonly;
	holder->claim.local = is.local;
	holder->claim.peer = is.peer;
	return 0;
}

void ports_update(struct ports *ports, uint16_t client, const struct portd_claim *claim)
{
	struct holder *holder = find_holder(ports, client, claim->claim_id);

	if (holder)
		update_holder(ports, holder, claim);
}

int ports_listen(struct ports *ports, uint16_t client, const struct portd_claim *claim)
{
	struct holder *holder = find_holder(ports, client, claim->claim_id);
	int err;

	if (!holder)
		return -ENOENT;
	if (update_holder(ports, holder, claim) == -EADDRINUSE)
		return -EADDRINUSE;
	holder->heard_at = claim->heard_at;
	err = holder->listening ? 0 : ports_add_listener(ports, holder);
	if (!err)
		err = port_space_listen(&ports->space, &holder->claim);
	if (err && !holder->listening)
		cm_index_remove(&ports->listeners, &holder->by_port);
	holder->listening = holder->listening || !err;
	return err;
}

void ports_release(struct ports *ports, uint16_t client, uint32_t claim_id)
{
	struct holder *holder = find_holder(ports, client, claim_id);

	if (holder)
		holder_free(ports, holder);
}

bool ports_has(const struct ports *ports, uint16_t client, uint16_t ps, uint16_t port)
{
	const struct port_claim *claim = port_space_first(&ports->space, ps, port);
	uint32_t mark = port_space_reserved(&ports->space, ps, port);

	while (claim && ((const struct holder *)claim)->client != client)
		claim = claim->next;
	return claim || (mark & MARK_LEASE && (uint16_t)mark == client);
}

bool ports_client_goes(struct ports *ports, uint16_t client)
{
	const struct tenant *tenant = ports->tenant[client];
	struct holder *holder;
	unsigned int n = 0;

	if (!tenant)
		return false;
	list_for_each_entry_safe (holder, &tenant->holders, of_tenant) {
		if (n++ == PORTS_GO_MAX)
			return true;
		holder_free(ports, holder);
	}
	ports_client_gone(ports, client);
	return true;
}

void ports_client_gone(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = ports->tenant[client];
	struct holder *holder;

	if (!tenant)
		return;
	list_for_each_entry_safe (holder, &tenant->holders, of_tenant)
		holder_free(ports, holder);
	end_leases(ports, client);
	if (tenant->page)
		munmap(tenant->page, LEASE_PAGE_BYTES);
	free(tenant);
	ports->tenant[client] = NULL;
}
