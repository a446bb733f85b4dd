/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes of the fast path (mad/peers.h): ours are sent at the end of a turn, those of peers are
 * answered. They belong to no connection, so they are neither shown to clients nor counted.
 */
#include <arpa/inet.h>

#include "base/log.h"
#include "lib/portd/server/server_state.h"
#include "lib/portd/server/wire/host_port.h"
#include "mad/talk.h"

#define PAUSE_NS (10 * CM_NS_PER_MS)

bool probe_answer(struct host_port *host_port, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES])
{
	struct server *server = host_port->server;
	const uint32_t rate = quota_of(&server->options.quotas, QUOTA_HOST_RATE);
	uint8_t answer[MAD_BYTES];

	if (!mad_probe_answer(mad, answer))
		return false;
	if (!hosts_may_ask(&server->hosts, hosts_at(&server->hosts, &path->dgid), &path->dgid, rate,
			   rate, server->now) ||
	    !host_port_may_solicit(host_port, path))
		return true;
	/* Through umad, which always works. */
	if (host_port_reaches_hop(host_port, path))
		mad_port_send(host_port->mad, path, answer);
	else
		hosts_use_hops(&server->hosts, 1);
	return true;
}

/*
 * Says nothing of the cause: whether the network drops messages or the peer does, they arrive by
 * umad.
 */
static void warn_once(struct host_port *host_port, const struct mad_sender_score *score)
{
	char peer[INET6_ADDRSTRLEN] = "?";

	if (host_port->has_warned || !score->n_lost)
		return;
	host_port->has_warned = true;
	inet_ntop(AF_INET6, score->first_lost.raw, peer, sizeof(peer));
	log_warn("%s port %u: the fast path does not reach %s; messages to such peers go through "
		 "umad, which is slower; see `purecm doctor`",
		 host_port->device, host_port->port_num, peer);
}

/* Later than now: early after boot there are no random numbers, and a due probe cannot be sent. */
static struct cm_time next_probe(const struct server *server, const struct mad_sender_score *score)
{
	const struct cm_time soon = cm_time_after(server->now, PAUSE_NS);
	const struct cm_time due = { .ns = score->probe_due_ns };

	if (!score->n_probed)
		return (struct cm_time){ .ns = 0 };
	return due.ns > soon.ns ? due : soon;
}

void probe_peers(struct host_port *host_port)
{
	struct mad_sender_score score;
	uint8_t mad[MAD_BYTES];
	struct mad_path path;

	while (mad_sender_probe(host_port->sender, &path, mad))
		if (host_port_reaches_hop(host_port, &path))
			mad_sender_send_probe(host_port->sender, &path, mad);
	mad_sender_score(host_port->sender, &score);
	host_port->probes_at = next_probe(host_port->server, &score);
	warn_once(host_port, &score);
}
