/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An observation is a MAD that was seen on its way from one connection manager to another. A source
 * delivers observations: a capture, or the live trace of a host. The subcommands do not know which.
 */
#ifndef TOOLS_PURECM_OBSERVATION_H
#define TOOLS_PURECM_OBSERVATION_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mad/cm_msg.h"

#define MAD_CLASS_SA 0x03

/* As a host that is traced sees it; a capture does not tell. */
enum observation_way {
	WAY_UNKNOWN,
	WAY_OUT,
	WAY_IN,
};

/* The network that carried the MAD; unknown where the source does not say. */
enum observation_network {
	NETWORK_UNKNOWN,
	NETWORK_ROCE_V1,
	NETWORK_ROCE_V2,
	NETWORK_INFINIBAND,
};

struct observation {
	uint64_t time_ns; /* since 1970 */
	uint64_t number;  /* of the packet in its source, from 1 */
	enum observation_way way;
	enum observation_network network;
	struct mad_gid src; /* see observation_lid(): also of those who have no GID in the packet */
	struct mad_gid dst;
	uint32_t src_qpn;
	uint16_t pkey;
	uint8_t mad[MAD_BYTES];

	/* The packet as it was captured, until the next one is taken; NULL where there is none. */
	const uint8_t *frame;
	size_t frame_bytes;
	int link_type; /* LINKTYPE_* of the registry at tcpdump.org */
};

/* What a source has met, for the summary. */
struct source_counts {
	uint64_t packets;
	uint64_t mads; /* of the classes CM and SA */
	uint64_t cut;  /* that would have been one, but the capture kept only its beginning */
};

/* Of a source that ends in the middle of a packet, as that of a tcpdump that was killed does, or
 * that is too large: what was taken is worth having. */
#define SOURCE_CUT (-EBADMSG)

struct source {
	const char *name;
	struct source_counts counts;

	/* Return: 1 with @ret filled; 0 at the end; SOURCE_CUT or -errno, after a complaint. */
	int (*next)(struct source *source, struct observation *ret);
	void (*close)(struct source *source);
};

/**
 * capture_open() - the MADs of a capture file
 * @path: pcap or pcapng, "-" for standard input
 * @ret:  to be given back with its close()
 *
 * Return: 0; -errno, after a complaint that says what is wrong with it.
 */
int capture_open(const char *path, struct source **ret);

/**
 * capture_open_live() - the MADs that pass an interface of this host, as they do
 * @interface: by name, or "any"
 * @ret:       to be given back with its close(); ends on SIGINT and SIGTERM
 *
 * Of devices that keep RDMA to themselves nothing is to be seen.
 *
 * Return: 0; -errno, after a complaint.
 */
int capture_open_live(const char *interface, struct source **ret);

/**
 * tracer_open() - the messages that pass this host's cmportd, as they do
 * @pid: only those of this process; 0 for all
 * @ret: to be given back with its close(); ends on SIGINT and SIGTERM
 *
 * Return: 0; -errno, after a complaint: others than root and the user who runs it see nothing.
 */
int tracer_open(uint32_t pid, struct source **ret);

/**
 * recorded_open() - the latest messages that passed this host's cmportd, also one that has ended
 * @pid: as tracer_open()
 * @ret: to be given back with its close(); ends with the latest message
 *
 * Return: 0; -errno, after a complaint.
 */
int recorded_open(uint32_t pid, struct source **ret);

/**
 * kernel_open() - what the kernel's connection manager does, by its tracepoints, as messages
 * @path: lines that were saved from tracefs, "-" for standard input; NULL: as they come
 * @ret:  to be given back with its close(); live, it ends on SIGINT and SIGTERM
 *
 * Many fields are zero: the kernel does not tell them.
 *
 * Return: 0; -errno, after a complaint.
 */
int kernel_open(const char *path, struct source **ret);

/** observation_is_cm() - is it a message of the CM class? Else it is of the SA's. */
bool observation_is_cm(const struct observation *observation);

/** observation_gid_of_ip4() - as RoCE v2 has it. */
struct mad_gid observation_gid_of_ip4(const uint8_t ip[4]);

/** observation_is_ip4() - does a GID stand for an IPv4 address? It is in the last four bytes. */
bool observation_is_ip4(const struct mad_gid *gid);

/** observation_gid_of_lid() - what stands for the GID of one that has told its LID only. */
struct mad_gid observation_gid_of_lid(uint16_t lid);

/** observation_lid() - the LID in such a GID; 0 in all others. */
uint16_t observation_lid(const struct mad_gid *gid);

#define WHO_BYTES 48

/** who_str() - "10.77.0.1", "fd00::1", "lid 5". Return: @buf. */
const char *who_str(const struct mad_gid *gid, char buf[WHO_BYTES]);

#endif
