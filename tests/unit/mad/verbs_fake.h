/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of mad/sender.c and mad/inbox.c: a libibverbs with a device that does not exist,
 * its port 1, and one queue pair. What is sent is recorded; packets arrive when a test says so.
 */
#ifndef TESTS_UNIT_MAD_VERBS_FAKE_H
#define TESTS_UNIT_MAD_VERBS_FAKE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "mad/port.h"

#define FAKE_SENT_MAX 512
#define FAKE_GIDS_MAX 64
#define FAKE_RQ_MAX   4096
#define FAKE_GRH      40 /* bytes that the device puts before a message */
#define FAKE_WC_SL    10 /* of a completion: mlx5 has the packet type there, over RoCE */

/* What was posted to be sent. */
struct fake_sent {
	uint32_t qpn;
	uint32_t qkey;
	struct ibv_ah_attr ah;
	uint8_t mad[MAD_BYTES];
};

/* What the tests say and see; zeroed by set_up_fake_verbs(). */
struct fake_verbs {
	uint8_t link_layer;
	uint32_t max_inline; /* of a queue pair */
	struct ibv_gid_entry gid[FAKE_GIDS_MAX];
	int n_gids;
	uintptr_t registered_at;
	int n_looks;	  /* at the GID table */
	int n_calls;	  /* that could fail */
	int fails_at;	  /* which of them does; 0: none */
	int n_made;	  /* objects that were not given back */
	int poll_error;	  /* what looking for completions returns, if not 0 */
	bool is_flushed;  /* the queue pair is in its error state */
	int n_sends_left; /* that will be taken; -1: all */
	bool has_no_ah;	  /* no address handle can be made */
	int slow_polls;	  /* how many looks find no send completed */
	/* sends that were not known to be complete when the queue pair went */
	unsigned int n_cut_off;
	struct fake_sent sent[FAKE_SENT_MAX];
	int n_sent;
	int n_slots;		     /* posted, and nothing has come into them */
	void (*before_arming)(void); /* called once, when the queue is armed */
};

extern struct fake_verbs verbs;

/** set_up_fake_verbs() - a device, its port 1 active on Ethernet. Return: its context. */
struct ibv_context *set_up_fake_verbs(void);

/** add_gid() - at the end of the table of port 1, with @index */
void add_gid(const char *address, uint32_t index, enum ibv_gid_type type);

/**
 * arrive() - a packet comes into the next slot
 * @head:  what the device puts before the message, FAKE_GRH bytes
 * @bytes: of the message; what has no room in the slot is an error of the queue pair
 * @flags: of the completion
 */
void arrive(const uint8_t *head, const void *message, size_t bytes, uint32_t source_qpn,
	    unsigned int flags);

/** flush_queue_pair() - into its error state: all that is posted, and will be, completes */
void flush_queue_pair(void);

/** gid_of() - an address as a GID */
struct mad_gid gid_of(const char *address);

#endif
