/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An observation is a MAD seen between two connection managers. A source delivers observations:
 * from a capture, or from the live trace of a host. Subcommands handle all sources alike.
 */
#ifndef TOOLS_PURECM_OBSERVATION_H
#define TOOLS_PURECM_OBSERVATION_H

#include <limits.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mad/cm_msg.h"
#include "lib/portd/proto/trace_ring.h"

#define MAD_CLASS_SA 0x03

/* Direction, seen from a traced host; unknown in a capture. */
enum observation_way {
	WAY_UNKNOWN,
	WAY_OUT,
	WAY_IN,
};

/* The network that carried the MAD; unknown if the source does not tell. */
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
	struct mad_gid src; /* see observation_lid() for packets without a GID */
	struct mad_gid dst;
	uint32_t src_qpn;
	uint16_t pkey;
	uint8_t mad[MAD_BYTES];

	/* The captured packet, valid until the next one is read; NULL if there is none. */
	const uint8_t *frame;
	size_t frame_bytes;
	int link_type; /* LINKTYPE_* of the registry at tcpdump.org */
};

/* Counters of a source, for the summary. */
struct source_counts {
	uint64_t packets;
	uint64_t mads; /* of the classes CM and SA */
	uint64_t cut;  /* truncated packets with such a MAD */
};

/*
 * The source ends within a packet, as after tcpdump was killed, or is too large: what was read is
 * valid.
 */
#define SOURCE_CUT (-EBADMSG)

struct source {
	const char *name;
	struct source_counts counts;

	/* Return: 1 with @ret set; 0 at the end; SOURCE_CUT or -errno, after an error message. */
	int (*next)(struct source *source, struct observation *ret);
	void (*close)(struct source *source);
};

/**
 * capture_open() - read the MADs of a capture file
 * @path: pcap or pcapng, "-" for standard input
 * @ret:  to be released with its close()
 *
 * Return: 0; -errno, after an error message.
 */
int capture_open(const char *path, struct source **ret);

/**
 * capture_open_live() - capture the MADs on an interface of this host
 * @interface: a name, or "any"
 * @ret:       to be released with its close(); ends on SIGINT and SIGTERM
 *
 * Devices that do not pass RDMA packets to the kernel show nothing.
 *
 * Return: 0; -errno, after an error message.
 */
int capture_open_live(const char *interface, struct source **ret);

/**
 * tracer_open() - trace the messages of this host's cmportd, and of those that follow it
 * @pid: the only process to show; 0 for all
 * @ret: to be released with its close(); ends on SIGINT and SIGTERM
 *
 * If no cmportd has run yet, the source waits for one.
 *
 * Return: 0; -errno, after an error message. Only for root and the user that cmportd runs as.
 */
int tracer_open(uint32_t pid, struct source **ret);

/**
 * recorded_open() - read the latest messages of this host's cmportd, running or not
 * @pid: as tracer_open()
 * @ret: to be released with its close(); ends with the latest message
 *
 * Return: 0; -errno, after an error message.
 */
int recorded_open(uint32_t pid, struct source **ret);

/** recorded_rewind() - begin again with the first of the messages that recorded_open() has found */
void recorded_rewind(struct source *source);

/**
 * kernel_open() - trace the kernel's connection manager by its tracepoints, as messages
 * @path: lines saved from tracefs, "-" for standard input; NULL: live
 * @ret:  to be released with its close(); live, it ends on SIGINT, SIGTERM and SIGHUP
 *
 * Many fields are zero, because the kernel does not report them.
 *
 * Return: 0; -errno, after an error message.
 */
int kernel_open(const char *path, struct source **ret);

/** observation_is_cm() - return whether a MAD is of the CM class, not of the SA's */
bool observation_is_cm(const struct observation *observation);

/**
 * observation_decode() - decode a MAD of the CM class. Return: false for one of another class, or
 * of an unknown kind or version.
 */
bool observation_decode(const struct observation *observation, struct cm_msg *ret);

/** observation_gid_of_ip4() - the RoCE v2 GID of an IPv4 address */
struct mad_gid observation_gid_of_ip4(const uint8_t ip[4]);

/** observation_is_ip4() - return whether a GID is an IPv4 address, in the last four bytes */
bool observation_is_ip4(const struct mad_gid *gid);

/** observation_gid_of_lid() - a substitute for the GID of a sender known by LID only */
struct mad_gid observation_gid_of_lid(uint16_t lid);

/** gid_is_zero(), gid_is_same() - compare GIDs, and addresses as GIDs */
bool gid_is_zero(const void *gid);
bool gid_is_same(const void *a, const void *b);

/** observation_lid() - the LID in such a GID; 0 in all others */
uint16_t observation_lid(const struct mad_gid *gid);

/** observation_parse_gid() - parse an IP address, a GID, or "lid N". Return: 0 or -EINVAL. */
int observation_parse_gid(const char *text, struct mad_gid *ret);

#define WHO_BYTES 48

/** who_str() - format "10.77.0.1", "fd00::1", "lid 5". Return: @buf. */
const char *who_str(const struct mad_gid *gid, char buf[WHO_BYTES]);

#define ROCE_UDP_PORT 4791

/* As registered at tcpdump.org. libpcap's own numbers are the same for these, except for raw IP. */
enum link_type {
	LINK_ETHERNET = 1,
	LINK_RAW_IP_DLT = 12,
	LINK_RAW_IP = 101,
	LINK_SLL = 113,
	LINK_ERF = 197,
	LINK_INFINIBAND = 247,
	LINK_SLL2 = 276,
};

/** frame_link_is_known() - return whether packets of a link type are supported */
bool frame_link_is_known(int link_type);

/**
 * frame_find_mad() - find the MAD in a packet
 * @link_type: enum link_type
 * @frame:     the packet
 * @bytes:     number of captured bytes
 * @ret:       src, dst, src_qpn, pkey and mad are set if there is one
 *
 * Considers packets to queue pair 1, of the classes CM and SA.
 *
 * Return: 1; 0 for any other packet; -EMSGSIZE for a truncated one.
 */
int frame_find_mad(int link_type, const uint8_t *frame, size_t bytes, struct observation *ret);

/* The recording of this host's cmportd, zeroed before it is opened. */
struct recording {
	struct trace_reader reader; /* .ring is NULL while there is no recording */
	char path[PATH_MAX];	    /* empty if the socket's path is invalid */
	uint64_t n_missed;	    /* of files that were closed */
};

/**
 * recording_open() - read the recording, from its oldest message
 *
 * Return: 0; -errno; as trace_reader_open().
 */
int recording_open(struct recording *recording);

/**
 * recording_follow() - go on with the messages written since, also if cmportd has replaced the file
 *
 * All messages copied before must have been taken.
 */
void recording_follow(struct recording *recording);

/** recording_close() - release the recording; one that is not open is allowed */
void recording_close(struct recording *recording);

/** recorded_observe() - convert a recorded message to an observation */
void recorded_observe(const struct trace_entry *seen, struct observation *ret);

#endif
