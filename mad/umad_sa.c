/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to the subnet administrator through libibumad: see umad_sa.h.
 *
 * The kernel matches responses to these requests, unlike CM messages: it delivers a response only
 * while it waits for one. So its timeout is ours, without kernel retries: only one timer should
 * drive retransmissions to a busy administrator.
 */
#include "mad/umad_sa.h"

#include <infiniband/umad.h>

#include "base/fd.h"
#include "mad/sa_msg.h"
#include "mad/umad_node.h"
#include "mad/umad_owner.h"

int umad_sa_open(const char *device, uint8_t port_num, struct umad_sa *ret)
{
	struct umad_reg_attr attr = {
		.mgmt_class = MAD_CLASS_SA,
		.mgmt_class_version = MAD_SA_VERSION,
	};
	char node[UMAD_NODE_BYTES] = "";
	struct umad_owner who;
	int err = umad_find_node(device, port_num, node, &who);

	ret->fd = -1;
	if (err && err != -ENODEV)
		return err;
	ret->fd = umad_open_node(device, port_num, node);
	if (ret->fd < 0)
		return ret->fd;
	err = -umad_register2(ret->fd, &attr, &ret->agent);
	if (err)
		umad_sa_close(ret);
	return err;
}

void umad_sa_close(struct umad_sa *sa)
{
	fd_close(&sa->fd);
}

int umad_sa_send(struct umad_sa *sa, const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		 unsigned int wait_ms)
{
	return umad_write(sa->fd, sa->agent, path, UMAD_QP1, mad, wait_ms);
}

int umad_sa_receive(struct umad_sa *sa, uint8_t mad[MAD_BYTES])
{
	struct ib_user_mad head;
	int err;

	/* The kernel returns an unanswered request with a nonzero status. */
	do
		err = umad_read(sa->fd, &head, mad);
	while (!err && head.status != 0);
	return err;
}
