/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scope of its own: see own_group.h. One method call of D-Bus, StartTransientUnit(), written out
 * here, because a library for it would be loaded into a daemon of root. The limits are those of the
 * service unit.
 */
#include "tools/cmportd/own_group.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

#define SYSTEMD_SOCKET "/run/systemd/private"
#define MANAGER	       "org.freedesktop.systemd1"
#define WAIT_S	       1
#define MEMORY_MAX     (UINT64_C(1) << 30)
#define TASKS_MAX      16

#define MESSAGE_BYTES  1024
#define HEADER_BYTES   16
#define REPLY_BYTES    65536
#define REPLIES_MAX    64 /* signals may come first */

enum type {
	METHOD_CALL = 1,
	METHOD_RETURN = 2,
	METHOD_ERROR = 3,
};

enum field {
	FIELD_PATH = 1,
	FIELD_INTERFACE = 2,
	FIELD_MEMBER = 3,
	FIELD_DESTINATION = 6,
	FIELD_SIGNATURE = 8,
};

/* --- marshalling ---------------------------------------------------------- */

/* All that is put into it is ours, and fits; what is skipped is zero. */
struct message {
	uint8_t byte[MESSAGE_BYTES];
	uint32_t n;
};

static void align(struct message *message, uint32_t to)
{
	message->n = (message->n + to - 1) / to * to;
}

static void put_bytes(struct message *message, const void *bytes, size_t n)
{
	memcpy(message->byte + message->n, bytes, n);
	message->n += (uint32_t)n;
}

static void put_u32(struct message *message, uint32_t value)
{
	align(message, 4);
	value = htole32(value);
	put_bytes(message, &value, sizeof(value));
}

static void put_u64(struct message *message, uint64_t value)
{
	align(message, 8);
	value = htole64(value);
	put_bytes(message, &value, sizeof(value));
}

static void put_string(struct message *message, const char *text)
{
	put_u32(message, (uint32_t)strlen(text));
	put_bytes(message, text, strlen(text) + 1);
}

static void put_signature(struct message *message, const char *text)
{
	message->byte[message->n++] = (uint8_t)strlen(text);
	put_bytes(message, text, strlen(text) + 1);
}

static void set_u32(struct message *message, uint32_t at, uint32_t value)
{
	value = htole32(value);
	memcpy(message->byte + at, &value, sizeof(value));
}

/* An array of structs. Return: where its length is, for end_array(). */
static uint32_t begin_array(struct message *message)
{
	uint32_t at;

	put_u32(message, 0);
	at = message->n - (uint32_t)sizeof(uint32_t);
	align(message, 8);
	return at;
}

/* The length does not include the padding before the first struct. */
static void end_array(struct message *message, uint32_t at)
{
	const uint32_t first = (at + (uint32_t)sizeof(uint32_t) + 7) / 8 * 8;

	set_u32(message, at, message->n - first);
}

static void put_field(struct message *message, enum field field, const char *type, const char *text)
{
	align(message, 8);
	message->byte[message->n++] = (uint8_t)field;
	put_signature(message, type);
	if (field == FIELD_SIGNATURE)
		put_signature(message, text);
	else
		put_string(message, text);
}

static void put_property(struct message *message, const char *name, const char *type)
{
	align(message, 8);
	put_string(message, name);
	put_signature(message, type);
}

static void put_properties(struct message *message, pid_t pid)
{
	put_property(message, "Description", "s");
	put_string(message, "cmportd, started by a program");
	put_property(message, "PIDs", "au");
	put_u32(message, sizeof(uint32_t));
	put_u32(message, (uint32_t)pid);
	/* As the unit: not stopped before the programs when the host goes down. */
	put_property(message, "DefaultDependencies", "b");
	put_u32(message, false);
	put_property(message, "CollectMode", "s");
	put_string(message, "inactive-or-failed");
	put_property(message, "MemoryMax", "t");
	put_u64(message, MEMORY_MAX);
	put_property(message, "TasksMax", "t");
	put_u64(message, TASKS_MAX);
}

static void put_call(struct message *message, pid_t pid)
{
	uint32_t body, array;
	char name[64];

	*message = (struct message){
		.byte = {'l', METHOD_CALL, 0, 1},
		    .n = 4
	};
	put_u32(message, 0); /* bytes of the body */
	put_u32(message, 1); /* serial number */
	array = begin_array(message);
	put_field(message, FIELD_PATH, "o", "/org/freedesktop/systemd1");
	put_field(message, FIELD_INTERFACE, "s", MANAGER ".Manager");
	put_field(message, FIELD_MEMBER, "s", "StartTransientUnit");
	put_field(message, FIELD_DESTINATION, "s", MANAGER);
	put_field(message, FIELD_SIGNATURE, "g", "ssa(sv)a(sa(sv))");
	end_array(message, array);
	align(message, 8);
	body = message->n;
	snprintf(name, sizeof(name), "cmportd-%d.scope", (int)pid);
	put_string(message, name);
	put_string(message, "fail");
	array = begin_array(message);
	put_properties(message, pid);
	end_array(message, array);
	begin_array(message); /* no other units */
	set_u32(message, 4, message->n - body);
}

/* --- the conversation ----------------------------------------------------- */

static int send_all(int fd, const void *bytes, size_t n)
{
	ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

	return sent < 0 ? -errno : (size_t)sent == n ? 0 : -EMSGSIZE;
}

static int receive_all(int fd, void *bytes, size_t n)
{
	ssize_t got = recv(fd, bytes, n, MSG_WAITALL);

	return got < 0 ? -errno : (size_t)got == n ? 0 : -ECONNRESET;
}

/* The bus reads our user id from the credentials of the socket. */
static int authenticate(int fd)
{
	static const char auth[] = "\0AUTH EXTERNAL 30\r\n", begin[] = "BEGIN\r\n";
	char line[128];
	unsigned int n = 0;
	int err = send_all(fd, auth, sizeof(auth) - 1);

	while (!err && n < sizeof(line) && (n < 2 || line[n - 1] != '\n'))
		err = receive_all(fd, &line[n++], 1);
	if (err)
		return err;
	return strncmp(line, "OK ", 3) ? -EACCES : send_all(fd, begin, sizeof(begin) - 1);
}

static uint32_t u32_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

/* The body of an error begins with a text. */
static void copy_reason(const uint8_t *body, uint32_t n, char ret[128])
{
	uint32_t bytes = n > sizeof(uint32_t) ? u32_at(body) : 0;

	if (bytes && bytes <= n - sizeof(uint32_t))
		snprintf(ret, 128, "%.*s", (int)bytes, (const char *)body + sizeof(uint32_t));
}

/* Return: the type of the next message, or -errno. */
static int receive_message(int fd, char ret_reason[128])
{
	static uint8_t rest[REPLY_BYTES];
	uint8_t header[HEADER_BYTES];
	uint32_t n_fields, n_body;
	int err = receive_all(fd, header, sizeof(header));

	if (err)
		return err;
	n_body = u32_at(header + 4);
	n_fields = u32_at(header + 12);
	if (header[0] != 'l' || n_body > REPLY_BYTES / 2 || n_fields > REPLY_BYTES / 4)
		return -EPROTO;
	n_fields = (n_fields + 7) / 8 * 8;
	err = receive_all(fd, rest, n_fields + n_body);
	if (!err && header[1] == METHOD_ERROR)
		copy_reason(rest + n_fields, n_body, ret_reason);
	return err ? err : header[1];
}

static int await_reply(int fd, char ret_reason[128])
{
	unsigned int i;
	int type = 0;

	for (i = 0; i < REPLIES_MAX && type >= 0; i++) {
		type = receive_message(fd, ret_reason);
		if (type == METHOD_RETURN)
			return 0;
		if (type == METHOD_ERROR)
			return -EREMOTEIO;
	}
	return type < 0 ? type : -EPROTO;
}

int own_group_ask(int fd, pid_t pid, char ret[128])
{
	struct message message;
	int err = authenticate(fd);

	ret[0] = '\0';
	put_call(&message, pid);
	if (!err)
		err = send_all(fd, message.byte, message.n);
	return err ? err : await_reply(fd, ret);
}

/*
 * Only to the first process as we count: a systemd that counts otherwise, one outside of our
 * container, would take another process for us.
 */
static int connect_to_systemd(int fd)
{
	const struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = SYSTEMD_SOCKET };
	const struct timeval limit = { .tv_sec = WAIT_S };
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(peer);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		return -errno;
	return peer.pid == 1 && peer.uid == 0 ? 0 : -ECONNREFUSED;
}

void own_group_enter(void)
{
	char reason[128] = "";
	int fd, err;

	if (geteuid() != 0)
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	err = connect_to_systemd(fd);
	if (!err)
		err = own_group_ask(fd, getpid(), reason);
	if (err)
		log_debug("no control group of its own: %s", reason[0] ? reason : strerror(-err));
	else
		log_debug("systemd moves it to cmportd-%d.scope", (int)getpid());
	close(fd);
}
