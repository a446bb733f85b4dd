/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small pieces of registered memory: see slot.h.
 */
#include "lib/rsocket/slot.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/list.h"

#define N_SLOTS	   64 /* bits of page.used */
#define PAGE_BYTES ((size_t)N_SLOTS * SLOT_BYTES)
#define ALL	   UINT64_MAX

struct page {
	struct list link;
	uint64_t used; /* bitmap of slots */
	uint8_t *at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list pages = { &pages, &pages };

static struct page *new_page(void)
{
	struct page *page = calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	page->at =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page->at == MAP_FAILED) {
		free(page);
		return NULL;
	}
	list_prepend(&pages, &page->link);
	return page;
}

/* Pages with free slots come first. */
void *slot_new(void)
{
	struct page *page = NULL;
	void *slot = NULL;
	int i;

	pthread_mutex_lock(&lock);
	if (!list_is_empty(&pages))
		page = container_of(pages.next, struct page, link);
	if (!page || page->used == ALL)
		page = new_page();
	if (page) {
		i = __builtin_ctzll(~page->used);
		page->used |= 1ULL << i;
		slot = page->at + (size_t)i * SLOT_BYTES;
	}
	if (page && page->used == ALL) {
		list_remove(&page->link);
		list_append(&pages, &page->link);
	}
	pthread_mutex_unlock(&lock);
	if (slot)
		memset(slot, 0, SLOT_BYTES);
	return slot;
}

void slot_free(void *slot)
{
	struct page *page;

	pthread_mutex_lock(&lock);
	list_for_each_entry (page, &pages, link) {
		size_t offset = (size_t)((uint8_t *)slot - page->at);

		/* For a page above the slot, the difference wraps to a huge value. */
		if (offset >= PAGE_BYTES)
			continue;
		page->used &= ~(1ULL << offset / SLOT_BYTES);
		list_remove(&page->link);
		if (page->used) {
			list_prepend(&pages, &page->link);
		} else {
			munmap(page->at, PAGE_BYTES);
			free(page);
		}
		break;
	}
	pthread_mutex_unlock(&lock);
}

void slot_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	list_init(&pages);
}
