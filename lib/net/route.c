/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes: one RTM_GETROUTE for each lookup, cached until the kernel announces a change of links,
 * addresses, routes or rules. Entries expire, since some changes are not announced (ICMP redirects,
 * router preferences).
 */
#include "lib/net/internal.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/large.h"

#define CACHE_SETS	  1024 /* a power of 2 */
#define CACHE_WAYS	  4
#define ROUTE_LIFE_NS	  (10000 * CM_NS_PER_MS)
#define DEFAULT_HOP_LIMIT 64

struct question {
	struct net_ip dst;
	struct net_ip src; /* family 0: the kernel chooses */
	uint32_t ifindex;
	uint32_t flags; /* RTM_F_* */
};

struct answer {
	struct net_ip src;
	struct net_ip next_hop;
	uint32_t ifindex;
	uint8_t hop_limit; /* 0: the route has none of its own */
	bool gateway;
	bool local;
};

struct entry {
	struct question question;
	struct answer answer;
	uint32_t generation;
	uint64_t expires_ns;
};

static uint32_t generation = 1; /* 0 is never valid */
static struct set {
	struct entry entry[CACHE_WAYS];
	uint8_t victim;
} cache[CACHE_SETS] LARGE_STATIC; /* zero, so that it takes no room in the library's file */

void net_route_flush(void)
{
	if (!++generation) {
		memset(cache, 0, sizeof(cache));
		generation = 1;
	}
}

static struct set *set_of(const struct question *question)
{
	return &cache[hash_bytes(question, sizeof(*question)) & (CACHE_SETS - 1)];
}

static const struct answer *cached_answer(const struct question *question)
{
	const struct entry *entry = set_of(question)->entry;
	uint64_t now_ns = clock_coarse_ns();

	for (int i = 0; i < CACHE_WAYS; i++, entry++) {
		if (entry->generation == generation && entry->expires_ns > now_ns &&
		    !memcmp(&entry->question, question, sizeof(*question)))
			return &entry->answer;
	}
	return NULL;
}

static void keep_answer(const struct question *question, const struct answer *answer)
{
	struct set *set = set_of(question);
	struct entry *entry = &set->entry[set->victim++ % CACHE_WAYS];

	entry->question = *question;
	entry->answer = *answer;
	entry->generation = generation;
	entry->expires_ns = clock_coarse_ns() + ROUTE_LIFE_NS;
}

/* Return: the error for a route type that delivers nothing; 0 for other types. */
static int type_error(unsigned int type)
{
	static const int errors[] = {
		[RTN_BLACKHOLE] = -EINVAL,
		[RTN_UNREACHABLE] = -EHOSTUNREACH,
		[RTN_PROHIBIT] = -EACCES,
		[RTN_THROW] = -ENETUNREACH,
	};

	return type < sizeof(errors) / sizeof(errors[0]) ? errors[type] : 0;
}

static void read_gateway(struct nlattr *const *attr, unsigned int family, struct answer *answer)
{
	if (attr[RTA_GATEWAY]) {
		answer->next_hop = net_ip_from_attr(family, attr[RTA_GATEWAY], answer->ifindex);
		answer->gateway = true;
	} else if (attr[RTA_VIA] && nla_len(attr[RTA_VIA]) >= (int)sizeof(struct rtvia) + 16) {
		/* An IPv4 route through an IPv6 router, RFC 8950. */
		struct rtvia *via = nla_data(attr[RTA_VIA]);
		union addr router = { .in6.sin6_family = via->rtvia_family };

		memcpy(&router.in6.sin6_addr, via->rtvia_addr, 16);
		router.in6.sin6_scope_id = answer->ifindex;
		answer->next_hop = net_ip_of(&router);
		answer->gateway = true;
	}
}

static void read_hop_limit(struct nlattr *metrics, struct answer *answer)
{
	static struct nla_policy policy[RTAX_MAX + 1] = { [RTAX_HOPLIMIT] = { .type = NLA_U32 } };
	struct nlattr *attr[RTAX_MAX + 1];

	if (!metrics || nla_parse_nested(attr, RTAX_MAX, metrics, policy) < 0)
		return;
	if (attr[RTAX_HOPLIMIT])
		answer->hop_limit = nla_get_u32(attr[RTAX_HOPLIMIT]);
}

static uint8_t read_setting(const char *path)
{
	char text[8];

	fd_read_file(path, text, sizeof(text));
	return *text ? (uint8_t)atoi(text) : DEFAULT_HOP_LIMIT;
}

/* IPv4 has one for the host, IPv6 one for each interface. A change is not announced. */
static uint8_t default_hop_limit(unsigned int family, unsigned int ifindex)
{
	struct net_iface iface;
	char path[64];

	if (family == AF_INET)
		return read_setting("/proc/sys/net/ipv4/ip_default_ttl");
	if (net_iface_fetch(ifindex, &iface))
		return DEFAULT_HOP_LIMIT;
	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/hop_limit", iface.name);
	return read_setting(path);
}

static int take_route(struct nlmsghdr *hdr, void *arg)
{
	static struct nla_policy policy[RTA_MAX + 1] = { [RTA_OIF] = { .type = NLA_U32 } };
	struct rtmsg *rtm = nlmsg_data(hdr);
	struct nlattr *attr[RTA_MAX + 1];
	struct answer *answer = arg;
	int rc;

	if (hdr->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(hdr, sizeof(*rtm), attr, RTA_MAX, policy) < 0)
		return -EPROTO;
	rc = type_error(rtm->rtm_type);
	if (rc)
		return rc;
	if (!attr[RTA_OIF])
		return -EPROTO;
	answer->ifindex = nla_get_u32(attr[RTA_OIF]);
	answer->local = rtm->rtm_type == RTN_LOCAL;
	if (!answer->src.family && attr[RTA_PREFSRC])
		answer->src = net_ip_from_attr(rtm->rtm_family, attr[RTA_PREFSRC], answer->ifindex);
	read_gateway(attr, rtm->rtm_family, answer);
	read_hop_limit(attr[RTA_METRICS], answer);
	return 0;
}

static struct nl_msg *route_request(const struct question *question)
{
	struct rtmsg rtm = { .rtm_family = question->dst.family, .rtm_flags = question->flags };
	struct nl_msg *msg;

	rtm.rtm_dst_len = 8 * net_ip_bytes(&question->dst);
	if (question->src.family)
		rtm.rtm_src_len = 8 * net_ip_bytes(&question->src);
	msg = net_message(RTM_GETROUTE, 0, &rtm, sizeof(rtm));
	if (!msg)
		return NULL;
	net_ip_put(msg, RTA_DST, &question->dst);
	/*
	 * The kernel's connection manager asks for a flow of root without a protocol, which also
	 * chooses among equal routes of IPv6. For IPv4 netlink cannot express that, and its default
	 * is UDP; of the protocols that it can express, ICMP has the fewest rules.
	 */
	if (question->dst.family == AF_INET)
		nla_put_u8(msg, RTA_IP_PROTO, IPPROTO_ICMP);
	nla_put_u32(msg, RTA_UID, 0);
	if (question->src.family)
		net_ip_put(msg, RTA_SRC, &question->src);
	if (question->ifindex)
		nla_put_u32(msg, RTA_OIF, question->ifindex);
	return msg;
}

/* For a local address the kernel returns lo; find the interface that owns it. */
static int own_interface(const struct question *question, struct answer *answer)
{
	int owner = net_owner_of_ip(&question->dst, question->ifindex);

	if (owner == -EADDRNOTAVAIL) /* a local route without an address, such as 127.0.0.2 */
		return 0;
	if (owner < 0)
		return owner;
	answer->ifindex = owner;
	if (!question->src.family && answer->src.scope)
		answer->src.scope = owner;
	return 0;
}

/* An entry of the tables may have several next hops; only its existence matters. */
static int check_entry(struct nlmsghdr *hdr, void *arg)
{
	bool *is_there = arg;

	*is_there = hdr->nlmsg_type == RTM_NEWROUTE;
	return *is_there ? type_error(((struct rtmsg *)nlmsg_data(hdr))->rtm_type) : -EPROTO;
}

static int ask_tables(const struct question *question)
{
	bool is_there = false;
	int rc = net_request(route_request(question), check_entry, &is_there);

	return rc || is_there ? rc : -EPROTO;
}

static int ask_kernel(const struct question *question, struct answer *answer)
{
	int rc;

	*answer = (struct answer){
		.src = question->src,
		.next_hop = question->dst,
	};
	rc = net_request(route_request(question), take_route, answer);
	if (!rc && !answer->ifindex)
		rc = -EPROTO; /* success without a result */
	if (!rc && !answer->hop_limit)
		answer->hop_limit = default_hop_limit(question->dst.family, answer->ifindex);
	if (!rc && answer->local)
		rc = own_interface(question, answer);
	if (!rc)
		keep_answer(question, answer);
	return rc;
}

/* Return: the interface that a link-local address or group (RFC 4291, 2.7) names, or 0. */
static unsigned int link_of(const union addr *addr)
{
	bool is_group = addr->sa.sa_family == AF_INET6 &&
			IN6_IS_ADDR_MC_LINKLOCAL(&addr->in6.sin6_addr);

	return is_group ? addr->in6.sin6_scope_id : addr_scope(addr);
}

/* As in the kernel's connection manager, the destination's scope counts last. */
static int choose_link(const union addr *dst, const union addr *src, unsigned int *ifindex)
{
	unsigned int link = src ? addr_scope(src) : 0;

	if (src && addr_is_link_local(src) && (!link || (*ifindex && *ifindex != link)))
		return -EINVAL;
	if (!*ifindex)
		*ifindex = link ? link : link_of(dst);
	return 0;
}

/* Return: 0 with the lock held, or -errno without it. */
static int make_question(const union addr *dst, const union addr *src, unsigned int ifindex,
			 struct question *ret)
{
	bool src_given = src && !addr_is_zero(src);

	if (!addr_bytes(&dst->sa) || (src && src->sa.sa_family != dst->sa.sa_family))
		return -EINVAL;
	if (choose_link(dst, src_given ? src : NULL, &ifindex))
		return -EINVAL;
	ret->dst = net_ip_of(dst);
	if (addr_is_link_local(dst))
		ret->dst.scope = ifindex;
	ret->src = net_ip_of(src_given ? src : NULL);
	ret->ifindex = ifindex;
	ret->flags = 0;
	return net_enter();
}

static void fill_route(const struct answer *answer, struct net_route *ret)
{
	net_ip_to_addr(&answer->src, &ret->src);
	net_ip_to_addr(&answer->next_hop, &ret->next_hop);
	if (addr_is_link_local(&ret->next_hop))
		ret->next_hop.in6.sin6_scope_id = answer->ifindex;
	ret->ifindex = answer->ifindex;
	ret->gateway = answer->gateway;
	ret->local = answer->local;
	ret->hop_limit = answer->hop_limit;
	ret->resolved = net_neigh_is_known(ret);
}

int net_route_lookup(const union addr *dst, const union addr *src, unsigned int ifindex,
		     struct net_route *ret)
{
	struct question question;
	const struct answer *hit;
	struct answer answer;
	int rc = make_question(dst, src, ifindex, &question);

	if (rc)
		return rc;
	hit = cached_answer(&question);
	if (hit)
		answer = *hit;
	else
		rc = ask_kernel(&question, &answer);
	if (!rc)
		fill_route(&answer, ret);
	net_leave();
	return rc;
}

int net_route_leads_by(const union addr *dst, const union addr *src, unsigned int ifindex)
{
	const struct answer nothing = { .ifindex = ifindex };
	struct question question;
	int rc = make_question(dst, src, ifindex, &question);

	if (rc)
		return rc;
	question.flags = RTM_F_FIB_MATCH;
	if (!cached_answer(&question)) {
		rc = ask_tables(&question);
		if (!rc)
			keep_answer(&question, &nothing);
	}
	net_leave();
	return rc;
}
