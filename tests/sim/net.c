/* SPDX-License-Identifier: BSD-2-Clause */
/* Links and their faults: see net.h. */
#include "tests/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/chart.h"
#include "tests/sim/host.h"

#define LATENCY_US  20
#define QUEUE_MAX   100000
#define HELD_MAX_NS (7 * SIM_NS_PER_S) /* longer than any timeout for an answer */
#define BROKEN_BITS 3

void net_reset(struct sim *sim)
{
	struct net *net = &sim->net;

	for (unsigned int from = 0; from < sim->n_hosts; from++) {
		for (unsigned int to = 0; to < sim->n_hosts; to++) {
			struct net_link *link = net_link_of(sim, from, to);

			*link = (struct net_link){ 0 };
			link->rng = rng_fork(sim->seed, 1000 + from * SIM_HOSTS_MAX + to);
		}
	}
	net->queue_max = QUEUE_MAX;
	net->latency_us = LATENCY_US;
	net->free = 0;
	for (uint32_t i = net->n_packets; i-- > 1;) {
		net->packet[i].next_free = net->free;
		net->free = i;
	}
	net_fates(sim, NULL, 0);
}

void net_fini(struct net *net)
{
	free(net->packet);
	free(net->link);
	*net = (struct net){ 0 };
}

void net_fates(struct sim *sim, const uint8_t *fates, unsigned int n)
{
	if (n)
		memcpy(sim->net.fate, fates, n);
	sim->net.n_fates = n;
	sim->net.n_fated = 0;
}

static uint32_t packet_take(struct net *net)
{
	uint32_t n = net->n_packets, room;

	if (!net->free) {
		room = n ? 2 * n : 32;
		net->packet = realloc(net->packet, room * sizeof(net->packet[0]));
		if (!net->packet)
			abort();
		net->n_packets = room;
		for (uint32_t i = room; i-- > (n ? n : 1);) {
			net->packet[i].next_free = net->free;
			net->free = i;
		}
	}
	n = net->free;
	net->free = net->packet[n].next_free;
	return n;
}

static uint32_t pack(struct sim *sim, uint8_t from, uint8_t to, const uint8_t *mad)
{
	uint32_t n = packet_take(&sim->net);
	struct net_packet *packet = &sim->net.packet[n];

	packet->from = from;
	packet->to = to;
	packet->late = packet->broken = false;
	packet->gid = sim->host[from].gid;
	memcpy(packet->mad, mad, MAD_BYTES);
	net_link_of(sim, from, to)->n_queued++;
	return n;
}

static void schedule(struct sim *sim, uint32_t number, uint64_t at_ns)
{
	clock_plan(&sim->clock, (struct plan){ .at_ns = at_ns,
					       .kind = PLAN_ARRIVE,
					       .host = sim->net.packet[number].to,
					       .what = number });
}

static uint64_t latency_ns(const struct sim *sim)
{
	return sim->net.latency_us * SIM_NS_PER_US;
}

/* --- patterns: given fates ----------------------------------------------- */

static void release(struct sim *sim, struct net_link *link, uint64_t at_ns)
{
	for (unsigned int i = 0; i < link->n_held; i++)
		schedule(sim, link->held[i], at_ns);
	link->n_held = 0;
}

uint64_t net_held_ns(const struct sim *sim)
{
	uint64_t first = UINT64_MAX;

	if (!sim->net.n_fates)
		return first;
	for (unsigned int from = 0; from < sim->n_hosts; from++) {
		for (unsigned int to = 0; to < sim->n_hosts; to++) {
			const struct net_link *link = net_link_of(sim, from, to);

			if (link->n_held && link->held_ns < first)
				first = link->held_ns;
		}
	}
	return first;
}

void net_release(struct sim *sim)
{
	for (unsigned int from = 0; from < sim->n_hosts; from++)
		for (unsigned int to = 0; to < sim->n_hosts; to++)
			if (net_link_of(sim, from, to)->held_ns <= sim->now_ns)
				release(sim, net_link_of(sim, from, to), sim->now_ns);
}

static void hold(struct sim *sim, struct net_link *link, uint32_t number)
{
	if (!link->n_held)
		link->held_ns = sim->now_ns + HELD_MAX_NS;
	link->held[link->n_held++] = number;
	sim->net.packet[number].late = true;
}

static void send_fated(struct sim *sim, uint8_t from, uint8_t to, const uint8_t *mad)
{
	enum net_fate fate = NET_DELIVER;
	struct net_link *link = net_link_of(sim, from, to);
	uint64_t at_ns = sim->now_ns + latency_ns(sim);

	if (sim->net.n_fated < sim->net.n_fates)
		fate = (enum net_fate)sim->net.fate[sim->net.n_fated++];
	chart_send(sim, from, to, mad, fate);
	if (fate == NET_PASS) {
		hold(sim, link, pack(sim, from, to, mad));
		return;
	}
	if (fate == NET_LOSE)
		return;
	schedule(sim, pack(sim, from, to, mad), at_ns);
	if (fate == NET_DUPLICATE)
		schedule(sim, pack(sim, from, to, mad), at_ns);
	release(sim, link, at_ns + 1);
}

/* --- chance -------------------------------------------------------------- */

static bool break_bits(struct net_link *link, struct net_packet *packet)
{
	for (uint64_t n = 1 + rng_below(&link->rng, BROKEN_BITS); n; n--)
		packet->mad[rng_below(&link->rng, MAD_BYTES)] ^= 1 << rng_below(&link->rng, 8);
	return true;
}

static void send_once(struct sim *sim, uint8_t from, uint8_t to, const uint8_t *mad,
		      const struct net_fault *fault)
{
	struct net_link *link = net_link_of(sim, from, to);
	uint64_t delay_ns = latency_ns(sim);
	uint32_t n;

	if (link->n_queued >= sim->net.queue_max)
		return;
	n = pack(sim, from, to, mad);
	if (rng_chance(&link->rng, fault->corrupt))
		sim->net.packet[n].broken = break_bits(link, &sim->net.packet[n]);
	if (rng_chance(&link->rng, fault->delay))
		delay_ns += rng_tail(&link->rng, fault->delay_max_us) * SIM_NS_PER_US;
	sim->net.packet[n].late = delay_ns > 100 * latency_ns(sim);
	schedule(sim, n, sim->now_ns + delay_ns);
}

static void send_by_chance(struct sim *sim, uint8_t from, uint8_t to, const uint8_t *mad)
{
	static const struct net_fault none;
	struct net_link *link = net_link_of(sim, from, to);
	unsigned int kind = cm_mad_attr(mad) - CM_ATTR_REQ;
	const struct net_fault *fault = kind < NET_KINDS ? &link->fault[kind] : &none;
	enum net_fate fate = NET_DELIVER;

	if (link->cut || rng_chance(&link->rng, fault->lose))
		fate = NET_LOSE;
	else if (rng_chance(&link->rng, fault->duplicate))
		fate = NET_DUPLICATE;
	chart_send(sim, from, to, mad, fate);
	if (fate == NET_LOSE)
		return;
	send_once(sim, from, to, mad, fault);
	if (fate == NET_DUPLICATE)
		send_once(sim, from, to, mad, fault);
}

static struct sim_host *host_with(struct sim *sim, const struct mad_gid *gid)
{
	unsigned int i = gid->raw[15];

	if (i >= sim->n_hosts || memcmp(&sim->host[i].gid, gid, sizeof(*gid)) != 0)
		return NULL;
	return &sim->host[i];
}

void net_send(struct sim *sim, struct sim_host *from, const struct mad_path *path,
	      const uint8_t mad[MAD_BYTES])
{
	struct sim_host *to = host_with(sim, &path->dgid);

	if (!to)
		return;
	if (sim->net.n_fates)
		send_fated(sim, from->number, to->number, mad);
	else
		send_by_chance(sim, from->number, to->number, mad);
}

void net_arrive(struct sim *sim, uint32_t number)
{
	struct net_packet *packet = &sim->net.packet[number];
	struct sim_host *to = &sim->host[packet->to], *from = &sim->host[packet->from];

	if (to->is_up && to->asleep_ns > sim->now_ns) {
		schedule(sim, number, to->asleep_ns);
		return;
	}
	net_link_of(sim, packet->from, packet->to)->n_queued--;
	if (packet->late)
		chart_arrive(sim, packet);
	if (to->is_up)
		host_receive(to, packet, packet->broken || from->is_liar);
	packet = &sim->net.packet[number]; /* the pool may have moved */
	packet->next_free = sim->net.free;
	sim->net.free = number;
}

void net_heal(struct sim *sim)
{
	for (unsigned int from = 0; from < sim->n_hosts; from++) {
		for (unsigned int to = 0; to < sim->n_hosts; to++) {
			struct net_link *link = net_link_of(sim, from, to);

			memset(link->fault, 0, sizeof(link->fault));
			link->cut = false;
		}
	}
	sim->net.queue_max = QUEUE_MAX;
	sim->is_healed = true;
}
