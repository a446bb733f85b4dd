/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_getaddrinfo(), which needs no id, and for services of a subnet the engine.
 */
#include "lib/api.h"
#include "lib/conn/upcalls.h"
#include "lib/names/addrinfo.h"

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	int cancel_state = api_enter();
	int eai = 0, err = 0;

	if (hints && hints->ai_flags & RAI_SA)
		err = upcalls_start();
	if (!err)
		err = addrinfo_find(node, service, hints, cancel_state, res, &eai);
	api_leave(cancel_state);
	return eai ? eai : api_result(err);
}
