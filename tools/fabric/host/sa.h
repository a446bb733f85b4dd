/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet administrator of an InfiniBand subnet. It is on the subnet manager's port
 * (subnet_manager.c), and responds from the fabric's folder, unless a program there, such as
 * OpenSM, is an agent of the class.
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

#define SA_FULL_MEMBER 0x8000 /* bit of a P_Key */

#define SA_KEY_TRUSTED 1 /* the SM_Key of OpenSM, which permits to see all records */

/* Consecutive records of one type. */
struct sa_answer {
	size_t record_bytes; /* a multiple of 8 */
	unsigned int n, room;
	uint8_t *records;
	bool is_short; /* no room for all: out of memory, or longer than a message */
};

/** sa_answer_add() - append a record of record_bytes */
void sa_answer_add(struct sa_answer *answer, const void *record);

/* A component of a record type, for sa_suits(). */
struct sa_component {
	uint64_t mask;
	uint8_t at, bytes;
};

/**
 * sa_suits() - return whether a record has the requested component values
 * @components: terminated by a mask of 0
 */
bool sa_suits(const struct sa_component *components, uint64_t mask, const uint8_t *asked,
	      const uint8_t *record);

/** sa_is_trusted() - return whether a request has the trusted SM_Key */
bool sa_is_trusted(const struct umad_sa_packet *request);

/**
 * sa_received() - handle a MAD of the class without an agent
 *
 * Return: whether it was for the SA, and was answered.
 */
bool sa_received(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		 const uint8_t mad[FAB_MAD_BYTES]);

/** sa_read_page() - read the page of a port's host. Return: false if that host has ended. */
bool sa_read_page(const struct host *host, const struct fab_owner *owner, struct fab_page *ret);

/** sa_find_gid() - find the port with a GID, in any subnet. Return: whether there is one. */
bool sa_find_gid(const struct host *host, const union ibv_gid *gid, struct fab_port *ret);

/** sa_find_lid() - find the port with a LID in our subnet. Return: whether there is one. */
bool sa_find_lid(const struct host *host, uint16_t lid, struct fab_port *ret);

/** sa_has_pkey() - return whether a port is a member of a partition, full or limited */
bool sa_has_pkey(const struct fab_port *port, uint16_t pkey);

/** sa_selects() - return whether a value matches a selector and value, IBTA vol. 1, 15.2.5.16 */
bool sa_selects(uint8_t asked, uint8_t value);

/**
 * sa_path() - look up PathRecords
 * @answer: matching records are appended
 *
 * Return: UMAD_SA_STATUS_* of umad_sa.h; so do the functions below.
 */
unsigned int sa_path(struct host *host, const struct umad_sa_packet *request,
		     struct sa_answer *answer);

/** sa_group() - MCMemberRecord, including Set and Delete */
unsigned int sa_group(struct host *host, const struct umad_sa_packet *request,
		      struct sa_answer *answer);

/** sa_node() - NodeRecord */
unsigned int sa_node(struct host *host, const struct umad_sa_packet *request,
		     struct sa_answer *answer);

/** sa_port_info() - PortInfoRecord */
unsigned int sa_port_info(struct host *host, const struct umad_sa_packet *request,
			  struct sa_answer *answer);

/** sa_service() - ServiceRecord, including Set and Delete */
unsigned int sa_service(struct host *host, const struct umad_sa_packet *request,
			struct sa_answer *answer);

/** sa_services_forget() - remove all registered services */
void sa_services_forget(struct host *host);

/** sa_forget() - behave as a new administrator without members and services */
void sa_forget(struct host *host);

/** sa_groups_init() - create the broadcast group of IP over InfiniBand. Return: 0, -ENOMEM. */
int sa_groups_init(struct host *host);

/** sa_groups_forget() - remove all members */
void sa_groups_forget(struct host *host);

/** sa_groups_free() - free all groups */
void sa_groups_free(struct host *host);

#endif
