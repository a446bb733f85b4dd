/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules about several ids of one host: see oracle.h. */
#include <string.h>

#include "tests/sim/host.h"
#include "tests/sim/oracle.h"

#define OUT_NS (8 * SIM_NS_PER_S) /* how long an unanswered request keeps its slot */

static char last_letter(const struct sim_id *id)
{
	return id->n_letters ? id->letters[id->n_letters - 1] : 0;
}

/* Requesting or connected: a retransmission of its request belongs to this one. */
static bool is_pending(const struct sim_id *id)
{
	return id->conn && id->begun && last_letter(id) && strchr("rMPEeDdB", last_letter(id));
}

void oracle_no_duplicate(const struct sim_id *id)
{
	struct sim_host *host = id->host;

	if (host->doubts >> id->peer & 1)
		return;
	for (uint32_t i = 0; i < host->n_ids; i++) {
		const struct sim_id *other = host->id[i];

		if (other != id && other->peer == id->peer &&
		    other->peer_comm_id == id->peer_comm_id &&
		    other->order.role == id->order.role && is_pending(other))
			sim_fail(host->sim, "host %c id %u is a second one for what %u is: '%s'",
				 'A' + host->number, id->number, other->number, other->letters);
	}
}

/*
 * Sent once, and neither answered nor retransmitted; an MRA is an answer. After a while it no
 * longer counts, though the peer answers others.
 */
static bool is_out(const struct sim_id *id)
{
	const uint64_t age_ns = host_now(id->host).ns - id->asked_ns;
	unsigned int n = id->order.role == ORDER_ACTIVE ? id->sent[0].n : id->sent[3].n;

	return id->conn && n == 1 && age_ns < OUT_NS && !id->mra_wait_ns &&
	       strchr("QS", last_letter(id));
}

void oracle_in_turn(struct sim_host *host)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < host->n_ids; i++)
		n += is_out(host->id[i]);
	if (n > 2 * host->core.out_max) /* separate limits for peers that answer, and for those that
					   do not */
		sim_fail(host->sim, "host %c has %u requests out at once", 'A' + host->number, n);
}
