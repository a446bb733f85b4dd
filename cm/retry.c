/* SPDX-License-Identifier: BSD-2-Clause */
/* The retransmission schedule. */
#include "cm/retry.h"

#define SERVICE_TIMEOUT_MAX 24
#define LIFE_TIME_MAX	    20 /* 4 s */

/* Interval after the first, second, ... transmission; the last value applies from there on. */
static const uint16_t interval_ms[] = { 1000, 1000, 1000, 1000, 2000, 4000 };
static const uint16_t lookup_interval_ms[] = { 2000, 2000, 2000, 2000, 4000, 5000 };

#define N_INTERVALS (sizeof(interval_ms) / sizeof(interval_ms[0]))

_Static_assert(sizeof(lookup_interval_ms) == sizeof(interval_ms), "both are as long");

static uint64_t doubled_interval_ms(const struct cm_waits *waits, unsigned int i)
{
	uint64_t ms = (uint64_t)waits->first_ms << (i < 32 ? i : 32);

	return ms < waits->last_ms ? ms : waits->last_ms;
}

static uint64_t usual_interval_ns(const struct cm_retry *retry)
{
	unsigned int i = retry->transmissions - 1u;

	if (retry->waits.first_ms)
		return doubled_interval_ms(&retry->waits, i) * CM_NS_PER_MS;
	if (i >= N_INTERVALS)
		i = N_INTERVALS - 1;
	return (retry->is_lookup ? lookup_interval_ms[i] : interval_ms[i]) * CM_NS_PER_MS;
}

static uint64_t interval_ns(const struct cm_retry *retry)
{
	uint64_t usual = usual_interval_ns(retry);

	return retry->mra_wait_ns > usual ? retry->mra_wait_ns : usual;
}

void cm_retry_init(struct cm_retry *retry, uint64_t give_up_ns, struct cm_time now)
{
	*retry = (struct cm_retry){
		.give_up = give_up_ns ? cm_time_after(now, give_up_ns) : CM_TIME_NEVER,
		.transmissions_max = give_up_ns ? 0 : CM_TRANSMISSIONS_MAX,
	};
}

void cm_retry_init_lookup(struct cm_retry *retry, uint64_t give_up_ns, struct cm_time now)
{
	cm_retry_init(retry, give_up_ns, now);
	retry->is_lookup = true;
}

void cm_retry_set_waits(struct cm_retry *retry, const struct cm_waits *waits)
{
	retry->waits = *waits;
	if (waits->transmissions_max)
		retry->transmissions_max = waits->transmissions_max;
}

struct cm_time cm_retry_next(struct cm_retry *retry, struct cm_time now)
{
	if (retry->transmissions == 0)
		retry->first = now;
	if (retry->transmissions < UINT8_MAX)
		retry->transmissions++;
	return cm_retry_overdue(retry, now);
}

struct cm_time cm_retry_overdue(const struct cm_retry *retry, struct cm_time since)
{
	return cm_time_earlier(cm_time_after(since, interval_ns(retry)), retry->give_up);
}

bool cm_retry_is_spent(const struct cm_retry *retry, struct cm_time now)
{
	bool is_last = retry->transmissions_max && retry->transmissions >= retry->transmissions_max;

	return is_last || cm_time_reached(retry->give_up, now);
}

struct cm_time cm_retry_wait(struct cm_retry *retry, uint8_t service_timeout,
			     uint8_t packet_life_time, struct cm_time now)
{
	if (service_timeout > SERVICE_TIMEOUT_MAX)
		service_timeout = SERVICE_TIMEOUT_MAX;
	if (packet_life_time > LIFE_TIME_MAX)
		packet_life_time = LIFE_TIME_MAX;
	retry->mra_wait_ns =
		(cm_encoded_ms(service_timeout) + 2 * cm_encoded_ms(packet_life_time)) *
		CM_NS_PER_MS;
	return cm_retry_overdue(retry, now);
}

uint64_t cm_encoded_ms(uint8_t t)
{
	return UINT64_C(1) << (t > 8 ? t - 8 : 0);
}

uint8_t cm_round_trip(uint8_t packet_life_time)
{
	return packet_life_time < 31 ? (uint8_t)(packet_life_time + 1) : 31;
}

uint8_t cm_ack_timeout(uint8_t ca_ack_delay, uint8_t packet_life_time)
{
	unsigned int t = packet_life_time + 1u;

	/* Sum of two powers of two, rounded: the larger one, plus one if the other is close. */
	if (t >= ca_ack_delay)
		t += ca_ack_delay >= t - 1;
	else
		t = ca_ack_delay + (t >= ca_ack_delay - 1u);
	return t > 31 ? 31 : (uint8_t)t;
}
