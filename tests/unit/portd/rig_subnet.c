/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake subnet of the rig: the functions of libibverbs and mad/umad_sa.h that
 * lib/portd/server/sa/subnet_queries.c calls, with the same names, so that the linker uses these.
 */
#include "tests/unit/portd/rig_subnet.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mad/umad_sa.h"
#include "tests/unit/portd/rig.h"

#define QUESTIONS_MAX 4096
#define ANSWER_MAX    400000
#define SERVICE_BYTES 176

static bool is_infiniband;
static uint16_t sm_lid = 1;
static struct sa_msg asked[QUESTIONS_MAX];
static unsigned int n_asked;
static uint16_t asked_with;
static uint8_t answer[ANSWER_MAX];
static size_t answer_bytes;
static bool has_answer;
static int answer_fd = -1;
static int async_fd = -1;
static struct ibv_async_event event;
static bool has_event;

void rig_use_infiniband(void)
{
	is_infiniband = true;
	async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *ret)
{
	struct ibv_port_attr attr = { .lid = (uint16_t)(2 + port_num),
				      .sm_lid = sm_lid,
				      .pkey_tbl_len = RIG_PKEYS,
				      .state = IBV_PORT_ACTIVE,
				      .link_layer = is_infiniband ? IBV_LINK_LAYER_INFINIBAND
								  : IBV_LINK_LAYER_ETHERNET };

	context->async_fd = async_fd;
	memcpy(ret, &attr, sizeof(attr));
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *ret)
{
	(void)context;
	(void)port_num;
	*ret = htobe16(index ? 0xffff : 0x8001);
	return 0;
}

int umad_sa_open(const char *device, uint8_t port_num, struct umad_sa *ret)
{
	(void)device;
	(void)port_num;
	answer_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret->fd = answer_fd;
	return answer_fd < 0 ? -errno : 0;
}

void umad_sa_close(struct umad_sa *sa)
{
	if (sa->fd >= 0)
		close(sa->fd);
	sa->fd = -1;
	answer_fd = -1;
}

int umad_sa_send(struct umad_sa *sa, const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		 unsigned int wait_ms)
{
	(void)sa;
	(void)wait_ms;
	if (path->dlid != sm_lid)
		abort();
	asked_with = path->pkey_index;
	sa_msg_decode(mad, MAD_BYTES, &asked[n_asked++ % QUESTIONS_MAX]);
	return 0;
}

int umad_sa_receive(struct umad_sa *sa, const uint8_t **ret_mad, size_t *ret_bytes)
{
	eventfd_t one;

	if (!has_answer)
		return -EAGAIN;
	has_answer = false;
	*ret_mad = answer;
	*ret_bytes = answer_bytes;
	return eventfd_read(sa->fd, &one);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *ret)
{
	eventfd_t one;

	if (!has_event)
		return -1;
	has_event = false;
	*ret = event;
	return eventfd_read(context->async_fd, &one);
}

void ibv_ack_async_event(struct ibv_async_event *which)
{
	(void)which;
}

unsigned int rig_n_asked(void)
{
	return n_asked;
}

uint16_t rig_asked_with(void)
{
	return asked_with;
}

const struct sa_msg *rig_asked(unsigned int n)
{
	if (n >= n_asked || n + QUESTIONS_MAX < n_asked)
		abort();
	return &asked[n % QUESTIONS_MAX];
}

/* @bytes: may exceed the first MAD */
static void send_answer(const struct sa_msg *msg, size_t bytes)
{
	uint8_t mad[MAD_BYTES];

	sa_msg_encode(msg, mad);
	memcpy(answer, mad, bytes > MAD_BYTES ? SA_DATA_AT : MAD_BYTES);
	answer_bytes = bytes;
	has_answer = true;
	eventfd_write(answer_fd, 1);
	rig_settle();
}

void rig_answer_by_sa(unsigned int n, uint16_t status, uint16_t lid)
{
	struct sa_msg msg = *rig_asked(n);

	msg.hdr.method = msg.hdr.method == SA_METHOD_DELETE ? 0x95 : 0x81;
	msg.hdr.status = status;
	if (msg.hdr.attr_id == SA_ATTR_PATH_RECORD)
		msg.path.dlid = lid;
	else
		msg.member.mlid = lid;
	send_answer(&msg, MAD_BYTES);
}

void rig_list_by_sa(unsigned int n, unsigned int n_services)
{
	struct sa_msg msg = *rig_asked(n);
	unsigned int i;

	msg.hdr.method = SA_METHOD_RESPONSE | SA_METHOD_GET_TABLE;
	msg.sa.attr_offset = SERVICE_BYTES / 8;
	memset(answer, 0, sizeof(answer));
	for (i = 0; i < n_services; i++) {
		answer[SA_DATA_AT + i * SERVICE_BYTES + 6] = (uint8_t)(i >> 8);
		answer[SA_DATA_AT + i * SERVICE_BYTES + 7] = (uint8_t)i;
	}
	send_answer(&msg, SA_DATA_AT + n_services * SERVICE_BYTES);
}

void rig_port_event(enum ibv_event_type type, uint16_t new_sm_lid)
{
	sm_lid = new_sm_lid;
	event = (struct ibv_async_event){ .event_type = type, .element.port_num = 1 };
	has_event = true;
	eventfd_write(async_fd, 1);
	rig_settle();
}
