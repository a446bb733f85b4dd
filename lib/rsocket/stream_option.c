/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of stream sockets: one row per option, with functions to set and get it. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <string.h>

#include "lib/id/id.h"
#include "lib/rsocket/stream.h"

#define SEND_BYTES_MIN 2048
#define SEND_BYTES_LOW 4096

/* An integer option, usually a member of struct stream. */
struct row {
	int level;
	int name;
	size_t offset; /* of the member; the value for get_constant() */
	int (*set)(struct stream *s, const struct row *row, int value);
	int (*get)(struct stream *s, const struct row *row);
	int cm_option; /* for set_cm(): RDMA_OPTION_ID_* */
};

static int *member_of(struct stream *s, const struct row *row)
{
	return (int *)(void *)((uint8_t *)s + row->offset);
}

/* --- kinds of rows ------------------------------------------------------- */

static int set_member(struct stream *s, const struct row *row, int value)
{
	*member_of(s, row) = value;
	return 0;
}

static int set_bool(struct stream *s, const struct row *row, int value)
{
	return set_member(s, row, value != 0);
}

static int ignore_value(struct stream *s, const struct row *row, int value)
{
	(void)s;
	(void)row;
	(void)value;
	return 0;
}

static int get_member(struct stream *s, const struct row *row)
{
	return *member_of(s, row);
}

/* As with TCP and stock, SO_REUSEADDR of a connection has no effect, and is no error. */
static int set_cm(struct stream *s, const struct row *row, int value)
{
	uint8_t tos = (uint8_t)value;
	int on = value;
	bool is_tos = row->cm_option == RDMA_OPTION_ID_TOS;

	if (rdma_set_option(s->id, RDMA_OPTION_ID, row->cm_option,
			    is_tos ? (void *)&tos : (void *)&on,
			    is_tos ? sizeof(tos) : sizeof(on)) &&
	    (row->name != SO_REUSEADDR || !s->memory.has_qp))
		return -errno;
	return is_tos ? set_member(s, row, value) : set_bool(s, row, value);
}

/*
 * As for TCP, the value is doubled, and read back doubled. Ignored without an error once there are
 * buffers, because programs set it at any time.
 */
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
	return set_member(s, row, (int)bytes);
}

static int set_size(struct stream *s, const struct row *row, int value)
{
	if (!stream_is_before_connect(s->state) || value < 0)
		return -EINVAL;
	if (row->name == RDMA_SQSIZE || row->name == RDMA_RQSIZE)
		value = value < UINT16_MAX ? value : UINT16_MAX;
	if (row->name == RDMA_IOMAPSIZE)
		value = (int)rs_scale_decode(rs_scale_encode((uint32_t)value));
	return set_member(s, row, value);
}

static int set_idle(struct stream *s, const struct row *row, int value)
{
	return value > 0 ? set_member(s, row, value) : -EINVAL;
}

static int get_idle(struct stream *s, const struct row *row)
{
	return *member_of(s, row) ? *member_of(s, row) : keepalive_default_s();
}

/* Reading clears the error. */
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

static int get_constant(struct stream *s, const struct row *row)
{
	(void)s;
	return (int)row->offset;
}

static int get_listening(struct stream *s, const struct row *row)
{
	(void)row;
	return s->state == STREAM_LISTENING;
}

#define AT(member) offsetof(struct stream, member)

/* clang-format off */
static const struct row rows[] = {
	{ SOL_SOCKET, SO_REUSEADDR, AT(options.reuse_addr), set_cm, get_member,
	  RDMA_OPTION_ID_REUSEADDR },
	{ SOL_SOCKET, SO_RCVBUF, AT(sizes.recv_bytes), set_buffer, get_member, 0 },
	{ SOL_SOCKET, SO_SNDBUF, AT(sizes.send_bytes), set_buffer, get_member, 0 },
	{ SOL_SOCKET, SO_KEEPALIVE, AT(options.keepalive), set_bool, get_member, 0 },
	{ SOL_SOCKET, SO_OOBINLINE, AT(options.oob_inline), set_bool, get_member, 0 },
	{ SOL_SOCKET, SO_BROADCAST, 0, NULL, get_constant, 0 },
	{ SOL_SOCKET, SO_ERROR, 0, NULL, get_error, 0 },
	{ SOL_SOCKET, SO_TYPE, SOCK_STREAM, NULL, get_constant, 0 },
	{ SOL_SOCKET, SO_DOMAIN, AT(domain), NULL, get_member, 0 },
	{ SOL_SOCKET, SO_PROTOCOL, IPPROTO_TCP, NULL, get_constant, 0 },
	{ SOL_SOCKET, SO_ACCEPTCONN, 0, NULL, get_listening, 0 },
	{ IPPROTO_TCP, TCP_NODELAY, AT(options.nodelay), set_bool, get_member, 0 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, AT(options.keepalive_s), set_idle, get_idle, 0 },
	/* Stock returns 1 for these. */
	{ IPPROTO_TCP, TCP_KEEPCNT, 1, ignore_value, get_constant, 0 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, 1, ignore_value, get_constant, 0 },
	{ IPPROTO_TCP, TCP_CONGESTION, 1, ignore_value, get_constant, 0 },
	{ IPPROTO_TCP, TCP_MAXSEG, 0, ignore_value, get_mss, 0 },
	{ IPPROTO_IP, IP_TOS, AT(options.tos), set_cm, get_member, RDMA_OPTION_ID_TOS },
	{ IPPROTO_IPV6, IPV6_V6ONLY, AT(options.v6only), set_cm, get_member,
	  RDMA_OPTION_ID_AFONLY },
	{ SOL_RDMA, RDMA_SQSIZE, AT(sizes.sq_size), set_size, get_member, 0 },
	{ SOL_RDMA, RDMA_RQSIZE, AT(sizes.rq_size), set_size, get_member, 0 },
	{ SOL_RDMA, RDMA_INLINE, AT(sizes.inline_size), set_size, get_member, 0 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, AT(sizes.iomap_size), set_size, get_member, 0 },
};
/* clang-format on */

/* --- other options -------------------------------------------------------- */

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

static void path_data_of(const struct ibv_sa_path_rec *path, struct ibv_path_data *ret)
{
	*ret = (struct ibv_path_data){
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = {
			.dgid = path->dgid,
			.sgid = path->sgid,
			.dlid = path->dlid,
			.slid = path->slid,
			.flowlabel_hoplimit = htobe32(be32toh(path->flow_label) << 8 |
						      path->hop_limit),
			.tclass = path->traffic_class,
			.reversible_numpath = (uint8_t)(!!path->reversible << 7 | path->numb_path),
			.pkey = path->pkey,
			.qosclass_sl = htobe16(path->sl),
			.mtu = (uint8_t)(path->mtu_selector << 6 | path->mtu),
			.rate = (uint8_t)(path->rate_selector << 6 | path->rate),
			.packetlifetime = (uint8_t)(path->packet_life_time_selector << 6 |
						    path->packet_life_time),
		},
	};
}

static int get_route(struct stream *s, void *value, socklen_t *bytes)
{
	const struct rdma_route *route = &s->id->route;
	struct ibv_path_data data;
	socklen_t n = 0;

	if (!route->path_rec && s->route) {
		*bytes = *bytes < s->route_bytes ? *bytes : (socklen_t)s->route_bytes;
		memcpy(value, s->route, *bytes);
		return 0;
	}
	if (*bytes < sizeof(data))
		return -EINVAL;
	if (!route->path_rec)
		return -ENODATA;
	for (int i = 0; i < route->num_paths && n + sizeof(data) <= *bytes; i++) {
		path_data_of(&route->path_rec[i], &data);
		memcpy((uint8_t *)value + n, &data, sizeof(data));
		n += sizeof(data);
	}
	*bytes = n;
	return 0;
}

/* Options that are structures. */
static int set_whole(void *member, socklen_t member_bytes, const void *value, socklen_t bytes)
{
	if (bytes < member_bytes)
		return -EINVAL;
	memcpy(member, value, member_bytes);
	return 0;
}

static int get_whole(const void *member, socklen_t member_bytes, void *value, socklen_t *bytes)
{
	if (*bytes < member_bytes)
		return -EINVAL;
	memcpy(value, member, member_bytes);
	*bytes = member_bytes;
	return 0;
}

#define WHOLE(name)                                                                        \
	static int set_##name(struct stream *s, const void *value, socklen_t bytes)        \
	{                                                                                  \
		return set_whole(&s->options.name, sizeof(s->options.name), value, bytes); \
	}                                                                                  \
                                                                                           \
	static int get_##name(struct stream *s, void *value, socklen_t *bytes)             \
	{                                                                                  \
		return get_whole(&s->options.name, sizeof(s->options.name), value, bytes); \
	}
WHOLE(linger)
WHOLE(recv_timeout)
WHOLE(send_timeout)

/* Other members are 0. */
static int get_info(struct stream *s, void *value, socklen_t *bytes)
{
	struct tcp_info info = { .tcpi_state = TCP_CLOSE };

	if (stream_can_send_messages(s->state))
		info.tcpi_state = TCP_ESTABLISHED;
	else if (s->state == STREAM_LISTENING)
		info.tcpi_state = TCP_LISTEN;
	else if (stream_is_opening(s->state))
		info.tcpi_state = TCP_SYN_SENT;
	info.tcpi_snd_mss = (uint32_t)get_mss(s, NULL);
	info.tcpi_rcv_mss = info.tcpi_snd_mss;
	if (*bytes > sizeof(info))
		*bytes = sizeof(info);
	memcpy(value, &info, *bytes);
	return 0;
}

static const struct {
	int level;
	int name;
	int (*set)(struct stream *s, const void *value, socklen_t bytes);
	int (*get)(struct stream *s, void *value, socklen_t *bytes);
} other_rows[] = {
	{ SOL_SOCKET, SO_LINGER, set_linger, get_linger },
	{ SOL_SOCKET, SO_RCVTIMEO, set_recv_timeout, get_recv_timeout },
	{ SOL_SOCKET, SO_SNDTIMEO, set_send_timeout, get_send_timeout },
	{ SOL_RDMA, RDMA_ROUTE, set_route, get_route },
	{ IPPROTO_TCP, TCP_INFO, NULL, get_info },
};

/* --- rsetsockopt(), rgetsockopt() ---------------------------------------- */

#define LENGTH(rows) (sizeof(rows) / sizeof((rows)[0]))

static const struct row *find_row(int level, int name)
{
	for (size_t i = 0; i < LENGTH(rows); i++)
		if (rows[i].level == level && rows[i].name == name)
			return &rows[i];
	return NULL;
}

/* As for TCP: IP_TOS is a byte, or an int. */
static bool may_be_byte(const struct row *row, socklen_t bytes)
{
	return row->level == IPPROTO_IP && row->name == IP_TOS && bytes;
}

static int set_option(struct stream *s, int level, int name, const void *value, socklen_t bytes)
{
	const struct row *row = find_row(level, name);
	int number;

	for (size_t i = 0; i < LENGTH(other_rows); i++)
		if (other_rows[i].level == level && other_rows[i].name == name && other_rows[i].set)
			return other_rows[i].set(s, value, bytes);
	if (!row || !row->set)
		return -ENOTSUP;
	if (row->set == ignore_value)
		return 0;
	if (bytes < sizeof(number) && !may_be_byte(row, bytes))
		return -EINVAL;
	if (bytes < sizeof(number))
		number = *(const uint8_t *)value;
	else
		memcpy(&number, value, sizeof(number));
	return row->set(s, row, number);
}

int stream_setopt(struct rsock *rs, int level, int name, const void *value, socklen_t bytes)
{
	struct stream *s = stream_of(rs);
	int err;

	pthread_mutex_lock(&rs->lock);
	err = set_option(s, level, name, value, bytes);
	pthread_mutex_unlock(&rs->lock);
	if (err)
		return err;
	service_lock();
	keepalive_update(s);
	service_unlock();
	return 0;
}

static int get_option(struct stream *s, int level, int name, void *value, socklen_t *bytes)
{
	const struct row *row = find_row(level, name);
	int number;

	for (size_t i = 0; i < LENGTH(other_rows); i++)
		if (other_rows[i].level == level && other_rows[i].name == name)
			return other_rows[i].get(s, value, bytes);
	if (!row || !row->get)
		return -ENOTSUP;
	if (*bytes < sizeof(number) && !may_be_byte(row, *bytes))
		return -EINVAL;
	number = row->get(s, row);
	if (*bytes < sizeof(number)) {
		*(uint8_t *)value = (uint8_t)number;
		*bytes = 1;
	} else {
		memcpy(value, &number, sizeof(number));
		*bytes = sizeof(number);
	}
	return 0;
}

int stream_getopt(struct rsock *rs, int level, int name, void *value, socklen_t *bytes)
{
	int err;

	pthread_mutex_lock(&rs->lock);
	stream_progress(rs);
	err = get_option(stream_of(rs), level, name, value, bytes);
	pthread_mutex_unlock(&rs->lock);
	return err;
}
