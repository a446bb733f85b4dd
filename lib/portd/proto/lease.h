/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page that a client shares with cmportd: the ephemeral ports leased to it, one word per port,
 * and how often the ports of devices that it has opened have changed.
 *
 * The client takes and frees an ephemeral port without a message; cmportd revokes a free one that
 * another client binds by number. cmportd counts the asynchronous events of a device; what a client
 * has read from the device is valid as long as it reads the same count.
 *
 * A client can write anything to the page. cmportd keeps its own list of leased ports, and reads
 * only whether a port is in use from the page.
 */
#ifndef LIB_PORTD_PROTO_LEASE_H
#define LIB_PORTD_PROTO_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_PAGE_BYTES 20480
#define LEASE_WORDS	 4096
#define LEASE_HANDLES	 1024 /* a page of memory; no more than PORTD_PORTS_MAX are used */

enum lease_state {
	LEASE_EMPTY, /* no port */
	LEASE_FREE,
	LEASE_USED,
};

/* All bits of a word change at once, by compare-and-swap. */
struct lease_page {
	uint32_t word[LEASE_WORDS];
	uint32_t n_events[LEASE_HANDLES]; /* by handle: of the port's device; 0: not opened yet */
};

#define LEASE_SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define LEASE_SPACES 4

/**
 * lease_is_page() - return whether a descriptor from the peer can be mapped as a page
 *
 * The file must be sealed against truncation, which would kill a process that has mapped it.
 */
bool lease_is_page(int fd);

/** lease_space() - the index of a port space, below LEASE_SPACES */
unsigned int lease_space(uint16_t ps);

/** lease_word() - make a word; @ps is RDMA_PS_*, @port in host byte order */
uint32_t lease_word(uint16_t ps, uint16_t port, enum lease_state state);

/** lease_read() - decode a word; an unknown state reads as LEASE_EMPTY */
enum lease_state lease_read(uint32_t word, uint16_t *ret_ps, uint16_t *ret_port);

/** lease_look_at() - client: set where lease_take() looks first; any value is valid */
void lease_look_at(uint16_t port);

/** lease_take() - client: take a free port. Return: the port, or 0 if there is none. */
uint16_t lease_take(struct lease_page *page, uint16_t ps);

/** lease_give_back() - client: free a port. Return: false if it is not on the page. */
bool lease_give_back(struct lease_page *page, uint16_t ps, uint16_t port);

/** lease_events() - client: number of events of an opened port's device, modulo 2^32; never 0 */
uint32_t lease_events(const struct lease_page *page, unsigned int handle);

/** lease_count_event() - cmportd: a port was opened, or its device has had an event */
void lease_count_event(struct lease_page *page, unsigned int handle);

/** lease_revoke() - cmportd: revoke word @i if it is free. Return: false if it is in use. */
bool lease_revoke(struct lease_page *page, unsigned int i, uint16_t ps, uint16_t port);

#endif
