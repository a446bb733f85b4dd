/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity: datagram ids, whose connect is a service lookup (SIDR). */
#include "steps.h"

static const uint8_t noise[255] = { [0] = 0xd0, [135] = 0xd1, [179] = 0xd2, [180] = 0xd3 };

static struct rdma_conn_param datagram_param(const void *data, uint8_t length)
{
	return (struct rdma_conn_param){ .private_data = data, .private_data_len = length };
}

static void look_up(struct scene *s, const void *data, uint8_t length)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_UDP);
	struct rdma_conn_param param = datagram_param(data, length);

	make_qp(id);
	if (!DO(rdma_connect(id, &param)))
		take_event(s);
	show_qp_state(id);
	DO(rdma_connect(id, &param));
	show_quiet(s->channel);
	meet(s);
	DO(rdma_disconnect(id));
	show_qp_state(id);
	show_quiet(s->channel);
	close_id(id);
}

static void look_up_with_data(struct scene *s)
{
	look_up(s, "where?", 6);
}

static void look_up_without_data(struct scene *s)
{
	look_up(s, NULL, 0);
}

static void look_up_with_most_data(struct scene *s)
{
	look_up(s, noise, 180);
}

static void look_up_with_too_much_data(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_UDP);
	struct rdma_conn_param param = datagram_param(noise, 181);

	make_qp(id);
	DO(rdma_connect(id, &param));
	param.private_data_len = 180;
	DO(rdma_connect(id, &param));
	take_event(s);
	meet(s);
	close_id(id);
}

static void look_up_without_listener(struct scene *s)
{
	s->port += 400;
	look_up_with_data(s);
}

static void look_up_without_qp(struct scene *s)
{
	struct rdma_cm_id *id = dial_ready(s, RDMA_PS_UDP);

	DO(rdma_connect(id, NULL));
	take_event(s);
	meet(s);
	close_id(id);
}

static struct rdma_cm_id *next_lookup(struct scene *s)
{
	struct rdma_cm_event *event = wait_event(s->channel);
	struct rdma_cm_id *child = event->id;

	assign_id_name(child, "child");
	has_flow_of_ports(rdma_get_dst_port(child), rdma_get_src_port(child));
	show_id(child);
	rdma_ack_cm_event(event);
	return child;
}

static void answer_with(struct scene *s, const void *data, uint8_t length)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0);
	struct rdma_cm_id *child = next_lookup(s);
	struct rdma_conn_param param = datagram_param(data, length);

	make_qp(child);
	DO(rdma_accept(child, &param));
	show_quiet(s->channel);
	DO(rdma_accept(child, &param));
	meet(s);
	DO(rdma_disconnect(child));
	show_qp_state(child);
	show_quiet(s->channel);
	close_id(child);
	close_id(listener);
}

static void answer_with_data(struct scene *s)
{
	answer_with(s, "here", 4);
}

static void answer_with_most_data(struct scene *s)
{
	answer_with(s, noise, 136);
}

static void answer_with_too_much_data(struct scene *s)
{
	answer_with(s, noise, 137);
}

static void reject_lookup(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0);
	struct rdma_cm_id *child = next_lookup(s);

	DO(rdma_reject(child, noise, 137));
	DO(rdma_reject(child, "not here", 8));
	DO(rdma_reject(child, "not here", 8));
	meet(s);
	close_id(child);
	close_id(listener);
}

static void drop_lookup(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0);

	DO(rdma_destroy_id(next_lookup(s)));
	meet(s);
	close_id(listener);
}

static void listen_elsewhere(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_UDP, 0);

	meet(s);
	show_quiet(s->channel);
	close_id(listener);
}

static void listen_for_connections(struct scene *s)
{
	struct rdma_cm_id *listener = listen_here(s, RDMA_PS_TCP, 0);

	meet(s);
	show_quiet(s->channel);
	close_id(listener);
}

const struct scenario datagram_scenarios[] = {
	PAIR("datagram-lookup", look_up_with_data, answer_with_data, 0,
	     "a lookup that is answered"),
	PAIR("datagram-no-data", look_up_without_data, answer_with_data, 0,
	     "a lookup without private data"),
	PAIR("datagram-most-data", look_up_with_most_data, answer_with_most_data, 0,
	     "as much private data as fits"),
	PAIR("datagram-too-much", look_up_with_too_much_data, answer_with_data, 0,
	     "too much private data in a lookup"),
	PAIR("datagram-long-answer", look_up_with_data, answer_with_too_much_data, 0,
	     "too much private data in an answer"),
	PAIR("datagram-refused", look_up_with_data, reject_lookup, 0, "a lookup refused"),
	PAIR("datagram-dropped", look_up_with_data, drop_lookup, 0, "the lookup's id is destroyed"),
	PAIR("datagram-nobody", look_up_without_listener, listen_elsewhere, 0, "nobody listens"),
	PAIR("datagram-other-space", look_up_with_data, listen_for_connections, 0,
	     "the listener is in another port space"),
	PAIR("datagram-no-qp", look_up_without_qp, answer_with_data, 0,
	     "neither queue pair nor parameters"),
	LAST_SCENARIO,
};
