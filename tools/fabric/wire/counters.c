/* SPDX-License-Identifier: BSD-2-Clause */
/* Traffic counters of ports: see counters.h. */
#include "tools/fabric/wire/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES     (FAB_SLOTS * sizeof(struct fab_counters))
#define LRH_BYTES      8
#define BTH_ICRC_BYTES 16
#define PAD_BYTES      4

/* --- the file ------------------------------------------------------------- */

static int map_file(int fd, struct fab_counters **ret)
{
	void *at = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*ret = at;
	return 0;
}

/* A new file: processes that still have the one of a device before a reset keep that. */
int fab_counters_create(const struct fab_folder *folder, struct fab_counters **ret)
{
	char path[FAB_PATH_BYTES];
	int fd, err;

	fab_folder_counters(folder, folder->host, path);
	if (unlink(path) && errno != ENOENT)
		return -errno;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = ftruncate(fd, FILE_BYTES) ? -errno : map_file(fd, ret);
	close(fd);
	return err;
}

int fab_counters_open(const struct fab_folder *folder, const char *host, struct fab_counters **ret)
{
	char path[FAB_PATH_BYTES];
	struct stat file;
	int fd, err;

	fab_folder_counters(folder, host, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &file) || file.st_size != FILE_BYTES ? -EPROTO : map_file(fd, ret);
	close(fd);
	return err;
}

void fab_counters_close(struct fab_counters *of_slots)
{
	if (of_slots)
		munmap(of_slots, FILE_BYTES);
}

/* --- counting ------------------------------------------------------------- */

static uint32_t extended_octets(const struct fab_packet *packet)
{
	uint32_t reth = 16, aeth = 4, deth = 8, cnp = 16, feth = 4;

	switch ((enum fab_op)packet->op) {
	case FAB_OP_WRITE:
		return packet->flags & FAB_FIRST ? reth : 0;
	case FAB_OP_READ:
	case FAB_OP_ATOMIC_WRITE:
		return reth;
	case FAB_OP_FLUSH:
		return feth + reth;
	case FAB_OP_READ_RESPONSE:
		return packet->flags & (FAB_FIRST | FAB_LAST) ? aeth : 0;
	case FAB_OP_COMPARE_SWAP:
	case FAB_OP_FETCH_ADD:
		return 28;
	case FAB_OP_ATOMIC_RESPONSE:
		return aeth + 8;
	case FAB_OP_ACK:
	case FAB_OP_NAK:
		return aeth;
	case FAB_OP_CNP:
		return cnp;
	case FAB_OP_DATAGRAM:
		return deth;
	case FAB_OP_SEND:
	case FAB_OP_UNKNOWN:
	case FAB_OP_EVENT:
		return 0;
	}
	return 0;
}

static bool is_response(const struct fab_packet *packet)
{
	return packet->op == FAB_OP_READ_RESPONSE || packet->op == FAB_OP_ATOMIC_RESPONSE ||
	       packet->op == FAB_OP_ACK || packet->op == FAB_OP_NAK;
}

uint32_t fab_packet_octets(const struct fab_packet *packet)
{
	uint32_t octets = LRH_BYTES + BTH_ICRC_BYTES + extended_octets(packet);

	if (packet->flags & FAB_GRH)
		octets += FAB_GRH_BYTES;
	if (packet->flags & FAB_IMM)
		octets += sizeof(packet->imm);
	if (packet->flags & FAB_INVALIDATE)
		octets += sizeof(packet->rkey);
	if (packet->service == FAB_SERVICE_XRC && !is_response(packet))
		octets += sizeof(packet->srqn);
	return octets + ((packet->bytes + PAD_BYTES - 1) & ~(uint32_t)(PAD_BYTES - 1));
}

void fab_count(struct fab_counters *own, uint8_t port_num, enum fab_counter counter, uint64_t n)
{
	if (own && port_num && port_num <= FAB_PORTS)
		__atomic_fetch_add(&own->port[port_num - 1].n[counter], n, __ATOMIC_RELAXED);
}

static bool is_to_itself(const struct fab_packet *packet)
{
	if (packet->flags & FAB_GRH)
		return memcmp(&packet->sgid, &packet->dgid, sizeof(packet->sgid)) == 0;
	return packet->slid == packet->dlid;
}

static bool is_multicast(const struct fab_packet *packet)
{
	return packet->flags & FAB_GRH && fab_gid_is_group(&packet->dgid);
}

void fab_count_sent(struct fab_counters *own, const struct fab_packet *packet)
{
	if (is_to_itself(packet))
		return;
	fab_count(own, packet->from_port, FAB_XMIT_OCTETS, fab_packet_octets(packet));
	fab_count(own, packet->from_port, FAB_XMIT_PACKETS, 1);
	if (is_multicast(packet))
		fab_count(own, packet->from_port, FAB_XMIT_MULTICAST, 1);
}

void fab_count_received(struct fab_counters *own, const struct fab_packet *packet)
{
	uint8_t port_num = packet->port_num ? packet->port_num : 1; /* a group's has none */

	if (is_to_itself(packet))
		return;
	fab_count(own, port_num, FAB_RCV_OCTETS, fab_packet_octets(packet));
	fab_count(own, port_num, FAB_RCV_PACKETS, 1);
	if (is_multicast(packet))
		fab_count(own, port_num, FAB_RCV_MULTICAST, 1);
}

void fab_counters_sum(const struct fab_counters *of_slots, uint8_t port_num,
		      struct fab_port_counters *ret)
{
	unsigned int slot, i;

	memset(ret, 0, sizeof(*ret));
	for (slot = 0; slot < FAB_SLOTS; slot++)
		for (i = 0; i < FAB_N_COUNTERS; i++)
			ret->n[i] += __atomic_load_n(&of_slots[slot].port[port_num - 1].n[i],
						     __ATOMIC_RELAXED);
}
