/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enhanced connection establishment, for devices with the quirk. A queue pair begins with all
 * options of this vendor, and keeps those that the program sets. They are agreed on, and change
 * nothing else.
 */
#include <errno.h>

#include "tools/fabric/verbs/objects.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"

#define ECE_OPTIONS 0x7

static bool has_ece(const struct ibv_qp *qp)
{
	return fab_has_quirk(to_context(qp->context)->device->page, FAB_QUIRK_ECE);
}

int ibv_set_ece(struct ibv_qp *ibv, struct ibv_ece *ece)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);

	if (!ece->vendor_id) /* of a peer without options */
		return 0;
	if (!has_ece(ibv))
		return command_return(EOPNOTSUPP);
	if (ece->vendor_id != FAB_VENDOR_ID || ece->comp_mask)
		return command_return(EINVAL);
	ece->options &= ECE_OPTIONS;
	pthread_mutex_lock(&context->lock);
	qp->has_ece = true;
	qp->ece_options = ece->options;
	pthread_mutex_unlock(&context->lock);
	return 0;
}

int ibv_query_ece(struct ibv_qp *ibv, struct ibv_ece *ece)
{
	struct fab_context *context = to_context(ibv->context);
	const struct fab_qp *qp = to_qp(ibv);

	*ece = (struct ibv_ece){ .vendor_id = 0 };
	if (!has_ece(ibv))
		return command_return(EOPNOTSUPP);
	pthread_mutex_lock(&context->lock);
	ece->vendor_id = FAB_VENDOR_ID;
	ece->options = qp->has_ece ? qp->ece_options : ECE_OPTIONS;
	pthread_mutex_unlock(&context->lock);
	return 0;
}
