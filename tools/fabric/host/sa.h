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
 * sa_path() - PathRecord, Get
 * @packet: the request; becomes the response
 *
 * Return: enum of umad_sa.h, UMAD_SA_STATUS_*.
 */
unsigned int sa_path(struct host *host, struct umad_sa_packet *packet);

/** sa_group() - MCMemberRecord: Get, Set, Delete. Return: as sa_path(). */
unsigned int sa_group(struct host *host, struct umad_sa_packet *packet);

/** sa_groups_init() - none but the broadcast group of IP over InfiniBand. Return: 0, -ENOMEM. */
int sa_groups_init(struct host *host);

/** sa_groups_forget() - as a new administrator, who knows of no members. */
void sa_groups_forget(struct host *host);

/** sa_groups_free() - forget all groups. */
void sa_groups_free(struct host *host);

#endif
