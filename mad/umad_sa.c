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
#include <infiniband/umad_types.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "mad/sa_msg.h"
#include "mad/umad_node.h"
#include "mad/umad_owner.h"

#define RMPP_FLAGS_AT 26

int umad_sa_open(const char *device, uint8_t port_num, struct umad_sa *ret)
{
	struct umad_reg_attr attr = {
		.mgmt_class = MAD_CLASS_SA,
		.mgmt_class_version = MAD_SA_VERSION,
		.rmpp_version = UMAD_RMPP_VERSION,
	};
	char node[UMAD_NODE_BYTES] = "";
	struct umad_owner who;
	int err = umad_find_node(device, port_num, node, &who);

	*ret = (struct umad_sa){ .fd = -1 };
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
	free(sa->buffer.at);
	sa->buffer = (struct umad_buffer){ .at = NULL };
}

int umad_sa_send(struct umad_sa *sa, const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		 unsigned int wait_ms)
{
	return umad_write(sa->fd, sa->agent, path, UMAD_QP1, mad, wait_ms);
}

/*
 * Restores the length of a MAD: the kernel returns whole MADs, ibsim's substitute only the bytes
 * that were written. An assembled message keeps its length.
 */
static void pad_mad(uint8_t *mad, size_t *bytes)
{
	if (*bytes >= MAD_BYTES || (*bytes > RMPP_FLAGS_AT && mad[RMPP_FLAGS_AT] & SA_RMPP_ACTIVE))
		return;
	memset(mad + *bytes, 0, MAD_BYTES - *bytes);
	*bytes = MAD_BYTES;
}

int umad_sa_receive(struct umad_sa *sa, const uint8_t **ret_mad, size_t *ret_bytes)
{
	struct ib_user_mad head;
	int err;

	err = umad_read_whole(sa->fd, &sa->buffer, ret_bytes);
	if (err)
		return err == -EMSGSIZE ? -ENOMSG : err;
	memcpy(&head, sa->buffer.at, sizeof(head));
	if (head.status != 0) /* the kernel returns an unanswered request */
		return -ENOMSG;
	pad_mad(sa->buffer.at + sizeof(head), ret_bytes);
	*ret_mad = sa->buffer.at + sizeof(head);
	return 0;
}
