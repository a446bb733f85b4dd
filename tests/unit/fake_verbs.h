/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that exists in memory only, and the list of a host's devices: the verbs that the library
 * and cmportd call are defined here, in place of libibverbs'. The device counts what is alive,
 * remembers what it was asked for and what was sent, and fails when it is told to; packets arrive
 * when a test says so. At first a host has no device.
 */
#ifndef TESTS_UNIT_FAKE_VERBS_H
#define TESTS_UNIT_FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "mad/port.h"

#define FAKE_ERROR     ENOSPC /* of the verb that fails; nothing else gives it */
#define FAKE_MOVES_MAX 8
#define FAKE_PORTS     2
#define FAKE_PKEYS     3
#define FAKE_GIDS      64
#define FAKE_READS     16 /* RDMA READs at a time that a device can do */
#define FAKE_SENT_MAX  512
#define FAKE_RQ_MAX    4096
#define FAKE_GRH       40 /* bytes that the device puts before a message */
#define FAKE_WC_SL     10 /* of a completion: mlx5 has the packet type there, over RoCE */

/* What was posted to be sent. */
struct fake_sent {
	uint32_t qpn;
	uint32_t qkey;
	struct ibv_ah_attr ah;
	uint8_t mad[MAD_BYTES];
};

struct fake_verbs {
	struct ibv_device *listed; /* what the kernel has: a row of devices */
	int n_listed;
	int n_opened;	 /* devices, so far */
	int n_closed;	 /* likewise */
	int open_errno;	 /* of opening one, or 0 */
	int gone_errno;	 /* of querying the port of one that is open and not listed, or 0 */
	uint8_t n_ports; /* of each device; 0 stands for 1 */
	struct ibv_port_attr port[FAKE_PORTS];
	struct ibv_gid_entry gid[FAKE_GIDS]; /* of each device */
	int n_gids;
	int n_looks;		   /* at the GID tables */
	int n_queries;		   /* of ports, P_Keys and GIDs: commands of firmware, perhaps */
	void (*queried)(void);	   /* called by each, unless NULL */
	uint16_t pkey[FAKE_PKEYS]; /* of each port, host byte order */
	int pkey_error;		   /* errno of the next query of a P_Key, once */

	struct ibv_device device_node; /* the device as it is listed, if .listed is its address */
	struct verbs_context verbs;
	struct ibv_pd pd; /* the default one */

	int n_calls; /* of verbs that can fail */
	int fail_at; /* which of them fails, from 1; 0: none */

	/* alive */
	int n_made; /* of every kind */
	int n_channels;
	int n_cqs;
	int n_qps;
	int n_srqs;
	int n_xrcds;
	int n_pds;
	int n_mrs;
	int n_ahs;
	int n_attached; /* to multicast groups */

	union ibv_gid attached; /* the last group */
	uint16_t attached_lid;
	struct ibv_qp_init_attr_ex qp_asked;
	struct ibv_srq_init_attr_ex srq_asked;
	int n_moves;
	struct ibv_qp_attr move[FAKE_MOVES_MAX];
	int mask[FAKE_MOVES_MAX];

	bool knows_ece;
	struct ibv_ece offer; /* what the driver says of itself */
	struct ibv_ece told;  /* what it was told last */
	int n_told;

	/* The queue pair that sends and receives. */
	int max_qp_wr; /* 0: it does not say */
	uintptr_t registered_at;
	int poll_error;		/* what looking for completions returns, if not 0 */
	bool is_flushed;	/* it is in its error state */
	int n_sends_left;	/* that will be taken; -1: all */
	bool has_no_ah;		/* no address handle can be made */
	int slow_polls;		/* how many looks find no send completed */
	unsigned int n_cut_off; /* sends that were not known to be complete when it went */
	struct fake_sent sent[FAKE_SENT_MAX];
	int n_sent;
	int n_slots;		     /* posted, and nothing has come into them */
	void (*before_arming)(void); /* called once, when the queue is armed */
};

extern struct fake_verbs fake;

/** fake_verbs_begin() - a device with nothing made on it, its ports down. Return: its context. */
struct ibv_context *fake_verbs_begin(void);

/** fake_roce_begin() - the same, port 1 active on Ethernet. */
struct ibv_context *fake_roce_begin(void);

/** fake_n_alive() - how many objects are there; the domains that a device keeps do not count. */
int fake_n_alive(void);

/** fake_add_gid() - at the end of the table of port 1, with @index */
void fake_add_gid(const char *address, uint32_t index, enum ibv_gid_type type);

/**
 * fake_arrive() - a packet comes into the next slot
 * @head:  what the device puts before the message, FAKE_GRH bytes
 * @bytes: of the message; what has no room in the slot is an error of the queue pair
 * @flags: of the completion
 */
void fake_arrive(const uint8_t *head, const void *message, size_t bytes, uint32_t source_qpn,
		 unsigned int flags);

/** fake_flush() - into its error state: all that is posted, and will be, completes */
void fake_flush(void);

/** fake_gid_of() - an address as a GID */
struct mad_gid fake_gid_of(const char *address);

#endif
