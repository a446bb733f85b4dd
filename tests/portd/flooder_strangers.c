/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages from addresses that nobody has, see flooder.h: each comes from another one. A host of
 * the soft fabric sends only from its own, so they are put into the socket of the other's QP1.
 */
#include "tests/portd/flooder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/fabric/wire/packet.h"

#define FIRST_HOST 'a' /* has the address that ends with 1 */

struct stranger {
	struct fab_packet packet;
	uint8_t mad[MAD_BYTES];
};

static void find_socket(const struct mad_gid *peer, struct sockaddr_un *ret)
{
	const char *host = getenv("PURECM_FABRIC");

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/../%c/gsi", host ? host : "",
		 FIRST_HOST + peer->raw[15] - 1);
}

bool send_as_stranger(const struct mad_gid *own, const struct portd_mad *mad)
{
	static struct sockaddr_un to;
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

	if (fd < 0) {
		fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		find_socket(&mad->path.dgid, &to);
	}
	n++;
	memcpy(stranger.packet.sgid.raw, own->raw, sizeof(own->raw));
	memcpy(stranger.packet.sgid.raw + 13, &n, 3);
	memcpy(stranger.packet.dgid.raw, mad->path.dgid.raw, sizeof(mad->path.dgid.raw));
	memcpy(stranger.mad, mad->mad, MAD_BYTES);
	return sendto(fd, &stranger, sizeof(stranger), 0, (struct sockaddr *)&to, sizeof(to)) ==
	       sizeof(stranger);
}
