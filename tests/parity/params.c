/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: connection parameters and private data, as passed and as the peer gets them. */
#include "steps.h"

static const uint8_t noise[255] = {
	[0] = 0xa0, [55] = 0xa1, [56] = 0xa2, [195] = 0xa3, [196] = 0xa4
};

/* Connects with parameters, then disconnects. */
static void connect_with(struct scene *s, struct rdma_conn_param *param, bool with_qp)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);

	if (with_qp)
		make_qp(id);
	if (!DO(rdma_connect(id, param)))
		take_event(s);
	if (!with_qp)
		DO(rdma_establish(id));
	meet(s);
	close_id(id);
}

static void accept_with(struct scene *s, struct rdma_conn_param *param)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child;
	struct rdma_cm_event *event = wait_event(s->channel);

	child = event->id;
	assign_id_name(child, "child");
	rdma_ack_cm_event(event);
	make_qp(child);
	if (!DO(rdma_accept(child, param)))
		take_event(s);
	else
		show_qp_state(child);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void connect_without_parameters(struct scene *s)
{
	connect_with(s, NULL, true);
}

static void accept_without_parameters(struct scene *s)
{
	accept_with(s, NULL);
}

/* Nor for a queue pair, which only RDMA_PS_TCP requires. */
static void connect_without_parameters_in_ib(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_IB);

	DO(rdma_connect(id, NULL));
	take_event(s);
	meet(s);
	close_id(id);
}

static void reject_without_parameters_in_ib(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_IB, 0);
	struct rdma_cm_event *event = wait_event(s->channel);
	struct rdma_cm_id *child = event->id;

	rdma_ack_cm_event(event);
	DO(rdma_reject(child, NULL, 0));
	meet(s);
	close_id(child);
	close_id(listener);
}

static void connect_with_zeros(struct scene *s)
{
	struct rdma_conn_param param = { 0 };

	connect_with(s, &param, true);
}

static void accept_with_zeros(struct scene *s)
{
	struct rdma_conn_param param = { 0 };

	accept_with(s, &param);
}

static const struct rdma_conn_param maximum = {
	.responder_resources = RDMA_MAX_RESP_RES,
	.initiator_depth = RDMA_MAX_INIT_DEPTH,
	.flow_control = 1,
	.retry_count = 255,
	.rnr_retry_count = 255,
	.srq = 1,
};

static void connect_with_maxima(struct scene *s)
{
	struct rdma_conn_param param = maximum;

	connect_with(s, &param, true);
}

static void accept_with_maxima(struct scene *s)
{
	struct rdma_conn_param param = maximum;

	accept_with(s, &param);
}

static const struct rdma_conn_param lopsided = {
	.responder_resources = 3,
	.initiator_depth = 5,
	.flow_control = 2,
	.retry_count = 4,
	.rnr_retry_count = 2,
};

static void connect_with_different_depths(struct scene *s)
{
	struct rdma_conn_param param = lopsided;

	connect_with(s, &param, true);
}

static void accept_with_different_depths(struct scene *s)
{
	struct rdma_conn_param param = lopsided;

	param.responder_resources = 7;
	param.initiator_depth = 2;
	accept_with(s, &param);
}

static void connect_with_own_queue_pair(struct scene *s)
{
	struct rdma_conn_param param = lopsided;

	param.qp_num = 0x81000000 | unused_qpn();
	param.srq = 1;
	connect_with(s, &param, false);
}

static void connect_with_excessive_depths(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("deep");

	make_qp(id);
	param.responder_resources = 254;
	DO(rdma_connect(id, &param));
	param.responder_resources = 1;
	param.initiator_depth = 254;
	DO(rdma_connect(id, &param));
	param.initiator_depth = 1;
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	close_id(id);
}

static void accept_with_excessive_depths(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("deep");

	make_qp(child);
	param.responder_resources = 254;
	DO(rdma_accept(child, &param));
	show_qp_state(child);
	param.responder_resources = 1;
	param.initiator_depth = 254;
	DO(rdma_accept(child, &param));
	show_qp_state(child);
	param.initiator_depth = 1;
	DO(rdma_accept(child, &param));
	take_event(s);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void connect_with_data(struct scene *s, uint8_t length)
{
	struct rdma_conn_param param = usual_param(NULL);

	param.private_data = length ? noise : NULL;
	param.private_data_len = length;
	connect_with(s, &param, true);
}

static void accept_with_data(struct scene *s, uint8_t length)
{
	struct rdma_conn_param param = usual_param(NULL);

	param.private_data = length ? noise : NULL;
	param.private_data_len = length;
	accept_with(s, &param);
}

static void connect_without_data(struct scene *s)
{
	connect_with_data(s, 0);
}

static void accept_without_data(struct scene *s)
{
	accept_with_data(s, 0);
}

static void connect_with_most_data(struct scene *s)
{
	connect_with_data(s, 56);
}

static void accept_with_most_data(struct scene *s)
{
	accept_with_data(s, 196);
}

static void accept_with_too_much_data(struct scene *s)
{
	accept_with_data(s, 197);
}

static void connect_with_too_much_data(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param(NULL);

	make_qp(id);
	param.private_data = noise;
	param.private_data_len = 57;
	DO(rdma_connect(id, &param));
	param.private_data_len = 255;
	DO(rdma_connect(id, &param));
	param.private_data_len = 1;
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	close_id(id);
}

static void accept_twice(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = accept_request(s);
	struct rdma_conn_param param = usual_param("again");

	DO(rdma_accept(child, &param));
	show_qp_state(child);
	DO(rdma_reject(child, NULL, 0));
	show_quiet(s->channel);
	meet(s);
	close_id(child);
	close_id(listener);
}

/* The value in the queue pair, which only the side that set the option has. */
static void connect_with_own_timeout(struct scene *s)
{
	struct rdma_cm_id *id = open_id(s, "client", RDMA_PS_TCP);
	struct rdma_conn_param param = usual_param("timeout");
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timeout = 13, tos = 0x20;

	meet(s);
	DO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	DO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	resolve(s, id, s->port);
	make_qp(id);
	DO(rdma_connect(id, &param));
	take_event(s);
	DO(ibv_query_qp(id->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_AV, &init));
	show_qp_attr(&attr, IBV_QP_TIMEOUT | IBV_QP_AV);
	meet(s);
	close_id(id);
}

static void accept_and_show_timeout(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = accept_request(s);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	DO(ibv_query_qp(child->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_AV, &init));
	show_qp_attr(&attr, IBV_QP_TIMEOUT | IBV_QP_AV);
	meet(s);
	close_id(child);
	close_id(listener);
}

static void accept_with_own_timeout(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0), *child = wait_request(s);
	struct rdma_conn_param param = usual_param("timeout");
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timeout = 11;

	DO(rdma_set_option(child, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	make_qp(child);
	DO(rdma_accept(child, &param));
	take_event(s);
	DO(ibv_query_qp(child->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_AV, &init));
	show_qp_attr(&attr, IBV_QP_TIMEOUT | IBV_QP_AV);
	meet(s);
	close_id(child);
	close_id(listener);
}

const struct scenario param_scenarios[] = {
	PAIR("params-null", connect_without_parameters, accept_without_parameters, 0,
	     "no parameters at all"),
	PAIR("params-null-ib", connect_without_parameters_in_ib, reject_without_parameters_in_ib, 0,
	     "neither parameters nor a queue pair, in RDMA_PS_IB"),
	PAIR("params-zero", connect_with_zeros, accept_with_zeros, 0, "all zero"),
	PAIR("params-maximum", connect_with_maxima, accept_with_maxima, 0,
	     "0xFF for the depths, 255 for the retries"),
	PAIR("params-maximum-null", connect_with_maxima, accept_without_parameters, 0,
	     "0xFF for the depths, accepted without parameters"),
	PAIR("params-depths", connect_with_different_depths, accept_with_different_depths, 0,
	     "different depths each way, other ones in the answer"),
	PAIR("params-depths-null", connect_with_different_depths, accept_without_parameters, 0,
	     "different depths each way, accepted without parameters"),
	PAIR("params-depths-maximum", connect_with_different_depths, accept_with_maxima, 0,
	     "different depths each way, 0xFF in the answer"),
	PAIR("params-own-qpn", connect_with_own_queue_pair, accept_with_different_depths, 0,
	     "a queue pair number and SRQ flag from the caller"),
	PAIR("params-too-deep", connect_with_excessive_depths, accept_with_excessive_depths, 0,
	     "depths beyond what the device can do"),
	PAIR("params-no-data", connect_without_data, accept_without_data, 0, "no private data"),
	PAIR("params-most-data", connect_with_most_data, accept_with_most_data, 0,
	     "as much private data as fits"),
	PAIR("params-too-much-data", connect_with_too_much_data, accept_without_data, 0,
	     "too much private data in connect"),
	PAIR("params-too-much-answer", connect_without_data, accept_with_too_much_data, 0,
	     "too much private data in accept"),
	PAIR("params-accept-twice", connect_without_data, accept_twice, 0,
	     "a second accept, a late reject"),
	PAIR("params-timeout", connect_with_own_timeout, accept_and_show_timeout, 0,
	     "the active side's ACK timeout and type of service"),
	PAIR("params-accept-timeout", connect_without_data, accept_with_own_timeout, 0,
	     "the passive side's ACK timeout"),
	LAST_SCENARIO,
};
