/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network namespaces of clients. As in the kernel, each namespace has its own port spaces, and a
 * request belongs to the namespace that has the interface of its destination GID. That is "home",
 * the namespace that cmportd runs in, unless a client has shown with a netlink socket that its
 * namespace has the interface.
 */
#ifndef LIB_PORTD_SERVER_PORTS_NET_NS_H
#define LIB_PORTD_SERVER_PORTS_NET_NS_H

#include "base/hash.h"
#include "base/list.h"
#include "base/time.h"
#include "lib/net/foreign.h"
#include "lib/net/gid_table.h"
#include "lib/portd/server/ports/ports.h"
#include "lib/portd/server/limits.h"

#define NET_NS_GIDS	 64
#define NET_NS_SHOWN_ALL 512 /* of all users but root */
#define NET_NS_WALK_MAX	 64  /* of others, looked at for the reason of a rejection */

struct net_ns {
	struct list link;	    /* in the list of home */
	struct list of_shown;	    /* in home's, with a netlink_fd */
	struct hash_node by_cookie; /* in the table of home */
	uint64_t cookie;	    /* the kernel's id of the namespace; 0: unknown */
	unsigned int n_clients;
	uint64_t seed;
	struct hash namespaces; /* of home: the others, by cookie */
	struct list shown;	/* of home: those whose interfaces can be read */
	bool has_news;		/* of home: one was shown that was not read yet */
	struct ports *ports;
	int netlink_fd;	       /* in this namespace; -1: none, as for home */
	uid_t shown_by;	       /* the user that gave netlink_fd */
	struct cm_time due_at; /* when it may be read again; of home: when to look who is due */
	unsigned int n_gids;
	struct net_foreign gid[NET_NS_GIDS]; /* cached */
};

/** net_ns_home() - create the namespace that we run in. Return: NULL when out of memory. */
struct net_ns *net_ns_home(uint64_t seed);

/** net_ns_home_free() - free home and all remaining namespaces; NULL is allowed */
void net_ns_home_free(struct net_ns *home);

/**
 * net_ns_enter() - find or add the namespace of a new client
 * @fd: its socket, which the kernel created in the namespace of the connecting process
 *
 * Return: the namespace, to be released with net_ns_leave(); NULL when out of memory.
 */
struct net_ns *net_ns_enter(struct net_ns *home, int fd);

/**
 * net_ns_made() - return whether a socket was created in this network namespace
 *
 * Return: false also if the kernel does not tell.
 */
bool net_ns_made(const struct net_ns *net_ns, int fd);

/**
 * net_ns_leave() - release the namespace of a disconnected client, whose ports have been released
 */
void net_ns_leave(struct net_ns *home, struct net_ns *net_ns);

/**
 * net_ns_show() - give a client's namespace a netlink socket
 * @fd:  owned by the callee if it returns true
 * @uid: of the client; a user other than root may give NET_NS_SHOWN_MAX sockets
 *
 * Return: false if it is of another namespace, or if @net_ns already has one.
 */
bool net_ns_show(struct net_ns *home, struct net_ns *net_ns, int fd, uid_t uid);

/** net_ns_of_gid() - the namespace that has the interface of a local GID; home if none shows it */
struct net_ns *net_ns_of_gid(struct net_ns *home, const struct gid_entry *gid, struct cm_time now);

/**
 * net_ns_listener() - like ports_listener(), among the listeners in @net_ns
 *
 * PORTS_NOT_FOR_THEM also for listeners in one of the first NET_NS_WALK_MAX other namespaces.
 */
uint16_t net_ns_listener(struct net_ns *home, const struct net_ns *net_ns,
			 const struct ports_request *request);

#endif
