/* SPDX-License-Identifier: BSD-2-Clause */
/* Port claims of ids: see claims.h. */
#include "lib/id/claims.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "lib/diag/warning.h"
#include "lib/engine/cmportd.h"
#include "lib/engine/session.h"
#include "mad/cma_hdr.h"

static uint32_t next_claim_id; /* atomic */

/* --- reports to cmportd --------------------------------------------------- */

struct portd_claim claims_show(const struct id *id)
{
	struct portd_claim claim = {
		.claim_id = id->claim_id,
		.ps = id->claim.ps,
		.reuseaddr = id->claim.reuseaddr,
		.afonly = id->claim.afonly,
		.local_port = addr_port(&id->claim.local),
		.peer_port = addr_port(&id->claim.peer),
		.local_scope = addr_scope(&id->claim.local),
		.peer_scope = addr_scope(&id->claim.peer),
	};

	if (id->path.port && id->path.port->handle >= 0)
		claim.heard_at = (uint8_t)(id->path.port->handle + 1);
	claim.local_family = addr_pack(&id->claim.local, claim.local_addr);
	claim.peer_family = addr_pack(&id->claim.peer, claim.peer_addr);
	return claim;
}

/* --- binding ------------------------------------------------------------- */

static uint32_t new_claim_id(void)
{
	return __atomic_add_fetch(&next_claim_id, 1, __ATOMIC_RELAXED);
}

/* Requests a claim of our own from cmportd, identified by a number. */
static int claim_port(struct id *id)
{
	uint32_t claim_id = new_claim_id();
	struct portd_claim claim;
	int err;

	id->claim_id = claim_id;
	claim = claims_show(id);
	err = portd_bind(session_client(), &claim);
	if (!err) {
		addr_set_port(&id->claim.local, claim.local_port);
		return 0;
	}
	id->claim_id = 0;
	portd_release(session_client(), claim_id); /* the next cmportd may already have it */
	return err;
}

/* Return: the id of a claim, or with the claim id 0 the one that has leased the port. */
static struct id *find_holder(const struct engine *engine, const struct portd_claim *claim)
{
	struct id *id;

	list_for_each_entry (id, &engine->ids, link)
		if (!id->binding && id->is_leased && id->claim_id == claim->claim_id &&
		    id->claim.ps == claim->ps && addr_port(&id->claim.local) == claim->local_port)
			return id;
	return NULL;
}

/*
 * cmportd does not know the address of a leased port, and gives the port to any id of this process:
 * the id that has leased it claims it before. Other ports than ephemeral ones cost no search.
 */
static int claim_leased_port(uint16_t ps, uint16_t port)
{
	struct portd_claim claim = { .ps = ps, .local_port = port };
	struct engine *engine = engine_lock();
	struct id *id = NULL;
	int err;

	if (port >= engine->limits.ephemeral_first && port <= engine->limits.ephemeral_last)
		id = find_holder(engine, &claim);
	if (id) {
		id->claim_id = new_claim_id();
		claim = claims_show(id);
	}
	engine_unlock();
	if (!id)
		return 0;
	err = portd_bind(session_client(), &claim);
	engine_lock();
	id = find_holder(engine, &claim); /* unless it was destroyed meanwhile */
	if (id && err)
		id->claim_id = 0;
	engine_unlock();
	if (!id || err)
		portd_release(session_client(), claim.claim_id);
	return err;
}

int claims_bind(struct id *id)
{
	uint16_t port = 0;
	int err = cmportd_start();

	if (err)
		return err;
	if (!addr_port(&id->claim.local))
		port = portd_take_port(session_client(), id->claim.ps);
	else
		err = claim_leased_port(id->claim.ps, addr_port(&id->claim.local));
	if (!port)
		return err ? err : claim_port(id);
	addr_set_port(&id->claim.local, port);
	id->is_leased = true;
	return 0;
}

/* --- after binding -------------------------------------------------------- */

int claims_listen(struct id *id)
{
	struct portd_claim claim;
	int err = 0;

	if (!id->claim_id)
		err = claim_port(id); /* a leased port becomes a claim */
	if (err)
		return err;
	claim = claims_show(id);
	err = portd_listen(session_client(), &claim);
	if (!err)
		id->claim.reuseaddr = false;
	return err;
}

bool claims_state(const struct id *id, struct portd_claim *ret)
{
	if (!id->claim_id)
		return false;
	*ret = claims_show(id);
	return true;
}

void claims_changed(const struct portd_claim *claim)
{
	portd_update(session_client(), claim);
}

void claims_release(struct id *id)
{
	if (id->claim_id)
		portd_release(session_client(), id->claim_id);
	else if (id->is_leased)
		portd_give_port(session_client(), id->claim.ps, addr_port(&id->claim.local));
	id->claim_id = 0;
	id->is_leased = false;
}

/* --- a new cmportd ------------------------------------------------------- */

struct held_claim {
	struct portd_claim claim;
	bool listens;
};

static size_t collect_claims(struct held_claim **ret)
{
	struct engine *engine = engine_lock();
	struct held_claim *held;
	struct id *id;
	size_t n = 0;

	held = calloc(list_length(&engine->ids) + 1, sizeof(*held));
	list_for_each_entry (id, &engine->ids, link) {
		if (!held || !id->claim_id)
			continue;
		held[n].claim = claims_show(id);
		held[n++].listens = id->serving;
	}
	engine_unlock();
	*ret = held;
	return n;
}

void claims_resend(struct portd_client *client)
{
	struct held_claim *held;
	size_t i, n = collect_claims(&held);
	int err;

	for (i = 0; i < n; i++) {
		err = portd_tell_claim(client, &held[i].claim, held[i].listens);
		if (err)
			warning_of_claim(held[i].claim.local_port, err);
	}
	free(held);
}

uint64_t claims_service_id(const union addr *addr, uint16_t ps)
{
	return addr_is_ib(addr) ? be64toh(addr->ib.sib_sid) : cma_service_id(ps, addr_port(addr));
}
