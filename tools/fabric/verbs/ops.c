/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of functions behind the inline functions of verbs.h. Missing functions are not
 * supported; verbs.h returns an error to the program, except for a few that it calls without a
 * check.
 */

#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/cq_poll.h"
#include "tools/fabric/verbs/device_memory.h"
#include "tools/fabric/verbs/domain.h"
#include "tools/fabric/verbs/memory.h"
#include "tools/fabric/verbs/port.h"
#include "tools/fabric/verbs/qp.h"
#include "tools/fabric/verbs/srq.h"
#include "tools/fabric/verbs/window.h"
#include "tools/fabric/verbs/xrc.h"

void context_set_ops(struct verbs_context *verbs)
{
	struct ibv_context_ops *ops = &verbs->context.ops;

	ops->poll_cq = cq_poll;
	ops->req_notify_cq = cq_req_notify;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	ops->alloc_mw = window_alloc;
	ops->dealloc_mw = window_dealloc;
	ops->bind_mw = post_bind;
	verbs->query_port = port_query;
	verbs->query_device_ex = device_query_ex;
	verbs->query_rt_values = device_query_clock;
	verbs->create_cq_ex = cq_create_ex;
	verbs->create_qp_ex = qp_create_ex;
	verbs->advise_mr = memory_advise;
	verbs->alloc_dm = device_memory_alloc;
	verbs->free_dm = device_memory_free;
	verbs->reg_dm_mr = device_memory_reg;
	verbs->alloc_td = domain_alloc_td;
	verbs->dealloc_td = domain_dealloc_td;
	verbs->alloc_parent_domain = domain_alloc_parent;
	verbs->open_xrcd = xrc_open;
	verbs->close_xrcd = xrc_close;
	verbs->create_srq_ex = srq_create_ex;
	verbs->get_srq_num = xrc_srq_number;
}
