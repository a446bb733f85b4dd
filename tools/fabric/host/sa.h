/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet administrator of an InfiniBand subnet: it is on the port of the subnet manager
 * (subnet.c), and answers from the fabric's folder, unless a program there (OpenSM, say) is an
 * agent of the class.
 */
#ifndef FABRIC_HOST_SA_H
#define FABRIC_HOST_SA_H

#include <infiniband/sa.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sa_mcm.h>

#include "tools/fabric/host/host.h"

#define SA_MTU	       IBV_MTU_4096
#define SA_RATE	       IBV_RATE_40_GBPS
#define SA_LIFE_TIME   18 /* 4.096 us * 2^18, about a second */

#define SA_FULL_MEMBER 0x8000 /* of a P_Key */

#define SA_KEY_TRUSTED 1 /* an SM_Key as OpenSM has it: who has it may see all */

/* Records of one kind, one after the other. */
struct sa_answer {
	size_t record_bytes; /* a multiple of 8 */
	unsigned int n, room;
	uint8_t *records;
	bool is_short; /* of memory */
};

/** sa_answer_add() - @record: of record_bytes */
void sa_answer_add(struct sa_answer *answer, const void *record);

/* A component of a record, for sa_suits(). */
struct sa_component {
	uint64_t mask;
	uint8_t at, bytes;
};

/**
 * sa_suits() - does a record have what is asked for?
 * @components: ends with a mask of 0
 */
bool sa_suits(const struct sa_component *components, uint64_t mask, const uint8_t *asked,
	      const uint8_t *record);

/** sa_is_trusted() - does the request have the key? */
bool sa_is_trusted(const struct umad_sa_packet *request);

/**
 * sa_received() - a MAD of the class that no agent has
 *
 * Return: whether it was for the SA, and is answered.
 */
bool sa_received(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		 const uint8_t mad[FAB_MAD_BYTES]);

/** sa_read_page() - the page of the host with a port. Return: false if that host has ended. */
bool sa_read_page(const struct host *host, const struct fab_owner *owner, struct fab_page *ret);

/** sa_find_gid() - the port with a GID, of any subnet. Return: whether there is one. */
bool sa_find_gid(const struct host *host, const union ibv_gid *gid, struct fab_port *ret);

/** sa_find_lid() - the port with a LID, of our subnet. Return: whether there is one. */
bool sa_find_lid(const struct host *host, uint16_t lid, struct fab_port *ret);

/** sa_has_pkey() - is a port in a partition, be it with limited membership? */
bool sa_has_pkey(const struct fab_port *port, uint16_t pkey);

/** sa_selects() - does a value fulfil what a selector and a value ask? IBTA vol. 1, 15.2.5.16. */
bool sa_selects(uint8_t asked, uint8_t value);

/**
 * sa_path() - PathRecord
 * @answer: its records are added
 *
 * Return: enum of umad_sa.h, UMAD_SA_STATUS_*. So do the others below.
 */
unsigned int sa_path(struct host *host, const struct umad_sa_packet *request,
		     struct sa_answer *answer);

/** sa_group() - MCMemberRecord, also Set and Delete */
unsigned int sa_group(struct host *host, const struct umad_sa_packet *request,
		      struct sa_answer *answer);

/** sa_node() - NodeRecord */
unsigned int sa_node(struct host *host, const struct umad_sa_packet *request,
		     struct sa_answer *answer);

/** sa_port_info() - PortInfoRecord */
unsigned int sa_port_info(struct host *host, const struct umad_sa_packet *request,
			  struct sa_answer *answer);

/** sa_service() - ServiceRecord, also Set and Delete */
unsigned int sa_service(struct host *host, const struct umad_sa_packet *request,
			struct sa_answer *answer);

/** sa_services_forget() - none is registered. */
void sa_services_forget(struct host *host);

/** sa_forget() - as a new administrator, who knows of no members and no services. */
void sa_forget(struct host *host);

/** sa_groups_init() - none but the broadcast group of IP over InfiniBand. Return: 0, -ENOMEM. */
int sa_groups_init(struct host *host);

/** sa_groups_forget() - nobody is a member. */
void sa_groups_forget(struct host *host);

/** sa_groups_free() - forget all groups. */
void sa_groups_free(struct host *host);

#endif
