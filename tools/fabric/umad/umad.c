/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibumad on a soft fabric: ports, agents, sending and receiving MADs. As in the original, a port
 * is its descriptor, and agents end with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/fabric/umad/ca.h"
#include "tools/fabric/wire/folder.h"
#include "tools/fabric/wire/umad_wire.h"

#define ANSWER_MS 10000

int umad_init(void)
{
	return 0;
}

int umad_done(void)
{
	return 0;
}

int umad_open_port(const char *ca_name, int portnum)
{
	struct fab_folder folder;
	struct sockaddr_un addr;
	char path[FAB_PATH_BYTES];
	int err = ca_find(ca_name, &portnum, &folder);
	int fd;

	if (err)
		return err;
	fab_folder_umad(&folder, (uint8_t)portnum, path);
	fab_folder_sockaddr(path, &addr);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -EIO;
	fab_folder_widen_buffer(fd);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -EIO;
}

int umad_close_port(int portid)
{
	return close(portid) ? -EINVAL : 0;
}

int umad_get_fd(int portid)
{
	return portid;
}

/* --- agents -------------------------------------------------------------- */

static int send_with_pipe(int fd, const struct fab_umad_request *request, int pipe_fd)
{
	struct ib_user_mad head = { .agent_id = FAB_UMAD_CONTROL };
	struct iovec iov[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)request, .iov_len = sizeof(*request) },
	};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes),
	};

	memcpy(CMSG_DATA(&control.header), &pipe_fd, sizeof(pipe_fd));
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* Return: a positive errno. */
static int ask_host(int fd, const struct fab_umad_request *request, uint32_t *ret_agent)
{
	struct fab_umad_reply reply = { .error = EIO };
	struct pollfd ready = { .events = POLLIN };
	int ends[2];
	int err;

	if (pipe(ends))
		return errno;
	err = send_with_pipe(fd, request, ends[1]);
	close(ends[1]);
	ready.fd = ends[0];
	if (!err && (poll(&ready, 1, ANSWER_MS) != 1 ||
		     read(ends[0], &reply, sizeof(reply)) != sizeof(reply)))
		err = EIO;
	close(ends[0]);
	if (err)
		return err;
	if (!reply.error && ret_agent)
		*ret_agent = reply.agent_id;
	return reply.error;
}

int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct fab_umad_request request = {
		.op = FAB_UMAD_REGISTER,
		.mgmt_class = attr->mgmt_class,
		.class_version = attr->mgmt_class_version,
		.rmpp_version = attr->rmpp_version,
		.method_mask = { attr->method_mask[0], attr->method_mask[1] },
	};

	return ask_host(port_fd, &request, agent_id);
}

int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)])
{
	struct umad_reg_attr attr = {
		.mgmt_class = (uint8_t)mgmt_class,
		.mgmt_class_version = (uint8_t)mgmt_version,
		.rmpp_version = rmpp_version,
	};
	uint32_t agent = 0;

	if (method_mask)
		memcpy(attr.method_mask, method_mask, sizeof(attr.method_mask));
	return umad_register2(portid, &attr, &agent) ? -EPERM : (int)agent;
}

int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)])
{
	/* IBTA vol. 1, table 104: vendor classes with an OUI. */
	if (mgmt_class < 0x30 || mgmt_class > 0x4f)
		return -EINVAL;
	(void)oui; /* no other agent has the class here */
	return umad_register(portid, mgmt_class, 1, rmpp_version, method_mask);
}

int umad_unregister(int portid, int agentid)
{
	struct fab_umad_request request = { .op = FAB_UMAD_UNREGISTER,
					    .agent_id = (uint32_t)agentid };

	return -ask_host(portid, &request, NULL);
}

/* --- MADs ---------------------------------------------------------------- */

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *head = umad;
	size_t bytes = sizeof(*head) + (size_t)length;
	ssize_t n;

	head->agent_id = (uint32_t)agentid;
	head->timeout_ms = (uint32_t)timeout_ms;
	head->retries = (uint32_t)retries;
	n = write(portid, umad, bytes);
	return n == (ssize_t)bytes ? 0 : -EIO;
}

int umad_poll(int portid, int timeout_ms)
{
	struct pollfd ready = { .fd = portid, .events = POLLIN };
	int n = poll(&ready, 1, timeout_ms);

	if (n == 0)
		return -ETIMEDOUT;
	return n < 0 || ready.revents != POLLIN ? -EIO : 0;
}

/* As in the kernel: a message that does not fit stays queued, and its first segment is returned. */
static ssize_t take_message(int portid, void *umad, size_t bytes)
{
	static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
	ssize_t n;

	pthread_mutex_lock(&taking);
	n = recv(portid, umad, bytes, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	if (n >= 0 && (size_t)n <= bytes)
		recv(portid, NULL, 0, MSG_DONTWAIT);
	pthread_mutex_unlock(&taking);
	return n;
}

static bool is_blocking(int portid)
{
	return !(fcntl(portid, F_GETFL) & O_NONBLOCK);
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *head = umad;
	size_t bytes = sizeof(*head) + (size_t)*length;
	ssize_t n;
	int err;

	do {
		err = timeout_ms || is_blocking(portid)
			      ? umad_poll(portid, timeout_ms ? timeout_ms : -1)
			      : 0;
		if (err)
			return err;
		n = take_message(portid, umad, bytes);
	} while (n < 0 && errno == EAGAIN && timeout_ms <= 0 && is_blocking(portid));
	if (n < (ssize_t)sizeof(*head))
		return n < 0 && errno == EAGAIN ? -EWOULDBLOCK : -EIO;
	*length = (int)(n - (ssize_t)sizeof(*head));
	if ((size_t)n <= bytes)
		return (int)head->agent_id;
	errno = ENOSPC; /* programs check for this errno */
	return -ENOSPC;
}

/* --- fields of a MAD's header -------------------------------------------- */

void *umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

int umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

int umad_set_grh(void *umad, void *mad_addr)
{
	ib_mad_addr_t *to = umad_get_mad_addr(umad);
	const ib_mad_addr_t *from = mad_addr;

	to->grh_present = from != NULL;
	if (!from)
		return 0;
	memcpy(to->gid, from->gid, sizeof(to->gid));
	to->flow_label = htonl(from->flow_label);
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->gid_index = from->gid_index;
	return 0;
}

int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	ib_mad_addr_t *to = umad_get_mad_addr(umad);

	to->lid = dlid;
	to->qpn = dqp;
	to->sl = (uint8_t)sl;
	to->qkey = qkey;
	return 0;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htons((uint16_t)dlid), htonl((uint32_t)dqp), sl,
				 htonl((uint32_t)qkey));
}

int umad_set_pkey(void *umad, int pkey_index)
{
	umad_get_mad_addr(umad)->pkey_index = (uint16_t)pkey_index;
	return 0;
}

int umad_get_pkey(void *umad)
{
	return umad_get_mad_addr(umad)->pkey_index;
}

int umad_debug(int level)
{
	(void)level;
	return 0;
}

void umad_addr_dump(ib_mad_addr_t *addr)
{
	fprintf(stderr, "qpn %u qkey 0x%x lid %u sl %u grh %u pkey_index %u\n", ntohl(addr->qpn),
		ntohl(addr->qkey), ntohs(addr->lid), addr->sl, addr->grh_present, addr->pkey_index);
}

void umad_dump(void *umad)
{
	const struct ib_user_mad *head = umad;

	fprintf(stderr, "agent %u status %u timeout %u ms retries %u\n", head->agent_id,
		head->status, head->timeout_ms, head->retries);
	umad_addr_dump(umad_get_mad_addr(umad));
}
