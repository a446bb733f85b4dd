/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service levels (lib/net/priority.c) on a host with a device, a VLAN on it, one on that, and a
 * macvlan on each. tests/worlds runs stock on the same interfaces.
 */
#include <errno.h>
#include <linux/dcbnl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/net/internal.h"
#include "tests/unit/net/answers.h"
#include "tests/unit/test.h"

#define BULK	    8 /* types of service */
#define INTERACTIVE 16
#define MIXED	    24

enum ifindex {
	DEVICE = 2,
	VLAN,
	VLAN_ON_VLAN,
	MACVLAN,
	MACVLAN_ON_VLAN,
	VETH,	    /* its other end is the device */
	OF_ANOTHER, /* a macvlan on an interface of another namespace */
};

static const struct {
	const char *kind;
	unsigned int link;
	bool is_foreign;
} links[] = {
	[DEVICE] = { "", 0, false },
	[VLAN] = { "vlan", DEVICE, false },
	[VLAN_ON_VLAN] = { "vlan", VLAN, false },
	[MACVLAN] = { "macvlan", DEVICE, false },
	[MACVLAN_ON_VLAN] = { "macvlan", VLAN, false },
	[VETH] = { "veth", DEVICE, false },
	[OF_ANOTHER] = { "macvlan", DEVICE, true },
};

static bool has_classes;
static bool has_ets, queues_have_classes; /* by DCB */
static uint8_t ets_answer[128];
static size_t ets_bytes;
static int n_dumps, n_dcb_requests;

bool __real_net_queues_have_classes(const char *folder);
bool __wrap_net_queues_have_classes(const char *folder);

bool __wrap_net_queues_have_classes(const char *folder)
{
	if (strncmp(folder, "/sys/", 5) != 0)
		return __real_net_queues_have_classes(folder);
	ck_assert_str_eq(folder, "/sys/class/net/v0/queues");
	return queues_have_classes;
}

/* Priorities of tc-prio(8), and three values that are none or too large. */
static void put_egress(struct nl_msg *msg)
{
	static const struct ifla_vlan_qos_mapping maps[] = {
		{ 0, 3 }, { 2, 5 }, { 4, 6 }, { 6, 9 }, { 8, 1 }, { UINT32_MAX, 1 }
	};
	struct nlattr *egress = nla_nest_start(msg, IFLA_VLAN_EGRESS_QOS);
	size_t i;

	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		nla_put(msg, IFLA_VLAN_QOS_MAPPING, sizeof(maps[i]), &maps[i]);
	nla_nest_end(msg, egress);
}

static struct nl_msg *link_of(unsigned int ifindex)
{
	struct ifinfomsg ifi = { .ifi_index = (int)ifindex };
	struct nl_msg *msg = net_message(RTM_NEWLINK, 0, &ifi, sizeof(ifi));
	struct nlattr *info, *data;

	if (ifindex == DEVICE)
		nla_put_string(msg, IFLA_IFNAME, "v0");
	if (!links[ifindex].link)
		return msg;
	nla_put_u32(msg, IFLA_LINK, links[ifindex].link);
	if (links[ifindex].is_foreign)
		nla_put_s32(msg, IFLA_LINK_NETNSID, 0);
	info = nla_nest_start(msg, IFLA_LINKINFO);
	nla_put_string(msg, IFLA_INFO_KIND, links[ifindex].kind);
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	if (!strcmp(links[ifindex].kind, "vlan"))
		put_egress(msg);
	nla_nest_end(msg, data);
	nla_nest_end(msg, info);
	return msg;
}

static struct nl_msg *classes(void)
{
	struct tc_mqprio_qopt qopt = { .num_tc = 3, .prio_tc_map = { 0, 1, 2, 3, 1, 2, 4 } };
	struct tcmsg tcm = { .tcm_ifindex = DEVICE, .tcm_parent = TC_H_ROOT };
	struct nl_msg *msg = net_message(RTM_NEWQDISC, 0, &tcm, sizeof(tcm));

	n_dumps++;
	nla_put_string(msg, TCA_KIND, has_classes ? "mqprio" : "fq_codel");
	nla_put(msg, TCA_OPTIONS, sizeof(qopt), &qopt);
	return msg;
}

/*
 * The answer of Linux 6.1 to RTM_GETDCB after "dcb ets set dev v0 prio-tc all:0 0:2 2:1 4:3 6:2",
 * without its header; the module of tests/worlds was the driver.
 */
static const uint8_t ets[] = {
	/* clang-format off */
	0x00, 0x15, 0x00, 0x00, 0x07, 0x00, 0x01, 0x00, 0x76, 0x30, 0x00, 0x00,
	0x48, 0x00, 0x0d, 0x00, 0x3f, 0x00, 0x01, 0x00, 0x00, 0x08, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
	0x00, 0x01, 0x00, 0x03, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x03, 0x00,
	0x05, 0x00, 0x0e, 0x00, 0x09, 0x00, 0x00, 0x00,
	/* clang-format on */
};
#define ETS_CLASSES_AT 47 /* of priorities 0 to 7 */
#define ETS_END	       (20 + sizeof(struct ieee_ets))

static struct nl_msg *refusal(void)
{
	struct nlmsgerr err = { .error = -EOPNOTSUPP };

	return net_message(NLMSG_ERROR, 0, &err, sizeof(err));
}

static struct nl_msg *ets_of(const struct nlmsghdr *request)
{
	const struct dcbmsg *header = NLMSG_DATA(request);
	const struct nlattr *name = (const void *)(header + 1);
	struct nl_msg *msg;

	n_dcb_requests++;
	ck_assert_uint_eq(header->cmd, DCB_CMD_IEEE_GET);
	ck_assert_uint_eq(name->nla_type, DCB_ATTR_IFNAME);
	if (!has_ets || strcmp(nla_data(name), "v0") != 0)
		return refusal();
	msg = nlmsg_alloc_simple(RTM_GETDCB, 0);
	nlmsg_append(msg, ets_answer, ets_bytes, NLMSG_ALIGNTO);
	return msg;
}

static struct nl_msg *answer_to(const struct nlmsghdr *request)
{
	const struct ifinfomsg *ifi = NLMSG_DATA(request);

	switch (request->nlmsg_type) {
	case RTM_GETQDISC:
		return classes();
	case RTM_GETDCB:
		return ets_of(request);
	default:
		return link_of(ifi->ifi_index);
	}
}

static void answer(const struct nlmsghdr *request, struct answer *ret)
{
	struct nl_msg *msg = answer_to(request);

	ck_assert_uint_le(nlmsg_hdr(msg)->nlmsg_len, sizeof(*ret));
	memcpy(ret, nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);
	nlmsg_free(msg);
}

static void set_up(void)
{
	has_classes = false;
	has_ets = queues_have_classes = false;
	memcpy(ets_answer, ets, sizeof(ets));
	ets_bytes = sizeof(ets);
	n_dumps = n_dcb_requests = 0;
	answers_by(answer);
}

FIXTURE(set_up, NULL);

static unsigned int level(enum ifindex ifindex, uint8_t tos)
{
	struct net_iface iface;

	ck_assert_int_eq(net_iface_get(ifindex, &iface), 0);
	return net_service_level(&iface, tos);
}

#define ck_assert_levels(ifindex, none, bulk, interactive, mixed)            \
	do {                                                                 \
		ck_assert_uint_eq(level(ifindex, 0), none);                  \
		ck_assert_uint_eq(level(ifindex, BULK), bulk);               \
		ck_assert_uint_eq(level(ifindex, INTERACTIVE), interactive); \
		ck_assert_uint_eq(level(ifindex, MIXED), mixed);             \
	} while (0)

TEST(device_without_classes_has_level_0)
{
	ck_assert_levels(DEVICE, 0, 0, 0, 0);
	ck_assert_levels(MACVLAN, 0, 0, 0, 0);
}

TEST(vlan_has_its_egress_map)
{
	ck_assert_levels(VLAN, 3, 5, 1, 6);
	ck_assert_levels(VLAN_ON_VLAN, 3, 5, 1, 6);
	ck_assert_levels(MACVLAN_ON_VLAN, 3, 5, 1, 6);
}

TEST_LOOP(classes_of_the_device_override_egress_maps, DEVICE, VETH)
{
	has_classes = true;
	ck_assert_levels((enum ifindex)_i, 0, 2, 4, 1);
}

TEST_LOOP(device_that_is_not_below_does_not_count, VETH, OF_ANOTHER + 1)
{
	has_classes = true;
	ck_assert_levels((enum ifindex)_i, 0, 0, 0, 0);
}

TEST(bits_of_congestion_and_precedence_do_not_count)
{
	ck_assert_uint_eq(level(VLAN, BULK | 0xe7), 5);
}

TEST(classes_are_queried_once_until_the_kernel_announces_a_change)
{
	level(DEVICE, 0);
	level(MACVLAN, 0);
	ck_assert_int_eq(n_dumps, 1);
	net_after_fork(); /* drops all caches */
	level(DEVICE, 0);
	ck_assert_int_eq(n_dumps, 2);
}

/* --- classes by DCB ------------------------------------------------------ */

static void set_up_ets(void)
{
	set_up();
	has_ets = queues_have_classes = true;
}

FIXTURE(set_up_ets, NULL);

TEST_LOOP(classes_by_dcb_override_egress_maps, DEVICE, VETH)
{
	ck_assert_levels((enum ifindex)_i, 2, 1, 2, 3);
}

TEST(mqprio_overrides_dcb)
{
	has_classes = true;
	ck_assert_levels(DEVICE, 0, 2, 4, 1);
	ck_assert_int_eq(n_dcb_requests, 0);
}

TEST(classes_of_the_hardware_alone_do_not_count)
{
	queues_have_classes = false;
	ck_assert_levels(DEVICE, 0, 0, 0, 0);
	ck_assert_levels(VLAN, 3, 5, 1, 6);
}

TEST(driver_without_dcb_has_no_classes)
{
	has_ets = false;
	ck_assert_levels(DEVICE, 0, 0, 0, 0);
	ck_assert_levels(VLAN, 3, 5, 1, 6);
}

TEST(class_above_the_last_is_ignored)
{
	ets_answer[ETS_CLASSES_AT] = IEEE_8021QAZ_MAX_TCS;
	ck_assert_levels(DEVICE, 0, 1, 2, 3);
}

TEST(truncated_response_has_no_classes)
{
	for (ets_bytes = sizeof(struct dcbmsg); ets_bytes < ETS_END; ets_bytes += 4) {
		announce(RTM_SETDCB);
		ck_assert_levels(DEVICE, 0, 0, 0, 0);
	}
}

TEST(dcb_is_queried_once_until_the_kernel_announces_a_change)
{
	level(DEVICE, 0);
	level(VLAN, 0);
	level(MACVLAN, 0);
	ck_assert_int_eq(n_dcb_requests, 1);
	ets_answer[ETS_CLASSES_AT] = 7;
	announce(RTM_SETDCB);
	ck_assert_uint_eq(level(DEVICE, 0), 7);
	ck_assert_int_eq(n_dcb_requests, 2);
}

TEST(driver_without_dcb_is_queried_once_too)
{
	has_ets = false;
	level(DEVICE, 0);
	level(DEVICE, BULK);
	ck_assert_int_eq(n_dcb_requests, 1);
}

TEST(link_that_changes_may_have_other_classes)
{
	level(DEVICE, 0);
	announce(RTM_NEWLINK);
	level(DEVICE, 0);
	ck_assert_int_eq(n_dcb_requests, 2);
}
