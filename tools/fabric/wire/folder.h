/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths in a fabric's folder, which connects its hosts.
 *
 *   hosts/NAME/page        the device (page.h)
 *   hosts/NAME/counters    of its ports (counters.h)
 *   hosts/NAME/gsi         socket for packets to QP1
 *   hosts/NAME/umad.1      socket for umad descriptors of port 1
 *   hosts/NAME/ctx/SLOT    sockets of processes that have the device open
 *   hosts/NAME/grants/SLOT grants of these processes, and rings (grants.h)
 *   hosts/NAME/udp         socket that gives them a UDP socket (../udp/share.h)
 *   gids/HEX               link to the port with this GID: NAME.PORT
 *   lids/SUBNET.NUMBER     link to the port with this LID
 *   joined/HEX/NAME.PORT   a port that joined this group, on InfiniBand
 *   groups/HEX/NAME.QPN    a queue pair attached to this multicast group
 */
#ifndef FABRIC_FOLDER_H
#define FABRIC_FOLDER_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <sys/un.h>

#include "tools/fabric/wire/page.h"

#define FAB_ENV	       "PURECM_FABRIC"
#define FAB_DIR_BYTES  64  /* of the fabric's folder, so that socket names fit */
#define FAB_PATH_BYTES 160 /* socket names are shorter, to fit into sockaddr_un */

struct fab_folder {
	char dir[FAB_DIR_BYTES];
	char host[FAB_NAME_BYTES];
};

/* A port of the fabric. */
struct fab_owner {
	char host[FAB_NAME_BYTES];
	uint8_t port_num;
};

/**
 * fab_folder_report_denied() - print on standard error, once, why a folder cannot be used
 * @err: the error; nothing is printed unless it is -EACCES
 */
void fab_folder_report_denied(int err);

/**
 * fab_folder_find() - find this process's host; $PURECM_FABRIC is its folder
 *
 * Return: 0; -ENODEV if the variable is not set; -ENAMETOOLONG, -EINVAL if it is invalid.
 */
int fab_folder_find(struct fab_folder *ret);

/** fab_folder_page() - the path of this host's page. */
void fab_folder_page(const struct fab_folder *folder, char ret[FAB_PATH_BYTES]);

/** fab_folder_counters() - the path of the counters of a host's ports */
void fab_folder_counters(const struct fab_folder *folder, const char *host,
			 char ret[FAB_PATH_BYTES]);

/** fab_folder_gsi() - the path of a host's QP1 socket. */
void fab_folder_gsi(const struct fab_folder *folder, const char *host, char ret[FAB_PATH_BYTES]);

/** fab_folder_umad() - the path of the umad socket of one of this host's ports. */
void fab_folder_umad(const struct fab_folder *folder, uint8_t port_num, char ret[FAB_PATH_BYTES]);

/** fab_folder_udp() - the path of the socket that gives UDP sockets to this host's processes */
void fab_folder_udp(const struct fab_folder *folder, char ret[FAB_PATH_BYTES]);

/** fab_folder_slot() - the path of a process's socket, on any host. */
void fab_folder_slot(const struct fab_folder *folder, const char *host, unsigned int slot,
		     char ret[FAB_PATH_BYTES]);

/** fab_folder_grants() - the path of a process's grants, on any host */
void fab_folder_grants(const struct fab_folder *folder, const char *host, unsigned int slot,
		       char ret[FAB_PATH_BYTES]);

/** fab_folder_grants_of() - likewise, of the process with a socket. Return: false if it has none.
 */
bool fab_folder_grants_of(const char *socket, char ret[FAB_PATH_BYTES]);

/** fab_folder_gid() - the path of the link to the owner of a GID */
void fab_folder_gid(const struct fab_folder *folder, const union ibv_gid *gid,
		    char ret[FAB_PATH_BYTES]);

/** fab_folder_group() - the path of the folder of a multicast group's members. */
void fab_folder_group(const struct fab_folder *folder, const union ibv_gid *mgid,
		      char ret[FAB_PATH_BYTES]);

/** fab_folder_read_member() - parse the name of a member file. Return: false if it is none. */
bool fab_folder_read_member(const char *name, char ret_host[FAB_NAME_BYTES], uint32_t *ret_qpn);

/** fab_folder_joined() - the path of the file for a port that joined a group (InfiniBand) */
void fab_folder_joined(const struct fab_folder *folder, const union ibv_gid *mgid,
		       const struct fab_owner *member, char ret[FAB_PATH_BYTES]);

/**
 * fab_folder_owner_of() - find the port with a GID
 *
 * Return: 0, or -EHOSTUNREACH if there is none.
 */
int fab_folder_owner_of(const struct fab_folder *folder, const union ibv_gid *gid,
			struct fab_owner *ret);

/**
 * fab_folder_owner_of_lid() - find the port with a LID of an InfiniBand subnet. Return: as above.
 */
int fab_folder_owner_of_lid(const struct fab_folder *folder, uint8_t subnet, uint16_t lid,
			    struct fab_owner *ret);

/** fab_folder_lid() - the path of the link to the port with a LID */
void fab_folder_lid(const struct fab_folder *folder, uint8_t subnet, uint16_t lid,
		    char ret[FAB_PATH_BYTES]);

/** fab_folder_link_owner() - create a link to a port of this host. Return: 0, or -EEXIST. */
int fab_folder_link_owner(const struct fab_folder *folder, uint8_t port_num, const char *path);

/**
 * fab_folder_take_slot() - create a datagram socket for this process, in a free slot
 * @ret_slot: 1 to FAB_SLOTS - 1; slots of ended processes are reused as late as possible
 *
 * Return: a descriptor, non-blocking and close-on-exec; -EBUSY if all are taken; -errno.
 */
int fab_folder_take_slot(const struct fab_folder *folder, unsigned int *ret_slot);

/**
 * fab_folder_bind() - create a socket at a path, replacing that of an ended process
 * @type: SOCK_DGRAM or SOCK_SEQPACKET; non-blocking and close-on-exec
 *
 * The caller must prevent concurrent calls.
 *
 * Return: a descriptor; -EADDRINUSE if a running process has it; -errno.
 */
int fab_folder_bind(const char *path, int type);

/** fab_folder_widen_buffer() - set the send buffer to 1 MiB, or less if the kernel limits it */
void fab_folder_widen_buffer(int fd);

/** fab_folder_sockaddr() - convert a path, which must fit */
void fab_folder_sockaddr(const char *path, struct sockaddr_un *ret);

#endif
