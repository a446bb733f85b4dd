/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of a fabric, which is its wiring: the paths in it.
 *
 *   hosts/NAME/page        the device (page.h)
 *   hosts/NAME/gsi         the socket that takes the packets for QP1
 *   hosts/NAME/umad.1      the socket that umad's descriptors of port 1 are connections to
 *   hosts/NAME/ctx/SLOT    the sockets of processes that have the device open
 *   hosts/NAME/udp         the socket that they get a UDP socket at (../udp/share.h)
 *   gids/HEX               a link to the port that has this GID: NAME.PORT
 *   lids/SUBNET.NUMBER     the same for a LID
 *   joined/HEX/NAME.PORT   a port that joined this group, on InfiniBand
 *   groups/HEX/NAME.QPN    a queue pair that is attached to this multicast group
 */
#ifndef FABRIC_FOLDER_H
#define FABRIC_FOLDER_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <sys/un.h>

#include "tools/fabric/wire/page.h"

#define FAB_ENV	       "PURECM_FABRIC"
#define FAB_DIR_BYTES  64  /* of the fabric's folder: the names of sockets in it must fit */
#define FAB_PATH_BYTES 160 /* the names of sockets are shorter: they fit into sockaddr_un */

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
 * fab_folder_find() - the host that this process is on: $PURECM_FABRIC is its folder
 *
 * Return: 0; -ENODEV if the variable is not set; -ENAMETOOLONG, -EINVAL if it cannot be one.
 */
int fab_folder_find(struct fab_folder *ret);

/** fab_folder_page() - the path of this host's page. */
void fab_folder_page(const struct fab_folder *folder, char ret[FAB_PATH_BYTES]);

/** fab_folder_gsi() - the path of a host's QP1 socket. */
void fab_folder_gsi(const struct fab_folder *folder, const char *host, char ret[FAB_PATH_BYTES]);

/** fab_folder_umad() - the path of the umad socket of one of this host's ports. */
void fab_folder_umad(const struct fab_folder *folder, uint8_t port_num, char ret[FAB_PATH_BYTES]);

/** fab_folder_udp() - the path of the socket at which this host gives out UDP sockets. */
void fab_folder_udp(const struct fab_folder *folder, char ret[FAB_PATH_BYTES]);

/** fab_folder_slot() - the path of a process's socket, on any host. */
void fab_folder_slot(const struct fab_folder *folder, const char *host, unsigned int slot,
		     char ret[FAB_PATH_BYTES]);

/** fab_folder_gid() - the path of the link that says who has a GID. */
void fab_folder_gid(const struct fab_folder *folder, const union ibv_gid *gid,
		    char ret[FAB_PATH_BYTES]);

/** fab_folder_group() - the path of the folder of a multicast group's members. */
void fab_folder_group(const struct fab_folder *folder, const union ibv_gid *mgid,
		      char ret[FAB_PATH_BYTES]);

/** fab_folder_read_member() - the name of a file in that folder. Return: false if it is another. */
bool fab_folder_read_member(const char *name, char ret_host[FAB_NAME_BYTES], uint32_t *ret_qpn);

/** fab_folder_joined() - the path of the file that says that a port joined a group (InfiniBand). */
void fab_folder_joined(const struct fab_folder *folder, const union ibv_gid *mgid,
		       const struct fab_owner *member, char ret[FAB_PATH_BYTES]);

/**
 * fab_folder_owner_of() - which port has a GID
 *
 * Return: 0, or -EHOSTUNREACH if none has.
 */
int fab_folder_owner_of(const struct fab_folder *folder, const union ibv_gid *gid,
			struct fab_owner *ret);

/** fab_folder_owner_of_lid() - which port has a LID of an InfiniBand subnet. Return: as above. */
int fab_folder_owner_of_lid(const struct fab_folder *folder, uint8_t subnet, uint16_t lid,
			    struct fab_owner *ret);

/** fab_folder_lid() - the path of the link that says which port has a LID. */
void fab_folder_lid(const struct fab_folder *folder, uint8_t subnet, uint16_t lid,
		    char ret[FAB_PATH_BYTES]);

/** fab_folder_own() - enter a port of this host at such a path. Return: 0, or -EEXIST. */
int fab_folder_own(const struct fab_folder *folder, uint8_t port_num, const char *path);

/**
 * fab_folder_take_slot() - a datagram socket for this process, at a number that is nobody's
 * @ret_slot: 1 to FAB_SLOTS - 1; numbers of processes that ended come back as late as possible
 *
 * Return: a descriptor, non-blocking and closed on exec; -EBUSY if all are taken; -errno.
 */
int fab_folder_take_slot(const struct fab_folder *folder, unsigned int *ret_slot);

/**
 * fab_folder_bind() - a socket at a path, in the place of one whose process ended
 * @type: SOCK_DGRAM or SOCK_SEQPACKET; non-blocking and closed on exec
 *
 * The caller keeps others from trying at the same time.
 *
 * Return: a descriptor; -EADDRINUSE if a living process has it; -errno.
 */
int fab_folder_bind(const char *path, int type);

/** fab_folder_widen() - room for messages as long as the kernel lets a socket send. */
void fab_folder_widen(int fd);

/** fab_folder_sockaddr() - a path as an address; it has to fit. */
void fab_folder_sockaddr(const char *path, struct sockaddr_un *ret);

#endif
