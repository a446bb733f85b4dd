/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An intrusive doubly linked list: O(1) to append, to take the first node, and to remove any node.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct list {
	struct list *next;
	struct list *prev;
};

static inline void list_init(struct list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_prepend(struct list *head, struct list *node)
{
	list_append(head->next, node);
}

/** list_remove() - remove a node and make it a list of its own; may be called twice. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Visit the structs that contain the nodes as their @member. */
#define list_for_each_entry(entry, head, member)                                         \
	for (struct list *entry##_node = (head)->next;                                   \
	     entry##_node != (head) &&                                                   \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true); \
	     entry##_node = entry##_node->next)

/* As above; the current entry may be removed, the next one must not. */
#define list_for_each_entry_safe(entry, head, member)                                      \
	for (struct list *entry##_node = (head)->next, *entry##_next = entry##_node->next; \
	     entry##_node != (head) &&                                                     \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true);   \
	     entry##_node = entry##_next, entry##_next = entry##_node->next)

/** list_length() - number of nodes; O(n). */
static inline size_t list_length(const struct list *head)
{
	const struct list *node;
	size_t n = 0;

	for (node = head->next; node != head; node = node->next)
		n++;
	return n;
}

#endif
