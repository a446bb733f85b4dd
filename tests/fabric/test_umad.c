/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * umad on a soft fabric: owners of a class, transaction ids, and which agent receives a MAD. Runs
 * on a host of a soft fabric: tests/fabric/meson.build.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "tools/fabric/wire/umad_wire.h"

#define CLASS_CM    7
#define CLASS_SA    3
#define METHOD_GET  1
#define METHOD_SEND 3
#define GET_RESP    0x81
#define GID_INDEX   1
#define WAIT_MS	    20000

struct buffer {
	struct ib_user_mad head;
	uint8_t mad[FAB_MAD_BYTES];
};

static int open_port(void)
{
	int fd = umad_open_port("fab0", 1);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static int add_agent(int fd, uint8_t mgmt_class, uint64_t methods, uint32_t *ret)
{
	struct umad_reg_attr attr = {
		.mgmt_class = mgmt_class,
		.mgmt_class_version = 2,
		.method_mask = { methods },
	};

	return umad_register2(fd, &attr, ret);
}

static union ibv_gid gid_of_own_port(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = ibv_open_device(list[0]);
	union ibv_gid gid;

	ck_assert_int_eq(ibv_query_gid(verbs, 1, GID_INDEX, &gid), 0);
	ibv_close_device(verbs);
	ibv_free_device_list(list);
	return gid;
}

static struct buffer mad_to(const union ibv_gid *gid, uint8_t mgmt_class, uint8_t method)
{
	struct buffer buffer = { .mad = { 1, mgmt_class, 2, method } };

	umad_set_addr(&buffer, 0, 1, 0, (int)0x80010000);
	buffer.head.addr.grh_present = gid != NULL;
	buffer.head.addr.gid_index = GID_INDEX;
	if (gid)
		memcpy(buffer.head.addr.gid, gid, sizeof(*gid));
	memcpy(buffer.mad + 8, "highlow!", 8);
	return buffer;
}

TEST(class_has_one_owner)
{
	int one = open_port(), two = open_port();
	uint32_t agent;

	ck_assert_int_eq(add_agent(one, CLASS_CM, 1 << METHOD_SEND, &agent), 0);
	ck_assert_int_eq(add_agent(two, CLASS_CM, 1 << METHOD_SEND, &agent), EINVAL);
	ck_assert_int_eq(add_agent(two, CLASS_CM, 0, &agent), 0);
	ck_assert_int_eq(add_agent(two, CLASS_CM, 1 << METHOD_GET, &agent), 0);
	close(one);
	close(two);
}

TEST(older_registration_call_fails_with_eperm)
{
	int one = open_port(), two = open_port();
	long methods[16 / sizeof(long)] = { 1 << METHOD_SEND };

	ck_assert_int_eq(umad_register(one, CLASS_CM, 2, 0, methods), 0);
	ck_assert_int_eq(umad_register(two, CLASS_CM, 2, 0, methods), -EPERM);
	close(one);
	close(two);
}

TEST_LOOP(class_is_free_after_its_owner, 0, 2)
{
	int one = open_port(), two = open_port();
	uint32_t agent;

	ck_assert_int_eq(add_agent(one, CLASS_CM, 1 << METHOD_SEND, &agent), 0);
	if (_i)
		close(one);
	else
		ck_assert_int_eq(umad_unregister(one, (int)agent), 0);
	ck_assert_int_eq(add_agent(two, CLASS_CM, 1 << METHOD_SEND, &agent), 0);
	close(two);
}

TEST(message_reaches_the_owner_with_the_senders_address)
{
	int owner = open_port(), sender = open_port(), bytes = FAB_MAD_BYTES;
	union ibv_gid gid = gid_of_own_port();
	struct buffer out = mad_to(&gid, CLASS_CM, METHOD_SEND), in;
	uint32_t id, other;

	ck_assert_int_eq(add_agent(owner, CLASS_CM, 1 << METHOD_SEND, &id), 0);
	ck_assert_int_eq(add_agent(sender, CLASS_CM, 0, &other), 0);
	ck_assert_int_eq(umad_send(sender, (int)other, &out, FAB_MAD_BYTES, 0, 0), 0);
	ck_assert_int_eq(umad_recv(owner, &in, &bytes, WAIT_MS), (int)id);
	ck_assert_int_eq(bytes, FAB_MAD_BYTES);
	ck_assert_uint_eq(in.head.addr.grh_present, 1);
	ck_assert_uint_eq(in.head.addr.gid_index, GID_INDEX);
	ck_assert_int_eq(memcmp(in.head.addr.gid, &gid, sizeof(gid)), 0);
	ck_assert_uint_eq(in.head.addr.qpn, htonl(1));
	/* The upper half of the transaction id is the agent's. */
	ck_assert_int_ne(memcmp(in.mad + 8, "high", 4), 0);
	ck_assert_int_eq(memcmp(in.mad + 12, "low!", 4), 0);
	close(owner);
	close(sender);
}

TEST(response_goes_to_the_requester)
{
	int server = open_port(), client = open_port(), bytes = FAB_MAD_BYTES;
	union ibv_gid gid = gid_of_own_port();
	struct buffer out = mad_to(&gid, CLASS_SA, METHOD_GET), in;
	uint32_t id, other;

	ck_assert_int_eq(add_agent(server, CLASS_SA, 1 << METHOD_GET, &id), 0);
	ck_assert_int_eq(add_agent(client, CLASS_SA, 0, &other), 0);
	ck_assert_int_eq(umad_send(client, (int)other, &out, FAB_MAD_BYTES, 2000, 0), 0);
	ck_assert_int_eq(umad_recv(server, &in, &bytes, WAIT_MS), (int)id);
	in.mad[3] = GET_RESP;
	ck_assert_int_eq(umad_send(server, (int)id, &in, FAB_MAD_BYTES, 0, 0), 0);
	ck_assert_int_eq(umad_recv(client, &in, &bytes, WAIT_MS), (int)other);
	ck_assert_int_eq(umad_status(&in), 0);
	ck_assert_int_eq(memcmp(in.mad + 12, "low!", 4), 0);
	/* The request has timed out. */
	ck_assert_int_eq(umad_send(server, (int)id, &in, FAB_MAD_BYTES, 0, 0), 0);
	ck_assert_int_eq(umad_poll(client, 50), -ETIMEDOUT);
	close(server);
	close(client);
}

TEST(unanswered_request_is_returned)
{
	int fd = open_port(), bytes = FAB_MAD_BYTES;
	union ibv_gid gid = gid_of_own_port();
	struct buffer out = mad_to(&gid, CLASS_SA, METHOD_GET), in;
	uint32_t id;

	ck_assert_int_eq(add_agent(fd, CLASS_SA, 0, &id), 0);
	ck_assert_int_eq(umad_send(fd, (int)id, &out, FAB_MAD_BYTES, 20, 1), 0);
	ck_assert_int_eq(umad_recv(fd, &in, &bytes, WAIT_MS), (int)id);
	ck_assert_int_eq(umad_status(&in), ETIMEDOUT);
	close(fd);
}

/* --- descriptors for responses ----------------------------------------------- */

/* Registers an agent, whose response is written to the first of these descriptors. */
static void ask_with(int port, const int fds[2])
{
	struct ib_user_mad head = { .agent_id = FAB_UMAD_CONTROL };
	struct fab_umad_request request = { .op = FAB_UMAD_REGISTER };
	struct iovec iov[2] = { { &head, sizeof(head) }, { &request, sizeof(request) } };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(2 * sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct msghdr msg = { .msg_iov = iov,
			      .msg_iovlen = 2,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof(int));
	ck_assert_int_gt(sendmsg(port, &msg, 0), 0);
}

TEST(excess_descriptor_is_closed)
{
	int port = open_port(), answer[2], more[2];
	struct pollfd ready = { .events = POLLIN };
	struct fab_umad_reply reply;

	ck_assert_int_eq(pipe(answer) + pipe(more), 0);
	ask_with(port, (int[2]){ answer[1], more[1] });
	close(answer[1]);
	close(more[1]);
	ck_assert_int_eq(read(answer[0], &reply, sizeof(reply)), sizeof(reply));
	ck_assert_int_eq(reply.error, 0);
	ready.fd = more[0];
	ck_assert_int_eq(poll(&ready, 1, WAIT_MS), 1);
	ck_assert(ready.revents & POLLHUP);
	close(answer[0]);
	close(more[0]);
	close(port);
}

TEST(response_to_a_full_pipe_does_not_block_others)
{
	int port = open_port(), other = open_port(), full[2];
	char byte = 0;
	uint32_t id;

	ck_assert_int_eq(pipe2(full, O_NONBLOCK), 0);
	while (write(full[1], &byte, 1) == 1)
		;
	fcntl(full[1], F_SETFL, 0);
	ask_with(port, (int[2]){ full[1], full[1] });
	ck_assert_int_eq(add_agent(other, CLASS_CM, 0, &id), 0);
	close(full[0]);
	close(full[1]);
	close(port);
	close(other);
}

/* --- devices ----------------------------------------------------------------- */

TEST(unknown_device_or_port_is_refused)
{
	ck_assert_int_lt(umad_open_port("mlx5_0", 1), 0);
	ck_assert_int_lt(umad_open_port("fab0", 2), 0);
	ck_assert_int_ge(umad_open_port(NULL, 0), 0);
}

TEST(device_describes_its_ports)
{
	char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
	umad_ca_t ca;

	ck_assert_int_eq(umad_get_cas_names(names, UMAD_MAX_DEVICES), 1);
	ck_assert_str_eq(names[0], "fab0");
	ck_assert_int_eq(umad_get_ca("fab0", &ca), 0);
	ck_assert_int_eq(ca.numports, 1);
	ck_assert_uint_eq(ca.ports[1]->state, IBV_PORT_ACTIVE);
	ck_assert_str_eq(ca.ports[1]->link_layer, "Ethernet");
	ck_assert_int_eq(umad_release_ca(&ca), 0);
}
