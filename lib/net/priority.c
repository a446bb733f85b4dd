/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service level of RoCE packets: the type of service maps to a priority, and that by the
 * traffic classes of a device (tc-mqprio(8), or dcb.c) or the egress map of a VLAN. The classes of
 * all devices with mqprio are read in one dump and cached until the kernel announces a change.
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define DEVICES_MAX 64 /* with traffic classes; few have them */
#define VLANS_MAX   8  /* on top of each other */

static struct {
	struct net_classes device[DEVICES_MAX];
	unsigned int n;
	bool is_valid;
	unsigned int changes; /* net_class_changes() at the dump */
} cache;

/* tc-prio(8): the kernel's mapping of IP_TOS to SO_PRIORITY. */
static uint8_t priority_of_tos(uint8_t tos)
{
	static const uint8_t priorities[] = { TC_PRIO_BESTEFFORT, TC_PRIO_BULK, TC_PRIO_INTERACTIVE,
					      TC_PRIO_INTERACTIVE_BULK };

	return priorities[tos >> 3 & 3];
}

static int take_qdisc(struct nlmsghdr *hdr, void *arg)
{
	const struct tcmsg *tcm = nlmsg_data(hdr);
	const struct tc_mqprio_qopt *qopt;
	struct nlattr *attr[TCA_MAX + 1];
	struct net_classes *classes = &cache.device[cache.n];

	(void)arg;
	if (nlmsg_parse(hdr, sizeof(*tcm), attr, TCA_MAX, NULL) < 0)
		return -EPROTO;
	if (tcm->tcm_parent != TC_H_ROOT || !attr[TCA_KIND] || !attr[TCA_OPTIONS] ||
	    nla_strcmp(attr[TCA_KIND], "mqprio") != 0 ||
	    nla_len(attr[TCA_OPTIONS]) < (int)sizeof(*qopt) || cache.n == DEVICES_MAX)
		return 0;
	qopt = nla_data(attr[TCA_OPTIONS]);
	if (!qopt->num_tc)
		return 0;
	classes->ifindex = (unsigned int)tcm->tcm_ifindex;
	classes->n = qopt->num_tc;
	memcpy(classes->class, qopt->prio_tc_map, sizeof(classes->class));
	cache.n++;
	return 0;
}

/* A kernel without queueing disciplines has no classes either. */
static const struct net_classes *classes_of(const struct net_iface *iface)
{
	struct tcmsg tcm = { .tcm_family = AF_UNSPEC };
	unsigned int i;

	if (!cache.is_valid || cache.changes != net_class_changes()) {
		cache.changes = net_class_changes();
		cache.n = 0;
		net_request(net_message(RTM_GETQDISC, NLM_F_DUMP, &tcm, sizeof(tcm)), take_qdisc,
			    NULL);
		cache.is_valid = true;
	}
	for (i = 0; i < cache.n; i++)
		if (cache.device[i].ifindex == iface->ifindex)
			return &cache.device[i];
	return net_dcb_classes(iface);
}

/* The lowest device decides; the VLAN's own map applies only if that has no classes. */
static uint8_t level_of_vlan(const struct net_iface *vlan, uint8_t priority)
{
	struct net_iface lower = *vlan;
	const struct net_classes *classes;
	int i;

	for (i = 0; i < VLANS_MAX && lower.is_vlan; i++)
		if (net_iface_fetch(lower.lower, &lower))
			return vlan->egress[priority];
	classes = classes_of(&lower);
	return classes ? classes->class[priority] : vlan->egress[priority];
}

uint8_t net_service_level(const struct net_iface *iface, uint8_t tos)
{
	uint8_t priority = priority_of_tos(tos);
	const struct net_classes *classes;
	struct net_iface from = *iface;
	uint8_t level;

	net_reenter();
	if (!from.is_vlan && from.lower && net_iface_fetch(from.lower, &from))
		from = *iface;
	if (from.is_vlan) {
		level = level_of_vlan(&from, priority);
	} else {
		classes = classes_of(&from);
		level = classes ? classes->class[priority] : 0;
	}
	net_leave();
	return level & NET_SERVICE_LEVEL_MAX;
}
