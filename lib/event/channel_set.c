/* SPDX-License-Identifier: BSD-2-Clause */
/* The open event channels, by their address: see channel_set.h. */
#include "lib/event/channel_set.h"

#include <errno.h>
#include <stdint.h>

#include "base/clock.h"
#include "lib/diag/lock_order.h"

#define N_CHAINS   256 /* a power of 2 */
#define ALIGN_BITS 4   /* low bits of malloc() results are constant */
#define CLOSED_MAX 16
#define LATE_NS	   (1000 * CM_NS_PER_MS)

/* The chains are consistent at every moment, so that a fork at any time finds them so. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct channel *chains[N_CHAINS];

/* Recently closed channels, for threads that come a moment too late. */
struct closed {
	const struct channel *channel;
	pthread_t by;
	struct cm_time at;
};

static struct closed closed[CLOSED_MAX];
static unsigned int n_closed;

static struct channel **chain_of(const struct channel *channel)
{
	uintptr_t key = (uintptr_t)channel >> ALIGN_BITS;

	return &chains[(key ^ key >> 8) & (N_CHAINS - 1)];
}

/* Return: the link that points to the channel, or the last one of its chain. */
static struct channel **find_channel(const struct channel *channel)
{
	struct channel **at = chain_of(channel);

	while (*at && *at != channel)
		at = &(*at)->next_open;
	return at;
}

void channel_set_add(struct channel *channel)
{
	struct channel **chain = chain_of(channel);

	lock_take(&lock, LOCK_CHANNELS);
	channel->next_open = *chain;
	*chain = channel;
	lock_give(&lock, LOCK_CHANNELS);
}

bool channel_set_remove(struct channel *channel)
{
	struct channel **at;
	bool is_open;

	lock_take(&lock, LOCK_CHANNELS);
	at = find_channel(channel);
	is_open = *at;
	if (is_open)
		*at = channel->next_open;
	if (is_open && channel_is_blocking(channel))
		closed[n_closed++ % CLOSED_MAX] =
			(struct closed){ channel, pthread_self(), clock_now() };
	lock_give(&lock, LOCK_CHANNELS);
	return is_open;
}

static bool is_late(const struct closed *one, const struct channel *channel, struct cm_time now)
{
	return one->channel == channel && !pthread_equal(one->by, pthread_self()) &&
	       !cm_time_reached(cm_time_after(one->at, LATE_NS), now);
}

bool channel_set_just_lost(const struct channel *channel)
{
	struct cm_time now = clock_now();
	bool found = false;
	unsigned int i;

	lock_take(&lock, LOCK_CHANNELS);
	for (i = 0; i < CLOSED_MAX; i++)
		found = found || is_late(&closed[i], channel, now);
	lock_give(&lock, LOCK_CHANNELS);
	return found;
}

int channel_set_lock(struct channel *channel)
{
	int err = 0;

	lock_take(&lock, LOCK_CHANNELS);
	if (!*find_channel(channel))
		err = -EBADF;
	else if (channel_is_inherited(channel))
		err = -EACCES;
	else
		lock_take(&channel->lock, LOCK_CHANNEL);
	lock_give(&lock, LOCK_CHANNELS);
	return err;
}

void channel_set_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}
