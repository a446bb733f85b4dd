/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random messages of the CM, and with "sa" also of the SA, for tshark_judge.py: writes them to a
 * capture file as RoCE v2 packets, and prints every field, one message per line: "REP
 * local_comm_id=17 ...". Half of them travel over IPv4 and half over IPv6, because a decoder may
 * read GIDs by that. Integers are printed in decimal, byte strings in hexadecimal.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "mad/sa_msg.h"

#define ETH_BYTES	   14
#define IP4_BYTES	   20
#define IP6_BYTES	   40
#define UDP_BYTES	   8
#define BTH_BYTES	   12
#define DETH_BYTES	   8
#define ICRC_BYTES	   4
#define ROCE_BYTES	   (UDP_BYTES + BTH_BYTES + DETH_BYTES + MAD_BYTES + ICRC_BYTES)
#define PACKET_BYTES_MAX   (ETH_BYTES + IP6_BYTES + ROCE_BYTES)
#define ROCE_PORT	   4791
#define LINK_TYPE_ETHERNET 1
#define N_CM_ATTRS	   (CM_ATTR_APR - CM_ATTR_REQ + 1)
#define N_KINDS		   (N_CM_ATTRS + 2)

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

/* The last bytes of both addresses, so that every message is a conversation of its own. */
static uint8_t *put_ip4(uint8_t *at, unsigned int number)
{
	const uint8_t ip[IP4_BYTES] = { 0x45,
					0,
					(IP4_BYTES + ROCE_BYTES) >> 8,
					(IP4_BYTES + ROCE_BYTES) & 0xff,
					[8] = 64,
					17,
					[12] = 10,
					0,
					number >> 8,
					number,
					10,
					1,
					number >> 8,
					number };

	return put(put(at, (const uint8_t[]){ 0x08, 0x00 }, 2), ip, sizeof(ip));
}

static uint8_t *put_ip6(uint8_t *at, unsigned int number)
{
	const uint8_t ip[IP6_BYTES] = { 0x60,
					[4] = ROCE_BYTES >> 8,
					ROCE_BYTES & 0xff,
					17,
					64,
					[8] = 0xfd,
					[22] = number >> 8,
					number,
					[24] = 0xfd,
					[37] = 1,
					number >> 8,
					number };

	return put(put(at, (const uint8_t[]){ 0x86, 0xdd }, 2), ip, sizeof(ip));
}

/* QP1 to QP1, UD send only. Check sums and the invariant CRC are zero. Return: bytes. */
static size_t wrap(const uint8_t mad[MAD_BYTES], unsigned int number, bool ip6, uint8_t *packet)
{
	static const uint8_t macs[12] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };
	static const uint8_t udp[UDP_BYTES] = {
		0xc0, 0, ROCE_PORT >> 8, ROCE_PORT & 0xff, ROCE_BYTES >> 8, ROCE_BYTES & 0xff
	};
	static const uint8_t bth[BTH_BYTES] = { 0x64, 0, 0xff, 0xff, [7] = 1 };
	static const uint8_t deth[DETH_BYTES] = { 0x80, 0x01, [7] = 1 };
	uint8_t *at = put(packet, macs, sizeof(macs));

	at = ip6 ? put_ip6(at, number) : put_ip4(at, number);
	at = put(at, udp, sizeof(udp));
	at = put(at, bth, sizeof(bth));
	at = put(at, deth, sizeof(deth));
	at = put(at, mad, MAD_BYTES);
	memset(at, 0, ICRC_BYTES);
	return at + ICRC_BYTES - packet;
}

static uint64_t member(const struct wire_field *field, const void *host)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} value = { .u64 = 0 };

	memcpy(&value, (const uint8_t *)host + field->offset, field->size);
	switch (field->size) {
	case 1:
		return value.u8;
	case 2:
		return value.u16;
	case 4:
		return value.u32;
	default:
		return value.u64;
	}
}

static void print_fields(const char *prefix, const struct wire_layout *layout, const void *host)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];
		const uint8_t *bytes = (const uint8_t *)host + f->offset;

		if (f->shift)
			continue;
		printf(" %s%s=", prefix, f->name);
		if (f->kind == WIRE_UINT)
			printf("%" PRIu64, member(f, host));
		for (size_t n = 0; f->kind == WIRE_BYTES && n < f->size; n++)
			printf("%02x", bytes[n]);
	}
}

static void fill_random(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = random();
}

/* Every other request is for the RDMA IP CM service, with its header. */
static void make_ip_request(struct cm_req *req, struct cma_hdr *cma)
{
	uint8_t wire[CMA_HDR_BYTES];

	fill_random(wire, sizeof(wire));
	wire_decode(&cma_hdr_layout, wire, cma);
	cma->cma_version = 0;
	cma->ip_version = random() & 1 ? 4 : 6;
	if (cma->ip_version == 4) {
		memset(cma->src_addr, 0, 12);
		memset(cma->dst_addr, 0, 12);
	}
	req->service_id = cma_service_id(random() & 1 ? 0x0106 : 0x0111, random());
	wire_encode(&cma_hdr_layout, cma, req->private_data);
}

static void make_message(enum cm_attr attr, uint8_t mad[MAD_BYTES])
{
	const struct wire_layout *layout = cm_msg_layout(attr);
	uint8_t body[CM_BODY_BYTES];
	struct cma_hdr cma;
	struct cm_msg msg;
	bool ip = attr == CM_ATTR_REQ && random() & 1;

	cm_msg_init(&msg, attr, (uint64_t)random() << 32 | random());
	msg.hdr.attr_mod = random();
	msg.hdr.status = random();
	msg.hdr.class_specific = random();
	fill_random(body, sizeof(body));
	wire_decode(layout, body, &msg.req);
	if (ip)
		make_ip_request(&msg.req, &cma);
	cm_msg_encode(&msg, mad);
	print_fields("mad.", &mad_hdr_layout, &msg.hdr);
	print_fields("", layout, &msg.req);
	if (ip)
		print_fields("cma.", &cma_hdr_layout, &cma);
	putchar('\n');
}

static void make_sa_message(enum sa_attr attr, uint8_t mad[MAD_BYTES])
{
	static const enum sa_method methods[] = { SA_METHOD_GET, SA_METHOD_SET, SA_METHOD_DELETE,
						  SA_METHOD_GET | SA_METHOD_RESPONSE };
	const struct wire_layout *layout = sa_msg_layout(attr);
	uint8_t record[SA_DATA_BYTES];
	struct sa_msg msg;

	sa_msg_init(&msg, methods[random() % 4], attr, (uint64_t)random() << 32 | random(),
		    (uint64_t)random() << 32 | random());
	msg.hdr.status = random();
	msg.sa.sm_key = (uint64_t)random() << 32 | random();
	msg.sa.attr_offset = random();
	fill_random(record, sizeof(record));
	wire_decode(layout, record, &msg.path);
	sa_msg_encode(&msg, mad);
	print_fields("mad.", &mad_hdr_layout, &msg.hdr);
	print_fields("sa.", &sa_hdr_layout, &msg.sa);
	print_fields("", layout, &msg.path);
	putchar('\n');
}

static void write_pcap_header(FILE *file)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy, snap_bytes, link;
	} header = { 0xa1b2c3d4, 2, 4, 0, 0, 65535, LINK_TYPE_ETHERNET };

	fwrite(&header, sizeof(header), 1, file);
}

static void write_packet(FILE *file, const uint8_t *packet, uint32_t bytes)
{
	const uint32_t header[4] = { 0, 0, bytes, bytes };

	fwrite(header, sizeof(header), 1, file);
	fwrite(packet, bytes, 1, file);
}

static void make(int kind, uint8_t mad[MAD_BYTES])
{
	static const enum sa_attr of_sa[] = { SA_ATTR_PATH_RECORD, SA_ATTR_MCMEMBER_RECORD };

	if (kind >= N_CM_ATTRS) {
		printf("%s", sa_msg_layout(of_sa[kind - N_CM_ATTRS])->name);
		make_sa_message(of_sa[kind - N_CM_ATTRS], mad);
	} else {
		printf("%s", cm_msg_layout(CM_ATTR_REQ + kind)->name);
		make_message(CM_ATTR_REQ + kind, mad);
	}
}

static void write_messages(FILE *file, int count, int n_kinds)
{
	for (int i = 0; i < count; i++) {
		uint8_t packet[PACKET_BYTES_MAX], mad[MAD_BYTES];

		make(i % n_kinds, mad);
		write_packet(file, packet, wrap(mad, i, i / n_kinds & 1, packet));
	}
}

int main(int argc, char **argv)
{
	FILE *file;

	if (argc != 4 && argc != 5) {
		fputs("usage: random_pcap FILE SEED COUNT [sa]\n", stderr);
		return 2;
	}
	file = fopen(argv[1], "wb");
	if (!file) {
		perror(argv[1]);
		return 1;
	}
	srandom(atoi(argv[2]));
	write_pcap_header(file);
	write_messages(file, atoi(argv[3]), argc == 5 ? N_KINDS : N_CM_ATTRS);
	if (fclose(file)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
