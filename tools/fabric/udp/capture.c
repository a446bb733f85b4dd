/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of pcap: see capture.h. tools/fabric/fabric writes the file header, with times in
 * nanoseconds and link type Ethernet.
 */
#include "tools/fabric/udp/capture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/fabric/roce/codec.h"
#include "tools/fabric/roce/icrc.h"
#include "tools/fabric/wire/folder.h"

#define ETHER_BYTES    14
#define ETHER_IPV4     0x0800
#define ETHER_IPV6     0x86dd
#define IPV4_BYTES     20
#define IPV6_BYTES     40
#define UDP_BYTES      8
#define HEAD_BYTES_MAX (ETHER_BYTES + IPV6_BYTES + UDP_BYTES)
#define IPV4_DF	       0x4000
#define PROTO_UDP      17
#define FLOW_PORTS     0xc000 /* A17.9.1: the source port provides flow entropy, in this range */

struct record {
	uint32_t s, ns, caught_bytes, bytes;
};

void udp_capture_open(struct udp_capture *capture, const char *dir)
{
	char path[FAB_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/pcap", dir);
	capture->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	capture->is_open = capture->fd >= 0;
}

void udp_capture_close(struct udp_capture *capture)
{
	if (capture->is_open)
		close(capture->fd);
	capture->is_open = false;
}

static uint8_t *put_u16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint32_t sum_of(const uint8_t *bytes, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += i & 1 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return sum;
}

/* RFC 1071. */
static uint16_t fold_checksum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint8_t *put_ipv4(const struct fab_packet *packet, size_t n, uint8_t *at)
{
	uint8_t *ip = at;

	*at++ = 0x45;
	*at++ = packet->traffic_class;
	at = put_u16(at, IPV4_BYTES + UDP_BYTES + n);
	at = put_u16(at, 0); /* identification */
	at = put_u16(at, IPV4_DF);
	*at++ = packet->hop_limit;
	*at++ = PROTO_UDP;
	at = put_u16(at, 0);
	memcpy(at, packet->sgid.raw + FAB_GID_IPV4_AT, 4);
	memcpy(at + 4, packet->dgid.raw + FAB_GID_IPV4_AT, 4);
	put_u16(ip + 10, fold_checksum(sum_of(ip, IPV4_BYTES)));
	return at + 8;
}

static uint8_t *put_ipv6(const struct fab_packet *packet, size_t n, uint8_t *at)
{
	*at++ = (uint8_t)(0x60 | packet->traffic_class >> 4);
	*at++ = (uint8_t)(packet->traffic_class << 4 | (packet->flow_label >> 16 & 15));
	at = put_u16(at, packet->flow_label);
	at = put_u16(at, UDP_BYTES + n);
	*at++ = PROTO_UDP;
	*at++ = packet->hop_limit;
	memcpy(at, packet->sgid.raw, 16);
	memcpy(at + 16, packet->dgid.raw, 16);
	return at + 32;
}

uint8_t *udp_put_ip(const struct fab_packet *packet, size_t n, uint8_t *at)
{
	return fab_gid_is_ipv4(&packet->dgid) ? put_ipv4(packet, n, at) : put_ipv6(packet, n, at);
}

/* A UDP checksum is optional over IPv4, and required over IPv6. */
static void put_udp_checksum(const struct fab_packet *packet, const uint8_t *bytes, size_t n,
			     uint8_t *udp)
{
	uint32_t sum = sum_of(packet->sgid.raw, 16) + sum_of(packet->dgid.raw, 16) + PROTO_UDP +
		       (uint32_t)(UDP_BYTES + n) + sum_of(udp, UDP_BYTES) + sum_of(bytes, n);
	uint16_t is = fold_checksum(sum);

	put_u16(udp + 6, is ? is : 0xffff);
}

/* Return: number of bytes. */
static size_t put_head(const struct fab_packet *packet, const uint8_t *bytes, size_t n,
		       uint16_t source_port, uint8_t ret[HEAD_BYTES_MAX])
{
	const bool is_ipv4 = fab_gid_is_ipv4(&packet->dgid);
	uint8_t *udp;

	memset(ret, 0, HEAD_BYTES_MAX);
	put_u16(ret + ETHER_BYTES - 2, is_ipv4 ? ETHER_IPV4 : ETHER_IPV6);
	udp = udp_put_ip(packet, n, ret + ETHER_BYTES);
	put_u16(udp, source_port);
	put_u16(udp + 2, ROCE_UDP_PORT);
	put_u16(udp + 4, UDP_BYTES + n);
	if (!is_ipv4)
		put_udp_checksum(packet, bytes, n, udp);
	return (size_t)(udp + UDP_BYTES - ret);
}

/* One write per packet, because other processes append too. */
static void append_packet(const struct udp_capture *capture, const uint8_t *head, size_t head_bytes,
			  const uint8_t *bytes, size_t n)
{
	const uint64_t now_ns = clock_ns_of(CLOCK_REALTIME);
	struct record record = { .s = (uint32_t)(now_ns / CLOCK_NS_PER_S),
				 .ns = (uint32_t)(now_ns % CLOCK_NS_PER_S),
				 .caught_bytes = (uint32_t)(head_bytes + n),
				 .bytes = (uint32_t)(head_bytes + n) };
	struct iovec iov[3] = {
		{ .iov_base = &record, .iov_len = sizeof(record) },
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = head_bytes },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = n },
	};

	if (writev(capture->fd, iov, 3) < 0)
		return; /* there is no way to report a full disk to the program */
}

void udp_capture_write(const struct udp_capture *capture, const struct fab_packet *packet,
		       const void *payload)
{
	struct icrc_flow flow = {
		.sgid = &packet->sgid,
		.dgid = &packet->dgid,
		.source_port = (uint16_t)(FLOW_PORTS | ((packet->src_qpn ^ packet->dest_qpn) &
							(0xffff - FLOW_PORTS))),
	};
	uint8_t head[HEAD_BYTES_MAX], bytes[ROCE_BYTES_MAX];
	size_t n;

	if (!capture->is_open || packet->bytes > ROCE_PAYLOAD_BYTES_MAX)
		return;
	n = roce_write(packet, payload, bytes);
	if (!n)
		return;
	icrc_seal(&flow, bytes, n);
	append_packet(capture, head, put_head(packet, bytes, n, flow.source_port, head), bytes, n);
}

void udp_capture_received(const struct udp_capture *capture, const struct fab_folder *folder,
			  const struct fab_packet *packet, const void *payload)
{
	struct fab_owner sender;

	if (capture->is_open && fab_folder_owner_of(folder, &packet->sgid, &sender))
		udp_capture_write(capture, packet, payload);
}
