/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric-host, which takes the place of a host's kernel: one process, one thread, an event loop. It
 * owns the page (wire/page.h), the GID table, and QP1 of every port with the umad agents; with RoCE
 * v2 as wire also UDP port 4791. It may call udp/, roce/, wire/ and base/ only. A file calls only
 * files on lines below it:
 *
 *   main.c                       options, start and end; dispatch of received MADs
 *   control.c                    commands from tools/fabric/fabric
 *   identity.c                   the page, and the GID table as addresses change
 *   agents.c sa.c subnet_manager.c       umad agents; the subnet administrator; the subnet manager
 *   pma.c                        the performance management agents
 *   rmpp.c                       multi-packet messages
 *   roce.c                       port 4791: packets for QP1
 *   steer.c                      port 4791: a socket for each process
 *   gsi.c                        QP1
 *   sa_path.c sa_group.c sa_node.c sa_service.c  record types of the administrator
 *   smi.c                        QP0: the subnet management agents
 *   names.c sysfs.c              our GIDs in the fabric's folder; /sys
 *   events.c sa_lookup.c sweep.c accept.c
 *   log.c
 */
#ifndef FABRIC_HOST_H
#define FABRIC_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "tools/fabric/udp/capture.h"
#include "tools/fabric/udp/out.h"
#include "tools/fabric/wire/counters.h"
#include "tools/fabric/wire/frames.h"
#include "tools/fabric/wire/page.h"
#include "tools/fabric/wire/peer.h"
#include "tools/fabric/wire/folder.h"
#include "tools/fabric/wire/umad_wire.h"

struct conn;
struct host;
struct steering;

/**
 * mad_handler_fn() - handle a MAD received at a port
 * @dlid: the LID that it was sent to
 * @head: complete except for the agent id
 */
typedef void mad_handler_fn(struct host *host, uint8_t port_num, uint16_t dlid,
			    struct ib_user_mad *head, const uint8_t mad[FAB_MAD_BYTES]);

/* The socket of a port for connections from umad. */
struct listener {
	struct watch watch;
	struct host *host;
	uint8_t port_num;
};

#define PODS_MAX  8
#define NO_NETDEV "-"

/* An address of an interface in another network namespace, on top of the port's interface. */
struct pod_gid {
	union ibv_gid gid;
	uint8_t port_num;
	unsigned int ifindex; /* in that namespace */
};

struct host {
	struct fab_folder folder;
	struct fab_page *page;
	int page_fd;		       /* of the page's file, to hold GIDs */
	const char *netdev[FAB_PORTS]; /* interface of each port; NO_NETDEV: port is down */
	bool is_stale; /* the GID table: addresses could not be read, for lack of descriptors */
	struct pod_gid pod[PODS_MAX];
	unsigned int n_pods;
	unsigned int number; /* from 1; determines GUID and LID */
	uint8_t n_ports;
	uint8_t n_subnets;
	uint8_t n_pkeys;
	uint16_t pkey[FAB_PKEYS - 1]; /* in addition to the default */
	uint8_t lmc;
	uint8_t link_layer;
	uint32_t quirks;	      /* bitmap of enum fab_quirk */
	uint32_t limit[FAB_N_LIMITS]; /* 0: default */
	struct loop loop;
	bool is_ending;
	bool is_reset; /* restarts after its end */
	struct fab_peers peers;
	enum fab_wire wire;
	uint32_t vrf;	    /* of the ports' interfaces, with FAB_WIRE_ROCE */
	struct udp_out out; /* with FAB_WIRE_ROCE: packets sent by QP1 */
	struct udp_capture capture;
	struct fab_counters *counters; /* of each slot; our own are the first */
	struct watch udp, out_watch;
	struct steering *steering; /* packets received by other queue pairs */
	struct watch gsi, peers_watch, netlink, stdin_watch, timer, control, counters_watch;
	struct listener listener[FAB_PORTS];
	int reserve_fd; /* of accept.c */
	struct list conns;
	struct list groups;   /* of the subnet administrator */
	struct list services; /* registered with the administrator */
	struct list pending;  /* requests awaiting a response */
	struct list rmpp_sendings, rmpp_receivings;
	uint32_t last_hi_tid;
	mad_handler_fn *mad_came;
};

/** host_log() - print a line with the host's name on standard error */
__attribute__((format(printf, 2, 3))) void host_log(const struct host *host, const char *format,
						    ...);

/** accept_reserve() - keep a descriptor for accept_conn(); it is released at the end */
void accept_reserve(struct host *host);

/**
 * accept_conn() - accept a connection; without a descriptor for it, refuse it
 *
 * Return: a descriptor; -1 if there is none.
 */
int accept_conn(struct host *host, int listener);

/** identity_open() - create the page, and keep its GID table up to date. Return: 0 or -errno. */
int identity_open(struct host *host);

/** identity_try_again() - update the GID table if the latest update failed */
void identity_try_again(struct host *host);

/** identity_rename() - rename the device; an invalid name is refused */
void identity_rename(struct host *host, const char *name);

/** identity_add_pod() - add an address of another network namespace; remove it if @ifindex is 0 */
void identity_add_pod(struct host *host, const struct pod_gid *pod);

/** identity_close() - remove our names from the fabric */
void identity_close(struct host *host);

/** gsi_open() - open the socket of QP1, with a function for received MADs. Return: 0 or -errno. */
int gsi_open(struct host *host, mad_handler_fn *mad_came);

/** gsi_receive() - handle a RoCE datagram for QP1; drops packets that are not for QP1 */
void gsi_receive(struct host *host, const struct fab_packet *packet, const uint8_t *payload);

/**
 * gsi_send() - send a MAD
 * @head: the destination, as in umad
 *
 * Return: 0, or a positive errno as from write().
 */
int gsi_send(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
	     const uint8_t mad[FAB_MAD_BYTES]);

/**
 * gsi_send_from() - as gsi_send(), with another source LID
 */
int gsi_send_from(struct host *host, uint8_t port_num, uint16_t slid,
		  const struct ib_user_mad *head, const uint8_t mad[FAB_MAD_BYTES]);

/** agents_open() - open the sockets for connections from umad. Return: 0 or -errno. */
int agents_open(struct host *host);

/**
 * agents_receive() - deliver a MAD to its agent
 * @head: complete except for the agent id
 * @mad:  a MAD or an assembled message, of @bytes
 *
 * Return: whether there is an agent for it.
 */
bool agents_receive(struct host *host, uint8_t port_num, const struct ib_user_mad *head,
		    const uint8_t *mad, size_t bytes);

/** agents_assembles() - return whether a segment's agent wants assembled messages (rmpp.h) */
bool agents_assembles(struct host *host, uint8_t port_num, const uint8_t mad[FAB_MAD_BYTES]);

/** agents_give_back() - return a request without response to its sender, with ETIMEDOUT */
void agents_give_back(struct host *host, struct conn *conn, const struct ib_user_mad *head,
		      const uint8_t *mad);

/** agents_tick() - call rmpp_expire() periodically, until it has nothing left to do */
void agents_tick(struct host *host);

/** agents_descriptor_of() - return the descriptor passed with a message, or -1 */
int agents_descriptor_of(struct msghdr *msg);

/** agents_close() - close all connections */
void agents_close(struct host *host);

/** control_open() - open the socket for commands from tools/fabric/fabric. Return: 0 or -errno. */
int control_open(struct host *host);

/**
 * roce_open() - open port 4791 and a socket to send from; errors are printed. Return: 0 or -errno.
 */
int roce_open(struct host *host);

/** roce_close() - may be called repeatedly, and without roce_open() */
void roce_close(struct host *host);

/**
 * steer_open() - start to give UDP sockets to processes; host->udp must be open
 *
 * Return: 0 or -errno. Its resources are released when the process ends.
 */
int steer_open(struct host *host);

/** names_enter() - enter a GID of one of our ports in the fabric; a conflict is printed */
void names_enter(const struct host *host, uint8_t port_num, const union ibv_gid *gid);

/** names_leave() - remove a GID of one of our ports from the fabric, if it is entered */
void names_leave(const struct host *host, uint8_t port_num, const union ibv_gid *gid);

/** identity_forget() - remove the addresses of a device from the fabric */
void identity_forget(struct host *host);

/**
 * subnet_fill() - assign an InfiniBand port's subnet attributes, and enter its LIDs in the fabric
 */
void subnet_fill(struct host *host, uint8_t port_num);

/** subnet_forget() - remove a port's LIDs, if any, from the fabric */
void subnet_forget(const struct host *host, uint8_t port_num);

/**
 * subnet_set_lid() - change the LID of port 1, as by the subnet manager, and notify the processes
 * @lid: the first of 2^lmc. Refused if another port has it, if its path bits are not zero, and for
 *       the administrator's port
 */
void subnet_set_lid(struct host *host, uint16_t lid);

/**
 * subnet_set_pkeys() - replace the P_Keys of port 1 after the default one, as by the subnet
 * manager, and notify the processes
 * @text: in hexadecimal, with commas between them
 */
void subnet_set_pkeys(struct host *host, const char *text);

/** sysfs_write() - update the host's own /sys from the page */
void sysfs_write(const struct host *host);

/**
 * sysfs_follow_counters() - update the counters in /sys twice a second. Return: 0 or -errno.
 */
int sysfs_follow_counters(struct host *host);

/** sysfs_rename() - rename the device in /sys; @old is its previous name */
void sysfs_rename(const struct host *host, const char *old);

/** sysfs_remove() - remove the device from /sys */
void sysfs_remove(const struct host *host);

/** sweep_processes() - end all processes left on this host */
void sweep_processes(const struct host *host);

/** events_send() - send an event to all processes of the host; @port_num is 0 for the device */
void events_send(struct host *host, enum ibv_event_type type, uint8_t port_num);

#endif
