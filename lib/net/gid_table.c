/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of GID tables behind gid_table.h: one table per open device, read with ibv_query_port
 * and ibv_query_gid_table. These may be commands of firmware, so no lock is held meanwhile.
 *
 * The kernel updates a device's table some time after it announces an address change. So a table
 * that was read soon after a flush may be outdated: it is used once, and read again next time.
 */
#include "lib/net/gid_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/command.h"
#include "lib/net/netlink.h"

#define TABLES_MAX     32
#define PORTS_MAX      8
#define SETTLE_NS      (250 * CM_NS_PER_MS)
#define MANY_GIDS      32  /* more than most ports have */
#define MAD_INDEX_LAST 255 /* the MAD interface has 8 bits for the index */

struct table {
	struct ibv_context *verbs; /* NULL: free */
	bool settled;
	bool stale;	     /* something has changed since it was read */
	unsigned int events; /* of the device, before it was read */
	uint64_t read_ns;    /* when it was read */
	uint8_t n_ports;
	bool usable[PORTS_MAX + 1]; /* by port number: RoCE, active or initialising */
	bool v2[PORTS_MAX + 1];	    /* supports RoCE v2 */
	bool ib[PORTS_MAX + 1];	    /* InfiniBand, in any state: its GIDs are permanent */
	struct ibv_gid_entry *entry;
	int n_entries;
};

static struct {
	pthread_mutex_t lock; /* not held while a device is queried */
	struct table table[TABLES_MAX];
	int victim;
	uint64_t forgotten_ns; /* time of the last flush */
	unsigned int changes;  /* net_changes() at the last lookup */
	unsigned int n_flushes;
	unsigned int n_edits; /* atomic; counts what makes earlier answers doubtful; never 0 */
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER, .n_edits = 1 };

static gid_events_fn *events_fn;   /* atomic; NULL: devices report no events */
static __thread uint64_t reads_ns; /* of gid_read_again_after() */

void gid_set_events(gid_events_fn *events)
{
	__atomic_store_n(&events_fn, events, __ATOMIC_RELEASE);
}

void gid_read_again_after(uint64_t ns)
{
	reads_ns = ns;
}

/* Those with the engine's lock wait for this one. */
static void lock_cache(void)
{
	pthread_mutex_lock(&cache.lock);
	command_forbid();
}

static void unlock_cache(void)
{
	command_permit();
	pthread_mutex_unlock(&cache.lock);
}

static unsigned int count_events(const struct ibv_context *verbs)
{
	gid_events_fn *events = __atomic_load_n(&events_fn, __ATOMIC_ACQUIRE);

	return events ? events(verbs) : 0;
}

static void count_edit(void)
{
	if (!__atomic_add_fetch(&cache.n_edits, 1, __ATOMIC_RELEASE))
		count_edit();
}

static void drop_table(struct table *table)
{
	free(table->entry);
	memset(table, 0, sizeof(*table));
}

/* Return: number of entries in the GID tables of all ports. */
static size_t read_ports(struct table *table)
{
	struct ibv_port_attr attr;
	size_t n_entries = 0;

	command_check();
	for (uint8_t port = 1; port <= PORTS_MAX; port++) {
		if (ibv_query_port(table->verbs, port, &attr))
			break;
		table->n_ports = port;
		table->usable[port] = attr.link_layer == IBV_LINK_LAYER_ETHERNET &&
				      (attr.state == IBV_PORT_ACTIVE ||
				       attr.state == IBV_PORT_ARMED || attr.state == IBV_PORT_INIT);
		table->ib[port] = attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
		n_entries += attr.gid_tbl_len;
	}
	return n_entries;
}

/* Return: number of entries read; -ENOMEM; other -errno also if there are more than @n_max. */
static ssize_t read_entries(struct table *table, size_t n_max)
{
	free(table->entry);
	table->entry = calloc(n_max, sizeof(*table->entry));
	if (!table->entry)
		return -ENOMEM;
	command_check();
	return ibv_query_gid_table(table->verbs, table->entry, n_max, 0);
}

/*
 * A table has a thousand entries, of which few are used: ask for few first, as the kernel also
 * allocates and clears the size requested.
 */
static int read_table(struct table *table, struct ibv_context *verbs)
{
	size_t n_max;
	ssize_t n;

	table->verbs = verbs;
	n_max = read_ports(table);
	n = n_max ? read_entries(table, n_max < MANY_GIDS ? n_max : MANY_GIDS) : 0;
	if (n < 0 && n != -ENOMEM && n_max > MANY_GIDS)
		n = read_entries(table, n_max);
	if (n < 0)
		return n;
	table->n_entries = n;
	for (int i = 0; i < table->n_entries; i++) {
		const struct ibv_gid_entry *entry = &table->entry[i];

		if (entry->gid_type == IBV_GID_TYPE_ROCE_V2 && entry->port_num <= PORTS_MAX)
			table->v2[entry->port_num] = true;
	}
	return 0;
}

static struct table *cached_table(const struct ibv_context *verbs)
{
	for (int i = 0; i < TABLES_MAX; i++) {
		if (cache.table[i].verbs == verbs)
			return &cache.table[i];
	}
	return NULL;
}

static void note_flush(void)
{
	cache.forgotten_ns = clock_coarse_ns();
	cache.n_flushes++;
	count_edit();
}

static void flush_tables(void)
{
	for (int i = 0; i < TABLES_MAX; i++)
		cache.table[i].stale = true;
	note_flush();
}

/*
 * A GID must not be older than the route that was looked up before it: the thread that calls
 * gid_forget() may lag behind.
 */
static void note_changes(void)
{
	unsigned int changes = net_changes();

	if (changes != cache.changes)
		flush_tables();
	cache.changes = changes;
}

static bool is_stale(const struct table *table)
{
	return table->stale || table->events != count_events(table->verbs);
}

static bool is_trusted(const struct table *table)
{
	return table && table->settled && !is_stale(table);
}

/* Return: true if this thread must not read the table again now. */
static bool is_rereading_forbidden(const struct table *table)
{
	if (reads_ns == GID_NEVER)
		return true;
	return table && !is_stale(table) && clock_coarse_ns() - table->read_ns < reads_ns;
}

/* A change while the table was read may be in it or not. */
static struct table *keep_table(const struct table *fresh, unsigned int n_flushes)
{
	struct table *table = cached_table(fresh->verbs);

	if (!table)
		table = cached_table(NULL);
	if (!table)
		table = &cache.table[cache.victim++ % TABLES_MAX];
	drop_table(table);
	count_edit();
	*table = *fresh;
	table->stale = cache.n_flushes != n_flushes;
	return table;
}

/*
 * Reads a device's table to replace the cached one. One that cannot be read has no usable GIDs;
 * sets *ret_err only if it failed for lack of memory. The lock is held, but not during the query.
 *
 * Return: the table, or NULL on failure.
 */
static struct table *refresh_table(struct ibv_context *verbs, int *ret_err)
{
	unsigned int n_flushes = cache.n_flushes;
	uint64_t now_ns = clock_coarse_ns();
	struct table fresh = { .read_ns = now_ns,
			       .events = count_events(verbs),
			       .settled = now_ns - cache.forgotten_ns > SETTLE_NS };
	struct table *old;
	int err;

	unlock_cache();
	err = read_table(&fresh, verbs);
	lock_cache();
	if (!err)
		return keep_table(&fresh, n_flushes);
	drop_table(&fresh);
	old = cached_table(verbs);
	if (old)
		drop_table(old);
	if (err == -ENOMEM)
		*ret_err = err;
	return NULL;
}

/*
 * The key of a lookup: an IP address on an interface, an InfiniBand GID, an index, or an entry at
 * any index.
 */
struct question {
	bool (*matches)(const struct table *table, const struct ibv_gid_entry *entry,
			const struct question *question);
	struct mad_gid gid;
	unsigned int ifindex;
	uint8_t port_num;
	uint32_t gid_index;
	enum ibv_gid_type type;
	uint16_t tag;
};

/* A port that supports RoCE v2 uses it, as the kernel's connection manager does by default. */
static bool is_address(const struct table *table, const struct ibv_gid_entry *entry,
		       const struct question *question)
{
	uint32_t port = entry->port_num;
	uint32_t type;

	if (port > table->n_ports || !table->usable[port])
		return false;
	type = table->v2[port] ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return entry->gid_type == type && entry->ndev_ifindex == question->ifindex &&
	       entry->gid_index <= MAD_INDEX_LAST &&
	       !memcmp(&entry->gid, &question->gid, sizeof(question->gid));
}

static bool is_ib_gid(const struct table *table, const struct ibv_gid_entry *entry,
		      const struct question *question)
{
	return entry->port_num <= table->n_ports && table->ib[entry->port_num] &&
	       entry->gid_index <= MAD_INDEX_LAST &&
	       !memcmp(&entry->gid, &question->gid, sizeof(question->gid));
}

static bool is_index(const struct table *table, const struct ibv_gid_entry *entry,
		     const struct question *question)
{
	(void)table;
	return entry->port_num == question->port_num && entry->gid_index == question->gid_index;
}

/* Return: true if type, interface and GID match. */
static bool has_identity(const struct ibv_gid_entry *entry, uint32_t type, uint32_t ifindex,
			 const void *gid)
{
	return entry->gid_type == type && entry->ndev_ifindex == ifindex &&
	       !memcmp(&entry->gid, gid, sizeof(entry->gid));
}

static bool is_entry(const struct table *table, const struct ibv_gid_entry *entry,
		     const struct question *question)
{
	(void)table;
	return entry->port_num == question->port_num && entry->gid_index <= MAD_INDEX_LAST &&
	       has_identity(entry, question->type, question->ifindex, &question->gid);
}

static uint16_t tag_of(const union ibv_gid *gid, uint32_t type, uint32_t ifindex)
{
	uint64_t half[2], x;

	memcpy(half, gid, sizeof(half));
	x = (half[0] ^ (uint64_t)type << 32 ^ ifindex) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 29 ^ half[1]) * UINT64_C(0x94d049bb133111eb);
	x >>= 48;
	return x ? (uint16_t)x : 1;
}

static bool is_tagged(const struct table *table, const struct ibv_gid_entry *entry,
		      const struct question *question)
{
	(void)table;
	return entry->port_num == question->port_num && entry->gid_index <= MAD_INDEX_LAST &&
	       tag_of(&entry->gid, entry->gid_type, entry->ndev_ifindex) == question->tag;
}

static struct gid_stamp stamp_of(const struct table *table)
{
	if (!is_trusted(table))
		return (struct gid_stamp){ .n_edits = 0 };
	return (struct gid_stamp){ cache.n_edits, cache.changes, table->events };
}

static bool find_in(const struct table *table, const struct question *question,
		    struct gid_entry *ret)
{
	for (int i = 0; table && i < table->n_entries; i++) {
		const struct ibv_gid_entry *entry = &table->entry[i];

		if (!question->matches(table, entry, question))
			continue;
		*ret = (struct gid_entry){ .as_of = stamp_of(table),
					   .verbs = table->verbs,
					   .port_num = entry->port_num,
					   .gid_index = entry->gid_index,
					   .type = entry->gid_type,
					   .ifindex = entry->ndev_ifindex,
					   .gid = entry->gid };
		return true;
	}
	return false;
}

/* Outdated tables are used only right after reading them. */
static int find_entry(struct ibv_context *const *devices, int n_devices,
		      const struct question *question, struct gid_entry *ret)
{
	bool found = false;
	int err = -ENODEV;

	lock_cache();
	note_changes();
	for (int i = 0; !found && i < n_devices; i++) {
		const struct table *table = cached_table(devices[i]);

		found = (is_trusted(table) || is_rereading_forbidden(table)) &&
			find_in(table, question, ret);
	}
	for (int i = 0; !found && i < n_devices; i++)
		if (!is_rereading_forbidden(cached_table(devices[i])))
			found = find_in(refresh_table(devices[i], &err), question, ret);
	unlock_cache();
	return found ? 0 : err;
}

void gid_refresh(struct ibv_context *verbs)
{
	int err;

	lock_cache();
	note_changes();
	if (!is_trusted(cached_table(verbs)))
		refresh_table(verbs, &err);
	unlock_cache();
}

int gid_find(struct ibv_context *const *devices, int n_devices, const union addr *addr,
	     unsigned int ifindex, struct gid_entry *ret)
{
	const struct question question = { .matches = is_address,
					   .gid = addr_to_gid(addr),
					   .ifindex = ifindex };

	return find_entry(devices, n_devices, &question, ret);
}

int gid_find_ib(struct ibv_context *const *devices, int n_devices, const struct mad_gid *gid,
		unsigned int ifindex, struct gid_entry *ret)
{
	const struct question question = { .matches = is_ib_gid, .gid = *gid };
	int err = find_entry(devices, n_devices, &question, ret);

	if (!err)
		ret->ifindex = ifindex;
	return err;
}

int gid_by_index(struct ibv_context *verbs, uint8_t port_num, uint32_t gid_index,
		 struct gid_entry *ret)
{
	const struct question question = { .matches = is_index,
					   .port_num = port_num,
					   .gid_index = gid_index };

	return find_entry(&verbs, 1, &question, ret);
}

bool gid_is_recent(const struct gid_entry *entry)
{
	const struct gid_stamp *as_of = &entry->as_of;

	return as_of->n_edits && as_of->changes == net_changes() &&
	       as_of->n_edits == __atomic_load_n(&cache.n_edits, __ATOMIC_ACQUIRE) &&
	       as_of->events == count_events(entry->verbs);
}

int gid_follow(struct gid_entry *io)
{
	struct question question = { .matches = is_entry,
				     .ifindex = io->ifindex,
				     .port_num = io->port_num,
				     .type = io->type };

	if (gid_is_recent(io))
		return 0;
	memcpy(&question.gid, &io->gid, sizeof(question.gid));
	return find_entry(&io->verbs, 1, &question, io);
}

uint16_t gid_tag(const struct gid_entry *entry)
{
	return tag_of(&entry->gid, entry->type, entry->ifindex);
}

int gid_by_tag(struct ibv_context *verbs, uint8_t port_num, uint16_t tag, struct gid_entry *ret)
{
	const struct question question = { .matches = is_tagged, .port_num = port_num, .tag = tag };

	return find_entry(&verbs, 1, &question, ret);
}

/* Return: true if a trusted table has the entry at its index; false also if none is trusted. */
static bool is_known_in_place(const struct gid_entry *entry)
{
	const struct question question = { .matches = is_index,
					   .port_num = entry->port_num,
					   .gid_index = entry->gid_index };
	const struct table *table;
	struct gid_entry now;
	bool is;

	lock_cache();
	note_changes();
	table = cached_table(entry->verbs);
	is = is_trusted(table) && find_in(table, &question, &now) && now.type == entry->type &&
	     now.ifindex == entry->ifindex && !memcmp(&now.gid, &entry->gid, sizeof(now.gid));
	unlock_cache();
	return is;
}

bool gid_is_in_place(const struct gid_entry *entry)
{
	struct ibv_gid_entry now;

	if (gid_is_recent(entry) || is_known_in_place(entry))
		return true;
	command_check();
	return !ibv_query_gid_ex(entry->verbs, entry->port_num, entry->gid_index, &now, 0) &&
	       has_identity(&now, entry->type, entry->ifindex, &entry->gid);
}

void gid_forget(struct ibv_context *verbs)
{
	struct table *table;

	lock_cache();
	table = verbs ? cached_table(verbs) : NULL;
	if (!verbs)
		flush_tables();
	else
		note_flush();
	if (table)
		drop_table(table);
	unlock_cache();
}

void gid_after_fork(void)
{
	pthread_mutex_init(&cache.lock, NULL);
	memset(cache.table, 0, sizeof(cache.table));
	count_edit();
}
