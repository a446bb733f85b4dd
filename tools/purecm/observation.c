/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The class, the sender and the receiver of a MAD: see observation.h.
 */
#include "tools/purecm/observation.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define MAD_CLASS_AT  1
#define LID_AT	      14
#define IPV4_AT	      12
#define MARK_OF_A_LID 0xfc /* 0xfc00::/8 is not assigned */

static const uint8_t ipv4_prefix[IPV4_AT] = { [10] = 0xff, 0xff };
static const uint8_t lid_prefix[LID_AT] = { MARK_OF_A_LID, 'L', 'I', 'D' };

bool observation_is_cm(const struct observation *observation)
{
	return observation->mad[MAD_CLASS_AT] == MAD_CLASS_CM;
}

struct mad_gid observation_gid_of_ip4(const uint8_t ip[4])
{
	struct mad_gid gid;

	memcpy(gid.raw, ipv4_prefix, sizeof(ipv4_prefix));
	memcpy(gid.raw + IPV4_AT, ip, 4);
	return gid;
}

bool observation_is_ip4(const struct mad_gid *gid)
{
	return memcmp(gid->raw, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

struct mad_gid observation_gid_of_lid(uint16_t lid)
{
	struct mad_gid gid = { .raw = { 0 } };

	memcpy(gid.raw, lid_prefix, sizeof(lid_prefix));
	gid.raw[LID_AT] = (uint8_t)(lid >> 8);
	gid.raw[LID_AT + 1] = (uint8_t)lid;
	return gid;
}

uint16_t observation_lid(const struct mad_gid *gid)
{
	if (memcmp(gid->raw, lid_prefix, sizeof(lid_prefix)) != 0)
		return 0;
	return (uint16_t)(gid->raw[LID_AT] << 8 | gid->raw[LID_AT + 1]);
}

int observation_parse_gid(const char *text, struct mad_gid *ret)
{
	unsigned int lid;
	uint8_t ip[4];

	if (sscanf(text, "lid %u", &lid) == 1 && lid && lid <= UINT16_MAX)
		*ret = observation_gid_of_lid((uint16_t)lid);
	else if (inet_pton(AF_INET, text, ip) == 1)
		*ret = observation_gid_of_ip4(ip);
	else if (inet_pton(AF_INET6, text, ret->raw) != 1)
		return -EINVAL;
	return 0;
}

const char *who_str(const struct mad_gid *gid, char buf[WHO_BYTES])
{
	if (observation_lid(gid))
		snprintf(buf, WHO_BYTES, "lid %u", observation_lid(gid));
	else if (observation_is_ip4(gid))
		inet_ntop(AF_INET, gid->raw + IPV4_AT, buf, WHO_BYTES);
	else
		inet_ntop(AF_INET6, gid->raw, buf, WHO_BYTES);
	return buf;
}
