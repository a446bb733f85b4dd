/* SPDX-License-Identifier: BSD-2-Clause */
/* The port, the agent, and the queues of their input. */
#include "tools/purecm/drill_link.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "mad/talk.h"
#include "mad/umad.h"
#include "tools/purecm/command.h"
#include "tools/purecm/drill_value.h"

#define NS_PER_S	1000000000ull
#define NS_PER_MS	1000000ull
#define HELLO		"hello "
#define HELLO_TIMEOUT_S 10
#define PKEY_DEFAULT	0xffff

/* --- queues -------------------------------------------------------------- */

static struct drill_heard *add_heard(struct drill_link *link, struct drill_queue *queue)
{
	if (queue->n == DRILL_QUEUE_MAX) {
		link->n_lost++;
		return NULL;
	}
	queue->heard[queue->n].at_ns = clock_ns();
	return &queue->heard[queue->n++];
}

bool drill_queue_take(struct drill_queue *queue, struct drill_heard *ret)
{
	if (!queue->n)
		return false;
	*ret = queue->heard[0];
	memmove(queue->heard, queue->heard + 1, --queue->n * sizeof(queue->heard[0]));
	return true;
}

/* --- the port ------------------------------------------------------------ */

int drill_link_open(const struct checkup *checkup, bool by_qp1, struct drill_link *ret)
{
	const char *device = ibv_get_device_name(checkup->gid.verbs->device);
	const struct mad_path path = { .grh = true,
				       .sgid_index = (uint8_t)checkup->gid.gid_index,
				       .hop_limit = checkup->route.hop_limit,
				       .dgid = addr_to_gid(&checkup->dst) };
	struct umad_owner who = { "", "" };
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->agent = -1;
	ret->path = path;
	memcpy(ret->local_gid.raw, checkup->gid.gid.raw, sizeof(ret->local_gid.raw));
	err = umad_port_open(device, checkup->gid.port_num, &ret->port, &who);
	if (err) {
		complain("a drill needs the CM class of %s/%u for itself: %s%s%s%s%s", device,
			 checkup->gid.port_num, strerror(-err), who.what[0] ? ": " : "", who.what,
			 who.remedy[0] ? "; " : "", who.remedy);
		return err;
	}
	/* Without the required privilege, messages are sent through umad, which sets the tid. */
	if (by_qp1 || mad_sender_open(checkup->gid.verbs, checkup->gid.port_num, &ret->sender))
		ret->sender = NULL;
	if (ret->sender)
		mad_sender_insist(ret->sender);
	return 0;
}

void drill_link_close(struct drill_link *link)
{
	drill_link_leave_agent(link);
	mad_sender_close(link->sender);
	mad_port_close(link->port);
	link->sender = NULL;
	link->port = NULL;
}

static void record_mad(struct drill_link *link, enum observation_way way,
		       const uint8_t mad[MAD_BYTES])
{
	struct observation observation = {
		.time_ns = clock_ns_of(CLOCK_REALTIME),
		.src = way == WAY_OUT ? link->local_gid : link->path.dgid,
		.dst = way == WAY_OUT ? link->path.dgid : link->local_gid,
		.src_qpn = 1,
		.pkey = PKEY_DEFAULT,
	};

	if (!link->file)
		return;
	memcpy(observation.mad, mad, MAD_BYTES);
	pcapng_put(link->file, &observation, NULL);
}

int drill_link_send(struct drill_link *link, const uint8_t mad[MAD_BYTES])
{
	uint8_t failed[MAD_BYTES];
	struct mad_path path;
	int err = -EAGAIN;

	record_mad(link, WAY_OUT, mad);
	if (link->sender)
		err = mad_sender_send(link->sender, &link->path, mad);
	if (err)
		return mad_port_send(link->port, &link->path, mad);
	while (!err && mad_sender_failed(link->sender, &path, failed))
		err = mad_port_send(link->port, &path, failed);
	return err;
}

static int take_from(struct drill_link *link, struct mad_port *port)
{
	struct mad_path path;
	uint8_t mad[MAD_BYTES], answer[MAD_BYTES];
	struct drill_heard *heard;
	int err;

	while ((err = mad_port_receive(port, &path, mad)) == 0 || err == -ENOMSG) {
		if (err || memcmp(&path.dgid, &link->path.dgid, sizeof(path.dgid)) != 0)
			continue;
		if (mad_probe_answer(mad, answer)) { /* not part of a drill */
			mad_port_send(link->port, &path, answer);
			continue;
		}
		record_mad(link, WAY_IN, mad);
		heard = add_heard(link, &link->mads);
		if (heard)
			memcpy(heard->mad, mad, MAD_BYTES);
	}
	return err == -EAGAIN ? 0 : err;
}

/* The peer may respond to QP1, or to the queue pair that our messages are sent from. */
static int take_mads(struct drill_link *link)
{
	int err = take_from(link, link->port);

	if (!err && link->sender)
		err = take_from(link, mad_sender_port(link->sender));
	return err;
}

/* --- the agent ------------------------------------------------------------ */

static int connect_to(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const struct timeval limit = { .tv_sec = HELLO_TIMEOUT_S }; /* also for connect() */
	struct addrinfo *list, *each;
	int fd = -1, err = getaddrinfo(host, port, &hints, &list);

	if (err) {
		complain("agent %s: %s", host, gai_strerror(err));
		return -EHOSTUNREACH;
	}
	for (each = list; each && fd < 0; each = each->ai_next) {
		fd = socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd >= 0)
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		if (fd < 0 || !connect(fd, each->ai_addr, each->ai_addrlen))
			continue;
		err = -errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	if (fd < 0)
		complain("agent %s port %s: %s; start `purecm-agent %s' there", host, port,
			 strerror(-err), port);
	return fd < 0 ? err : fd;
}

/* Our first line is the secret, the agent's "hello stock", for example. */
static int exchange_hello(struct drill_link *link, char *ret_peer)
{
	const uint64_t end_ns = clock_ns() + HELLO_TIMEOUT_S * NS_PER_S;
	const char *secret = getenv("PURECM_SECRET");
	struct drill_heard heard;
	int err = drill_link_say(link, secret ? secret : "");

	while (!err && !link->replies.n)
		err = drill_link_wait(link, end_ns);
	if (!err && (!drill_queue_take(&link->replies, &heard) ||
		     strncmp(heard.text, HELLO, strlen(HELLO)) != 0))
		err = -EPROTO;
	if (err)
		complain("what listens there is no agent, serves another drill, or has another "
			 "PURECM_SECRET than this environment: %s",
			 strerror(-err));
	else
		snprintf(ret_peer, DRILL_NAME_BYTES, "%.*s", DRILL_NAME_BYTES - 1,
			 heard.text + strlen(HELLO));
	return err;
}

int drill_link_call_agent(struct drill_link *link, const char *host, const char *port,
			  char *ret_peer)
{
	int fd = connect_to(host, port);

	if (fd < 0)
		return fd;
	link->agent = fd;
	link->n_text = 0;
	link->events.n = link->replies.n = 0;
	return exchange_hello(link, ret_peer);
}

void drill_link_leave_agent(struct drill_link *link)
{
	if (link->agent >= 0)
		close(link->agent);
	link->agent = -1;
}

int drill_link_say(struct drill_link *link, const char *line)
{
	char text[DRILL_TEXT_BYTES];
	const int n = snprintf(text, sizeof(text), "%s\n", line);

	if (n >= (int)sizeof(text))
		return -EMSGSIZE;
	return send(link->agent, text, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -EPIPE;
}

static void take_text(struct drill_link *link, const char *line)
{
	static const char event[] = "event ";
	const bool is_event = strncmp(line, event, sizeof(event) - 1) == 0;
	struct drill_heard *heard = add_heard(link, is_event ? &link->events : &link->replies);

	if (!heard)
		return;
	snprintf(heard->text, sizeof(heard->text), "%s", line + (is_event ? sizeof(event) - 1 : 0));
	text_make_printable(heard->text);
}

static int take_lines(struct drill_link *link)
{
	ssize_t n = recv(link->agent, link->text + link->n_text,
			 sizeof(link->text) - 1 - link->n_text, MSG_DONTWAIT);
	char *end;

	if (n < 0)
		return errno == EAGAIN ? 0 : -EPIPE;
	if (n == 0)
		return -EPIPE;
	link->n_text += (size_t)n;
	link->text[link->n_text] = '\0';
	while ((end = strchr(link->text, '\n')) != NULL) {
		*end++ = '\0';
		take_text(link, link->text);
		link->n_text -= (size_t)(end - link->text);
		memmove(link->text, end, link->n_text + 1);
	}
	return 0;
}

int drill_link_wait(struct drill_link *link, uint64_t until_ns)
{
	struct pollfd look[3] = { { .fd = link->port->fd, .events = POLLIN },
				  { .fd = link->agent, .events = POLLIN },
				  { .fd = link->sender ? mad_sender_port(link->sender)->fd : -1,
				    .events = POLLIN } };
	const uint64_t now_ns = clock_ns();
	int n, err = 0;

	/* Rounded up, because a wait that ends early would be repeated at once. */
	n = poll(look, 3, until_ns > now_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	if (look[0].revents || look[2].revents)
		err = take_mads(link);
	if (!err && look[1].revents)
		err = take_lines(link);
	return err;
}
