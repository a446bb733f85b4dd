/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port numbers of ids: asked of cmportd, and noted in the engine's port space, which finds the
 * listener of a request. Without the engine's lock except where it says so.
 */
#ifndef LIB_ID_CLAIMS_H
#define LIB_ID_CLAIMS_H

#include "lib/engine/engine.h"
#include "lib/portd/client/client.h"

/**
 * claims_bind() - have the port of id->claim.local, or any ephemeral one if that is 0
 *
 * The caller sees to it that nobody else touches the claim meanwhile.
 *
 * Return: 0, with the port in id->claim.local; or as port_space_bind(), or as host_start().
 */
int claims_bind(struct id *id);

/** claims_listen() - make a bound claim fit to listen. Return: as port_space_listen(). */
int claims_listen(struct id *id);

/**
 * claims_state() - what a claim is now; the engine's lock is held
 *
 * Return: false if cmportd knows of no such claim.
 */
bool claims_state(const struct id *id, struct portd_claim *ret);

/** claims_show() - addresses and port of an id, claimed or not; the engine's lock is held. */
struct portd_claim claims_show(const struct id *id);

/** claims_changed() - tell what claims_state() said; the id may be gone by now. */
void claims_changed(const struct portd_claim *claim);

/** claims_release() - give the port back; harmless if there is none. */
void claims_release(struct id *id);

/**
 * claims_service_id() - the service at an address: its own with AF_IB, else that of its port
 * @ps: RDMA_PS_*
 */
uint64_t claims_service_id(const union addr *addr, uint16_t ps);

/** claims_resend() - tell a new cmportd of all claims. */
void claims_resend(struct portd_client *client);

#endif
