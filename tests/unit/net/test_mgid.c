/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast GIDs of groups (lib/net/mgid.h): one row per group. Those of RoCE are as in stock's
 * events; those of InfiniBand are made by hand from RFC 4391.
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/net/mgid.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/test.h"

#define SCOPE 2
#define PKEY  0x8123

static const struct row {
	const char *group, *v2, *v1, *ipoib, *udp;
} rows[] = {
	{ "239.1.2.3", "::ffff:239.1.2.3", "ff0e::ffff:ef01:203", "ff12:401b:8123::f01:203",
	  "ff12:4001:8123::f01:203" },
	{ "224.0.0.1", "::ffff:224.0.0.1", "ff0e::ffff:e000:1", "ff12:401b:8123::1",
	  "ff12:4001:8123::1" },
	{ "ff0e::77:1", "ff0e::77:1", "ff0e::77:1", "ff12:601b:8123::77:1",
	  "ff12:6001:8123::77:1" },
	{ "ff15:a01b:1:2:3:4:5:6", "ff15:a01b:1:2:3:4:5:6", "ff15:a01b:1:2:3:4:5:6",
	  "ff15:a01b:1:2:3:4:5:6", "ff15:a01b:1:2:3:4:5:6" },
	{ "ff25:a01b:1:2:3:4:5:6", "ff25:a01b:1:2:3:4:5:6", "ff25:a01b:1:2:3:4:5:6",
	  "ff12:601b:8123:2:3:4:5:6", "ff12:6001:8123:2:3:4:5:6" },
	{ "0.1.2.3", "::ffff:0.1.2.3", "ff0e::ffff:1:203", "ff12:401b:8123::1:203",
	  "ff12:4001:8123::1:203" },
	{ "0.0.0.0", "::", "::", "::", "::" },
	{ "127.0.0.1", "::", "::", "::", "::" },
	{ "::", "::", "::", "::", "::" },
	{ "::1", "::", "::", "::", "::" },
};

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const char *text_of(struct mad_gid gid)
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
}

TEST_LOOP(roce_v2_group_is_its_address, 0, N(rows))
{
	union addr addr = ip(rows[_i].group);

	ck_assert_str_eq(text_of(mgid_roce(&addr, true)), rows[_i].v2);
}

TEST_LOOP(roce_v1_group_of_ipv4_is_global, 0, N(rows))
{
	union addr addr = ip(rows[_i].group);

	ck_assert_str_eq(text_of(mgid_roce(&addr, false)), rows[_i].v1);
}

TEST_LOOP(infiniband_group_has_a_signature_and_the_pkey, 0, N(rows))
{
	union addr addr = ip(rows[_i].group);

	ck_assert_str_eq(text_of(mgid_ipoib(&addr, SCOPE, PKEY, false)), rows[_i].ipoib);
}

TEST_LOOP(infiniband_group_of_datagram_ids_is_another, 0, N(rows))
{
	union addr addr = ip(rows[_i].group);

	ck_assert_str_eq(text_of(mgid_ipoib(&addr, SCOPE, PKEY, true)), rows[_i].udp);
}
