/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a host: its device, ports, GID and P_Key tables. It is a file that the host's process
 * writes, and that every process with the device open has mapped. It takes the place of the
 * driver's view of its hardware.
 */
#ifndef FABRIC_PAGE_H
#define FABRIC_PAGE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define FAB_PAGE_MAGIC	 0x66616275u
#define FAB_GIDS	 64
#define FAB_PKEYS	 16
#define FAB_PORTS	 2
#define FAB_PKEY_DEFAULT 0xffff
#define FAB_NAME_BYTES	 16

enum fab_wire {
	FAB_WIRE_UNIX, /* between processes of one machine */
	FAB_WIRE_ROCE, /* RoCE v2 */
};

struct fab_gid {
	union ibv_gid gid; /* all zeros: free */
	uint32_t type;	   /* enum ibv_gid_type */
	uint32_t ifindex;
};

struct fab_port {
	uint8_t state;	    /* enum ibv_port_state */
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint8_t mtu;	    /* enum ibv_mtu */
	uint8_t lmc;
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t subnet;
	uint16_t pkey[FAB_PKEYS]; /* 0: free */
	struct fab_gid gid[FAB_GIDS];
};

/* Limits of a queue pair, and the duration of commands; X(name, keyword of --limit, default). */
#define FAB_LIMITS(X)                                        \
	X(INLINE, "inline", 1024) /* bytes of inline data */ \
	X(UD_INLINE, "ud-inline", 1024)                      \
	X(WR, "wr", 16384) /* requests in a queue */         \
	X(SLOW, "slow", 0) /* duration of a firmware command, in us */

enum fab_limit {
#define X(name, word, value) FAB_LIMIT_##name,
	FAB_LIMITS(X)
#undef X
	FAB_N_LIMITS,
};

struct fab_page {
	uint32_t magic;
	uint32_t turn; /* odd during an update */
	uint32_t is_removed;
	uint32_t n_ports;
	uint32_t wire;	 /* enum fab_wire */
	uint32_t quirks; /* bitmap, see quirks.h */
	uint32_t limit[FAB_N_LIMITS];
	char host[FAB_NAME_BYTES];
	char device[FAB_NAME_BYTES]; /* present name */
	__be64 node_guid;
	uint64_t network; /* inode of the host's network namespace */
	uint64_t memlock; /* limit of bytes, of the host itself */
	uint32_t vrf;	  /* interface of the VRF that the ports belong to there; 0: none */
	struct fab_port port[FAB_PORTS];
};

/**
 * fab_page_create() - create a page in a file, zeroed except for its magic number; for its only
 * writer
 *
 * Return: 0, with *ret mapped until the process ends; -errno.
 */
int fab_page_create(const char *path, struct fab_page **ret);

/**
 * fab_page_open() - map the page of a host, read-only; to be released with fab_page_close()
 *
 * Return: 0, -ENOENT if there is no such host, -EPROTO if its version differs, -errno.
 */
int fab_page_open(const char *path, const struct fab_page **ret);

/**
 * fab_page_hold_gid() - keep the table entry of a GID that is removed unused
 * @fd:   the page's file, open for reading; holds end when it is closed, or with the process
 * @hold: false to release
 */
void fab_page_hold_gid(int fd, uint8_t port_num, uint32_t index, bool hold);

/** fab_page_gid_is_held() - return whether any process holds it; @fd: the file, open for writing */
bool fab_page_gid_is_held(int fd, uint8_t port_num, uint32_t index);

/** fab_page_close() - unmap the page; NULL is allowed */
void fab_page_close(const struct fab_page *page);

/** fab_page_own_network() - the inode of this process's network namespace, 0 if unknown */
uint64_t fab_page_own_network(void);

/** fab_page_set_limits() - set the limits of queue pairs; 0 selects the default */
void fab_page_set_limits(struct fab_page *page, const uint32_t limit[FAB_N_LIMITS]);

/** fab_page_write_begin() - begin an update, atomic for readers until fab_page_write_end() */
void fab_page_write_begin(struct fab_page *page);
void fab_page_write_end(struct fab_page *page);

/** fab_page_read() - copy the page consistently */
void fab_page_read(const struct fab_page *page, struct fab_page *ret);

/** fab_page_device() - the present name of the device */
void fab_page_device(const struct fab_page *page, char ret[FAB_NAME_BYTES]);

/** fab_page_gid() - read an entry of a port's GID table. Return: false if it is free. */
bool fab_page_gid(const struct fab_page *page, uint8_t port_num, uint32_t index,
		  struct fab_gid *ret);

/** fab_page_find_gid() - find a GID in a port's table. Return: its index, or -1. */
int fab_page_find_gid(const struct fab_page *page, uint8_t port_num, const union ibv_gid *gid);

/** fab_page_interface() - the interface of a port's first GID that has one; 0: none */
uint32_t fab_page_interface(const struct fab_page *page, uint8_t port_num);

#endif
