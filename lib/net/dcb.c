/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic classes that a driver has set up by DCB (dcb-ets(8)). The kernel shows an interface's own
 * map of classes only where mqprio set it up. Drivers that configure the interface's classes by
 * those of the ETS give both the same map; others configure the hardware only, and the interface
 * has no classes. So the map is that of the ETS if the queues of the interface have classes.
 *
 * An answer is cached until the kernel announces a change of DCB, links or queueing disciplines.
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#define DEVICES_MAX 16 /* cached; with more, the first is forgotten */

static struct {
	struct net_classes device[DEVICES_MAX]; /* n: 0 if it has none */
	unsigned int n;
	unsigned int next;    /* to be replaced */
	unsigned int changes; /* net_changes() of the entries */
	unsigned int class_changes;
} cache;

static int take_ets(struct nlmsghdr *hdr, void *arg)
{
	struct nlattr *attr[DCB_ATTR_MAX + 1], *ieee[DCB_ATTR_IEEE_MAX + 1];
	struct net_classes *classes = arg;
	const struct ieee_ets *ets;
	unsigned int i;

	if (nlmsg_parse(hdr, sizeof(struct dcbmsg), attr, DCB_ATTR_MAX, NULL) < 0)
		return -EPROTO;
	if (!attr[DCB_ATTR_IEEE] ||
	    nla_parse_nested(ieee, DCB_ATTR_IEEE_MAX, attr[DCB_ATTR_IEEE], NULL) < 0 ||
	    !ieee[DCB_ATTR_IEEE_ETS] || nla_len(ieee[DCB_ATTR_IEEE_ETS]) < (int)sizeof(*ets))
		return 0;
	ets = nla_data(ieee[DCB_ATTR_IEEE_ETS]);
	classes->n = IEEE_8021QAZ_MAX_TCS;
	/* A driver may have a class for "none", above the last. */
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++)
		if (ets->prio_tc[i] < IEEE_8021QAZ_MAX_TCS)
			classes->class[i] = ets->prio_tc[i];
	return 0;
}

/* A kernel or driver without DCB has no such classes. */
static void ask_classes(const struct net_iface *iface, struct net_classes *ret)
{
	struct dcbmsg header = { .cmd = DCB_CMD_IEEE_GET };
	struct nl_msg *msg = net_message(RTM_GETDCB, 0, &header, sizeof(header));
	char folder[64];

	*ret = (struct net_classes){ .ifindex = iface->ifindex };
	if (msg)
		nla_put_string(msg, DCB_ATTR_IFNAME, iface->name);
	snprintf(folder, sizeof(folder), "/sys/class/net/%s/queues", iface->name);
	if (net_request(msg, take_ets, ret) || !net_queues_have_classes(folder))
		ret->n = 0;
}

const struct net_classes *net_dcb_classes(const struct net_iface *iface)
{
	struct net_classes *classes = cache.device;

	if (cache.changes != net_changes() || cache.class_changes != net_class_changes()) {
		cache.changes = net_changes();
		cache.class_changes = net_class_changes();
		cache.n = 0;
		cache.next = 0;
	}
	while (classes < cache.device + cache.n && classes->ifindex != iface->ifindex)
		classes++;
	if (classes == cache.device + cache.n) {
		classes = &cache.device[cache.next];
		cache.next = (cache.next + 1) % DEVICES_MAX;
		if (cache.n < DEVICES_MAX)
			cache.n++;
		ask_classes(iface, classes);
	}
	return classes->n ? classes : NULL;
}
