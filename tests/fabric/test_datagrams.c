/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attacks of a foreign queue pair on a datagram socket of the same fabric, whose queue pair it
 * finds as any peer does.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"

#define HERE	   "10.77.0.1"
#define ELSEWHERE  "10.77.0.9"
#define QKEY	   0x01234567 /* the Q_Key of all datagram sockets */
#define LIMIT_MS   20000
#define LONG_BYTES 2100 /* more than the longest datagram of a socket */

/* The headers of lib/rsocket/dgram_wire.h. */
struct location {
	uint32_t tag;
	uint8_t version, op, bytes, zero;
	uint32_t qpn, addr;
};

struct sender {
	uint8_t version, bytes;
	uint16_t port;
	uint32_t addr;
};

static struct rig rig;
static struct ibv_ah *ah;
static uint32_t qpn;
static int victim;

static struct sockaddr_in here(uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = port };

	inet_pton(AF_INET, HERE, &addr.sin_addr);
	return addr;
}

/* Requests the number of the socket's queue pair, and reads the datagram of the request. */
static uint32_t ask_for_qpn(const struct sockaddr_in *to)
{
	struct location wire = { .tag = htonl(0x55555555),
				 .version = 4,
				 .bytes = sizeof(wire),
				 .qpn = htonl(rig.a.qp->qp_num),
				 .addr = to->sin_addr.s_addr };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char got[64];

	ck_assert_int_eq(
		sendto(fd, &wire, sizeof(wire), 0, (const struct sockaddr *)to, sizeof(*to)),
		sizeof(wire));
	ck_assert_int_eq(recv(fd, &wire, sizeof(wire), 0), sizeof(wire));
	close(fd);
	ck_assert_int_eq(rrecv(victim, got, sizeof(got), 0), 0);
	return ntohl(wire.qpn);
}

static void begin(void)
{
	struct sockaddr_in addr = here(0);
	socklen_t bytes = sizeof(addr);

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_UD });
	ah = rig_ah(&rig);
	victim = rsocket(AF_INET, SOCK_DGRAM, 0);
	ck_assert_int_eq(rbind(victim, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(rgetsockname(victim, (struct sockaddr *)&addr, &bytes), 0);
	qpn = ask_for_qpn(&addr);
}

static void end(void)
{
	rclose(victim);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	rig_close(&rig);
}

/* Sends a datagram from the foreign queue pair, with a header that names another sender. */
static void send_from(const char *addr, const char *text, uint32_t bytes)
{
	struct sender header = { .version = 4, .bytes = sizeof(header), .port = htons(7) };
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(&rig, IBV_WR_SEND, &sge, bytes);

	inet_pton(AF_INET, addr, &header.addr);
	memcpy(rig.a.memory, &header, sizeof(header));
	strcpy(rig.a.memory + sizeof(header), text);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
}

static void expect(const char *text)
{
	struct pollfd fd = { .fd = victim, .events = POLLIN };
	char got[64] = "nothing";

	if (rpoll(&fd, 1, LIMIT_MS) > 0)
		ck_assert_int_gt(rrecv(victim, got, sizeof(got), MSG_DONTWAIT), 0);
	ck_assert_str_eq(got, text);
}

TEST(too_long_packet_does_not_end_reception)
{
	begin();
	send_from(HERE, "long", LONG_BYTES);
	send_from(HERE, "short", 64);
	expect("short");
	end();
}
END_TEST

TEST(datagram_with_a_forged_sender_is_dropped)
{
	begin();
	send_from(ELSEWHERE, "forged", 64);
	send_from(HERE, "honest", 64);
	expect("honest");
	end();
}
END_TEST
