/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of leased ephemeral ports that a client shares with cmportd: one word a port. The
 * client takes a free one, and gives it back, without a word to anybody; cmportd revokes a free
 * one that somebody else asks for by number.
 *
 * A client can write what it likes: cmportd keeps a list of its own of what it leased, and
 * believes of a word only whether it is in use.
 */
#ifndef LIB_PORTD_PROTO_LEASE_H
#define LIB_PORTD_PROTO_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_PAGE_BYTES 16384
#define LEASE_WORDS	 (LEASE_PAGE_BYTES / sizeof(uint32_t))

enum lease_state {
	LEASE_EMPTY, /* no port */
	LEASE_FREE,
	LEASE_USED,
};

/* All of a word's bits change at once: a compare-and-swap is what a port changes hands by. */
struct lease_page {
	uint32_t word[LEASE_WORDS];
};

#define LEASE_SEALS  (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#define LEASE_SPACES 4

/**
 * lease_is_page() - can the other side's descriptor be mapped as a page?
 *
 * A file that could be cut short would be the end of who has mapped it.
 */
bool lease_is_page(int fd);

/** lease_space() - Return: a number below LEASE_SPACES for each port space. */
unsigned int lease_space(uint16_t ps);

/** lease_word() - a word: @ps is RDMA_PS_*, @port in host byte order. */
uint32_t lease_word(uint16_t ps, uint16_t port, enum lease_state state);

/** lease_read() - what a word says; a state that does not exist reads as LEASE_EMPTY. */
enum lease_state lease_read(uint32_t word, uint16_t *ret_ps, uint16_t *ret_port);

/** lease_look_at() - the client: where lease_take() is to look first; any port will do. */
void lease_look_at(uint16_t port);

/** lease_take() - the client: take a free port. Return: it, or 0 if there is none. */
uint16_t lease_take(struct lease_page *page, uint16_t ps);

/** lease_give_back() - the client: a port is free again. Return: false if it is none of the page.
 */
bool lease_give_back(struct lease_page *page, uint16_t ps, uint16_t port);

/** lease_revoke() - cmportd: take word @i back if it is free. Return: false if it is in use. */
bool lease_revoke(struct lease_page *page, unsigned int i, uint16_t ps, uint16_t port);

#endif
