/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of several network namespaces: each has its own ports, and requests are for clients in
 * the namespace of the devices.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <sys/socket.h>
#include <string.h>
#include <unistd.h>

#include "mad/cma_hdr.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/steps.h"
#include "tests/unit/test.h"

#define alice	  (&scene_alice)

#define ELSEWHERE 2
#define NOWHERE	  3
#define SOMEBODY  1000

static struct rig_client carol;
static struct rig_client dave;

static void join_from(struct rig_client *client, uint64_t cookie)
{
	rig_client_from(cookie);
	rig_join(client);
}

FIXTURE(scene_set_up, scene_tear_down);
TEST(a_port_of_another_namespace_is_another_port)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
}

TEST(a_port_of_the_same_foreign_namespace_is_in_use)
{
	join_from(&carol, ELSEWHERE);
	join_from(&dave, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(&dave, SCENE_ADDR), EADDRINUSE);
}

TEST(a_request_is_for_the_listener_at_home)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "REQ");
	ck_assert_str_eq(scene_delivered(&carol), "");
}

/* As the kernel's: there is a listener, but not for that address. */
TEST(a_request_for_a_listener_elsewhere_is_rej_28)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 28");
	ck_assert_str_eq(scene_delivered(&carol), "");
}

/* --- the namespace of the GID -------------------------------------------- */

#define IFINDEX 5

/* It opens the port with a socket of its namespace. */
static void show_netns(const struct rig_client *client)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };
	struct portd_datagram out = { .bytes = 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	portd_put(&out, &open);
	rig_put(client->control, out.data, out.bytes, &fd, 1);
	rig_settle();
	close(fd);
}

static void listen_from(struct rig_client *client, uint64_t cookie)
{
	join_from(client, cookie);
	show_netns(client);
	ck_assert_int_eq(rig_listen(client, "0.0.0.0"), 0);
}

TEST(a_request_is_for_the_listener_in_the_interfaces_namespace)
{
	listen_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(alice, "0.0.0.0"), 0);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_add(IFINDEX);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "");
	ck_assert_str_eq(scene_delivered(&carol), "REQ");
}

TEST(a_request_for_home_is_not_for_a_foreign_listener)
{
	listen_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(alice, "0.0.0.0"), 0);
	rig_foreign_add(IFINDEX);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "REQ");
	ck_assert_uint_eq(rig_n_foreign_reads(), 0);
}

TEST(a_foreign_request_is_not_for_a_listener_at_home)
{
	join_from(&carol, ELSEWHERE);
	show_netns(&carol);
	ck_assert_int_eq(rig_listen(alice, "0.0.0.0"), 0);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_add(IFINDEX);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(alice), "");
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 28");
}

TEST(a_namespace_without_the_interface_does_not_get_the_request)
{
	listen_from(&carol, ELSEWHERE);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_add(IFINDEX + 1);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "");
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 28");
}

TEST(a_client_without_a_namespace_socket_does_not_get_the_request)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, "0.0.0.0"), 0);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_add(IFINDEX);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "");
}

TEST(a_later_interface_is_found_with_few_reads)
{
	unsigned int i;

	listen_from(&carol, ELSEWHERE);
	rig_move_gid_elsewhere(IFINDEX);
	for (i = 0; i < 100; i++)
		scene_receive(scene_peer_req(0x701 + i, SCENE_ADDR));
	ck_assert_uint_eq(rig_n_foreign_reads(), 1);
	ck_assert_str_eq(scene_delivered(&carol), "");
	rig_foreign_add(IFINDEX);
	rig_pass(1000);
	scene_receive(scene_peer_req(0x801, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "REQ");
}

static int netlink_of(uint64_t cookie)
{
	const struct net_ns *net_ns;

	list_for_each_entry (net_ns, &rig_server()->home->shown, of_shown)
		if (net_ns->cookie == cookie)
			return net_ns->netlink_fd;
	ck_abort_msg("no such namespace");
}

/* As the network of a container does, if both namespaces number their interfaces equally. */
TEST(an_address_moves_to_an_interface_of_the_same_number)
{
	listen_from(&carol, ELSEWHERE);
	listen_from(&dave, NOWHERE);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_add(IFINDEX);
	rig_foreign_only(netlink_of(ELSEWHERE));
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "REQ");
	rig_foreign_only(netlink_of(NOWHERE));
	rig_pass(1000);
	scene_receive(scene_peer_req(0x702, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "");
	ck_assert_str_eq(scene_delivered(&dave), "REQ");
}

/* Any user can make a thousand namespaces, each with thousands of interfaces. */
static void show_many_namespaces(unsigned int n)
{
	uint64_t cookie;

	rig_client_as_user(SOMEBODY);
	for (cookie = ELSEWHERE; cookie < ELSEWHERE + n; cookie++) {
		join_from(&carol, cookie);
		show_netns(&carol);
	}
	rig_move_gid_elsewhere(IFINDEX);
	rig_pass(1000);
}

TEST(read_namespaces_of_a_user_are_limited)
{
	unsigned int i;

	show_many_namespaces(2 * NET_NS_SHOWN_MAX);
	for (i = 0; i < 100; i++)
		scene_receive(scene_peer_req(0x701 + i, SCENE_ADDR));
	ck_assert_uint_eq(rig_n_foreign_reads(), NET_NS_SHOWN_MAX);
}

TEST(read_namespaces_of_root_are_unlimited)
{
	uint64_t cookie;

	for (cookie = ELSEWHERE; cookie <= ELSEWHERE + NET_NS_SHOWN_MAX; cookie++) {
		join_from(&carol, cookie);
		show_netns(&carol);
	}
	ck_assert_uint_eq(list_length(&rig_server()->home->shown), NET_NS_SHOWN_MAX + 1);
}

/* A request for an unknown GID checks all of them. */
TEST(users_share_the_namespaces_that_are_read)
{
	struct server *server = rig_server();
	uint64_t cookie = ELSEWHERE;
	unsigned int user, i, before;

	for (user = 0; user < 12; user++) {
		before = (unsigned int)list_length(&server->home->shown);
		rig_client_as_user(SOMEBODY + user);
		for (i = 0; i < NET_NS_SHOWN_MAX; i++) {
			join_from(&carol, cookie++);
			show_netns(&carol);
		}
		ck_assert_uint_gt(list_length(&server->home->shown), before);
		rig_pass(1000);
	}
	ck_assert_uint_lt(list_length(&server->home->shown), NET_NS_SHOWN_ALL);
}

TEST(a_request_reads_few_large_namespaces)
{
	unsigned int i;

	show_many_namespaces(NET_NS_SHOWN_MAX);
	rig_foreign_reserve(100);
	for (i = 1; i <= NET_NS_SHOWN_MAX; i++) {
		scene_receive(scene_peer_req(0x701 + i, SCENE_ADDR));
		ck_assert_uint_eq(rig_n_foreign_reads(), i);
	}
}

TEST(a_large_namespace_is_read_rarely)
{
	listen_from(&carol, ELSEWHERE);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_reserve(100);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	rig_pass(24000);
	scene_receive(scene_peer_req(0x702, SCENE_ADDR));
	ck_assert_uint_eq(rig_n_foreign_reads(), 1);
	rig_pass(2000);
	scene_receive(scene_peer_req(0x703, SCENE_ADDR));
	ck_assert_uint_eq(rig_n_foreign_reads(), 2);
}

TEST(a_new_namespace_is_read_before_large_ones_of_others)
{
	show_many_namespaces(NET_NS_SHOWN_MAX);
	rig_foreign_reserve(100);
	rig_client_as_user(SOMEBODY + 1);
	listen_from(&dave, NOWHERE + NET_NS_SHOWN_MAX);
	rig_foreign_add(IFINDEX);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&dave), "REQ");
}

TEST(the_ports_of_a_namespace_end_with_its_last_client)
{
	join_from(&carol, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	rig_leave(&carol);
	join_from(&dave, ELSEWHERE);
	ck_assert_int_eq(rig_listen(&dave, SCENE_ADDR), 0);
	rig_leave(&dave);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_wire(), "REJ(REQ) 8");
}

TEST(ephemeral_ports_are_leased_in_each_namespace)
{
	struct portd_record record = { .type = PORTD_LEASE_PORTS,
				       .lease_ports = { .ps = RDMA_PS_TCP, .count = 2 } };

	join_from(&carol, ELSEWHERE);
	join_from(&dave, NOWHERE);
	ck_assert_int_eq(rig_ask(&carol, &record), 0);
	ck_assert_uint_eq(carol.reply.count, 2);
	ck_assert_int_eq(rig_ask(&dave, &record), 0);
	ck_assert_uint_eq(dave.reply.count, 2);
}

TEST(client_of_another_namespace_may_connect)
{
	join_from(&carol, ELSEWHERE);
	rig_move_gid_elsewhere(5);
	scene_connect(&carol, 1);
}

TEST(clients_are_at_home_without_cookies_of_namespaces)
{
	join_from(&carol, 0);
	ck_assert_int_eq(rig_listen(&carol, SCENE_ADDR), 0);
	ck_assert_int_eq(rig_listen(alice, SCENE_ADDR), EADDRINUSE);
}

/* --- many namespaces ----------------------------------------------------- */

#define N_NAMESPACES 1000

static void receive_req_to_no_listener(void)
{
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
}

TEST(unmatched_request_does_not_check_all_namespaces)
{
	static struct rig_client clients[N_NAMESPACES];
	unsigned long few, many;
	unsigned int i;

	join_from(&carol, ELSEWHERE);
	few = steps_of(receive_req_to_no_listener);
	for (i = 0; i < N_NAMESPACES; i++) {
		rig_client_from(SOMEBODY + i);
		rig_meet(&clients[i]);
	}
	many = steps_of(receive_req_to_no_listener);
	printf("%lu instructions, beside %u namespaces %lu\n", few, N_NAMESPACES, many);
	ck_assert_uint_le(many, 4 * few);
}

/* None of them has passed a socket, except Carol's. */
TEST(foreign_request_does_not_check_all_namespaces)
{
	static struct rig_client clients[N_NAMESPACES];
	unsigned long few, many;
	unsigned int i;

	join_from(&carol, ELSEWHERE);
	show_netns(&carol);
	rig_move_gid_elsewhere(IFINDEX);
	receive_req_to_no_listener();
	few = steps_of(receive_req_to_no_listener);
	for (i = 0; i < N_NAMESPACES; i++) {
		rig_client_from(SOMEBODY + i);
		rig_meet(&clients[i]);
	}
	receive_req_to_no_listener();
	many = steps_of(receive_req_to_no_listener);
	printf("%lu instructions, beside %u namespaces %lu\n", few, N_NAMESPACES, many);
	ck_assert_uint_le(many, 4 * few);
}

/* Carol's container has the GID; Mallory is an ordinary user of the host. */
TEST(user_of_the_host_has_no_address_of_a_container)
{
	struct portd_record lease = { .type = PORTD_LEASE_PORTS,
				      .lease_ports = { .ps = RDMA_PS_TCP, .count = 1 } };
	struct rig_client mallory;
	struct cma_hdr hdr = { .ip_version = 6 };
	const struct mad_gid gid = rig_gid();
	struct cm_msg req;

	listen_from(&carol, ELSEWHERE);
	rig_move_gid_elsewhere(IFINDEX);
	rig_foreign_add(IFINDEX);
	scene_receive(scene_peer_req(0x701, SCENE_ADDR));
	ck_assert_str_eq(scene_delivered(&carol), "REQ");
	rig_client_from(RIG_HOME);
	rig_client_as_user(SOMEBODY);
	rig_join(&mallory);
	ck_assert_int_eq(rig_ask(&mallory, &lease), 0);
	hdr.src_port = mallory.reply.port;
	memcpy(hdr.src_addr, gid.raw, sizeof(gid.raw));
	req = scene_req(&mallory, 1);
	wire_encode(&cma_hdr_layout, &hdr, req.req.private_data);
	scene_sends(&mallory, req);
	ck_assert_str_eq(scene_wire(), "");
}
