/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a host: its device, ports, GID and P_Key tables, in a file that the host's own
 * process writes and that every process with the device open has mapped. It stands for what a
 * driver knows of its hardware.
 */
#ifndef FABRIC_PAGE_H
#define FABRIC_PAGE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define FAB_PAGE_MAGIC	 0x66616273u
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

/* What a queue pair can be asked for, and how long the device takes; X(name, word of --limit, value
 * of a device without limits). */
#define FAB_LIMITS(X)                                        \
	X(INLINE, "inline", 1024) /* bytes of inline data */ \
	X(UD_INLINE, "ud-inline", 1024)                      \
	X(WR, "wr", 16384) /* requests in a queue */         \
	X(SLOW, "slow", 0) /* us that a command of the firmware takes */

enum fab_limit {
#define X(name, word, value) FAB_LIMIT_##name,
	FAB_LIMITS(X)
#undef X
	FAB_N_LIMITS,
};

struct fab_page {
	uint32_t magic;
	uint32_t turn; /* odd while the writer is at it */
	uint32_t is_removed;
	uint32_t n_ports;
	uint32_t wire;	 /* enum fab_wire */
	uint32_t quirks; /* a bit for each, quirks.h */
	uint32_t limit[FAB_N_LIMITS];
	char host[FAB_NAME_BYTES];
	char device[FAB_NAME_BYTES]; /* its name, which may change */
	__be64 node_guid;
	struct fab_port port[FAB_PORTS];
};

/**
 * fab_page_create() - a new page in a file, all zeros but for its magic number; by its one writer
 *
 * Return: 0, with *ret to be unmapped by the end of the process; -errno.
 */
int fab_page_create(const char *path, struct fab_page **ret);

/**
 * fab_page_open() - the page of a host, for reading; fab_page_close() gives it back
 *
 * Return: 0, -ENOENT if there is no such host, -EPROTO if it is of another version, -errno.
 */
int fab_page_open(const char *path, const struct fab_page **ret);

/**
 * fab_page_hold_gid() - a GID that goes is to leave its entry empty while a queue pair uses it
 * @fd:   the page's file, open for reading; what it holds ends with it, or with the process
 * @hold: or let it go
 */
void fab_page_hold_gid(int fd, uint8_t port_num, uint32_t index, bool hold);

/** fab_page_gid_is_held() - does anybody hold it? @fd: the page's file, open for writing */
bool fab_page_gid_is_held(int fd, uint8_t port_num, uint32_t index);

/** fab_page_close() - NULL is allowed. */
void fab_page_close(const struct fab_page *page);

/** fab_page_set_limits() - what queue pairs can be asked for; 0: as of a device without limits. */
void fab_page_set_limits(struct fab_page *page, const uint32_t limit[FAB_N_LIMITS]);

/** fab_page_write_begin() - what is written from here to fab_page_write_end() is seen as a whole.
 */
void fab_page_write_begin(struct fab_page *page);
void fab_page_write_end(struct fab_page *page);

/** fab_page_read() - a consistent copy of all that a page says. */
void fab_page_read(const struct fab_page *page, struct fab_page *ret);

/** fab_page_device() - what the device is called now. */
void fab_page_device(const struct fab_page *page, char ret[FAB_NAME_BYTES]);

/** fab_page_gid() - one entry of a port's GID table. Return: false if it is free. */
bool fab_page_gid(const struct fab_page *page, uint8_t port_num, uint32_t index,
		  struct fab_gid *ret);

/** fab_page_find_gid() - the index of a GID in a port's table. Return: it, or -1. */
int fab_page_find_gid(const struct fab_page *page, uint8_t port_num, const union ibv_gid *gid);

#endif
