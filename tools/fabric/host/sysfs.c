/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of /sys/class for the device, as files in the folder that furnish.py mounts there;
 * updated whenever the page changes.
 */
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/fabric/host/host.h"
#include "tools/fabric/host/pma.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"

#define TEXT_BYTES   64
#define FOLDER_BYTES (FAB_NAME_BYTES + 32)
#define COUNTERS_NS  500000000

/* --- files --------------------------------------------------------------- */

static bool has_text(const char *path, const char *text)
{
	char before[TEXT_BYTES];

	return fd_read_file(path, before, sizeof(before)) >= 0 && strcmp(before, text) == 0;
}

/* Concurrent readers get the old or the new text, as in the kernel. */
static void replace_file(const struct host *host, const char *path, const char *text)
{
	char fresh[FAB_PATH_BYTES];
	FILE *file;

	snprintf(fresh, sizeof(fresh), "%s/hosts/%s/sys/fresh", host->folder.dir,
		 host->folder.host);
	file = fopen(fresh, "we");
	if (!file || fputs(text, file) < 0 || fclose(file) || rename(fresh, path))
		host_log(host, "%s: %s", path, strerror(errno));
}

static void make_folders_of(char *path)
{
	char *at = strstr(path, "/sys/");

	for (at = strchr(at + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
}

/* A file of a folder of the host's /sys/class; none if the text is empty. */
__attribute__((format(printf, 4, 5))) static void put(const struct host *host, const char *folder,
						      const char *name, const char *format, ...)
{
	char path[FAB_PATH_BYTES], text[TEXT_BYTES];
	va_list args;

	snprintf(path, sizeof(path), "%s/hosts/%s/sys/%s/%s", host->folder.dir, host->folder.host,
		 folder, name);
	va_start(args, format);
	vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	if (!*text) {
		unlink(path);
		return;
	}
	strcat(text, "\n");
	if (has_text(path, text))
		return;
	make_folders_of(path);
	replace_file(host, path, text);
}

/* A table is a folder with a file for each entry; free ones, the kernel's zeros, have none. */
static void put_entry(const struct host *host, const char *folder, const char *table,
		      unsigned int index, const char *text)
{
	char name[TEXT_BYTES];

	snprintf(name, sizeof(name), "%s/%u", table, index);
	put(host, folder, name, "%s", text);
}

static const char *words_of(const union ibv_gid *gid, unsigned int first, char ret[TEXT_BYTES])
{
	char *at = ret;
	unsigned int i;

	for (i = first; i < sizeof(gid->raw) / 2; i++)
		at += sprintf(at, "%s%02x%02x", i == first ? "" : ":", gid->raw[2 * i],
			      gid->raw[2 * i + 1]);
	return ret;
}

static void name_device(const struct host *host, char ret[FOLDER_BYTES])
{
	snprintf(ret, FOLDER_BYTES, "infiniband/%s", host->page->device);
}

static void name_port(const struct host *host, unsigned int port_num, char ret[FOLDER_BYTES])
{
	snprintf(ret, FOLDER_BYTES, "infiniband/%s/ports/%u", host->page->device, port_num);
}

static void name_umad(unsigned int port_num, char ret[FOLDER_BYTES])
{
	snprintf(ret, FOLDER_BYTES, "infiniband_mad/umad%u", port_num - 1);
}

/* --- the device ---------------------------------------------------------- */

static void put_device(const struct host *host)
{
	const struct fab_page *page = host->page;
	const union ibv_gid guid = { .global = { .interface_id = page->node_guid } };
	char folder[FOLDER_BYTES], text[TEXT_BYTES];

	name_device(host, folder);
	put(host, folder, "node_type", "%d: CA", IBV_NODE_CA);
	put(host, folder, "node_guid", "%s", words_of(&guid, 4, text));
	put(host, folder, "sys_image_guid", "%s", text);
	put(host, folder, "fw_ver", FAB_FW_VER);
	put(host, folder, "node_desc", "%s " FAB_DEVICE, page->host);
	put(host, "infiniband_verbs", "abi_version", "6");
	put(host, "infiniband_verbs/uverbs0", "ibdev", "%s", page->device);
	put(host, "infiniband_mad", "abi_version", "5");
}

/* The interface of a port; for a device on a bond, the first slave of the bond. */
static void put_netdev(const struct host *host, unsigned int port_num)
{
	const bool is_lag = fab_has_quirk(host->page, FAB_QUIRK_LAG);
	char folder[FOLDER_BYTES], netdev[IF_NAMESIZE], name[TEXT_BYTES];

	snprintf(netdev, sizeof(netdev), is_lag ? "%.12ss1" : "%s", host->netdev[port_num - 1]);
	if (!if_nametoindex(netdev))
		return;
	name_device(host, folder);
	snprintf(name, sizeof(name), "device/net/%s/ifindex", netdev);
	put(host, folder, name, "%u", if_nametoindex(netdev));
}

/* --- a port -------------------------------------------------------------- */

static void put_attributes(const struct host *host, const char *folder, const struct fab_port *port)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE" };
	const unsigned int phys_state = fab_port_phys_state(port);

	put(host, folder, "state", "%u: %s", port->state, states[port->state]);
	put(host, folder, "phys_state", "%u: %s", phys_state,
	    phys_state == 5 ? "LinkUp" : "Disabled");
	put(host, folder, "link_layer", "%s", fab_port_is_roce(port) ? "Ethernet" : "InfiniBand");
	put(host, folder, "rate", "%d Gb/sec (4X QDR)", FAB_RATE_GBPS);
	put(host, folder, "lid", "0x%x", port->lid);
	put(host, folder, "lid_mask_count", "%u", port->lmc);
	put(host, folder, "sm_lid", "0x%x", port->sm_lid);
	put(host, folder, "sm_sl", "0");
	put(host, folder, "cap_mask", "0x%08x", fab_port_cap_flags(port));
}

static void put_gid(const struct host *host, const char *folder, const struct fab_port *port,
		    unsigned int index)
{
	static const struct fab_gid none;
	const struct fab_gid *gid = &port->gid[index];
	const char *type = gid->type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
	const bool is_free = !memcmp(gid, &none, sizeof(none));
	char text[TEXT_BYTES], netdev[IF_NAMESIZE] = "";

	if (!is_free)
		if_indextoname(gid->ifindex, netdev);
	put_entry(host, folder, "gids", index, is_free ? "" : words_of(&gid->gid, 0, text));
	put_entry(host, folder, "gid_attrs/types", index, is_free ? "" : type);
	put_entry(host, folder, "gid_attrs/ndevs", index, netdev);
}

static void put_tables(const struct host *host, const char *folder, const struct fab_port *port)
{
	char text[TEXT_BYTES];
	unsigned int i;

	for (i = 0; i < FAB_GIDS; i++)
		put_gid(host, folder, port, i);
	for (i = 0; i < fab_port_pkeys(port); i++) {
		snprintf(text, sizeof(text), "0x%04x", port->pkey[i]);
		put_entry(host, folder, "pkeys", i, text);
	}
	for (; i < FAB_PKEYS; i++)
		put_entry(host, folder, "pkeys", i, "");
}

static void put_counters(const struct host *host, unsigned int port_num)
{
	static const char *const names[] = {
#define X(name) "counters/" #name,
		PMA_COUNTERS(X)
#undef X
	};
	uint64_t counter[PMA_N_COUNTERS];
	char folder[FOLDER_BYTES];
	unsigned int i;

	name_port(host, port_num, folder);
	pma_read(host, (uint8_t)port_num, counter);
	for (i = 0; i < PMA_N_COUNTERS; i++)
		put(host, folder, names[i], "%" PRIu64, counter[i]);
}

static void put_umad(const struct host *host, unsigned int port_num)
{
	char folder[FOLDER_BYTES];

	if (fab_has_quirk(host->page, FAB_QUIRK_NO_CM))
		return;
	name_umad(port_num, folder);
	put(host, folder, "ibdev", "%s", host->page->device);
	put(host, folder, "port", "%u", port_num);
}

/* --- all of it ------------------------------------------------------------ */

void sysfs_write(const struct host *host)
{
	const struct fab_port *port;
	char folder[FOLDER_BYTES];
	unsigned int i;

	put_device(host);
	for (i = 1; i <= host->n_ports; i++) {
		port = &host->page->port[i - 1];
		name_port(host, i, folder);
		put_attributes(host, folder, port);
		put_umad(host, i);
		put_netdev(host, i);
		put_tables(host, folder, port);
		put_counters(host, i);
	}
}

static void counters_ready(struct watch *watch)
{
	struct host *host = container_of(watch, struct host, counters_watch);
	unsigned int i;
	uint64_t count;

	if (read(watch->fd, &count, sizeof(count)) < 0 || host->page->is_removed)
		return;
	for (i = 1; i <= host->n_ports; i++)
		put_counters(host, i);
}

int sysfs_follow_counters(struct host *host)
{
	struct itimerspec every = { .it_interval = { .tv_nsec = COUNTERS_NS },
				    .it_value = { .tv_nsec = COUNTERS_NS } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL))
		return -errno;
	return loop_watch(&host->loop, &host->counters_watch, fd, EPOLLIN, counters_ready);
}

/* Return: false if nothing is there. */
static bool move_class(const struct host *host, const char *from, const char *to)
{
	char path[FAB_PATH_BYTES], there[FAB_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/hosts/%s/sys/%s", host->folder.dir, host->folder.host,
		 from);
	snprintf(there, sizeof(there), "%s/hosts/%s/sys/%s", host->folder.dir, host->folder.host,
		 to);
	return !rename(path, there);
}

void sysfs_rename(const struct host *host, const char *old)
{
	char from[FOLDER_BYTES], to[FOLDER_BYTES];

	snprintf(from, sizeof(from), "infiniband/%s", old);
	name_device(host, to);
	move_class(host, from, to);
	sysfs_write(host);
}

/* The name of an earlier removal may still exist, after a reset. */
static void remove_class(const struct host *host, const char *name)
{
	char removed[FOLDER_BYTES];
	unsigned int n = 0;

	do
		snprintf(removed, sizeof(removed), "removed-%u", n++);
	while (!move_class(host, name, removed) && (errno == ENOTEMPTY || errno == EEXIST));
}

void sysfs_remove(const struct host *host)
{
	char name[FOLDER_BYTES];
	unsigned int i;

	name_device(host, name);
	remove_class(host, name);
	remove_class(host, "infiniband_verbs/uverbs0");
	for (i = 1; i <= host->n_ports; i++) {
		name_umad(i, name);
		remove_class(host, name);
	}
}
