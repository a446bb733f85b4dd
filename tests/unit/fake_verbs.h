/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that exists in memory only, and the list of a host's devices: the verbs that the library
 * and cmportd call are defined here, in place of libibverbs'. The device counts its objects,
 * records requests and sends, and fails on demand; packets arrive when a test injects them. At
 * first a host has no device.
 */
#ifndef TESTS_UNIT_FAKE_VERBS_H
#define TESTS_UNIT_FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "mad/port.h"

#define FAKE_ERROR     ENOSPC /* of the verb that fails; no other code returns it */
#define FAKE_MOVES_MAX 8
#define FAKE_PORTS     2
#define FAKE_PKEYS     3
#define FAKE_GIDS      64
#define FAKE_READS     16 /* outstanding RDMA READs that a device supports */
#define FAKE_SENT_MAX  512
#define FAKE_RQ_MAX    4096
#define FAKE_GRH       40 /* bytes that the device puts before a message */
#define FAKE_WC_SL     10 /* of a completion: over RoCE, mlx5 has the packet type there */

/* A posted send. */
struct fake_sent {
	uint32_t qpn;
	uint32_t qkey;
	struct ibv_ah_attr ah;
	uint8_t mad[MAD_BYTES];
};

struct fake_verbs {
	struct ibv_device *listed; /* devices of the kernel: a list */
	int n_listed;
	int n_opened;	 /* devices so far */
	int n_closed;	 /* likewise */
	int open_errno;	 /* of opening one, or 0 */
	int gone_errno;	 /* of querying the port of an open device that is no longer listed, or 0 */
	uint8_t n_ports; /* of each device; 0: 1 */
	struct ibv_port_attr port[FAKE_PORTS];
	struct ibv_gid_entry gid[FAKE_GIDS]; /* of each device */
	int n_gids;
	int n_looks;		   /* reads of the GID tables */
	int n_queries;		   /* of ports, P_Keys and GIDs: possibly firmware commands */
	void (*queried)(void);	   /* called by each query, unless NULL */
	uint16_t pkey[FAKE_PKEYS]; /* of each port, host byte order */
	int pkey_error;		   /* errno of the next query of a P_Key, once */

	struct ibv_device device_node; /* the listed device, if .listed is its address */
	struct verbs_context verbs;
	struct ibv_pd pd; /* the default one */

	int n_calls; /* of verbs that can fail */
	int fail_at; /* the number of the one that fails, from 1; 0: none */

	/* existing objects */
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
	struct ibv_ece offer; /* options of the driver */
	struct ibv_ece told;  /* options that the driver was given last */
	int n_told;

	/* The queue pair that sends and receives. */
	int max_qp_wr; /* 0: unknown */
	uintptr_t registered_at;
	int poll_error;		/* result of polling for completions, if not 0 */
	bool is_flushed;	/* the queue pair is in the error state */
	int n_sends_left;	/* accepted further sends; -1: all */
	bool has_no_ah;		/* address handles cannot be created */
	int slow_polls;		/* number of polls that find no completed send */
	unsigned int n_cut_off; /* sends without a completion when the queue pair was destroyed */
	struct fake_sent sent[FAKE_SENT_MAX];
	int n_sent;
	int n_slots;		     /* posted and unused */
	void (*before_arming)(void); /* called once, when the queue is armed */
};

extern struct fake_verbs fake;

/**
 * fake_verbs_begin() - start with a device without objects, its ports down. Return: its context.
 */
struct ibv_context *fake_verbs_begin(void);

/** fake_roce_begin() - as fake_verbs_begin(), with port 1 active on Ethernet. */
struct ibv_context *fake_roce_begin(void);

/** fake_n_alive() - the number of objects, without the domains that a device keeps. */
int fake_n_alive(void);

/** fake_add_gid() - append an entry with @index to the table of port 1 */
void fake_add_gid(const char *address, uint32_t index, enum ibv_gid_type type);

/**
 * fake_arrive() - deliver a packet to the next slot
 * @head:  the header that the device puts before the message, FAKE_GRH bytes
 * @bytes: of the message; more than the slot holds is an error of the queue pair
 * @flags: of the completion
 */
void fake_arrive(const uint8_t *head, const void *message, size_t bytes, uint32_t source_qpn,
		 unsigned int flags);

/** fake_flush() - move to the error state: all posted work, also later, completes */
void fake_flush(void);

/** fake_gid_of() - an address as a GID */
struct mad_gid fake_gid_of(const char *address);

#endif
