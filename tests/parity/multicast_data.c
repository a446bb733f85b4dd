/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parity: datagrams to multicast groups. The client sends, as a send-only or a full member; the
 * members are on the server's host.
 */
#include <rdma/rdma_verbs.h>

#include "groups.h"

#define GRH_BYTES     40
#define MESSAGE_BYTES 64

/* A member with a buffer for one datagram at a time. */
struct member {
	struct rdma_cm_id *id;
	struct rdma_ud_param to; /* the group */
	struct ibv_mr *mr;
	char buffer[GRH_BYTES + MESSAGE_BYTES];
};

static void listen_for_one(struct member *member)
{
	memset(member->buffer, 0, sizeof(member->buffer));
	if (rdma_post_recv(member->id, member, member->buffer, sizeof(member->buffer), member->mr))
		give_up("rdma_post_recv: %s", strerror(errno));
}

static void join_group(struct scene *s, struct member *member, const char *label, bool only_sends)
{
	struct rdma_cm_join_mc_attr_ex attr = send_only(group(s, 1));
	struct rdma_cm_event *event;

	if (!only_sends)
		attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	member->id = bound_datagram_id(s, label);
	make_qp(member->id);
	member->mr = rdma_reg_msgs(member->id, member->buffer, sizeof(member->buffer));
	DO(rdma_join_multicast_ex(member->id, &attr, member));
	event = wait_event(s->channel);
	member->to = event->param.ud;
	rdma_ack_cm_event(event);
	listen_for_one(member);
}

static void leave_group(struct member *member)
{
	rdma_dereg_mr(member->mr);
	close_id(member->id);
}

static bool is_complete(struct ibv_cq *cq, struct ibv_wc *wc, int patience_ms)
{
	int i;

	for (i = 0; i < patience_ms; i++) {
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return true;
		pause_ms(1);
	}
	return false;
}

static void send_to_group(struct member *member, const char *text)
{
	struct ibv_ah *ah = ibv_create_ah(member->id->pd, &member->to.ah_attr);
	char message[MESSAGE_BYTES] = { 0 };
	struct ibv_mr *mr = rdma_reg_msgs(member->id, message, sizeof(message));
	struct ibv_wc wc;

	if (!ah || !mr)
		give_up("ibv_create_ah: %s", strerror(errno));
	strcpy(message, text);
	DO(rdma_post_ud_send(member->id, NULL, message, sizeof(message), mr, 0, ah,
			     member->to.qp_num));
	if (!is_complete(member->id->send_cq, &wc, PATIENCE_MS))
		give_up("no completion of a send");
	SAY("sent \"%s\": status %d", text, wc.status);
	rdma_dereg_mr(mr);
	ibv_destroy_ah(ah);
}

static void show_received(struct member *member, int patience_ms)
{
	struct ibv_wc wc;

	if (!is_complete(member->id->recv_cq, &wc, patience_ms)) {
		SAY("%s receives nothing", id_name(member->id));
		return;
	}
	SAY("%s receives \"%s\" bytes %u status %d flags %#x", id_name(member->id),
	    member->buffer + GRH_BYTES, wc.byte_len, wc.status, wc.wc_flags);
	listen_for_one(member);
}

/* Both sides call this: one sends, the others check what they received. */
static void send_step(struct scene *s, struct member *sender, const char *text)
{
	meet(s);
	send_to_group(sender, text);
	meet(s);
	show_received(sender, QUIET_MS);
}

static void receive_step(struct scene *s, struct member *one, struct member *two, bool expected)
{
	meet(s);
	meet(s);
	show_received(one, expected ? PATIENCE_MS : QUIET_MS);
	if (two)
		show_received(two, PATIENCE_MS);
}

static void send_three_messages(struct scene *s, bool only_sends)
{
	struct member sender;

	join_group(s, &sender, "sender", only_sends);
	send_step(s, &sender, "first");
	send_step(s, &sender, "second");
	send_step(s, &sender, "third");
	leave_group(&sender);
}

static void send_without_receiving(struct scene *s)
{
	send_three_messages(s, true);
}

static void send_as_full_member(struct scene *s)
{
	send_three_messages(s, false);
}

static void member_leaves_and_comes_back(struct scene *s)
{
	struct member member;

	join_group(s, &member, "member", false);
	receive_step(s, &member, NULL, true);
	DO(rdma_leave_multicast(member.id, group(s, 1)));
	receive_step(s, &member, NULL, false);
	if (!DO(rdma_join_multicast(member.id, group(s, 1), &member)))
		take_event(s);
	receive_step(s, &member, NULL, true);
	leave_group(&member);
}

static void one_of_two_members_leaves(struct scene *s)
{
	struct member one, two;

	join_group(s, &one, "one", false);
	join_group(s, &two, "two", false);
	receive_step(s, &one, &two, true);
	DO(rdma_leave_multicast(one.id, group(s, 1)));
	receive_step(s, &one, &two, false);
	leave_group(&one);
	receive_step(s, &two, NULL, true);
	leave_group(&two);
}

const struct scenario multicast_data_scenarios[] = {
	PAIR("multicast-data", send_without_receiving, member_leaves_and_comes_back, V4_ONLY,
	     "what is sent to a group arrives at a member until it leaves"),
	PAIR("multicast-data-two", send_as_full_member, one_of_two_members_leaves, V4_ONLY,
	     "two members on a host, and the sender is one"),
	LAST_SCENARIO,
};
