/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enhanced connection establishment: see ece.h. rdma_set_local_ece(), rdma_get_remote_ece().
 */
#include "lib/verbs/ece.h"

#include <errno.h>

#include "lib/api.h"

#define VENDOR_ID_MASK 0xffffff

void ece_put_req(const struct id *id, struct cm_msg *msg)
{
	msg->req.vendor_id = id->local_ece.vendor_id & VENDOR_ID_MASK;
	msg->hdr.attr_mod = id->local_ece.options;
}

void ece_put_rep(const struct id *id, struct cm_msg *msg)
{
	msg->rep.vendor_id = id->remote_ece.vendor_id & VENDOR_ID_MASK;
	msg->hdr.attr_mod = id->local_ece.options;
}

/* --- queue pairs of the library ------------------------------------------ */

int ece_ask(struct id *id, struct ibv_qp *qp)
{
	struct ibv_ece ece = { 0 };
	int err = ibv_query_ece(qp, &ece);

	if (err && err != EOPNOTSUPP)
		return -err;
	id->local_ece = err ? (struct ibv_ece){ 0 } : ece;
	return 0;
}

/* Options of another vendor are meaningless here: the driver gets none. */
static int pass_to_driver(const struct id *id, struct ibv_qp *qp, const struct ibv_ece *remote)
{
	struct ibv_ece ece = { .vendor_id = id->local_ece.vendor_id };
	int err;

	if (!ece.vendor_id)
		return 0;
	if (remote->vendor_id == ece.vendor_id)
		ece.options = remote->options;
	err = ibv_set_ece(qp, &ece);
	return err == EOPNOTSUPP ? 0 : err;
}

int ece_begin(struct id *id, struct ibv_qp *qp)
{
	int err = ece_ask(id, qp);

	if (err || !id->remote_ece.vendor_id)
		return err;
	return -pass_to_driver(id, qp, &id->remote_ece);
}

int ece_agree(struct id *id)
{
	struct ibv_ece *remote = &id->remote_ece;

	if (!remote->vendor_id)
		remote->options = 0;
	else if (remote->vendor_id != id->local_ece.vendor_id)
		return -EINVAL;
	return pass_to_driver(id, id->pub.qp, remote);
}

/* --- queue pairs of the program ------------------------------------------ */

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	int err = id_check(id);

	if (!err && (id->qp || !ece || !ece->vendor_id || ece->comp_mask))
		err = -EINVAL;
	if (!err)
		id_of(id)->local_ece = *ece;
	return api_result(err);
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	int err = id_check(id);

	if (!err && (id->qp || !ece))
		err = -EINVAL;
	if (err)
		return api_result(err);
	*ece = (struct ibv_ece){ .vendor_id = id_of(id)->remote_ece.vendor_id,
				 .options = id_of(id)->remote_ece.options };
	return 0;
}
