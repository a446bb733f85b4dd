/* SPDX-License-Identifier: BSD-2-Clause */
/* The diagnosis of umad_owner.h. The kernel only refuses; this searches for the reason. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "mad/umad_owner.h"

#define MODULE_DEPTH_MAX 8

struct umad_dirs umad_dirs = {
	.sys = "/sys",
	.proc = "/proc",
	.dev = "/dev/infiniband",
	.open = open,
};

__attribute__((format(printf, 2, 3))) static void set_text(char text[128], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, 128, format, args);
	va_end(args);
	text_make_printable(text); /* a process chooses its name */
}

/* Reads one line of a small file, without its newline. */
__attribute__((format(printf, 3, 4))) static bool read_line(char *line, size_t bytes,
							    const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	FILE *file;
	bool ok;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fgets(line, bytes, file);
	fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

void umad_device_name(const char *verbs_node, char io[UMAD_NODE_BYTES])
{
	char line[UMAD_NODE_BYTES];

	if (read_line(line, sizeof(line), "%s/class/infiniband_verbs/%s/ibdev", umad_dirs.sys,
		      verbs_node))
		memcpy(io, line, sizeof(line));
}

static bool node_is_of(const char *class_dir, const char *node, const char *device,
		       uint8_t port_num)
{
	char line[UMAD_NODE_BYTES];

	return read_line(line, sizeof(line), "%s/%s/ibdev", class_dir, node) &&
	       !strcmp(line, device) &&
	       read_line(line, sizeof(line), "%s/%s/port", class_dir, node) &&
	       atoi(line) == port_num;
}

/* A soft fabric lists its devices there as well, without the kernel's "subsystem" link. */
static bool is_known_to_kernel(const char *device)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/subsystem", umad_dirs.sys, device);
	return access(path, F_OK) == 0;
}

static int fail_without_node(const char *device, uint8_t port_num, struct umad_owner *ret_who)
{
	if (!is_known_to_kernel(device)) {
		set_text(ret_who->what, "there is no RDMA device %s", device);
		set_text(ret_who->remedy, "rdma link show");
		return -ENODEV;
	}
	set_text(ret_who->what, "port %u of %s has no umad device", port_num, device);
	set_text(ret_who->remedy, "modprobe ib_umad");
	return -ENXIO;
}

static int fail_search(int err, struct umad_owner *ret_who)
{
	set_text(ret_who->what, "the umad devices cannot be listed: %s", strerror(err));
	set_text(ret_who->remedy, "ulimit -n");
	return -err;
}

int umad_find_node(const char *device, uint8_t port_num, char ret_node[UMAD_NODE_BYTES],
		   struct umad_owner *ret_who)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir;
	int err;

	snprintf(path, sizeof(path), "%s/class/infiniband_mad", umad_dirs.sys);
	errno = 0;
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "umad", 4) || strlen(entry->d_name) >= UMAD_NODE_BYTES ||
		    !node_is_of(path, entry->d_name, device, port_num))
			continue;
		strcpy(ret_node, entry->d_name);
		found = true;
	}
	err = errno;
	if (dir)
		closedir(dir);
	if (found && is_known_to_kernel(device))
		return 0;
	ret_node[0] = '\0';
	/* Without descriptors or memory, finding nothing proves nothing. */
	if (err == EMFILE || err == ENFILE || err == ENOMEM)
		return fail_search(err, ret_who);
	return fail_without_node(device, port_num, ret_who);
}

int umad_explain_open(const char *node, int err, struct umad_owner *ret_who)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", umad_dirs.dev, node);
	if (access(path, F_OK)) {
		set_text(ret_who->what, "%.100s does not exist", path);
		set_text(ret_who->remedy, "start udev, or give the container this device node");
		return -ENXIO;
	}
	if (eaccess(path, R_OK | W_OK)) {
		set_text(ret_who->what, "no permission to open %.90s", path);
		set_text(ret_who->remedy, "run as root, or run cmportd as root");
		return -EACCES;
	}
	if (err == EPERM) {
		set_text(ret_who->what, "the device of %.60s is in another network namespace",
			 path);
		set_text(ret_who->remedy, "rdma system set netns shared");
		return -EPERM;
	}
	set_text(ret_who->what, "%.60s cannot be opened: %s", path, strerror(err));
	set_text(ret_who->remedy, "dmesg | tail");
	return -(err ? err : EIO);
}

static bool has_name(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}

static void append_name(char list[128], const char *word)
{
	size_t used = strlen(list);

	if (used + strlen(word) + 2 <= 128 && !has_name(list, word))
		snprintf(list + used, 128 - used, "%s%s", used ? " " : "", word);
}

/*
 * Appends the modules that use a module; with @depth, first those that use them: the order in which
 * they can be removed.
 */
static void list_holders(const char *module, int depth, char list[128])
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/module/%s/holders", umad_dirs.sys, module);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (depth)
			list_holders(entry->d_name, depth - 1, list);
		append_name(list, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static bool module_is_loaded(const char *module)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/module/%s", umad_dirs.sys, module);
	return !access(path, F_OK);
}

/* ib_cm shows its counters only on the ports that it owns. */
static bool ib_cm_counts(const char *device, uint8_t port_num)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/class/infiniband/%s/ports/%u/cm_rx_msgs", umad_dirs.sys,
		 device, port_num);
	return !access(path, F_OK);
}

static int name_ib_cm_as_owner(struct umad_owner *ret_who)
{
	char users[128] = "", all[128] = "";

	list_holders("ib_cm", 0, users);
	list_holders("ib_cm", MODULE_DEPTH_MAX, all);
	append_name(all, "ib_cm");
	if (users[0])
		set_text(ret_who->what, "kernel module ib_cm (loaded by %.90s)", users);
	else
		set_text(ret_who->what, "kernel module ib_cm");
	set_text(ret_who->remedy, "modprobe -r %.110s", all);
	return -EBUSY;
}

/* Return: the device number of a node; 0 if it is not known. */
static dev_t device_number(const char *node)
{
	unsigned int major_number, minor_number;
	char line[32];

	if (!read_line(line, sizeof(line), "%s/class/infiniband_mad/%s/dev", umad_dirs.sys, node) ||
	    sscanf(line, "%u:%u", &major_number, &minor_number) != 2)
		return 0;
	return makedev(major_number, minor_number);
}

/* Return: true if a process has the device open, whatever the path that it opened. */
static bool process_has(const char *pid, dev_t device)
{
	char dir_path[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	struct dirent *entry;
	bool found = false;
	struct stat opened;
	DIR *dir;

	snprintf(dir_path, sizeof(dir_path), "%s/%s/fd", umad_dirs.proc, pid);
	dir = opendir(dir_path);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", dir_path, entry->d_name);
		found = !stat(path, &opened) && S_ISCHR(opened.st_mode) && opened.st_rdev == device;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Return: another process that has the node open, else this one, else 0. */
static int find_process(const char *node)
{
	const dev_t device = device_number(node);
	DIR *dir = device ? opendir(umad_dirs.proc) : NULL;
	struct dirent *entry;
	int found = 0;

	while (dir && (!found || found == getpid()) && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && process_has(entry->d_name, device))
			found = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

static int name_process_as_owner(int pid, struct umad_owner *ret_who)
{
	char comm[32] = "?";

	if (pid == getpid()) {
		set_text(ret_who->what, "this process already has the port open");
		set_text(ret_who->remedy, "close the port first");
		return -EADDRINUSE;
	}
	read_line(comm, sizeof(comm), "%s/%d/comm", umad_dirs.proc, pid);
	set_text(ret_who->what, "process %d (%s)", pid, comm);
	set_text(ret_who->remedy, "kill %d", pid);
	return -EADDRINUSE;
}

int umad_explain_busy(const char *device, uint8_t port_num, const char *node,
		      struct umad_owner *ret_who)
{
	int pid;

	if (!node[0]) {
		set_text(ret_who->what, "another process; no device node shows which");
		set_text(ret_who->remedy, "end the program that uses port %u of %s", port_num,
			 device);
		return -EADDRINUSE;
	}
	if (ib_cm_counts(device, port_num))
		return name_ib_cm_as_owner(ret_who);
	pid = find_process(node);
	if (pid)
		return name_process_as_owner(pid, ret_who);
	if (module_is_loaded("ib_cm"))
		return name_ib_cm_as_owner(ret_who);
	set_text(ret_who->what, "a process that is not visible here");
	set_text(ret_who->remedy, "as root on the host: fuser -v %.60s/%.30s", umad_dirs.dev, node);
	return -EADDRINUSE;
}
