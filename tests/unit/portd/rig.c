/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host with a cmportd and its clients: see rig.h. To be linked with --wrap=clock_gettime,
 * --wrap=epoll_wait, --wrap=getrandom and --wrap=getsockopt: time is virtual, nothing is random,
 * and the test sets the origin of clients.
 */
#include "tests/unit/portd/rig.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/portd/proto/datagram.h"
#include "lib/portd/server/clients/closer.h"
#include "lib/portd/server/server.h"
#include "tests/unit/portd/claims.h"
#include "tests/unit/portd/rig_device.h"

#define START_NS  (UINT64_C(1000) * 1000 * CM_NS_PER_MS)
#define TURNS_MAX 100000
#define FDS_MAX	  PORTD_FDS_MAX

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_epoll_wait(int fd, struct epoll_event *events, int n_max, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n_max, int timeout_ms);
ssize_t __real_getrandom(void *to, size_t n, unsigned int flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags);
int __real_getsockopt(int fd, int level, int option, void *ret, socklen_t *bytes);
int __wrap_getsockopt(int fd, int level, int option, void *ret, socklen_t *bytes);

static struct server *server;
static bool opens_ports;
static uint32_t n_recorded = 64;
static const char *port_file;
static struct sockaddr_un address;
static uint64_t now_ns;
static unsigned int start_ms; /* how long the next cmportd takes to begin */
static bool is_running;	      /* cmportd runs, not the test */
static uint64_t netns = RIG_HOME;
static pid_t come_as = -1;
static uid_t user; /* of clients */
static int stop_fd = -1;
static int reload_fd;
static int alone_fd = -1; /* of the client of a server without a socket directory */
static int n_events;	  /* of the latest turn */
static int wait_ms = 1;	  /* requested by the latest turn */

static void give_up(const char *why)
{
	fprintf(stderr, "the rig: %s\n", why);
	abort();
}

/* --- time ---------------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (!is_running || clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret);
	ret->tv_sec = (time_t)(now_ns / 1000000000);
	ret->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n_max, int timeout_ms)
{
	if (!is_running || fd != server->loop.fd)
		return __real_epoll_wait(fd, events, n_max, timeout_ms);
	wait_ms = timeout_ms;
	n_events = __real_epoll_wait(fd, events, n_max, 0);
	if (n_events == 0 && timeout_ms != 0 && server->any_leaving)
		give_up("cmportd sleeps, and a client that it has shown out is still there");
	return n_events;
}

/* Repeats an event. */
ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags)
{
	if (!is_running)
		return __real_getrandom(to, n, flags);
	now_ns += start_ms * UINT64_C(1000000);
	start_ms = 0;
	memset(to, 0x11, n);
	return (ssize_t)n;
}

int __wrap_getsockopt(int fd, int level, int option, void *ret, socklen_t *bytes)
{
	int err;

	if (is_running && level == SOL_SOCKET && option == SO_NETNS_COOKIE) {
		memcpy(ret, &netns, sizeof(netns));
		return 0;
	}
	err = __real_getsockopt(fd, level, option, ret, bytes);
	if (err || !is_running || level != SOL_SOCKET || option != SO_PEERCRED)
		return err;
	if (come_as >= 0)
		((struct ucred *)ret)->pid = come_as;
	((struct ucred *)ret)->uid = user;
	return 0;
}

void rig_start_takes(unsigned int ms)
{
	start_ms = ms;
}

void rig_client_as(pid_t pid)
{
	come_as = pid;
}

void rig_client_as_user(uid_t uid)
{
	user = uid;
}

void rig_client_from(uint64_t cookie)
{
	netns = cookie;
}

void rig_turn(void)
{
	is_running = true;
	server_turn(server);
	is_running = false;
}

void rig_settle(void)
{
	unsigned int i;

	for (i = 0; i < TURNS_MAX; i++) {
		rig_turn();
		if ((n_events <= 0 && wait_ms != 0) || server_is_over(server))
			return;
	}
	give_up("cmportd turns in circles");
}

void rig_pass(uint64_t ms)
{
	now_ns += ms * CM_NS_PER_MS;
	rig_turn();
	rig_settle();
}

int rig_wait_ms(void)
{
	return wait_ms;
}

/* --- the host ------------------------------------------------------------ */

void rig_set_opens_ports(bool opens)
{
	opens_ports = opens;
}

void rig_records(uint32_t n)
{
	n_recorded = n;
}

void rig_port_file(const char *path)
{
	port_file = path;
}

static void begin(const struct server_options *options)
{
	now_ns = START_NS;
	netns = RIG_HOME;
	come_as = -1;
	user = 0;
	server = calloc(1, sizeof(*server));
	if (!server)
		give_up("no memory");
	server->options = *options;
	server->options.stop_fd = stop_fd = eventfd(0, EFD_CLOEXEC);
	server->options.reload_fd = reload_fd = eventfd(0, EFD_CLOEXEC);
	server->options.port_file = port_file;
	is_running = true;
	if (server_begin(server))
		give_up("cmportd does not begin");
	closer_free(
		server->closer); /* descriptors are closed at once, so that they can be counted */
	server->closer = NULL;
	is_running = false;
}

void rig_set_up(const char *path)
{
	const struct server_options options = { .path = address.sun_path,
						.client_fd = -1,
						.n_recorded = n_recorded,
						.opens_ports = opens_ports };

	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	begin(&options);
}

void rig_set_up_alone(void)
{
	struct server_options options = { .path = NULL };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		give_up("no sockets");
	options.client_fd = pair[0];
	alone_fd = pair[1];
	begin(&options);
}

void rig_stop(void)
{
	eventfd_write(stop_fd, 1);
	rig_turn();
}

void rig_reload(void)
{
	eventfd_write(reload_fd, 1);
	rig_settle();
}

void rig_tear_down(void)
{
	server_end(server);
	free(server);
	server = NULL;
	close(stop_fd);
	close(reload_fd);
	rig_device_forget();
}

struct server *rig_server(void)
{
	return server;
}

uint64_t rig_count(enum portd_stat_counter counter)
{
	unsigned int i, kind;
	uint64_t n = 0;

	for (i = 0; i < server->n_host_ports; i++)
		for (kind = 0; server->host_port[i] && kind < CM_TALLY_KINDS; kind++)
			n += server->host_port[i]->passed[counter][kind];
	return n;
}

unsigned int rig_n_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	if (!dir)
		give_up("no /proc");
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and that of the folder */
}

/* --- the wire ------------------------------------------------------------ */

struct mad_path rig_peer(uint8_t host)
{
	struct mad_path path = { .grh = true, .hop_limit = 64, .dgid.raw[14] = 1 };

	path.dgid.raw[15] = host;
	return path;
}

void rig_arrive(const struct mad_path *from, const struct cm_msg *msg)
{
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(msg, mad);
	rig_arrive_bytes(1, from, mad);
	rig_settle();
}

/* --- sockets ------------------------------------------------------------- */

int rig_dial_later(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		give_up("no socket");
	return fd;
}

void rig_connect(int fd)
{
	unsigned int turns = 0;

	while (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (errno != EAGAIN || turns++ > TURNS_MAX)
			give_up("no connection to cmportd");
		rig_turn();
	}
}

int rig_dial(void)
{
	int fd = alone_fd;

	alone_fd = -1;
	if (fd >= 0)
		return fd;
	fd = rig_dial_later();
	rig_connect(fd);
	return fd;
}

bool rig_put(int to, const void *bytes, size_t n, const int *fds, unsigned int n_fds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	memcpy(&iov.iov_base, &bytes, sizeof(bytes)); /* it is not modified */
	if (n_fds > FDS_MAX)
		give_up("so many descriptors are not sent");
	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	}
	return sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

int rig_answer(struct rig_client *client)
{
	struct portd_datagram in;
	struct portd_record record;
	int fd[2];

	ssize_t n = portd_datagram_receive(client->control, &in, fd, MSG_DONTWAIT);

	if (n < 0 && errno == ECONNRESET) /* it was refused, with the reason */
		n = portd_datagram_receive(client->control, &in, fd, MSG_DONTWAIT);
	if (n <= 0)
		return -1;
	if (portd_get(&in, &record) || record.type != PORTD_REPLY)
		give_up("what came is no answer");
	if (fd[0] >= 0) {
		client->data = fd[0];
		client->page_fd = fd[1];
	}
	client->reply = record.reply;
	return record.reply.error;
}

int rig_ask(struct rig_client *client, const struct portd_record *record)
{
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, record);
	rig_put(client->control, out.data, out.bytes, NULL, 0);
	rig_settle();
	return portd_is_one_way(record->type) ? 0 : rig_answer(client);
}

bool rig_send_record(const struct rig_client *client, const struct portd_record *record)
{
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, record);
	return rig_put(client->data, out.data, out.bytes, NULL, 0);
}

void rig_encode(struct portd_mad *mad, const struct cm_msg *msg)
{
	static const struct mad_gid nothing;
	struct cm_msg said = *msg;
	struct cm_req_path *primary = &said.req.primary;

	if (msg->hdr.attr_id == CM_ATTR_REQ &&
	    !memcmp(&primary->local_gid, &nothing, sizeof(nothing))) {
		primary->local_gid = rig_gid();
		primary->remote_gid = mad->path.dgid;
	}
	cm_msg_encode(&said, mad->mad);
}

void rig_send(struct rig_client *client, const struct mad_path *to, const struct cm_msg *msg)
{
	struct portd_record record = { .type = PORTD_MAD,
				       .mad = { .port = client->handle, .path = *to } };

	rig_encode(&record.mad, msg);
	if (!rig_send_record(client, &record))
		give_up("a data socket has no room");
	rig_settle();
}

bool rig_next(struct rig_client *client, struct portd_record *ret)
{
	ssize_t n;

	if (client->in.at == client->in.bytes) {
		n = recv(client->data, client->in.data, sizeof(client->in.data), MSG_DONTWAIT);
		client->in.at = 0;
		client->in.bytes = n > 0 ? (size_t)n : 0;
	}
	return portd_get(&client->in, ret) == 0;
}

bool rig_next_msg(struct rig_client *client, struct cm_msg *ret)
{
	struct portd_record record = { .type = PORTD_REPLY };

	while (record.type != PORTD_MAD)
		if (!rig_next(client, &record))
			return false;
	return cm_msg_decode(record.mad.mad, MAD_BYTES, ret) == 0;
}

bool rig_is_disconnected(const struct rig_client *client)
{
	struct pollfd control = { .fd = client->control };

	return ppoll(&control, 1, &(struct timespec){ 0 }, NULL) == 1 && control.revents & POLLHUP;
}

/* --- clients ------------------------------------------------------------- */

int rig_resume(struct rig_client *client, int page_fd)
{
	struct portd_record hello = { .type = PORTD_HELLO,
				      .hello = { .version = PORTD_VERSION, .resumes = 1 } };
	struct portd_datagram out = { .bytes = 0 };

	portd_put(&out, &hello);
	rig_put(client->control, out.data, out.bytes, &page_fd, page_fd >= 0);
	rig_settle();
	return rig_answer(client);
}

int rig_hold(struct rig_client *client)
{
	struct portd_record hold = { .type = PORTD_HOLD_IDS,
				     .ids = { .first = client->first, .secret = client->secret } };

	return rig_ask(client, &hold);
}

void rig_meet(struct rig_client *client)
{
	struct portd_record hello = { .type = PORTD_HELLO, .hello = { .version = PORTD_VERSION } };

	*client = (struct rig_client){ .control = rig_dial(), .data = -1, .page_fd = -1 };
	if (rig_ask(client, &hello))
		give_up("HELLO was not answered well");
	client->first = client->reply.first;
	client->secret = client->reply.secret;
}

void rig_join(struct rig_client *client)
{
	struct portd_record open = { .type = PORTD_OPEN_PORT,
				     .open_port = { .port_num = 1, .device = RIG_DEVICE } };

	rig_meet(client);
	if (rig_ask(client, &open))
		give_up("the port was not opened");
	client->handle = client->reply.handle;
}

void rig_leave(struct rig_client *client)
{
	close(client->control);
	if (client->data >= 0)
		close(client->data);
	if (client->page_fd >= 0)
		close(client->page_fd);
	client->control = client->data = client->page_fd = -1;
	rig_settle();
}

struct portd_claim rig_claim(uint32_t claim_id, const char *addr)
{
	return claim_on(claim_id, addr, RIG_SERVICE);
}

int rig_listen(struct rig_client *client, const char *addr)
{
	struct portd_record record = { .type = PORTD_BIND, .claim = rig_claim(1, addr) };
	int err = rig_ask(client, &record);

	record.type = PORTD_LISTEN;
	return err ? err : rig_ask(client, &record);
}

unsigned int rig_count_text(int fd, const char *text)
{
	static char all[1 << 20];
	const char *at = all;
	unsigned int n;

	all[pread(fd, all, sizeof(all) - 1, 0)] = '\0';
	for (n = 0; (at = strstr(at, text)); n++)
		at++;
	return n;
}
