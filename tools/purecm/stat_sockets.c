/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm stat --sockets: the connections of sockets over RDMA and over TCP, from the lists that
 * processes keep: see lib/rsocket/roster.h. Those of processes of others need root.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/rsocket/roster.h"
#include "tools/purecm/json.h"
#include "tools/purecm/snapshot.h"
#include "tools/purecm/subcommand.h"

#define LINK	   "/memfd:" ROSTER_NAME
#define NAME_BYTES (INET6_ADDRSTRLEN + sizeof("[]:65535"))

struct process {
	struct snapshot_process id; /* pid and program */
	struct roster roster;
};

/* --- addresses ------------------------------------------------------------ */

static const char *name_text(const union roster_name *name, char buf[NAME_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?";
	bool is_v6 = name->any.sa_family == AF_INET6;

	if (is_v6)
		inet_ntop(AF_INET6, &name->v6.sin6_addr, host, sizeof(host));
	else if (name->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &name->v4.sin_addr, host, sizeof(host));
	snprintf(buf, NAME_BYTES, is_v6 ? "[%s]:%u" : "%s:%u", host, ntohs(name->v4.sin_port));
	return buf;
}

/* A name as the kernel prints it: words of an address in hexadecimal, ":", the port. */
static bool read_kernel_name(const char *text, bool is_v6, union roster_name *ret)
{
	uint32_t words[4];
	unsigned int port;
	bool is_whole = is_v6 ? sscanf(text, "%8x%8x%8x%8x:%x", &words[0], &words[1], &words[2],
				       &words[3], &port) == 5
			      : sscanf(text, "%8x:%x", &words[0], &port) == 2;

	if (!is_whole)
		return false;
	*ret = (union roster_name){ .any.sa_family = is_v6 ? AF_INET6 : AF_INET };
	ret->v4.sin_port = htons((uint16_t)port);
	if (is_v6)
		memcpy(&ret->v6.sin6_addr, words, sizeof(ret->v6.sin6_addr));
	else
		ret->v4.sin_addr.s_addr = words[0];
	return true;
}

/* Fills in the addresses of those over TCP that the kernel still has. */
static void read_kernel(struct process *process, const char *file, bool is_v6)
{
	char path[64], line[512], local[64], peer[64];
	uint64_t inode;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%u/net/%s", process->id.pid, file);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in)) {
		if (sscanf(line, " %*u: %63s %63s %*s %*s %*s %*s %*u %*u %" SCNu64, local, peer,
			   &inode) != 3)
			continue;
		for (unsigned int i = 0; i < ROSTER_ROWS; i++) {
			struct roster_row *row = &process->roster.rows[i];

			if (row->kind == ROSTER_TCP && row->inode == inode &&
			    !(read_kernel_name(local, is_v6, &row->local) &&
			      read_kernel_name(peer, is_v6, &row->peer)))
				row->kind = ROSTER_FREE;
		}
	}
	if (in)
		fclose(in);
}

/* --- processes ------------------------------------------------------------ */

/* Return: whether the process has a list. Its descriptors change meanwhile. */
static bool read_roster(struct process *process)
{
	char path[64], target[sizeof(LINK)];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%u/fd", process->id.pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		struct stat file;
		int fd;

		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target)) <
			    (ssize_t)strlen(LINK) ||
		    memcmp(target, LINK, strlen(LINK)) != 0)
			continue;
		/* Any file can have this name, and opening a FIFO would wait for its writer. */
		fd = openat(dirfd(folder), entry->d_name,
			    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		found = fd >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode) &&
			pread(fd, &process->roster, sizeof(process->roster), 0) ==
				(ssize_t)sizeof(process->roster) &&
			process->roster.version == ROSTER_VERSION &&
			process->roster.n_rows == ROSTER_ROWS;
		if (fd >= 0)
			close(fd);
	}
	if (folder)
		closedir(folder);
	return found;
}

static const char *why_text(const struct roster_row *row)
{
	return row->error ? strerror((int)row->error) : "the peer has chosen TCP";
}

static void begin_object(const char *type, const struct process *process)
{
	json_begin(NULL, stdout);
	json_text("type", type, stdout);
	json_time(clock_ns_of(CLOCK_REALTIME), stdout);
	json_uint("pid", process->id.pid, stdout);
	json_text("program", process->id.program, stdout);
}

static void print_row_json(const struct process *process, const struct roster_row *row)
{
	char local[NAME_BYTES], peer[NAME_BYTES];

	begin_object("socket", process);
	json_text("by", row->kind == ROSTER_RDMA ? "RDMA" : "TCP", stdout);
	json_text("local", name_text(&row->local, local), stdout);
	json_text("peer", name_text(&row->peer, peer), stdout);
	if (row->kind == ROSTER_RDMA) {
		json_uint("sent", row->sent, stdout);
		json_uint("received", row->received, stdout);
		json_uint("credits", row->credits, stdout);
	} else {
		json_text("why", why_text(row), stdout);
	}
	json_end(stdout);
}

static void print_row(const struct roster_row *row)
{
	char local[NAME_BYTES], peer[NAME_BYTES];

	printf("  %-4s %s > %s", row->kind == ROSTER_RDMA ? "RDMA" : "TCP",
	       name_text(&row->local, local), name_text(&row->peer, peer));
	if (row->kind == ROSTER_RDMA)
		printf(": sent %" PRIu64 ", received %" PRIu64 ", credits %u\n", row->sent,
		       row->received, row->credits);
	else
		printf(": %s\n", why_text(row));
}

static void print_process(const struct process *process, bool json)
{
	const uint64_t *made = process->roster.n_made;

	if (json) {
		begin_object("sockets", process);
		json_uint("rdma", made[ROSTER_RDMA], stdout);
		json_uint("tcp", made[ROSTER_TCP], stdout);
		json_end(stdout);
	} else {
		printf("%s[%u]: %" PRIu64 " over RDMA, %" PRIu64 " over TCP since it began\n",
		       process->id.program, process->id.pid, made[ROSTER_RDMA], made[ROSTER_TCP]);
	}
	for (unsigned int i = 0; i < ROSTER_ROWS; i++) {
		const struct roster_row *row = &process->roster.rows[i];

		if (row->kind != ROSTER_RDMA &&
		    (row->kind != ROSTER_TCP || !row->local.any.sa_family))
			continue;
		if (json)
			print_row_json(process, row);
		else
			print_row(row);
	}
}

bool stat_print_sockets(uint32_t pid, bool json)
{
	static struct process process;
	struct dirent *entry;
	unsigned int n = 0;
	DIR *folder = opendir("/proc");

	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		process = (struct process){ .id.pid = (uint32_t)strtoul(entry->d_name, NULL, 10) };
		if ((pid && process.id.pid != pid) || !read_roster(&process))
			continue;
		snapshot_read_program(&process.id);
		read_kernel(&process, "tcp", false);
		read_kernel(&process, "tcp6", true);
		print_process(&process, json);
		n++;
	}
	if (folder)
		closedir(folder);
	if (!n && pid)
		complain(
			"process %u has no connection of purecm's sockets, or it is another user's",
			pid);
	return n || !pid;
}
