/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The room of fabric-host, which stands for the kernel of a host: one process, one thread, a loop.
 * It owns the page (wire/page.h), the GID table, and QP1 of every port with the agents of umad;
 * with RoCE v2 as wire also UDP port 4791. It may call udp/, roce/, wire/ and base/ and nothing
 * else of ours. A file calls files on lines below:
 *
 *   main.c                       options, opening and ending; gives each MAD to who is to have it
 *   control.c                    orders of tools/fabric/fabric
 *   identity.c                   the page, and the GID table as addresses come and go
 *   agents.c sa.c subnet.c       agents of umad; the subnet administrator; the subnet manager
 *   rmpp.c                       messages in segments
 *   roce.c                       port 4791: packets for QP1
 *   steer.c                      port 4791: a socket for each process
 *   gsi.c                        QP1
 *   sa_path.c sa_group.c sa_node.c sa_service.c  what the administrator answers
 *   smi.c                        QP0: the subnet management agents
 *   names.c sysfs.c              our GIDs in the fabric's folder; /sys
 *   events.c sa_lookup.c sweep.c log.c
 */
#ifndef FABRIC_HOST_H
#define FABRIC_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/udp/capture.h"
#include "tools/fabric/udp/out.h"
#include "tools/fabric/wire/frames.h"
#include "tools/fabric/wire/page.h"
#include "tools/fabric/wire/peer.h"
#include "tools/fabric/wire/folder.h"
#include "tools/fabric/wire/umad_wire.h"

struct conn;
struct host;
struct steering;

/** mad_came_fn() - a MAD came to a port; @head: all of it but the agent. */
typedef void mad_came_fn(struct host *host, uint8_t port_num, struct ib_user_mad *head,
			 const uint8_t mad[FAB_MAD_BYTES]);

/* A port's socket that umad connects to. */
struct listener {
	struct watch watch;
	struct host *host;
	uint8_t port_num;
};

#define PODS_MAX  8
#define NO_NETDEV "-"

/* An address of an interface in another network namespace, which lies on the port's. */
struct pod_gid {
	union ibv_gid gid;
	uint8_t port_num;
	unsigned int ifindex; /* there */
};

struct host {
	struct fab_folder folder;
	struct fab_page *page;
	int page_fd;		       /* of its file: by which GIDs are held */
	const char *netdev[FAB_PORTS]; /* of each port; NO_NETDEV: it is down */
	struct pod_gid pod[PODS_MAX];
	unsigned int n_pods;
	unsigned int number; /* from 1: GUID and LID come from it */
	uint8_t n_ports;
	uint8_t n_subnets;
	uint8_t n_pkeys;
	uint16_t pkey[FAB_PKEYS - 1]; /* besides the default */
	uint8_t lmc;
	uint8_t link_layer;
	uint32_t quirks;	      /* of its device, a bit for each */
	uint32_t limit[FAB_N_LIMITS]; /* of its device; 0: not said */
	struct loop loop;
	bool is_ending;
	bool is_reset; /* and begins anew after its end */
	struct fab_peers peers;
	enum fab_wire wire;
	struct udp_out out; /* with FAB_WIRE_ROCE: what QP1 sends */
	struct udp_capture capture;
	struct watch udp, out_watch;
	struct steering *steering; /* what others receive */
	struct watch gsi, peers_watch, netlink, stdin_watch, timer, control;
	struct listener listener[FAB_PORTS];
	struct list conns;
	struct list groups;   /* of the subnet administrator */
	struct list services; /* that are registered there */
	struct list pending;  /* requests that wait for a response */
	struct list rmpp_sendings, rmpp_receivings;
	uint32_t last_hi_tid;
	mad_came_fn *mad_came;
};

/** host_say() - a line on standard error, with the host's name. */
__attribute__((format(printf, 2, 3))) void host_say(const struct host *host, const char *format,
						    ...);

/** identity_open() - the page, and the GID table from then on. Return: 0 or -errno. */
int identity_open(struct host *host);

/** identity_rename() - the device has another name from now on; one that fits is taken. */
void identity_rename(struct host *host, const char *name);

/** identity_add_pod() - enter an address of another network namespace; @ifindex 0: take it out. */
void identity_add_pod(struct host *host, const struct pod_gid *pod);

/** identity_close() - take our names out of the fabric. */
void identity_close(struct host *host);

/** gsi_open() - the socket of QP1; MADs that come are given to a function. Return: 0 or -errno. */
int gsi_open(struct host *host, mad_came_fn *mad_came);

/** gsi_packet_came() - a datagram for QP1 came by RoCE; one that is none of its own is dropped. */
void gsi_packet_came(struct host *host, const struct fab_packet *packet, const uint8_t *payload);

/**
 * gsi_send() - send a MAD
 * @head: where to, as umad has it
 *
 * Return: 0, or an errno (positive) as write() would give it.
 */
int gsi_send(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
	     const uint8_t mad[FAB_MAD_BYTES]);

/** agents_open() - the sockets that umad connects to. Return: 0 or -errno. */
int agents_open(struct host *host);

/**
 * agents_receive() - give a MAD to its agent
 * @head: all of it but the agent
 * @mad:  or an assembled message; @bytes of it
 *
 * Return: whether it has one.
 */
bool agents_receive(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		    const uint8_t *mad, size_t bytes);

/** agents_assembles() - is a segment for an agent whose messages are assembled for it (rmpp.h)? */
bool agents_assembles(struct host *host, uint8_t port_num, const uint8_t mad[FAB_MAD_BYTES]);

/** agents_give_back() - nobody answered: what a program sent comes back to it, with ETIMEDOUT. */
void agents_give_back(struct host *host, struct conn *conn, const struct ib_user_mad *head,
		      const uint8_t *mad);

/** agents_tick() - something is under way: rmpp_expire() is called until it is over. */
void agents_tick(struct host *host);

/** agents_close() - end all connections. */
void agents_close(struct host *host);

/** control_open() - the socket that tools/fabric/fabric gives orders at. Return: 0 or -errno. */
int control_open(struct host *host);

/** roce_open() - port 4791, and a socket to send from; says what is wrong. Return: 0 or -errno. */
int roce_open(struct host *host);

/** roce_close() - allowed twice, and without roce_open(). */
void roce_close(struct host *host);

/**
 * steer_open() - give UDP sockets to processes; after host->udp is open
 *
 * Return: 0 or -errno. What it has ends with the process.
 */
int steer_open(struct host *host);

/** names_enter() - have others find one of our ports by its GID; a clash is said. */
void names_enter(const struct host *host, uint8_t port_num, const union ibv_gid *gid);

/** names_leave() - have them find it by this GID no more, if they do. */
void names_leave(const struct host *host, uint8_t port_num, const union ibv_gid *gid);

/** identity_forget() - take the addresses of a device out of the fabric. */
void identity_forget(struct host *host);

/** subnet_fill() - what a port on InfiniBand gets of the subnet manager; entered in the fabric. */
void subnet_fill(struct host *host, uint8_t port_num);

/** subnet_forget() - take a port's LIDs, if it has any, out of the fabric. */
void subnet_forget(const struct host *host, uint8_t port_num);

/**
 * subnet_set_lid() - the subnet manager gives port 1 another LID, and the processes hear of it
 * @lid: the first of 2^lmc; one that another port has, or that ends in path bits, is refused; so is
 * the administrator's port
 */
void subnet_set_lid(struct host *host, uint16_t lid);

/** sysfs_write() - have /sys, where the host has one of its own, say what the page says. */
void sysfs_write(const struct host *host);

/** sysfs_rename() - the device had another name. */
void sysfs_rename(const struct host *host, const char *old);

/** sysfs_remove() - take the device out of /sys. */
void sysfs_remove(const struct host *host);

/** sweep() - end what still runs on this host. */
void sweep(const struct host *host);

/** events_send() - tell all processes of the host; @port_num: 0 for the device. */
void events_send(struct host *host, enum ibv_event_type type, uint8_t port_num);

#endif
