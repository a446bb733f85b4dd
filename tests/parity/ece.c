/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: enhanced connection establishment: vendor and options that a side offers and gets. The
 * queue pairs of rxe do not support it.
 */
#include "steps.h"

static void show_remote(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2, .comp_mask = 9 };

	DO(rdma_get_remote_ece(id, &ece));
	SAY("vendor %#x options %#x comp_mask %u", ece.vendor_id, ece.options, ece.comp_mask);
}

static int set_local(struct rdma_cm_id *id, uint32_t vendor_id, uint32_t options)
{
	struct ibv_ece ece = { .vendor_id = vendor_id, .options = options };

	return DO(rdma_set_local_ece(id, &ece));
}

static void ece_rules_hold_before_a_connection(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "id", RDMA_PS_TCP);
	struct ibv_ece ece = { .vendor_id = 0, .options = 5 };

	DO(rdma_set_local_ece(id, &ece));
	ece.vendor_id = 7;
	DO(rdma_set_local_ece(id, &ece));
	ece.comp_mask = 1;
	DO(rdma_set_local_ece(id, &ece));
	DO(rdma_get_remote_ece(id, &ece));
	SAY("vendor %u options %u comp_mask %u", ece.vendor_id, ece.options, ece.comp_mask);
	resolve(s, id, 1);
	make_qp(id);
	ece = (struct ibv_ece){ .vendor_id = 7 };
	DO(rdma_set_local_ece(id, &ece));
	DO(rdma_get_remote_ece(id, &ece));
	close_id(id);
}

static void ece_travels_both_ways(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");
	struct ibv_ece ece = { .vendor_id = 0x123456, .options = 0x89abcdef };

	param.qp_num = unused_qpn();
	DO(rdma_set_local_ece(id, &ece));
	DO(rdma_connect(id, &param));
	take_event(s);
	show_remote(id);
	DO(rdma_establish(id));
	meet(s);
	close_id(id);
}

static void answer_with_ece(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("ece");
	struct ibv_ece ece = { .vendor_id = 0x654321, .options = 0x1020304 };

	param.qp_num = unused_qpn();
	show_remote(child);
	DO(rdma_set_local_ece(child, &ece));
	DO(rdma_accept(child, &param));
	take_event(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* More than the message's field holds; the last call counts. */
static void try_odd_vendors(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");

	param.qp_num = unused_qpn();
	set_local(id, 5, 6);
	set_local(id, 0xff123456, 0xffffffff);
	DO(rdma_connect(id, &param));
	set_local(id, 7, 8);
	take_event(s);
	show_remote(id);
	DO(rdma_establish(id));
	show_remote(id);
	meet(s);
	close_id(id);
}

static void answer_without_ece(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_conn_param param = usual_param("ece");

	set_local(listener, 1, 2);
	show_remote(listener);
	child = wait_request(s);
	param.qp_num = unused_qpn();
	show_remote(child);
	DO(rdma_accept(child, &param));
	take_event(s);
	show_remote(child);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void connect_without_ece(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");

	param.qp_num = unused_qpn();
	DO(rdma_connect(id, &param));
	take_event(s);
	show_remote(id);
	DO(rdma_establish(id));
	meet(s);
	close_id(id);
}

/* A queue pair of the library responds to a peer with options. */
static void offer_to_a_library_queue_pair(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");

	param.qp_num = unused_qpn();
	set_local(id, 0x123456, 0x89abcdef);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_remote(id);
	DO(rdma_establish(id));
	meet(s);
	close_id(id);
}

static void answer_with_a_library_queue_pair(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("ece");
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	show_remote(child);
	DO(rdma_create_qp(child, NULL, &attr));
	show_remote(child);
	param.qp_num = unused_qpn();
	if (!DO(rdma_accept(child, &param)))
		take_event(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* Options set before the library created a queue pair. */
static void offer_then_a_library_queue_pair(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");

	set_local(id, 0x123456, 0x89abcdef);
	make_qp(id);
	show_remote(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_qp_state(id);
	show_remote(id);
	meet(s);
	rdma_destroy_qp(id);
	show_remote(id);
	close_id(id);
}

static void ask_with_a_library_queue_pair(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");

	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_qp_state(id);
	meet(s);
	rdma_destroy_qp(id);
	show_remote(id);
	close_id(id);
}

static void offer_and_be_rejected(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("ece");

	param.qp_num = unused_qpn();
	set_local(id, 0x123456, 0x89abcdef);
	DO(rdma_connect(id, &param));
	take_event(s);
	show_remote(id);
	meet(s);
	close_id(id);
}

static void reject_the_offer(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);

	DO(rdma_reject_ece(child, "other options", 13));
	DO(rdma_reject_ece(child, "other options", 13));
	meet(s);
	close_id(child);
	close_id(listener);
}

const struct scenario ece_scenarios[] = {
	LOCAL("args-ece", ece_rules_hold_before_a_connection, 0,
	      "when ECE options may be set and read"),
	PAIR("external-ece", ece_travels_both_ways, answer_with_ece, 0,
	     "ECE options in request and reply"),
	PAIR("ece-odd", try_odd_vendors, answer_without_ece, 0,
	     "vendors wider than the field, options set too late, a reply without"),
	PAIR("ece-unasked", connect_without_ece, answer_with_ece, 0, "options in a reply only"),
	PAIR("ece-to-library", offer_to_a_library_queue_pair, answer_with_a_library_queue_pair, 0,
	     "options offered to a queue pair of the library"),
	PAIR("ece-by-library", offer_then_a_library_queue_pair, answer_with_ece, 0,
	     "options set before the library makes a queue pair"),
	PAIR("ece-from-external", ask_with_a_library_queue_pair, answer_with_ece, 0,
	     "a queue pair of the library is answered with options"),
	PAIR("ece-refused", offer_and_be_rejected, reject_the_offer, 0, "rdma_reject_ece"),
	LAST_SCENARIO,
};
