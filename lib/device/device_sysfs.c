/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the GID tables in sysfs: see device_sysfs.h. */
#include "lib/device/device_sysfs.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define PORTS_MAX  8
#define TEXT_BYTES 64 /* more than a GID or the name of an interface */

static const struct range {
	unsigned int first;
	unsigned int end;
} ranges[] = {
	[DEVICE_GIDS_OF_PORT] = { 0, 2 },  /* of RoCE v1 and v2 */
	[DEVICE_GIDS_FURTHER] = { 2, 32 }, /* a table may have a thousand, each one a file */
};

/*
 * Reads a file's first line. Return: false if there is no such file; true with an empty line if the
 * kernel does not let it be read, as for unused entries.
 */
static bool read_line(const char *path, char line[TEXT_BYTES])
{
	const ssize_t n = fd_read_file(path, line, TEXT_BYTES);

	line[strcspn(line, "\n")] = '\0';
	return n >= 0;
}

static bool is_wanted(const char *line, const struct device_want *want, bool by_gid)
{
	struct in6_addr gid;

	if (!*line)
		return false;
	if (by_gid)
		return inet_pton(AF_INET6, line, &gid) == 1 &&
		       !memcmp(&gid, &want->gid, sizeof(want->gid));
	return !strcmp(line, want->iface[0]) || !strcmp(line, want->iface[1]);
}

static bool port_has(const char *port, const struct device_want *want, const struct range *range)
{
	static const struct mad_gid none;
	bool by_gid = memcmp(&want->gid, &none, sizeof(none)) != 0;
	char line[TEXT_BYTES], path[512];
	unsigned int i;

	for (i = range->first; i < range->end; i++) {
		snprintf(path, sizeof(path), "%s/%s/%u", port, by_gid ? "gids" : "gid_attrs/ndevs",
			 i);
		if (!read_line(path, line))
			return false;
		if (is_wanted(line, want, by_gid))
			return true;
	}
	return false;
}

bool device_sysfs_has(const struct ibv_device *device, const struct device_want *want,
		      enum device_gids which)
{
	unsigned int num;
	char port[384];

	for (num = 1; num <= PORTS_MAX; num++) {
		snprintf(port, sizeof(port), "%s/ports/%u", device->ibdev_path, num);
		if (access(port, F_OK))
			return false;
		if (port_has(port, want, &ranges[which]))
			return true;
	}
	return false;
}
