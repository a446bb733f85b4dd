/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from unused addresses, each from another one: see flooder.h. A host of the soft fabric
 * sends only from its own, so they are put into the socket of the other's QP1.
 */
#include "tests/portd/flooder.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/fabric/wire/packet.h"

#define FIRST_HOST 'a' /* has the address that ends in 1 */

struct stranger {
	struct fab_packet packet;
	uint8_t mad[MAD_BYTES];
};

static int connect_to(const struct mad_gid *peer)
{
	const char *host = getenv("PURECM_FABRIC");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/../%c/gsi", host ? host : "",
		 FIRST_HOST + peer->raw[15] - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("connecting to the other's QP1", -errno);
	return fd;
}

/*
 * Waits for room as other hosts do. In a blocking call, the kernel would give it the room of each
 * received packet, and other hosts' packets would never find any.
 */
static bool send_in_turn(int fd, const struct stranger *stranger)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	while ((n = send(fd, stranger, sizeof(*stranger), 0)) < 0 && errno == EAGAIN)
		poll(&poll_fd, 1, -1);
	return n == sizeof(*stranger);
}

bool send_as_stranger(const struct mad_gid *own, const struct portd_mad *mad)
{
	static uint32_t n;
	static int fd = -1;
	struct stranger stranger = {
		.packet = {
			.magic = FAB_MAGIC,
			.op = FAB_OP_DATAGRAM,
			.service = FAB_SERVICE_UD,
			.flags = FAB_FIRST | FAB_LAST | FAB_GRH,
			.port_num = 1,
			.from_port = 1,
			.pkey = 0xffff,
			.hop_limit = 64,
			.dest_qpn = FAB_QP1,
			.src_qpn = FAB_QP1,
			.qkey = FAB_QP1_QKEY,
			.bytes = MAD_BYTES,
		},
	};

	if (fd < 0)
		fd = connect_to(&mad->path.dgid);
	n++;
	memcpy(stranger.packet.sgid.raw, own->raw, sizeof(own->raw));
	memcpy(stranger.packet.sgid.raw + 13, &n, 3);
	memcpy(stranger.packet.dgid.raw, mad->path.dgid.raw, sizeof(mad->path.dgid.raw));
	memcpy(stranger.mad, mad->mad, MAD_BYTES);
	return send_in_turn(fd, &stranger);
}
