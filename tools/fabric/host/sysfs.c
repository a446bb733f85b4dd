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

#include "tools/fabric/host/host.h"
#include "tools/fabric/host/pma.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"

#define TEXT_BYTES 64

/* The subject of a file; files of the whole device have no port, and most have no index. */
struct subject {
	const struct fab_page *page;
	const struct fab_port *port;
	unsigned int port_num, index;
	const uint64_t *counter; /* of the port: PMA_N_COUNTERS */
};

/* Sets an empty text if there is nothing to show. */
typedef void print_fn(const struct subject *of, char text[TEXT_BYTES]);

struct file {
	const char *name;
	print_fn *print;
};

static void print_words(const union ibv_gid *gid, unsigned int first, unsigned int n, char *text)
{
	unsigned int i;

	for (i = first; i < first + n; i++)
		text += sprintf(text, "%s%02x%02x", i == first ? "" : ":", gid->raw[2 * i],
				gid->raw[2 * i + 1]);
}

/* --- the device ---------------------------------------------------------- */

static void print_node_type(const struct subject *of, char text[TEXT_BYTES])
{
	(void)of;
	sprintf(text, "%d: CA", IBV_NODE_CA);
}

static void print_guid(const struct subject *of, char text[TEXT_BYTES])
{
	union ibv_gid gid = { .global = { .interface_id = of->page->node_guid } };

	print_words(&gid, 4, 4, text);
}

static void print_fw_ver(const struct subject *of, char text[TEXT_BYTES])
{
	(void)of;
	strcpy(text, FAB_FW_VER);
}

static void print_node_desc(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "%s " FAB_DEVICE, of->page->host);
}

static const struct file device_file[] = {
	{ "node_type", print_node_type }, { "node_guid", print_guid },
	{ "sys_image_guid", print_guid }, { "fw_ver", print_fw_ver },
	{ "node_desc", print_node_desc },
};

/* --- a port -------------------------------------------------------------- */

static void print_state(const struct subject *of, char text[TEXT_BYTES])
{
	static const char *const name[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE" };

	sprintf(text, "%u: %s", of->port->state, name[of->port->state]);
}

static void print_phys_state(const struct subject *of, char text[TEXT_BYTES])
{
	uint8_t state = fab_port_phys_state(of->port);

	sprintf(text, "%u: %s", state, state == 5 ? "LinkUp" : "Disabled");
}

static void print_link_layer(const struct subject *of, char text[TEXT_BYTES])
{
	strcpy(text, fab_port_is_roce(of->port) ? "Ethernet" : "InfiniBand");
}

static void print_rate(const struct subject *of, char text[TEXT_BYTES])
{
	(void)of;
	sprintf(text, "%d Gb/sec (4X QDR)", FAB_RATE_GBPS);
}

static void print_lid(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "0x%x", of->port->lid);
}

static void print_lmc(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "%u", of->port->lmc);
}

static void print_sm_lid(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "0x%x", of->port->sm_lid);
}

static void print_sm_sl(const struct subject *of, char text[TEXT_BYTES])
{
	(void)of;
	strcpy(text, "0");
}

static void print_cap_mask(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "0x%08x", fab_port_cap_flags(of->port));
}

static const struct file port_file[] = {
	{ "state", print_state },
	{ "phys_state", print_phys_state },
	{ "link_layer", print_link_layer },
	{ "rate", print_rate },
	{ "lid", print_lid },
	{ "lid_mask_count", print_lmc },
	{ "sm_lid", print_sm_lid },
	{ "sm_sl", print_sm_sl },
	{ "cap_mask", print_cap_mask },
};

/* --- tables of a port ---------------------------------------------------- */

static const struct fab_gid *find_gid(const struct subject *of)
{
	static const struct fab_gid none;
	const struct fab_gid *gid = &of->port->gid[of->index];

	return memcmp(gid, &none, sizeof(none)) != 0 ? gid : NULL;
}

static void print_gid(const struct subject *of, char text[TEXT_BYTES])
{
	if (find_gid(of))
		print_words(&of->port->gid[of->index].gid, 0, 8, text);
}

static void print_gid_type(const struct subject *of, char text[TEXT_BYTES])
{
	const struct fab_gid *gid = find_gid(of);

	if (gid)
		strcpy(text, gid->type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
}

static void print_ndev(const struct subject *of, char text[TEXT_BYTES])
{
	const struct fab_gid *gid = find_gid(of);

	if (gid)
		if_indextoname(gid->ifindex, text);
}

static void print_ifindex(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "%u", of->index);
}

static void print_pkey(const struct subject *of, char text[TEXT_BYTES])
{
	if (of->index < fab_port_pkeys(of->port))
		sprintf(text, "0x%04x", of->port->pkey[of->index]);
}

/*
 * A folder with a file for each entry; there is none for free entries, for which the kernel shows
 * zeros.
 */
static const struct table {
	struct file file;
	unsigned int n;
} table[] = {
	{ { "gids", print_gid }, FAB_GIDS },
	{ { "gid_attrs/types", print_gid_type }, FAB_GIDS },
	{ { "gid_attrs/ndevs", print_ndev }, FAB_GIDS },
	{ { "pkeys", print_pkey }, FAB_PKEYS },
};

/* --- counters of a port ---------------------------------------------------- */

#define COUNTERS_NS 500000000

static const char *const counter_file[] = {
#define X(name) #name,
	PMA_COUNTERS(X)
#undef X
};

static void print_counter(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "%" PRIu64, of->counter[of->index]);
}

/* --- the classes of uverbs and umad ---------------------------------------- */

static void print_device(const struct subject *of, char text[TEXT_BYTES])
{
	strcpy(text, of->page->device);
}

static void print_verbs_abi(const struct subject *of, char text[TEXT_BYTES])
{
	(void)of;
	strcpy(text, "6");
}

static void print_umad_abi(const struct subject *of, char text[TEXT_BYTES])
{
	(void)of;
	strcpy(text, "5");
}

static void print_port_num(const struct subject *of, char text[TEXT_BYTES])
{
	sprintf(text, "%u", of->port_num);
}

static const struct file class_file[] = {
	{ "infiniband_verbs/abi_version", print_verbs_abi },
	{ "infiniband_verbs/uverbs0/ibdev", print_device },
	{ "infiniband_mad/abi_version", print_umad_abi },
};

/* Port N has umad(N - 1). */
static const struct file umad_file[] = {
	{ "ibdev", print_device },
	{ "port", print_port_num },
};

/* --- files --------------------------------------------------------------- */

static bool has_text(const char *path, const char *text)
{
	char before[TEXT_BYTES] = "";
	FILE *file = fopen(path, "re");
	bool is_same;

	if (!file)
		return false;
	is_same = fgets(before, sizeof(before), file) && strcmp(before, text) == 0;
	fclose(file);
	return is_same;
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

__attribute__((format(printf, 4, 5))) static void write_file(const struct host *host,
							     print_fn *print,
							     const struct subject *of,
							     const char *name, ...)
{
	char path[FAB_PATH_BYTES], text[TEXT_BYTES] = "";
	va_list args;
	int n;

	n = snprintf(path, sizeof(path), "%s/hosts/%s/sys/", host->folder.dir, host->folder.host);
	va_start(args, name);
	vsnprintf(path + n, sizeof(path) - (size_t)n, name, args);
	va_end(args);
	print(of, text);
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

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define DEVICE	    "infiniband/%s"
#define CLASS_BYTES 32

/* The interface of the device's function: of a bond's device, the first slave. */
static const char *netdev_of_function(const struct host *host, uint8_t port_num,
				      char slave[IF_NAMESIZE])
{
	const char *netdev = host->netdev[port_num - 1];

	if (!fab_has_quirk(host->page, FAB_QUIRK_LAG))
		return netdev;
	snprintf(slave, IF_NAMESIZE, "%.12ss1", netdev);
	return slave;
}

static void write_counters(const struct host *host, struct subject *of)
{
	uint64_t counter[PMA_N_COUNTERS];

	pma_read(host, (uint8_t)of->port_num, counter);
	of->counter = counter;
	for (of->index = 0; of->index < PMA_N_COUNTERS; of->index++)
		write_file(host, print_counter, of, DEVICE "/ports/%u/counters/%s",
			   of->page->device, of->port_num, counter_file[of->index]);
	of->counter = NULL;
}

static void write_port(const struct host *host, struct subject *of)
{
	char slave[IF_NAMESIZE];
	const char *netdev = netdev_of_function(host, of->port_num, slave);
	unsigned int i;

	for (i = 0; i < ROWS(port_file); i++)
		write_file(host, port_file[i].print, of, DEVICE "/ports/%u/%s", of->page->device,
			   of->port_num, port_file[i].name);
	for (i = 0; i < ROWS(umad_file) && !fab_has_quirk(of->page, FAB_QUIRK_NO_CM); i++)
		write_file(host, umad_file[i].print, of, "infiniband_mad/umad%u/%s",
			   of->port_num - 1, umad_file[i].name);
	of->index = if_nametoindex(netdev);
	if (of->index)
		write_file(host, print_ifindex, of, DEVICE "/device/net/%s/ifindex",
			   of->page->device, netdev);
	for (i = 0; i < ROWS(table); i++)
		for (of->index = 0; of->index < table[i].n; of->index++)
			write_file(host, table[i].file.print, of, DEVICE "/ports/%u/%s/%u",
				   of->page->device, of->port_num, table[i].file.name, of->index);
	write_counters(host, of);
}

static bool has_sys(const struct host *host)
{
	char path[FAB_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/hosts/%s/sys", host->folder.dir, host->folder.host);
	return !access(path, W_OK);
}

void sysfs_write(const struct host *host)
{
	struct subject of = { .page = host->page };
	unsigned int i;

	if (!has_sys(host))
		return;
	for (i = 0; i < ROWS(device_file); i++)
		write_file(host, device_file[i].print, &of, DEVICE "/%s", host->page->device,
			   device_file[i].name);
	for (i = 0; i < ROWS(class_file); i++)
		write_file(host, class_file[i].print, &of, "%s", class_file[i].name);
	for (of.port_num = 1; of.port_num <= host->n_ports; of.port_num++) {
		of.port = &host->page->port[of.port_num - 1];
		write_port(host, &of);
	}
}

static void counters_ready(struct watch *watch, uint32_t events)
{
	struct host *host = container_of(watch, struct host, counters_watch);
	struct subject of = { .page = host->page };
	uint64_t count;

	(void)events;
	if (read(watch->fd, &count, sizeof(count)) < 0 || host->page->is_removed || !has_sys(host))
		return;
	for (of.port_num = 1; of.port_num <= host->n_ports; of.port_num++)
		write_counters(host, &of);
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

/* Return: false if the host has no /sys of its own, or nothing is there. */
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
	char from[CLASS_BYTES], to[CLASS_BYTES];

	snprintf(from, sizeof(from), "infiniband/%s", old);
	snprintf(to, sizeof(to), "infiniband/%s", host->page->device);
	move_class(host, from, to);
	sysfs_write(host);
}

/* The name of an earlier removal may still exist, after a reset. */
static void remove_class(const struct host *host, const char *name)
{
	char removed[CLASS_BYTES];
	unsigned int n = 0;

	do
		snprintf(removed, sizeof(removed), "removed-%u", n++);
	while (!move_class(host, name, removed) && (errno == ENOTEMPTY || errno == EEXIST));
}

void sysfs_remove(const struct host *host)
{
	char name[CLASS_BYTES];
	unsigned int i;

	snprintf(name, sizeof(name), "infiniband/%s", host->page->device);
	remove_class(host, name);
	remove_class(host, "infiniband_verbs/uverbs0");
	for (i = 0; i < host->n_ports; i++) {
		snprintf(name, sizeof(name), "infiniband_mad/umad%u", i);
		remove_class(host, name);
	}
}
