/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting to cmportd, and requests, which are sent under the client's lock and answered in
 * order. When cmportd dies, the receiving thread notices first; a request waits until that thread
 * has connected to the next one.
 */
#include "lib/portd/client/portd_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lib/portd/client/spawn.h"
#include "lib/portd/proto/datagram.h"

#define RESUMING_MS   60000
#define CONNECT_MS    5000  /* without a sign that a cmportd is starting */
#define STARTING_MS   60000 /* with such signs; a host can be slow */
#define OTHERS_MS     1000  /* for another user's program that is starting cmportd */
#define OURS_MS	      10000 /* for one of root or of this user; each that is started costs CPU */
#define TURN_WAITERS  128   /* that find out whose it is */
#define LOOK_AGAIN_MS 5	    /* initial polling interval; polling slows down a slow host */
#define LOOK_MAX_MS   50
#define HANG_UPS_MAX  40
#define SEND_WAIT_S   1
#define UID_UNMAPPED  65534 /* the default of /proc/sys/kernel/overflowuid */
#define TELL_WAIT_S   5	    /* a request needs no answer, but it must not get lost */

__thread bool request_is_resumer;

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns() / CM_NS_PER_MS);
}

/* --- connecting ----------------------------------------------------------- */

/* There may be many who connect, and a cmportd that is stopped accepts nobody. */
static int connect_in_turn(int fd, const struct sockaddr_un *addr)
{
	const struct timeval wait = { .tv_sec = STARTING_MS / 1000 }, forever = { 0 };
	const int64_t until = now_ms() + STARTING_MS;
	int err;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	do
		err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno : 0;
	while (err == -EINTR && now_ms() < until);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof(forever));
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

/* *@ret is set at once, and -1 on error: a child that is forked meanwhile closes it. */
static int connect_once(const char *path, int *ret)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	*ret = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*ret < 0)
		return -errno;
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	err = connect_in_turn(*ret, &addr);
	if (err)
		fd_close(ret);
	return err;
}

/* Return: false also if that cannot be found out. A user namespace has few users, or all. */
static bool has_all_users(void)
{
	unsigned int first, its, n;
	char map[64];

	fd_read_file("/proc/self/uid_map", map, sizeof(map));
	return sscanf(map, "%u %u %u", &first, &its, &n) == 3 && n == UINT32_MAX;
}

/*
 * A cmportd learns, and could choose, with whom a program is connected. In the default folder only
 * root can make a socket. Those who have no number in our user namespace have UID_UNMAPPED in it.
 */
static int check_server(const struct portd_client *client, struct portd_why *why)
{
	struct ucred peer = { .uid = 0 };
	socklen_t bytes = sizeof(peer);

	if (geteuid() != 0 || client->visits || strcmp(client->path, SOCKET_PATH_DEFAULT) == 0 ||
	    getsockopt(client->control_fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) ||
	    peer.uid == 0 || (peer.uid == UID_UNMAPPED && !has_all_users()))
		return 0;
	snprintf(why->text, sizeof(why->text),
		 "cmportd at %s is of uid %u, and a program of root uses only root's; choose "
		 "another socket with PURECM_SOCKET",
		 client->path, (unsigned int)peer.uid);
	return -EPERM;
}

static bool nobody_is_there(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED;
}

static void explain_connect(const char *path, int err, int spawn_err, struct portd_why *why)
{
	size_t said = strlen(why->text); /* cmportd's own message */

	if (said) {
		snprintf(why->text + said, sizeof(why->text) - said,
			 "; or set PURECM_PORTD=inline for a cmportd without a socket");
		return;
	}
	if (err == -EMFILE)
		snprintf(why->text, sizeof(why->text),
			 "cmportd at %s cannot be reached or started; raise `ulimit -n`", path);
	else if (spawn_err)
		snprintf(why->text, sizeof(why->text),
			 "no cmportd at %s, and none can be started: %s; install or start one",
			 path, strerror(-spawn_err));
	else
		snprintf(why->text, sizeof(why->text),
			 "cmportd at %s cannot be reached: %s; see `cmportd --verbose`, or set "
			 "PURECM_PORTD=inline for one without a socket",
			 path, strerror(-err));
}

/* A search for cmportd. */
struct search {
	const char *path;
	struct portd_why *why;
	int64_t begin_ms;
	int64_t sign_ms;	/* time of the latest sign of a cmportd that starts */
	int64_t others_ms;	/* how long another program may take to start it */
	int look_ms;		/* polling interval */
	int turn;		/* result of take_turn() */
	int *turn_fd;		/* holds the turn, or -1 */
	int started;		/* output of the cmportd that we started, until it serves; or -1 */
	unsigned int n_started; /* by us */
	int spawn_err;
};

/* Any user can take the turn and do nothing. */
static bool is_turn_of_ours(int fd, const struct sockaddr_un *addr)
{
	struct ucred holder = { .uid = UID_UNMAPPED };
	socklen_t bytes = sizeof(holder);

	return !connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &bytes) &&
	       (holder.uid == 0 || holder.uid == geteuid());
}

/*
 * Many programs may find at once that no cmportd is running. The one that binds this name starts
 * it; the kernel releases the name when its holder ends. The others start cmportd only if none
 * appears.
 *
 * Return: 0, and *search->turn_fd holds the name; -EADDRINUSE if another program has it; -errno.
 */
static int take_turn(struct search *search)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	*search->turn_fd = fd;
	snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "%.100s.start", search->path);
	err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	if (!err && !listen(fd, TURN_WAITERS))
		return 0;
	if (err == -EADDRINUSE && search->others_ms < OURS_MS && is_turn_of_ours(fd, &addr))
		search->others_ms = OURS_MS;
	fd_close(search->turn_fd);
	return err;
}

static void read_started(struct search *search)
{
	char text[sizeof(search->why->text)];
	ssize_t n = read(search->started, text, sizeof(text) - 1);

	if (n > 0 && !text[n - 1]) { /* it serves: all before is its log */
		search->why->text[0] = '\0';
		fd_close(&search->started);
		return;
	}
	if (n > 0 && !search->why->text[0]) {
		text[n] = '\0';
		snprintf(search->why->text, sizeof(search->why->text), "%.*s",
			 (int)strcspn(text, "\n"), text);
	}
	if (n == 0)
		fd_close(&search->started);
}

static int longer_look(int look_ms)
{
	return 2 * look_ms < LOOK_MAX_MS ? 2 * look_ms : LOOK_MAX_MS;
}

static void wait_for_sign(struct search *search)
{
	struct pollfd poll_fd = { .fd = search->started, .events = POLLIN };

	poll(&poll_fd, search->started >= 0, search->look_ms);
	if (search->started >= 0)
		read_started(search);
	search->look_ms = longer_look(search->look_ms);
	if (search->started >= 0 || search->turn == -EADDRINUSE)
		search->sign_ms = now_ms();
}

static bool has_hope(const struct search *search)
{
	int64_t now = now_ms();
	bool has_said_why = search->started < 0 && search->why->text[0];

	return !search->spawn_err && !(search->n_started && has_said_why) &&
	       now < search->sign_ms + CONNECT_MS && now < search->begin_ms + STARTING_MS;
}

/*
 * Other programs get some time to start it first. A cmportd that this program has started, and that
 * ended without a message, was killed, and is started again.
 */
static bool is_to_be_started(const struct search *search)
{
	return search->started < 0 && search->n_started < REQUEST_TRIES_MAX &&
	       (search->turn >= 0 || now_ms() > search->begin_ms + search->others_ms);
}

static int connect_or_start(struct portd_client *client, struct portd_why *why)
{
	const char *path = client->path;
	int *ret = &client->control_fd;
	struct search search = { .path = path,
				 .why = why,
				 .begin_ms = now_ms(),
				 .sign_ms = now_ms(),
				 .others_ms = OTHERS_MS,
				 .look_ms = LOOK_AGAIN_MS,
				 .turn = -1,
				 .turn_fd = &client->turn_fd,
				 .started = -1 };
	int err = connect_once(path, ret);

	while (nobody_is_there(err) && has_hope(&search)) {
		if (search.turn < 0)
			search.turn = take_turn(&search);
		if (is_to_be_started(&search)) {
			search.spawn_err = spawn_cmportd(path, -1, &search.started);
			search.n_started++;
		}
		wait_for_sign(&search);
		err = connect_once(path, ret);
	}
	fd_close(search.turn_fd);
	fd_close(&search.started);
	if (nobody_is_there(err)) {
		err = search.spawn_err == -ENOENT ? 0 : search.spawn_err;
		if (!err)
			err = socket_path_try(path);
		if (!err)
			err = -ECONNREFUSED;
	}
	if (err)
		explain_connect(path, err, search.spawn_err, why);
	return err;
}

int portd_start_own(int *ret_fd, struct portd_why *ret_why)
{
	struct search search = { .why = ret_why,
				 .begin_ms = now_ms(),
				 .sign_ms = now_ms(),
				 .look_ms = LOOK_AGAIN_MS,
				 .turn = -1,
				 .started = -1,
				 .n_started = 1 };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	*ret_fd = pair[0]; /* at once, as in connect_once() */
	search.spawn_err = spawn_cmportd(NULL, pair[1], &search.started);
	close(pair[1]);
	while (search.started >= 0 && has_hope(&search))
		wait_for_sign(&search);
	fd_close(&search.started);
	if (!search.spawn_err && !ret_why->text[0])
		return 0;
	fd_close(ret_fd);
	if (search.spawn_err)
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "this process cannot start a cmportd of its own: %s",
			 strerror(-search.spawn_err));
	return -ECONNREFUSED;
}

/* --- requests ------------------------------------------------------------- */

int request_send(int to, const struct portd_record *record, int fd)
{
	struct portd_datagram out; /* large, so not cleared */

	out.bytes = 0;
	portd_put(&out, record);
	return portd_datagram_send(to, &out, (int[2]){ fd, -1 }, 0);
}

/*
 * Where hundreds of programs start at once, cmportd gets its share of a CPU late. A process that
 * hangs sleeps, or is stopped.
 *
 * Return: false also if that cannot be found out, as from another pid namespace.
 */
static bool waits_for_cpu(int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t bytes = sizeof(peer);
	char path[32], text[256];
	const char *state;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) || peer.pid == getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)peer.pid);
	fd_read_file(path, text, sizeof(text));
	state = strrchr(text, ')'); /* the end of the program's name */
	return state && (strncmp(state, ") R", 3) == 0 || strncmp(state, ") D", 3) == 0);
}

static int poll_once(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int64_t left_ms, until = now_ms() + PORTD_ANSWER_MS;
	int n;

	do {
		left_ms = until - now_ms();
		n = poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 0);
	} while (n < 0 && errno == EINTR && left_ms > 0);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

static int wait_readable(int fd)
{
	int i, err = -ETIMEDOUT;

	for (i = 0; i < PORTD_ANSWER_WAITS_MAX && err == -ETIMEDOUT; i++) {
		err = poll_once(fd);
		if (err == -ETIMEDOUT && !waits_for_cpu(fd))
			break;
	}
	return err;
}

/* Passed descriptors that the caller does not ask for are closed. */
static int receive_reply(int from, struct portd_reply *ret, int ret_fd[2])
{
	struct portd_datagram in;
	struct portd_record record;
	int fd[2];
	ssize_t n = portd_datagram_receive(from, &in, fd, 0);
	bool is_reply = n > 0 && !portd_get(&in, &record) && record.type == PORTD_REPLY;

	if (n > 0 && (!is_reply || !ret_fd)) {
		fd_close(&fd[0]);
		fd_close(&fd[1]);
	}
	if (n <= 0)
		return n ? -errno : -EPIPE;
	if (!is_reply)
		return -EPROTO;
	if (ret_fd)
		memcpy(ret_fd, fd, sizeof(fd));
	*ret = record.reply;
	ret->text[sizeof(ret->text) - 1] = '\0';
	return 0;
}

/* Late responses to earlier requests precede it, and are dropped. */
static int await_reply(struct portd_client *client, struct portd_reply *ret, int ret_fd[2])
{
	bool is_last;
	int err;

	client->n_unanswered++;
	do {
		is_last = client->n_unanswered == 1;
		err = wait_readable(client->control_fd);
		if (!err)
			err = receive_reply(client->control_fd, ret, is_last ? ret_fd : NULL);
		if (!err)
			client->n_unanswered--;
	} while (!err && !is_last);
	return err;
}

/*
 * A cmportd that does not answer may be stopped. The client stays connected: if it closed the
 * socket, cmportd would end the program's connections.
 */
int request_exchange(struct portd_client *client, const struct portd_record *record, int fd,
		     struct portd_reply *ret, int ret_fd[2])
{
	int err = request_send(client->control_fd, record, fd);

	if (!err && portd_is_one_way(record->type))
		return 0;
	if (!err)
		err = await_reply(client, ret, ret_fd);
	if (err && (err != -ETIMEDOUT || client->broken))
		shutdown(client->control_fd, SHUT_RDWR);
	return err;
}

/*
 * The receiving thread connects to the next cmportd: it is made to see that this connection has
 * ended.
 */
static void break_connection(struct portd_client *client)
{
	client->broken = true;
	shutdown(client->control_fd, SHUT_RDWR);
	shutdown(client->data_fd, SHUT_RDWR);
}

/*
 * The resuming thread may be scheduled late on a busy host, so the first time limit is long. After
 * a failed attempt the remaining ones have CONNECT_MS.
 *
 * Return: -EPIPE if the calling thread is the resuming thread, which cannot wait for itself.
 */
static int wait_resumed(struct portd_client *client)
{
	const unsigned int life = client->life, n_failed = client->n_failed;
	struct timespec until = clock_after_ms(RESUMING_MS);
	bool has_failed = false;
	int err = 0;

	if (request_is_resumer)
		return -EPIPE;
	while (client->life == life && !err) {
		if (!has_failed && client->n_failed != n_failed) {
			has_failed = true;
			until = clock_after_ms(CONNECT_MS);
		}
		err = pthread_cond_clockwait(&client->resumed, &client->lock, CLOCK_MONOTONIC,
					     &until);
	}
	return client->life == life ? -ECONNREFUSED : 0;
}

bool request_is_hang_up(int err)
{
	return err == -EPIPE || err == -ECONNRESET;
}

/* A cmportd that fails in another way than by its death is given one more chance. */
int request_ask_locked(struct portd_client *client, const struct portd_record *record, int fd,
		       struct portd_reply *ret)
{
	unsigned int i;
	int err = -EPIPE;

	for (i = 0; i < 2 || (i < REQUEST_TRIES_MAX && request_is_hang_up(err)); i++) {
		err = client->broken ? wait_resumed(client) : 0;
		if (err)
			return err;
		err = request_exchange(client, record, fd, ret, NULL);
		if (!err)
			return -ret->error;
		if (err != -ETIMEDOUT)
			break_connection(client);
	}
	return err;
}

int request_ask(struct portd_client *client, const struct portd_record *record, int fd,
		struct portd_reply *ret)
{
	int err;

	pthread_mutex_lock(&client->lock);
	err = request_ask_locked(client, record, fd, ret);
	pthread_mutex_unlock(&client->lock);
	return err;
}

struct portd_ids request_keep_block(struct portd_client *client, const struct portd_reply *reply)
{
	const struct portd_ids block = { reply->first, reply->count, reply->secret };

	if (client->n_blocks < CM_ID_BLOCKS_MAX)
		client->block[client->n_blocks++] = block;
	return block;
}

int request_try(struct portd_client *client, const struct portd_record *record, int fd,
		struct portd_reply *ret)
{
	int err = client->broken ? -EPIPE : request_exchange(client, record, fd, ret, NULL);

	if (!err)
		return -ret->error;
	if (err == -ETIMEDOUT)
		return err;
	break_connection(client);
	return -EPIPE;
}

int portd_await(struct portd_client *client)
{
	int err;

	pthread_mutex_lock(&client->lock);
	err = client->broken ? wait_resumed(client) : 0;
	pthread_mutex_unlock(&client->lock);
	return err;
}

/* An unanswered record may be lost: a new cmportd gets a full report. */
void request_tell(struct portd_client *client, const struct portd_record *record)
{
	pthread_mutex_lock(&client->lock);
	if (!client->broken && request_send(client->control_fd, record, -1))
		break_connection(client);
	pthread_mutex_unlock(&client->lock);
}

/* --- HELLO --------------------------------------------------------------- */

static int map_page(struct portd_client *client, int fd)
{
	void *page;

	if (!lease_is_page(fd))
		return -EPROTO;
	page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	client->page = page;
	client->page_fd = fd;
	return 0;
}

/* The descriptor keeps its number, because another thread may be about to send on it. */
static int set_data_fd(struct portd_client *client, int fd)
{
	struct timeval wait = { .tv_sec = SEND_WAIT_S };
	int err = 0;

	/* A stopped cmportd must not block us: the message is dropped, and retransmitted later. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (client->data_fd < 0) {
		client->data_fd = fd;
		return 0;
	}
	if (dup3(fd, client->data_fd, O_CLOEXEC) < 0)
		err = -errno;
	close(fd);
	return err;
}

/*
 * A cmportd that turns a client away says why, and does not read what the client sends: the first
 * call of recv() then fails with ECONNRESET. Return: false if it has said nothing.
 */
static bool read_refusal(int from, struct portd_reply *ret)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (receive_reply(from, ret, NULL) == 0)
			return ret->error;
	return false;
}

static int send_hello(struct portd_client *client, bool resumes, struct portd_ids *ret_ids,
		      struct portd_why *why)
{
	struct portd_record record = {
		.type = PORTD_HELLO,
		.hello = { .version = PORTD_VERSION, .resumes = resumes, .visits = client->visits },
	};
	struct portd_reply reply = { .error = 0 };
	int *fd = client->passed;
	int err = request_exchange(client, &record, resumes ? client->page_fd : -1, &reply, fd);

	if (request_is_hang_up(err) && read_refusal(client->control_fd, &reply))
		err = 0;
	if (!err && reply.error) {
		memcpy(why->text, reply.text, sizeof(why->text));
		err = -reply.error;
	}
	/* The kernel drops those for which this process has no number. */
	if (!err && (fd[0] < 0 || (!resumes && fd[1] < 0)))
		err = -EMFILE;
	if (!err && !resumes)
		err = map_page(client, fd[1]);
	if (err) {
		fd_close(&fd[0]);
		fd_close(&fd[1]);
		return err;
	}
	if (client->visits) {
		*ret_ids = (struct portd_ids){ 0, 0, 0 };
	} else if (!resumes) {
		*ret_ids = request_keep_block(client, &reply);
	} else {
		fd_close(&fd[1]); /* the client keeps its page */
	}
	err = set_data_fd(client, fd[0]);
	fd[0] = fd[1] = -1;
	return err;
}

static int reach_server(struct portd_client *client, struct portd_why *why)
{
	const struct timeval wait = { .tv_sec = TELL_WAIT_S };
	int err;

	if (client->reach)
		err = client->reach(&client->control_fd, why);
	else if (client->visits)
		err = connect_once(client->path, &client->control_fd);
	else
		err = connect_or_start(client, why);
	if (!err && !client->reach)
		err = check_server(client, why);
	/* The program waits for a stopped cmportd only so long. */
	if (!err)
		setsockopt(client->control_fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	return err;
}

int request_start(struct portd_client *client, bool resumes, struct portd_ids *ret_ids,
		  struct portd_why *ret_why)
{
	int look_ms = LOOK_AGAIN_MS;
	int i, err;

	/*
	 * A cmportd that is about to exit, or is killed, may still accept a connection that it will
	 * not serve. One that has too many of them for now turns it away with EAGAIN. The time to
	 * find the next one is not limited, because hosts can be slow.
	 */
	for (i = 0; i <= HANG_UPS_MAX; i++) {
		fd_close(&client->control_fd);
		client->n_unanswered = 0;
		err = reach_server(client, ret_why);
		if (!err)
			err = send_hello(client, resumes, ret_ids, ret_why);
		if (!request_is_hang_up(err) && err != -EAGAIN)
			return err;
		poll(NULL, 0, look_ms);
		look_ms = longer_look(look_ms);
	}
	if (err == -EAGAIN)
		return -EDQUOT; /* it has said what there is too much of */
	snprintf(ret_why->text, sizeof(ret_why->text),
		 "cmportd takes connections and hangs up; see `cmportd --verbose`, or set "
		 "PURECM_PORTD=inline for one without a socket");
	return -ECONNREFUSED;
}
