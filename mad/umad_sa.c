/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the subnet administrator through libibumad: see umad_sa.h.
 *
 * Unlike CM messages these are requests that the kernel knows answers to: it lets a response
 * through only while it waits for it. So it is told to wait for as long as we do, and repeats
 * nothing, because an administrator that is busy should be asked by one clock, not by two.
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

	/* What was sent comes back with a status if it was not answered. */
	do
		err = umad_read(sa->fd, &head, mad);
	while (!err && head.status != 0);
	return err;
}
