/* SPDX-License-Identifier: BSD-2-Clause */
/* The holders of ports, for the next cmportd: see port_holders.h. */
#include "lib/portd/server/files/port_holders.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

#define N_PORTS	    65536
#define N_ENTRIES   (PORT_SPACE_TABLES * N_PORTS)
#define TABLE_BYTES (N_ENTRIES * sizeof(uint16_t))

/* The mark of a reserved port: with its holder; that of a lease has the highest bit. */
#define MARK	  (UINT32_C(1) << 30)
#define MARK_BITS (UINT32_C(3) << 30)

static const uint16_t spaces[PORT_SPACE_TABLES] = { RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP,
						    RDMA_PS_IB };

uint16_t *port_holders_map(int fd)
{
	void *table = MAP_FAILED;

	/* A store to a hole could fail for lack of memory. */
	if (fallocate(fd, 0, 0, (off_t)TABLE_BYTES) == 0)
		table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		log_warn("SOCKET" PORT_HOLDERS_SUFFIX
			 ": %s; for up to 10 s after the next start, a "
			 "client can bind a port before its holder does",
			 strerror(errno));
	close(fd);
	return table == MAP_FAILED ? NULL : table;
}

void port_holders_unmap(uint16_t *table)
{
	if (table)
		munmap(table, TABLE_BYTES);
}

static uint16_t *entry_of(uint16_t *table, uint16_t ps, uint16_t port)
{
	unsigned int i;

	for (i = 0; table && i < PORT_SPACE_TABLES; i++)
		if (spaces[i] == ps)
			return &table[i * N_PORTS + port];
	return NULL;
}

void port_holders_note(uint16_t *table, const struct port_space *space, uint16_t ps, uint16_t port,
		       uint16_t block)
{
	const struct port_claim *claim = port_space_first(space, ps, port);
	uint16_t *entry = entry_of(table, ps, port);

	if (entry)
		*entry = claim && claim->next && *entry != block ? PORT_HOLDERS_SEVERAL : block;
}

void port_holders_forget(uint16_t *table, const struct port_space *space, uint16_t ps,
			 uint16_t port)
{
	uint16_t *entry = entry_of(table, ps, port);

	if (entry && !port_space_first(space, ps, port) && !port_space_reserved(space, ps, port))
		*entry = 0;
}

/* Return: the next entry from @i on that is in use; N_ENTRIES if there is none. */
static unsigned int next_noted(const uint16_t *table, unsigned int i)
{
	static const uint16_t none[1024];
	const unsigned int n = sizeof(none) / sizeof(none[0]);

	while (table && i < N_ENTRIES) {
		if (i % n == 0 && memcmp(&table[i], none, sizeof(none)) == 0)
			i += n;
		else if (table[i])
			return i;
		else
			i++;
	}
	return N_ENTRIES;
}

void port_holders_reserve(const uint16_t *table, struct port_space *space)
{
	unsigned int i;

	for (i = next_noted(table, 0); i < N_ENTRIES; i = next_noted(table, i + 1))
		if (table[i] != PORT_HOLDERS_SEVERAL)
			port_space_reserve(space, spaces[i / N_PORTS], (uint16_t)(i % N_PORTS),
					   MARK | table[i]);
}

void port_holders_end(uint16_t *table, struct port_space *space)
{
	unsigned int i;

	port_space_unreserve_those(space, MARK_BITS, MARK);
	for (i = next_noted(table, 0); i < N_ENTRIES; i = next_noted(table, i + 1))
		port_holders_forget(table, space, spaces[i / N_PORTS], (uint16_t)(i % N_PORTS));
}

bool port_holders_reserves(const struct port_space *space, uint16_t ps, uint16_t port,
			   uint16_t block)
{
	const uint32_t mark = port_space_reserved(space, ps, port);

	return (mark & MARK_BITS) == MARK && (uint16_t)mark != block;
}

bool port_holders_give(struct port_space *space, uint16_t ps, uint16_t port, uint16_t block)
{
	if (port_holders_reserves(space, ps, port, block))
		return false;
	if ((port_space_reserved(space, ps, port) & MARK_BITS) == MARK)
		port_space_unreserve(space, ps, port);
	return true;
}
