/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's announcements of RDMA devices: see hotplug.h. */
#include "lib/conn/hotplug.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "lib/device/device.h"
#include "lib/engine/engine.h"

#define UEVENT_BYTES 8192
#define FROM_KERNEL  1 /* multicast group; udev's is the next one */

#define LOOK_NS	     (500 * CM_NS_PER_MS)
#define LOOKS	     240 /* while a removed device may return */
#define LOOKS_LACKS  20	 /* for ports of a device that is coming */

/* Atomic. */
static struct cm_time look_at = { UINT64_MAX };
static unsigned int n_looks;
static bool is_missed; /* an id that listens on all devices misses one */
static int fd = -1;
static struct watch watch;

/*
 * Passes removals only: a new device is searched for when one of its addresses is used. Additions
 * are frequent: the interface of a starting container is announced three times.
 */
static void skip_additions(int socket_fd)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'r', 0, 1), /* "remove@", "add@" */
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(steps) / sizeof(steps[0]), steps };

	setsockopt(socket_fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

void hotplug_watch_additions(void)
{
	int unused = 0;

	setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

static int open_socket(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = FROM_KERNEL };
	int made =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (made < 0)
		return -errno;
	skip_additions(made);
	return bind(made, (struct sockaddr *)&addr, sizeof(addr)) ? fd_give_up(made) : made;
}

/* A uevent is a list of strings: "add@/devices/...", "ACTION=add", "SUBSYSTEM=..." */
static const char *uevent_value(const char *text, size_t bytes, const char *name)
{
	size_t n = strlen(name);
	const char *at;

	for (at = text; at < text + bytes; at += strlen(at) + 1)
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	return "";
}

static void handle_uevent(const char *text, size_t bytes, bool *has_come)
{
	const char *action = uevent_value(text, bytes, "ACTION");
	const char *subsystem = uevent_value(text, bytes, "SUBSYSTEM");
	const char *node = uevent_value(text, bytes, "DEVNAME");
	const char *name = strrchr(node, '/');
	struct device *device;

	if (strncmp(subsystem, "infiniband", strlen("infiniband")) != 0)
		return;
	if (strcmp(action, "add") == 0)
		*has_come = true;
	if (strcmp(action, "remove") != 0 || strcmp(subsystem, "infiniband_verbs") != 0)
		return;
	device_list_enter();
	device = device_of_node(name ? name + 1 : node);
	if (device)
		device_gone(device);
	device_list_leave();
}

static void read_uevents(struct watch *of)
{
	char text[UEVENT_BYTES + 1];
	struct sockaddr_nl from;
	socklen_t from_bytes = sizeof(from);
	bool has_come = false;
	ssize_t n;

	for (;;) {
		n = recvfrom(of->fd, text, UEVENT_BYTES, 0, (struct sockaddr *)&from, &from_bytes);
		if (n < 0 && errno == ENOBUFS) /* some were lost: assume an added device */
			has_come = true;
		else if (n < 0)
			break;
		else if (from.nl_pid == 0) {
			text[n] = '\0';
			handle_uevent(text, (size_t)n, &has_come);
		}
	}
	if (!has_come)
		return;
	hotplug_extend();
	hotplug_settle();
}

/* Without uevents, as in some containers, only ports report that devices are removed. */
int hotplug_start(void)
{
	int err;

	fd = open_socket();
	if (fd >= 0)
		return engine_watch(&watch, fd, read_uevents);
	err = fd;
	fd = -1;
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return err;
	log_debug("devices that come and go are not announced here: %s", strerror(-err));
	return 0;
}

/* --- a device that returns ------------------------------------------------ */

static void set_scanning(bool wanted)
{
	struct cm_time at = wanted ? cm_time_after(clock_now(), LOOK_NS) : CM_TIME_NEVER;

	__atomic_store_n(&look_at.ns, at.ns, __ATOMIC_RELEASE);
}

static void begin_scanning(unsigned int looks)
{
	if (looks > __atomic_load_n(&n_looks, __ATOMIC_RELAXED))
		__atomic_store_n(&n_looks, looks, __ATOMIC_RELAXED);
	set_scanning(true);
	engine_lock();
	engine_wake_at(hotplug_deadline());
	engine_unlock();
}

static bool has_wildcards(void)
{
	bool has = engine_lock()->n_wildcards > 0;

	engine_unlock();
	return has;
}

void hotplug_expect(void)
{
	if (!has_wildcards())
		return;
	__atomic_store_n(&is_missed, true, __ATOMIC_RELAXED);
	begin_scanning(LOOKS);
}

void hotplug_settle(void)
{
	if (device_lacks_port() && hotplug_deadline().ns == UINT64_MAX)
		begin_scanning(LOOKS_LACKS);
}

void hotplug_check(void)
{
	device_settle();
	hotplug_settle();
}

/* GONE may arrive late, for the previous device with this handle. */
void hotplug_port_gone(struct port *port)
{
	if (!device_answers(port->device)) {
		device_gone(port->device);
		return;
	}
	device_mark_unsettled(port->device);
	hotplug_settle();
}

void hotplug_extend(void)
{
	if (has_wildcards())
		device_open_all_ports();
	device_close_unused(false);
}

void hotplug_look(void)
{
	const struct cm_time at = hotplug_deadline();
	int n_devices;

	if (at.ns == UINT64_MAX || !cm_time_reached(at, clock_now()))
		return;
	set_scanning(false); /* before the scan: another thread may request one after it */
	n_devices = device_count();
	device_settle();
	hotplug_extend();
	if (device_count() > n_devices)
		__atomic_store_n(&is_missed, false, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&is_missed, __ATOMIC_RELAXED) && !device_lacks_port())
		__atomic_store_n(&n_looks, 0, __ATOMIC_RELAXED);
	else if (__atomic_load_n(&n_looks, __ATOMIC_RELAXED) &&
		 __atomic_sub_fetch(&n_looks, 1, __ATOMIC_RELAXED))
		set_scanning(true);
}

struct cm_time hotplug_deadline(void)
{
	return (struct cm_time){ __atomic_load_n(&look_at.ns, __ATOMIC_ACQUIRE) };
}

void hotplug_stop(void)
{
	fd_close(&fd);
	set_scanning(false);
}
