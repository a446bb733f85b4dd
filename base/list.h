/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An intrusive list with two ends: O(1) to append, to take the first and to take any out.
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

/** list_remove() - take a node out; it is a list of its own afterwards, so twice is harmless. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define list_for_each(node, head) \
	for ((node) = (head)->next; (node) != (head); (node) = (node)->next)

#define list_for_each_safe(node, after, head)                                 \
	for ((node) = (head)->next, (after) = (node)->next; (node) != (head); \
	     (node) = (after), (after) = (node)->next)

/* Visit the structs that contain the nodes: @entry points to the current struct, @member names its
 * node. */
#define list_for_each_entry(entry, head, member)                                         \
	for (struct list *entry##_node = (head)->next;                                   \
	     entry##_node != (head) &&                                                   \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true); \
	     entry##_node = entry##_node->next)

/* The entry itself may be taken out meanwhile, but not the next one. */
#define list_for_each_entry_safe(entry, head, member)                                      \
	for (struct list *entry##_node = (head)->next, *entry##_next = entry##_node->next; \
	     entry##_node != (head) &&                                                     \
	     ((entry) = container_of(entry##_node, __typeof__(*(entry)), member), true);   \
	     entry##_node = entry##_next, entry##_next = entry##_node->next)

/** list_length() - how many nodes there are, by walking over them. */
static inline size_t list_length(const struct list *head)
{
	const struct list *node;
	size_t n = 0;

	list_for_each (node, head)
		n++;
	return n;
}

#endif
