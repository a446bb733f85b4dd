/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing of events for the parity scenarios: kind, status, ids, and the parameters. */
#include "show.h"

/* Private data in hexadecimal; trailing zeros are only counted. */
static void show_private_data(const void *data, size_t length)
{
	const uint8_t *byte = data;
	size_t used = length, i;

	if (!data || !length) {
		printf("data %s/%zu", data ? "set" : "NULL", length);
		return;
	}
	while (used && !byte[used - 1])
		used--;
	printf("data ");
	for (i = 0; i < used; i++)
		printf("%02x", byte[i]);
	printf("+%zu zeros", length - used);
}

static void show_conn(const struct rdma_conn_param *conn)
{
	printf("  conn ");
	show_private_data(conn->private_data, conn->private_data_len);
	SAY(" responder %u initiator %u flow %u retry %u rnr %u srq %u qpn %s",
	    conn->responder_resources, conn->initiator_depth, conn->flow_control, conn->retry_count,
	    conn->rnr_retry_count, conn->srq, conn->qp_num ? "set" : "0");
}

static void show_ud(const struct rdma_ud_param *ud)
{
	printf("  ud ");
	show_private_data(ud->private_data, ud->private_data_len);
	SAY(" qkey %#x qpn %s", ud->qkey, ud->qp_num ? "set" : "0");
	show_ah("ud ah", &ud->ah_attr);
}

void show_event(const struct rdma_cm_event *event)
{
	printf("event %s status %d", rdma_event_str(event->event), event->status);
	if (event->status < -1)
		printf(" %s", strerrorname_np(-event->status));
	SAY(" id %s listen_id %s context %s", id_name(event->id), id_name(event->listen_id),
	    event->id && event->id->context ? (const char *)event->id->context : "NULL");
	if (event->id && event->id->qp_type == IBV_QPT_UD)
		show_ud(&event->param.ud);
	else
		show_conn(&event->param.conn);
}
