/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page shared by a client and cmportd: see lease.h. A port is stored at the word that its
 * number maps to, or in the next free one, so that it is found quickly.
 */
#include "lib/portd/proto/lease.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct lease_page) == LEASE_PAGE_BYTES, "all of the page is used");

#define STATE_BITS 2
#define STATE_MASK 3u
#define PS_SHIFT   STATE_BITS
#define PORT_SHIFT 16

/* Two bits of a word encode the port space: RDMA_PS_IPOIB, _TCP, _UDP or _IB. */
static const uint16_t port_spaces[LEASE_SPACES] = { 0x0002, 0x0106, 0x0111, 0x013f };

/* F_GET_SEALS returns -1 for files without seals. */
bool lease_is_page(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat stat;

	return seals >= 0 && (seals & LEASE_SEALS) == LEASE_SEALS && fstat(fd, &stat) == 0 &&
	       stat.st_size == LEASE_PAGE_BYTES;
}

unsigned int lease_space(uint16_t ps)
{
	unsigned int i;

	for (i = 0; i < LEASE_SPACES; i++)
		if (port_spaces[i] == ps)
			return i;
	return 0;
}

static uint32_t ps_bits(uint16_t ps)
{
	return lease_space(ps) << PS_SHIFT;
}

uint32_t lease_word(uint16_t ps, uint16_t port, enum lease_state state)
{
	return (uint32_t)port << PORT_SHIFT | ps_bits(ps) | state;
}

enum lease_state lease_read(uint32_t word, uint16_t *ret_ps, uint16_t *ret_port)
{
	*ret_ps = port_spaces[word >> PS_SHIFT & 3];
	*ret_port = (uint16_t)(word >> PORT_SHIFT);
	return (word & STATE_MASK) <= LEASE_USED ? word & STATE_MASK : LEASE_EMPTY;
}

static bool swap_word(uint32_t *word, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static atomic_uint hint; /* where the latest port was found */

void lease_look_at(uint16_t port)
{
	atomic_store_explicit(&hint, port, memory_order_relaxed);
}

uint16_t lease_take(struct lease_page *page, uint16_t ps)
{
	unsigned int i, first = atomic_load_explicit(&hint, memory_order_relaxed);
	uint32_t word, *at;

	for (i = 0; i < LEASE_WORDS; i++) {
		at = &page->word[(first + i) % LEASE_WORDS];
		word = __atomic_load_n(at, __ATOMIC_RELAXED);
		if ((word & STATE_MASK) != LEASE_FREE || word >> PORT_SHIFT == 0 ||
		    (word & 3u << PS_SHIFT) != ps_bits(ps))
			continue;
		if (!swap_word(at, word, word + LEASE_USED - LEASE_FREE))
			continue;
		atomic_store_explicit(&hint, first + i, memory_order_relaxed);
		return (uint16_t)(word >> PORT_SHIFT);
	}
	return 0;
}

bool lease_give_back(struct lease_page *page, uint16_t ps, uint16_t port)
{
	uint32_t used = lease_word(ps, port, LEASE_USED);
	uint32_t unused = lease_word(ps, port, LEASE_FREE);
	unsigned int i;

	for (i = 0; i < LEASE_WORDS; i++)
		if (swap_word(&page->word[(port + i) % LEASE_WORDS], used, unused))
			return true;
	return false;
}

uint32_t lease_events(const struct lease_page *page, unsigned int handle)
{
	return handle < LEASE_HANDLES ? __atomic_load_n(&page->n_events[handle], __ATOMIC_ACQUIRE)
				      : 0;
}

void lease_count_event(struct lease_page *page, unsigned int handle)
{
	uint32_t *n_events = &page->n_events[handle % LEASE_HANDLES];

	if (!__atomic_add_fetch(n_events, 1, __ATOMIC_ACQ_REL))
		__atomic_add_fetch(n_events, 1, __ATOMIC_ACQ_REL);
}

bool lease_revoke(struct lease_page *page, unsigned int i, uint16_t ps, uint16_t port)
{
	return swap_word(&page->word[i], lease_word(ps, port, LEASE_FREE), LEASE_EMPTY);
}
