/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, and the sockets at them: see folder.h. The stale socket of an ended process refuses
 * connections.
 */
#include "tools/fabric/wire/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "tools/fabric/wire/packet.h"

#define GID_HEX_BYTES 33
#define OWNER_BYTES   (FAB_NAME_BYTES + 4)

/* "/tmp/f/hosts/a" is host a of the fabric /tmp/f. */
int fab_folder_find(struct fab_folder *ret)
{
	const char *path = env_get(FAB_ENV);
	const char *name = path ? strrchr(path, '/') : NULL;
	const char *middle = "/hosts";
	size_t n_middle = strlen(middle);
	size_t n_dir;

	if (!path || !path[0])
		return -ENODEV;
	if (!name || path[0] != '/' || !name[1] || (size_t)(name - path) <= n_middle ||
	    strncmp(name - n_middle, middle, n_middle) != 0)
		return -EINVAL;
	n_dir = (size_t)(name - path) - n_middle;
	if (n_dir >= sizeof(ret->dir) || strlen(name + 1) >= sizeof(ret->host))
		return -ENAMETOOLONG;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->dir, path, n_dir);
	strcpy(ret->host, name + 1);
	return 0;
}

void fab_folder_page(const struct fab_folder *folder, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%s/page", folder->dir, folder->host);
}

void fab_folder_counters(const struct fab_folder *folder, const char *host,
			 char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%.15s/counters", folder->dir, host);
}

/* The receiver of each datagram is named so, and snprintf() takes 1,300 instructions. */
static char *put_host(const struct fab_folder *folder, const char *host, char *ret)
{
	char *end = stpcpy(stpcpy(ret, folder->dir), "/hosts/");

	return (char *)mempcpy(end, host, strnlen(host, FAB_NAME_BYTES - 1));
}

static void put_number(unsigned int number, char *ret)
{
	unsigned int tens = 1;

	while (number / tens >= 10)
		tens *= 10;
	for (; tens; tens /= 10)
		*ret++ = (char)('0' + number / tens % 10);
	*ret = '\0';
}

void fab_folder_gsi(const struct fab_folder *folder, const char *host, char ret[FAB_PATH_BYTES])
{
	strcpy(put_host(folder, host, ret), "/gsi");
}

void fab_folder_umad(const struct fab_folder *folder, uint8_t port_num, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%s/umad.%u", folder->dir, folder->host, port_num);
}

void fab_folder_udp(const struct fab_folder *folder, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%s/udp", folder->dir, folder->host);
}

void fab_folder_slot(const struct fab_folder *folder, const char *host, unsigned int slot,
		     char ret[FAB_PATH_BYTES])
{
	put_number(slot, stpcpy(put_host(folder, host, ret), "/ctx/"));
}

void fab_folder_grants(const struct fab_folder *folder, const char *host, unsigned int slot,
		       char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%.15s/grants/%u", folder->dir, host, slot);
}

bool fab_folder_grants_of(const char *socket, char ret[FAB_PATH_BYTES])
{
	const char *slot = strrchr(socket, '/');

	if (!slot || slot - socket < 4 || strncmp(slot - 4, "/ctx", 4) != 0)
		return false;
	snprintf(ret, FAB_PATH_BYTES, "%.*s/grants%s", (int)(slot - 4 - socket), socket, slot);
	return true;
}

/* It does not call snprintf(), of which a connection's queue pairs needed 32 calls. */
static void gid_hex(const union ibv_gid *gid, char ret[GID_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < sizeof(gid->raw); i++) {
		*ret++ = digits[gid->raw[i] >> 4];
		*ret++ = digits[gid->raw[i] & 15];
	}
	*ret = '\0';
}

void fab_folder_gid(const struct fab_folder *folder, const union ibv_gid *gid,
		    char ret[FAB_PATH_BYTES])
{
	char hex[GID_HEX_BYTES];

	gid_hex(gid, hex);
	snprintf(ret, FAB_PATH_BYTES, "%s/gids/%s", folder->dir, hex);
}

void fab_folder_group(const struct fab_folder *folder, const union ibv_gid *mgid,
		      char ret[FAB_PATH_BYTES])
{
	char hex[GID_HEX_BYTES];

	gid_hex(mgid, hex);
	snprintf(ret, FAB_PATH_BYTES, "%s/groups/%s", folder->dir, hex);
}

/* A member's file is named by its host and queue pair: "a.16385". */
bool fab_folder_read_member(const char *name, char ret_host[FAB_NAME_BYTES], uint32_t *ret_qpn)
{
	return sscanf(name, "%15[^.].%u", ret_host, ret_qpn) == 2;
}

void fab_folder_joined(const struct fab_folder *folder, const union ibv_gid *mgid,
		       const struct fab_owner *member, char ret[FAB_PATH_BYTES])
{
	char hex[GID_HEX_BYTES];

	gid_hex(mgid, hex);
	snprintf(ret, FAB_PATH_BYTES, "%s/joined/%s/%.15s.%u", folder->dir, hex, member->host,
		 member->port_num);
}

void fab_folder_lid(const struct fab_folder *folder, uint8_t subnet, uint16_t lid,
		    char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/lids/%u.%u", folder->dir, subnet, lid);
}

int fab_folder_link_owner(const struct fab_folder *folder, uint8_t port_num, const char *path)
{
	char owner[OWNER_BYTES];

	snprintf(owner, sizeof(owner), "%s.%u", folder->host, port_num);
	return symlink(owner, path) ? -errno : 0;
}

void fab_folder_report_denied(int err)
{
	static int is_reported;

	if (err == -EACCES && !__atomic_exchange_n(&is_reported, 1, __ATOMIC_RELAXED))
		fprintf(stderr,
			"fabric: user %u may not use this fabric, which is another user's: no device, "
			"no new connections; run the program as the user who started the fabric\n",
			(unsigned int)geteuid());
}

static int read_owner(const char *path, struct fab_owner *ret)
{
	char owner[OWNER_BYTES];
	ssize_t n = readlink(path, owner, sizeof(owner) - 1);
	size_t host_bytes;

	if (n < 0 && errno == EACCES) {
		fab_folder_report_denied(-EACCES);
		return -EACCES;
	}
	if (n <= 0)
		return -EHOSTUNREACH;
	owner[n] = '\0';
	host_bytes = strcspn(owner, ".");
	if (!host_bytes || host_bytes >= sizeof(ret->host) || !owner[host_bytes])
		return -EHOSTUNREACH;
	memcpy(ret->host, owner, host_bytes);
	ret->host[host_bytes] = '\0';
	ret->port_num = (uint8_t)strtoul(owner + host_bytes + 1, NULL, 10);
	return 0;
}

int fab_folder_owner_of(const struct fab_folder *folder, const union ibv_gid *gid,
			struct fab_owner *ret)
{
	char path[FAB_PATH_BYTES];

	fab_folder_gid(folder, gid, path);
	return read_owner(path, ret);
}

int fab_folder_owner_of_lid(const struct fab_folder *folder, uint8_t subnet, uint16_t lid,
			    struct fab_owner *ret)
{
	char path[FAB_PATH_BYTES];

	fab_folder_lid(folder, subnet, lid, path);
	return read_owner(path, ret);
}

void fab_folder_widen_buffer(int fd)
{
	int bytes = 1 << 20; /* limited by the kernel */

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void fab_folder_sockaddr(const char *path, struct sockaddr_un *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	strncpy(ret->sun_path, path, sizeof(ret->sun_path) - 1);
}

static bool is_alive(const struct sockaddr_un *addr, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool alive;

	if (fd < 0)
		return true;
	alive = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 ||
		errno != ECONNREFUSED;
	close(fd);
	return alive;
}

int fab_folder_bind(const char *path, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	int err = 0;

	if (fd < 0)
		return -errno;
	fab_folder_sockaddr(path, &addr);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		if (err == -EADDRINUSE && !is_alive(&addr, type) && unlink(path) == 0)
			err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	}
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Return: a socket at the first free slot from @first on, or -errno. */
static int bind_from(const struct fab_folder *folder, unsigned int first, unsigned int *ret_slot)
{
	char path[FAB_PATH_BYTES];
	unsigned int i, slot;
	int fd;

	for (i = 0; i < FAB_SLOTS - 1; i++) {
		slot = 1 + (first + i) % (FAB_SLOTS - 1);
		fab_folder_slot(folder, folder->host, slot, path);
		fd = fab_folder_bind(path, SOCK_DGRAM);
		if (fd >= 0)
			*ret_slot = slot;
		if (fd != -EADDRINUSE)
			return fd;
	}
	return -EBUSY;
}

int fab_folder_take_slot(const struct fab_folder *folder, unsigned int *ret_slot)
{
	char path[FAB_PATH_BYTES];
	unsigned int last = 0;
	int fd, lock;

	snprintf(path, sizeof(path), "%s/hosts/%s/slots", folder->dir, folder->host);
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0)
		return -errno;
	if (flock(lock, LOCK_EX)) {
		fd = -errno;
		close(lock);
		return fd;
	}
	if (pread(lock, &last, sizeof(last), 0) != sizeof(last))
		last = 0;
	fd = bind_from(folder, last, ret_slot);
	/* If this fails, a slot is reused earlier, which is harmless. */
	if (fd >= 0 && pwrite(lock, ret_slot, sizeof(*ret_slot), 0) < 0)
		errno = 0;
	close(lock);
	return fd;
}
