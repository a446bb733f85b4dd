/* SPDX-License-Identifier: BSD-2-Clause */
/* Text forms of CM messages, REJ reasons and SIDR_REP statuses. */
#include <string.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"

/* IBTA vol. 1, table 109. */
static const char *const rej_reasons[] = {
	[1] = "no queue pair available",
	[2] = "no end-to-end context available",
	[3] = "no resources available",
	[4] = "timeout: the peer gave up waiting",
	[5] = "unsupported request",
	[6] = "invalid communication id",
	[7] = "invalid communication instance",
	[8] = "invalid service id: nobody listens there",
	[9] = "invalid transport service type",
	[10] = "stale connection: the peer still has an older one with this queue pair",
	[11] = "reliable datagram channel does not exist",
	[12] = "primary remote port GID rejected",
	[13] = "primary remote port LID rejected",
	[14] = "invalid primary service level",
	[15] = "invalid primary traffic class",
	[16] = "invalid primary hop limit",
	[17] = "invalid primary packet rate",
	[18] = "alternate remote port GID rejected",
	[19] = "alternate remote port LID rejected",
	[20] = "invalid alternate service level",
	[21] = "invalid alternate traffic class",
	[22] = "invalid alternate hop limit",
	[23] = "invalid alternate packet rate",
	[24] = "port and connection manager redirection",
	[25] = "port redirection",
	[26] = "invalid path MTU",
	[27] = "insufficient responder resources",
	[28] = "rejected by the consumer",
	[29] = "RNR retry count rejected",
	[30] = "duplicate local communication id",
	[31] = "invalid class version",
	[32] = "invalid primary flow label",
	[33] = "invalid alternate flow label",
	[35] = "vendor option not supported",
};

/* IBTA vol. 1, 12.11: SIDR_REP.status. */
static const char *const sidr_statuses[] = {
	[0] = "success",
	[1] = "service id not supported: nobody listens there",
	[2] = "rejected by the service provider",
	[3] = "no queue pair available",
	[4] = "redirected by the service provider",
	[5] = "version not supported",
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

const char *cm_rej_reason_str(uint16_t reason)
{
	const char *text = reason < N(rej_reasons) ? rej_reasons[reason] : NULL;

	return text ? text : "reserved reason";
}

const char *cm_sidr_status_str(uint8_t status)
{
	return status < N(sidr_statuses) ? sidr_statuses[status] : "reserved status";
}

/* Moves the CMA header, if there is one, out of the private data. */
static bool cut_cma_hdr(uint64_t service_id, uint8_t *data, size_t bytes, struct cma_hdr *ret_cma)
{
	struct cma_hdr cma;

	if (!cma_service_is_ip(service_id) || !cma_hdr_read(data, &cma))
		return false;
	memmove(data, data + CMA_HDR_BYTES, bytes - CMA_HDR_BYTES);
	memset(data + bytes - CMA_HDR_BYTES, 0, CMA_HDR_BYTES);
	*ret_cma = cma;
	return true;
}

void cm_msg_print(const struct cm_msg *msg, FILE *out)
{
	const struct wire_layout *layout = cm_msg_layout(msg->hdr.attr_id);
	struct cm_msg copy = *msg;
	struct cma_hdr cma;
	bool has_cma = false;

	if (!layout) {
		fprintf(out, "attribute 0x%x", msg->hdr.attr_id);
		return;
	}
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		has_cma = cut_cma_hdr(copy.req.service_id, copy.req.private_data,
				      sizeof(copy.req.private_data), &cma);
	else if (msg->hdr.attr_id == CM_ATTR_SIDR_REQ)
		has_cma = cut_cma_hdr(copy.sidr_req.service_id, copy.sidr_req.private_data,
				      sizeof(copy.sidr_req.private_data), &cma);

	fputs(layout->name, out);
	wire_print(layout, &copy.req, 0, out);
	if (has_cma)
		wire_print(&cma_hdr_layout, &cma, 0, out);
	if (msg->hdr.attr_id == CM_ATTR_REJ)
		fprintf(out, " (%s)", cm_rej_reason_str(msg->rej.reason));
	else if (msg->hdr.attr_id == CM_ATTR_SIDR_REP)
		fprintf(out, " (%s)", cm_sidr_status_str(msg->sidr_rep.status));
	if (msg->hdr.attr_mod)
		fprintf(out, " attr_mod=0x%x", msg->hdr.attr_mod);
}
