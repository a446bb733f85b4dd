/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port claims of ids, requested from cmportd, or taken from the leased ports. Call without the
 * engine's lock, unless stated otherwise.
 */
#ifndef LIB_ID_CLAIMS_H
#define LIB_ID_CLAIMS_H

#include "lib/engine/engine.h"
#include "lib/portd/client/portd_client.h"

/**
 * claims_bind() - claim the port of id->claim.local, or any ephemeral one if it is 0
 *
 * The caller must keep other threads from the claim meanwhile.
 *
 * Return: 0, with the port in id->claim.local; -errno as port_space_bind() or cmportd_start().
 */
int claims_bind(struct id *id);

/** claims_listen() - upgrade a bound claim to listen. Return: as port_space_listen(). */
int claims_listen(struct id *id);

/**
 * claims_state() - get the current state of a claim; the engine's lock is held
 *
 * Return: false if cmportd has no such claim.
 */
bool claims_state(const struct id *id, struct portd_claim *ret);

/** claims_show() - addresses and port of an id, claimed or not; the engine's lock is held. */
struct portd_claim claims_show(const struct id *id);

/** claims_changed() - report a state from claims_state(); the id may already be gone. */
void claims_changed(const struct portd_claim *claim);

/** claims_release() - release the port; no effect if there is none. */
void claims_release(struct id *id);

/**
 * claims_service_id() - service id of an address: its own with AF_IB, else that of its port
 * @ps: RDMA_PS_*
 */
uint64_t claims_service_id(const union addr *addr, uint16_t ps);

/** claims_resend() - report all claims to a new cmportd. */
void claims_resend(struct portd_client *client);

#endif
