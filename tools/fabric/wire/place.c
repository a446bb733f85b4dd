/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths, and sockets at them: see place.h. A socket that a dead process left is recognized by
 * connecting to it: the connection is refused.
 */
#include "tools/fabric/wire/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/fabric/wire/packet.h"

#define GID_HEX_BYTES 33
#define OWNER_BYTES   (FAB_NAME_BYTES + 4)

/* "/tmp/f/hosts/a" is host a of the fabric /tmp/f. */
int fab_place_find(struct fab_place *ret)
{
	const char *path = secure_getenv(FAB_ENV);
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

void fab_place_page(const struct fab_place *place, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%s/page", place->dir, place->host);
}

void fab_place_gsi(const struct fab_place *place, const char *host, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%.15s/gsi", place->dir, host);
}

void fab_place_umad(const struct fab_place *place, uint8_t port_num, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%s/umad.%u", place->dir, place->host, port_num);
}

void fab_place_udp(const struct fab_place *place, char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%s/udp", place->dir, place->host);
}

void fab_place_slot(const struct fab_place *place, const char *host, unsigned int slot,
		    char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/hosts/%.15s/ctx/%u", place->dir, host, slot);
}

static void gid_hex(const union ibv_gid *gid, char ret[GID_HEX_BYTES])
{
	size_t i;

	for (i = 0; i < sizeof(gid->raw); i++)
		snprintf(ret + 2 * i, 3, "%02x", gid->raw[i]);
}

void fab_place_gid(const struct fab_place *place, const union ibv_gid *gid,
		   char ret[FAB_PATH_BYTES])
{
	char hex[GID_HEX_BYTES];

	gid_hex(gid, hex);
	snprintf(ret, FAB_PATH_BYTES, "%s/gids/%s", place->dir, hex);
}

void fab_place_group(const struct fab_place *place, const union ibv_gid *mgid,
		     char ret[FAB_PATH_BYTES])
{
	char hex[GID_HEX_BYTES];

	gid_hex(mgid, hex);
	snprintf(ret, FAB_PATH_BYTES, "%s/groups/%s", place->dir, hex);
}

/* A member's file is called after its host and its queue pair: "a.16385". */
bool fab_place_read_member(const char *name, char ret_host[FAB_NAME_BYTES], uint32_t *ret_qpn)
{
	return sscanf(name, "%15[^.].%u", ret_host, ret_qpn) == 2;
}

void fab_place_joined(const struct fab_place *place, const union ibv_gid *mgid,
		      const struct fab_owner *member, char ret[FAB_PATH_BYTES])
{
	char hex[GID_HEX_BYTES];

	gid_hex(mgid, hex);
	snprintf(ret, FAB_PATH_BYTES, "%s/joined/%s/%.15s.%u", place->dir, hex, member->host,
		 member->port_num);
}

void fab_place_lid(const struct fab_place *place, uint8_t subnet, uint16_t lid,
		   char ret[FAB_PATH_BYTES])
{
	snprintf(ret, FAB_PATH_BYTES, "%s/lids/%u.%u", place->dir, subnet, lid);
}

int fab_place_own(const struct fab_place *place, uint8_t port_num, const char *path)
{
	char owner[OWNER_BYTES];

	snprintf(owner, sizeof(owner), "%s.%u", place->host, port_num);
	return symlink(owner, path) ? -errno : 0;
}

static int read_owner(const char *path, struct fab_owner *ret)
{
	char owner[OWNER_BYTES];
	ssize_t n = readlink(path, owner, sizeof(owner) - 1);

	if (n <= 0)
		return -EHOSTUNREACH;
	owner[n] = '\0';
	return sscanf(owner, "%15[^.].%hhu", ret->host, &ret->port_num) == 2 ? 0 : -EHOSTUNREACH;
}

int fab_place_owner_of(const struct fab_place *place, const union ibv_gid *gid,
		       struct fab_owner *ret)
{
	char path[FAB_PATH_BYTES];

	fab_place_gid(place, gid, path);
	return read_owner(path, ret);
}

int fab_place_owner_of_lid(const struct fab_place *place, uint8_t subnet, uint16_t lid,
			   struct fab_owner *ret)
{
	char path[FAB_PATH_BYTES];

	fab_place_lid(place, subnet, lid, path);
	return read_owner(path, ret);
}

void fab_place_sockaddr(const char *path, struct sockaddr_un *ret)
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

int fab_place_bind(const char *path, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	int err = 0;

	if (fd < 0)
		return -errno;
	fab_place_sockaddr(path, &addr);
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

/* Return: a socket at the first number from @first on that is free, or -errno. */
static int bind_from(const struct fab_place *place, unsigned int first, unsigned int *ret_slot)
{
	char path[FAB_PATH_BYTES];
	unsigned int i, slot;
	int fd;

	for (i = 0; i < FAB_SLOTS - 1; i++) {
		slot = 1 + (first + i) % (FAB_SLOTS - 1);
		fab_place_slot(place, place->host, slot, path);
		fd = fab_place_bind(path, SOCK_DGRAM);
		if (fd >= 0)
			*ret_slot = slot;
		if (fd != -EADDRINUSE)
			return fd;
	}
	return -EBUSY;
}

int fab_place_take_slot(const struct fab_place *place, unsigned int *ret_slot)
{
	char path[FAB_PATH_BYTES];
	unsigned int last = 0;
	int fd, lock;

	snprintf(path, sizeof(path), "%s/hosts/%s/slots", place->dir, place->host);
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
	fd = bind_from(place, last, ret_slot);
	/* If this fails, a number is reused earlier, which does no harm. */
	if (fd >= 0 && pwrite(lock, ret_slot, sizeof(*ret_slot), 0) < 0)
		errno = 0;
	close(lock);
	return fd;
}
