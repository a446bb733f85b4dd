/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports below 1024 require a proof of CAP_NET_BIND_SERVICE with each BIND: see net/low_port.h. The
 * test has the capability, in a network namespace of its own; rig_client_from() sets whether that
 * is cmportd's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/low_port.h"
#include "tests/unit/net/netns.h"
#include "tests/unit/portd/scene.h"
#include "tests/unit/test.h"

#define alice	  (&scene_alice)
#define bob	  (&scene_bob)

#define ELSEWHERE 2
#define SOMEBODY  1000

static struct rig_client carol;

static int socket_at(uint32_t addr, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(port),
				   .sin_addr.s_addr = htonl(addr) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

static int prove(void)
{
	int fd = -1;

	ck_assert_int_eq(low_port_prove(80, &fd), 0);
	return fd;
}

/* Return: the reply to BIND of port 80, with a descriptor that is closed afterwards; or -1. */
static int ask_for_80(struct rig_client *client, int fd)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, SCENE_ADDR) };
	struct portd_datagram out = { .bytes = 0 };

	record.claim.local_port = 80;
	portd_put(&out, &record);
	ck_assert(rig_put(client->control, out.data, out.bytes, &fd, fd >= 0));
	if (fd >= 0)
		close(fd);
	rig_settle();
	return rig_answer(client);
}

static void join_as(uid_t uid, uint64_t cookie)
{
	rig_client_as_user(uid);
	rig_client_from(cookie);
	rig_join(&carol);
}

static void set_up(void)
{
	scene_set_up();
	netns_enter();
}

FIXTURE(set_up, scene_tear_down);

TEST(client_with_a_proof_gets_the_port)
{
	unsigned int n_fds;

	ck_assert_int_eq(ask_for_80(alice, -1), EACCES);
	n_fds = rig_n_fds(); /* including those of the settings, which stay open */
	ck_assert_int_eq(ask_for_80(alice, prove()), 0);
	ck_assert_uint_eq(alice->reply.port, 80);
	ck_assert_uint_eq(rig_n_fds(), n_fds);
}

/*
 * The process has the capability, as after running a setuid program; the client is another process.
 */
TEST(capability_of_the_connected_process_is_no_proof)
{
	ck_assert_int_eq(ask_for_80(alice, -1), EACCES);
	rig_client_as(1);
	rig_join(&carol);
	ck_assert_int_eq(ask_for_80(&carol, -1), EACCES);
	rig_client_as(-1);
}

TEST(a_proof_counts_once)
{
	ck_assert_int_eq(ask_for_80(alice, prove()), 0);
	ck_assert_int_eq(ask_for_80(bob, -1), EACCES);
}

TEST(the_socket_of_a_service_is_no_proof)
{
	ck_assert_int_eq(ask_for_80(alice, socket_at(INADDR_LOOPBACK, 80)), EACCES);
	ck_assert_int_eq(ask_for_80(alice, socket_at(INADDR_ANY, 81)), EACCES);
	ck_assert_int_eq(ask_for_80(alice, socket(AF_INET, SOCK_DGRAM, 0)), EACCES);
	ck_assert_int_eq(ask_for_80(alice, dup(STDIN_FILENO)), EACCES);
}

/* As with `unshare -Urn`, where every process has all capabilities. */
TEST(a_proof_of_another_namespace_is_refused)
{
	rig_client_from(ELSEWHERE);
	ck_assert_int_eq(ask_for_80(alice, prove()), EACCES);
}

TEST(an_unprivileged_port_is_no_proof)
{
	run("echo 80 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
	ck_assert_int_eq(ask_for_80(alice, socket_at(LOW_PORT_ADDR, 80)), EACCES);
	ck_assert_int_eq(ask_for_80(alice, socket_at(LOW_PORT_ADDR, 79)), 0);
}

TEST(connecting_user_counts_if_no_port_is_privileged)
{
	run("echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
	join_as(SOMEBODY, RIG_HOME);
	ck_assert_int_eq(ask_for_80(&carol, prove()), EACCES);
	join_as(0, RIG_HOME);
	ck_assert_int_eq(ask_for_80(&carol, -1), EACCES);
	ck_assert_int_eq(ask_for_80(&carol, prove()), 0);
}

/* If all users may bind port 80, the library binds port 1 as its proof. */
TEST(privileged_process_gets_a_port_that_is_free_for_sockets)
{
	run("echo 80 > /proc/sys/net/ipv4/ip_unprivileged_port_start");
	ck_assert_int_eq(ask_for_80(alice, prove()), 0);
}

TEST(in_another_namespace_root_has_its_low_ports)
{
	join_as(SOMEBODY, ELSEWHERE);
	ck_assert_int_eq(ask_for_80(&carol, prove()), EACCES);
	join_as(0, ELSEWHERE);
	ck_assert_int_eq(ask_for_80(&carol, prove()), 0);
}
