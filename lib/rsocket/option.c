/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options of stream sockets: one row an option, with how it is set and how it is asked for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>

#include "lib/id/id.h"
#include "lib/rsocket/connect.h"
#include "lib/rsocket/keepalive.h"
#include "lib/rsocket/memory.h"

#define SEND_BYTES_MIN 2048
#define SEND_BYTES_LOW 4096
#define NO_CM_OPTION   -1

/* What a row is about: a member of struct stream, and what else is to be done. */
struct row {
	int level;
	int name;
	size_t offset; /* of the member */
	int cm_option; /* RDMA_OPTION_ID_*, or NO_CM_OPTION */
	int (*set)(struct stream *s, const struct row *row, int value);
	int (*get)(struct stream *s, const struct row *row);
};

static int *member(struct stream *s, const struct row *row)
{
	return (int *)(void *)((uint8_t *)s + row->offset);
}

static bool is_before_connecting(const struct stream *s)
{
	return s->state == STREAM_IDLE || s->state == STREAM_BOUND || s->state == STREAM_LISTENING;
}

/* --- kinds of rows ------------------------------------------------------- */

static int keep(struct stream *s, const struct row *row, int value)
{
	*member(s, row) = value;
	return 0;
}

static int keep_bool(struct stream *s, const struct row *row, int value)
{
	return keep(s, row, value != 0);
}

static int ignore(struct stream *s, const struct row *row, int value)
{
	(void)s;
	(void)row;
	(void)value;
	return 0;
}

static int get_member(struct stream *s, const struct row *row)
{
	return *member(s, row);
}

static int tell_cm(struct stream *s, const struct row *row, int value)
{
	uint8_t tos = (uint8_t)value;
	int on = value;
	bool is_tos = row->cm_option == RDMA_OPTION_ID_TOS;

	if (rdma_set_option(s->id, RDMA_OPTION_ID, row->cm_option,
			    is_tos ? (void *)&tos : (void *)&on, is_tos ? sizeof(tos) : sizeof(on)))
		return -errno;
	return keep(s, row, value);
}

/* As for TCP, the value is doubled; what is asked for is what there is. Once there are buffers they
 * stay, and nothing is said against it: programs set this whenever they like. */
static int set_buffer(struct stream *s, const struct row *row, int value)
{
	uint32_t bytes = value > INT32_MAX / 2 ? INT32_MAX - 1 : (uint32_t)value * 2;
	bool is_send = row->name == SO_SNDBUF;

	if (value < 0)
		return -EINVAL;
	if (s->memory.has_qp)
		return 0;
	if (is_send && bytes < SEND_BYTES_MIN)
		bytes = SEND_BYTES_LOW;
	if (bytes < 2)
		bytes = 2;
	return keep(s, row, (int)bytes);
}

static int set_size(struct stream *s, const struct row *row, int value)
{
	if (!is_before_connecting(s) || value < 0)
		return -EINVAL;
	if (row->name == RDMA_SQSIZE || row->name == RDMA_RQSIZE)
		value = value < UINT16_MAX ? value : UINT16_MAX;
	if (row->name == RDMA_IOMAPSIZE)
		value = (int)rs_scale_decode(rs_scale_encode((uint32_t)value));
	return keep(s, row, value);
}

static int set_idle(struct stream *s, const struct row *row, int value)
{
	return value > 0 ? keep(s, row, value) : -EINVAL;
}

static int get_idle(struct stream *s, const struct row *row)
{
	return *member(s, row) ? *member(s, row) : keepalive_default_s();
}

/* Asking takes it. */
static int get_error(struct stream *s, const struct row *row)
{
	int error = s->error;

	(void)row;
	s->error = 0;
	return error;
}

static int get_mss(struct stream *s, const struct row *row)
{
	const struct ibv_sa_path_rec *path = s->id->route.path_rec;

	(void)row;
	return path && s->id->route.num_paths ? 128 << (path->mtu & 0x3f) : 2048;
}

static int get_type(struct stream *s, const struct row *row)
{
	(void)s;
	(void)row;
	return SOCK_STREAM;
}

static int get_domain(struct stream *s, const struct row *row)
{
	(void)row;
	return s->domain;
}

static int get_protocol(struct stream *s, const struct row *row)
{
	(void)s;
	(void)row;
	return IPPROTO_TCP;
}

static int get_listening(struct stream *s, const struct row *row)
{
	(void)row;
	return s->state == STREAM_LISTENING;
}

#define AT(member) offsetof(struct stream, member)

/* clang-format off */
static const struct row rows[] = {
	{ SOL_SOCKET, SO_REUSEADDR, AT(options.reuse_addr), RDMA_OPTION_ID_REUSEADDR,
	  tell_cm, get_member },
	{ SOL_SOCKET, SO_RCVBUF, AT(sizes.recv_bytes), NO_CM_OPTION, set_buffer, get_member },
	{ SOL_SOCKET, SO_SNDBUF, AT(sizes.send_bytes), NO_CM_OPTION, set_buffer, get_member },
	{ SOL_SOCKET, SO_KEEPALIVE, AT(options.keepalive), NO_CM_OPTION, keep_bool, get_member },
	{ SOL_SOCKET, SO_OOBINLINE, AT(options.oob_inline), NO_CM_OPTION, keep_bool, get_member },
	{ SOL_SOCKET, SO_ERROR, 0, NO_CM_OPTION, NULL, get_error },
	{ SOL_SOCKET, SO_TYPE, 0, NO_CM_OPTION, NULL, get_type },
	{ SOL_SOCKET, SO_DOMAIN, 0, NO_CM_OPTION, NULL, get_domain },
	{ SOL_SOCKET, SO_PROTOCOL, 0, NO_CM_OPTION, NULL, get_protocol },
	{ SOL_SOCKET, SO_ACCEPTCONN, 0, NO_CM_OPTION, NULL, get_listening },
	{ IPPROTO_TCP, TCP_NODELAY, AT(options.nodelay), NO_CM_OPTION, keep_bool, get_member },
	{ IPPROTO_TCP, TCP_KEEPIDLE, AT(options.keepalive_s), NO_CM_OPTION, set_idle, get_idle },
	{ IPPROTO_TCP, TCP_KEEPCNT, 0, NO_CM_OPTION, ignore, NULL },
	{ IPPROTO_TCP, TCP_KEEPINTVL, 0, NO_CM_OPTION, ignore, NULL },
	{ IPPROTO_TCP, TCP_CONGESTION, 0, NO_CM_OPTION, ignore, NULL },
	{ IPPROTO_TCP, TCP_MAXSEG, 0, NO_CM_OPTION, ignore, get_mss },
	{ IPPROTO_IP, IP_TOS, AT(options.tos), RDMA_OPTION_ID_TOS, tell_cm, get_member },
	{ IPPROTO_IPV6, IPV6_V6ONLY, AT(options.v6only), RDMA_OPTION_ID_AFONLY,
	  tell_cm, get_member },
	{ SOL_RDMA, RDMA_SQSIZE, AT(sizes.sq_size), NO_CM_OPTION, set_size, get_member },
	{ SOL_RDMA, RDMA_RQSIZE, AT(sizes.rq_size), NO_CM_OPTION, set_size, get_member },
	{ SOL_RDMA, RDMA_INLINE, AT(sizes.inline_size), NO_CM_OPTION, set_size, get_member },
	{ SOL_RDMA, RDMA_IOMAPSIZE, AT(sizes.iomap_size), NO_CM_OPTION, set_size, get_member },
};
/* clang-format on */

static const struct row *find_row(int level, int name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].level == level && rows[i].name == name)
			return &rows[i];
	return NULL;
}

/* --- options that are no int --------------------------------------------- */

static int set_route(struct stream *s, const void *value, socklen_t bytes)
{
	void *copy;

	if (s->state != STREAM_IDLE && s->state != STREAM_BOUND)
		return -EINVAL;
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, value, bytes);
	free(s->route);
	s->route = copy;
	s->route_bytes = bytes;
	return 0;
}

static int get_route(struct stream *s, void *value, socklen_t *bytes)
{
	const struct rdma_route *route = &s->id->route;
	struct ibv_path_data data = { 0 };
	socklen_t n = 0;

	if (!route->path_rec)
		return -ENODATA;
	for (int i = 0; i < route->num_paths && n + sizeof(data) <= *bytes; i++) {
		data.flags = IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_GMP |
			     IBV_PATH_FLAG_BIDIRECTIONAL;
		memset(&data.path, 0, sizeof(data.path));
		data.path.dgid = route->path_rec[i].dgid;
		data.path.sgid = route->path_rec[i].sgid;
		data.path.dlid = route->path_rec[i].dlid;
		data.path.slid = route->path_rec[i].slid;
		data.path.pkey = route->path_rec[i].pkey;
		data.path.mtu = route->path_rec[i].mtu;
		data.path.rate = route->path_rec[i].rate;
		data.path.packetlifetime = route->path_rec[i].packet_life_time;
		memcpy((uint8_t *)value + n, &data, sizeof(data));
		n += sizeof(data);
	}
	*bytes = n;
	return 0;
}

static int set_linger(struct stream *s, const void *value, socklen_t bytes)
{
	if (bytes < sizeof(s->options.linger))
		return -EINVAL;
	memcpy(&s->options.linger, value, sizeof(s->options.linger));
	return 0;
}

static int get_linger(struct stream *s, void *value, socklen_t *bytes)
{
	if (*bytes < sizeof(s->options.linger))
		return -EINVAL;
	memcpy(value, &s->options.linger, sizeof(s->options.linger));
	*bytes = sizeof(s->options.linger);
	return 0;
}

static uint8_t tcp_state(const struct stream *s)
{
	if (stream_can_talk(s->state))
		return TCP_ESTABLISHED;
	if (s->state == STREAM_LISTENING)
		return TCP_LISTEN;
	return stream_is_opening(s->state) ? TCP_SYN_SENT : TCP_CLOSE;
}

/* What there is of it: programs that show the rest show zeros. */
static int get_info(struct stream *s, void *value, socklen_t *bytes)
{
	struct tcp_info info = { .tcpi_state = tcp_state(s) };

	info.tcpi_snd_mss = (uint32_t)get_mss(s, NULL);
	info.tcpi_rcv_mss = info.tcpi_snd_mss;
	if (*bytes > sizeof(info))
		*bytes = sizeof(info);
	memcpy(value, &info, *bytes);
	return 0;
}

/* --- rsetsockopt(), rgetsockopt() ---------------------------------------- */

static int set(struct stream *s, int level, int name, const void *value, socklen_t bytes)
{
	const struct row *row = find_row(level, name);
	int number;

	if (level == SOL_SOCKET && name == SO_LINGER)
		return set_linger(s, value, bytes);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return set_route(s, value, bytes);
	if (!row || !row->set)
		return -ENOTSUP;
	if (row->set == ignore)
		return 0;
	if (bytes < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	return row->set(s, row, number);
}

int stream_setopt(struct rsock *rs, int level, int name, const void *value, socklen_t bytes)
{
	struct stream *s = stream_of(rs);
	int err;

	pthread_mutex_lock(&rs->lock);
	err = set(s, level, name, value, bytes);
	pthread_mutex_unlock(&rs->lock);
	if (err)
		return err;
	service_lock();
	err = keepalive_update(s);
	service_unlock();
	return err;
}

static int get(struct stream *s, int level, int name, void *value, socklen_t *bytes)
{
	const struct row *row = find_row(level, name);
	int number;

	if (level == SOL_SOCKET && name == SO_LINGER)
		return get_linger(s, value, bytes);
	if (level == SOL_RDMA && name == RDMA_ROUTE)
		return get_route(s, value, bytes);
	if (level == IPPROTO_TCP && name == TCP_INFO)
		return get_info(s, value, bytes);
	if (!row || !row->get)
		return -ENOTSUP;
	if (*bytes < sizeof(number))
		return -EINVAL;
	number = row->get(s, row);
	memcpy(value, &number, sizeof(number));
	*bytes = sizeof(number);
	return 0;
}

int stream_getopt(struct rsock *rs, int level, int name, void *value, socklen_t *bytes)
{
	int err;

	pthread_mutex_lock(&rs->lock);
	stream_progress(rs);
	err = get(stream_of(rs), level, name, value, bytes);
	pthread_mutex_unlock(&rs->lock);
	return err;
}
