/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of the hosts that sockets have connected to: see rdma_hosts.h. */
#include "lib/rsocket/rdma_hosts.h"

#include "base/clock.h"
#include "lib/net/addr.h"

#define N_HOSTS	   16
#define PATIENT_MS 1500 /* a lost request is sent again after 1 s */
#define MUTE_MS	   1000 /* doubled each time in a row */
#define DOUBLE_MAX 6

static struct host {
	union addr addr;
	unsigned int n_mute;  /* times since it answered */
	struct cm_time until; /* when what was noted is over */
} hosts[N_HOSTS];

static unsigned int n_hosts; /* also of those that were replaced */

/* Return: NULL if it is not known. */
static struct host *find_host(const union addr *addr)
{
	for (unsigned int i = 0; i < N_HOSTS && i < n_hosts; i++)
		if (addr_same_ip(&hosts[i].addr, addr))
			return &hosts[i];
	return NULL;
}

static bool is_mute(const struct host *host)
{
	return host && host->n_mute && !cm_time_reached(host->until, clock_now());
}

void hosts_note(const struct sockaddr_storage *name, bool has_answered)
{
	union addr addr = addr_load(name);
	struct host *host = find_host(&addr);

	if (!host) {
		host = &hosts[n_hosts++ % N_HOSTS];
		*host = (struct host){ .addr = addr };
	}
	if (has_answered) {
		host->n_mute = 0;
		host->until = cm_time_after(clock_now(), PATIENT_MS * CM_NS_PER_MS);
		return;
	}
	if (is_mute(host)) /* of connections at once the first counts */
		return;
	host->until = cm_time_after(clock_now(), CM_NS_PER_MS * MUTE_MS << host->n_mute);
	if (host->n_mute < DOUBLE_MAX)
		host->n_mute++;
}

bool hosts_is_mute(const struct sockaddr_storage *name)
{
	union addr addr = addr_load(name);

	return is_mute(find_host(&addr));
}

uint32_t hosts_patience_ms(const struct sockaddr_storage *name)
{
	union addr addr = addr_load(name);
	const struct host *host = find_host(&addr);

	if (!host || host->n_mute)
		return 0;
	return (uint32_t)cm_time_ms_until(host->until, clock_now());
}
