/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of the connection manager of this host: umad, the CM class of each port, cmportd. Part of
 * checkup.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/portd/client/portd_client.h"
#include "lib/portd/client/spawn.h"
#include "lib/portd/proto/port_file.h"
#include "lib/portd/proto/socket_path.h"
#include "mad/umad_node.h"
#include "mad/umad_owner.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/snapshot.h"

#define STAT_WAIT_MS 1000

static bool is_served(char path[SOCKET_PATH_BYTES])
{
	return !socket_path_find(path) && socket_path_is_served(path);
}

/* Devices of a soft fabric are unknown to the kernel. */
static bool has_stand_in(const struct check_port *port)
{
	int fd = umad_open_node(port->device, port->port_num, "");

	if (fd >= 0)
		umad_close_port(fd);
	return fd >= 0;
}

static void check_node(const struct check_port *port, bool served, struct finding *finding)
{
	char node[UMAD_NODE_BYTES], path[sizeof(node) + 32];
	struct umad_owner who;
	int err = umad_find_node(port->device, port->port_num, node, &who);

	if (err == -ENODEV && has_stand_in(port)) {
		found(finding, VERDICT_OK, "a substitute for libibumad has %s/%u", port->device,
		      port->port_num);
		return;
	}
	if (err) {
		found(finding, VERDICT_BAD, "%s", who.what);
		found_remedy(finding, "%s", who.remedy);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", umad_dirs.dev, node);
	if (!access(path, R_OK | W_OK))
		found(finding, VERDICT_OK, "this user may open %s", path);
	else if (served)
		found(finding, VERDICT_OK,
		      "this user may not open %s, but cmportd does it for all users", path);
	else
		found(finding, VERDICT_BAD, "this user may not open %s: %s", path, strerror(errno));
}

void check_umad(struct checkup *checkup, struct finding *finding)
{
	char path[SOCKET_PATH_BYTES];
	bool served = is_served(path);
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++)
		check_node(&checkup->port[i], served, finding);
}

/* Return: whether the owner of a port's class can be determined. */
static bool is_known(const struct check_port *port)
{
	char node[UMAD_NODE_BYTES];
	struct umad_owner who;

	return geteuid() == 0 && !umad_find_node(port->device, port->port_num, node, &who);
}

/* Taking the class for a moment is the only way to find out whether it is free. */
static void check_owner(const struct check_port *port, bool served, struct finding *finding)
{
	struct mad_port *mad_port;
	struct umad_owner who;
	int err = umad_port_open(port->device, port->port_num, &mad_port, &who);

	if (!err) {
		mad_port_close(mad_port);
		found(finding, VERDICT_OK, "the CM class of %s/%u is free", port->device,
		      port->port_num);
	} else if (err == -EADDRINUSE && served && strstr(who.what, "cmportd")) {
		found(finding, VERDICT_OK, "cmportd owns the CM class of %s/%u", port->device,
		      port->port_num);
	} else if (err == -EADDRINUSE && served && !is_known(port)) {
		found(finding, VERDICT_OK, "the CM class of %s/%u is in use, and cmportd runs",
		      port->device, port->port_num);
	} else if (err == -EACCES) {
		found(finding, served ? VERDICT_OK : VERDICT_NOTE,
		      "this user cannot see who owns the CM class of %s/%u", port->device,
		      port->port_num);
		found_remedy(finding, "Run purecm doctor as root");
	} else {
		found(finding, VERDICT_BAD, "the CM class of %s/%u is unavailable: %s",
		      port->device, port->port_num, who.what);
		found_remedy(finding, "%s", who.remedy);
	}
}

void check_manager(struct checkup *checkup, struct finding *finding)
{
	char path[SOCKET_PATH_BYTES];
	bool served = is_served(path);
	unsigned int i;

	for (i = 0; i < checkup->n_ports; i++)
		check_owner(&checkup->port[i], served, finding);
}

/*
 * A process accepts connections at the socket: check whether it is a cmportd that serves this
 * library.
 */
static void check_served(const char *path, struct finding *finding)
{
	struct portd_client *client;
	struct portd_why why = { "" };
	int err = portd_client_visit(&client, &why);

	if (!err) {
		portd_client_close(client);
		found(finding, VERDICT_OK, "serves %s", path);
	} else if (err == -EPROTONOSUPPORT) {
		found(finding, VERDICT_BAD, "cmportd at %s is of another release: %s", path,
		      why.text);
		found_remedy(finding,
			     "systemctl restart cmportd, or end it; then restart the programs "
			     "that run with a library of the other release");
	} else {
		found(finding, VERDICT_BAD, "%s accepts connections, but no cmportd answers: %s",
		      path, why.text[0] ? why.text : strerror(-err));
		found_remedy(finding,
			     "systemctl status cmportd; if it was removed in part, apt purge "
			     "cmportd, or systemctl disable --now cmportd.socket");
	}
}

/* As a program would; cmportd exits after its last client. */
static int try_start(struct portd_why *why)
{
	struct portd_client *client;
	struct portd_ids ids;
	int err = portd_client_open(&client, &ids, why);

	if (!err)
		portd_client_close(client);
	return err;
}

/* Started by root, it would leave a folder where no other user can start one. */
static void check_startable(const char *path, struct finding *finding)
{
	struct portd_why why = { "" };
	char program[PATH_MAX];
	int err;

	if (spawn_find_program(program)) {
		found(finding, VERDICT_BAD, "does not run, and is not installed");
		found_remedy(finding, "apt install cmportd, or meson install");
		return;
	}
	err = geteuid() ? try_start(&why) : socket_path_try(path);
	if (!err) {
		found(finding, VERDICT_OK, "does not run; the first program starts it at %s", path);
		return;
	}
	found(finding, VERDICT_BAD, "does not run, and this user cannot start it at %s: %s", path,
	      why.text[0] ? why.text : strerror(-err));
	found_remedy(finding,
		     "systemctl enable --now cmportd.socket; without systemd, run cmportd as root; "
		     "or set PURECM_SOCKET=$XDG_RUNTIME_DIR/cmportd.sock for all programs of this "
		     "user; see cmportd(8)");
}

void check_cmportd(struct checkup *checkup, struct finding *finding)
{
	char path[SOCKET_PATH_BYTES];

	(void)checkup;
	if (socket_path_find(path)) {
		found(finding, VERDICT_BAD, "PURECM_SOCKET is not a valid path of a socket");
		found_remedy(finding, "unset PURECM_SOCKET");
	} else if (socket_path_is_served(path)) {
		check_served(path, finding);
	} else if (!access(path, F_OK) && access(path, W_OK)) {
		found(finding, VERDICT_BAD, "this user may not connect to %s: %s", path,
		      strerror(errno));
	} else {
		check_startable(path, finding);
	}
}

/* Return: a number of peers at a port, as reported by cmportd. */
static uint64_t count_peers(const struct snapshot *snapshot, const struct check_port *port,
			    enum portd_stat_counter what)
{
	const struct snapshot_port *known;
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < snapshot->n_counts; i++) {
		known = &snapshot->port[snapshot->count[i].port % PORTD_PORTS_MAX];
		if (snapshot->count[i].what == what && known->port_num == port->port_num &&
		    !strcmp(known->device, port->device))
			n += snapshot->count[i].value;
	}
	return n;
}

static void judge_fast_path(const struct snapshot *snapshot, const struct check_port *port,
			    struct finding *finding)
{
	unsigned long long n_fast = count_peers(snapshot, port, PORTD_COUNT_FAST_PEERS);
	unsigned long long n_lost = count_peers(snapshot, port, PORTD_COUNT_LOST_PEERS);

	if (n_lost)
		found(finding, VERDICT_NOTE,
		      "%s/%u: only umad reaches %llu of %llu peers, which is slower", port->device,
		      port->port_num, n_lost, n_lost + n_fast);
	else if (n_fast)
		found(finding, VERDICT_OK, "%s/%u: it reaches all %llu peers", port->device,
		      port->port_num, n_fast);
	else
		found(finding, VERDICT_OK, "%s/%u: no peer to judge it by yet", port->device,
		      port->port_num);
}

void check_fast_path(struct checkup *checkup, struct finding *finding)
{
	static struct snapshot snapshot;
	struct portd_client *client;
	struct portd_why why = { "" };
	unsigned int i;

	if (portd_client_visit(&client, &why)) {
		found(finding, VERDICT_SKIP, "not checked: no cmportd runs");
		return;
	}
	if (snapshot_gather(client, 0, STAT_WAIT_MS, &snapshot))
		found(finding, VERDICT_SKIP, "not checked: cmportd does not answer");
	for (i = 0; finding->verdict != VERDICT_SKIP && i < checkup->n_ports; i++)
		if (check_port_is_roce(&checkup->port[i]))
			judge_fast_path(&snapshot, &checkup->port[i], finding);
	snapshot_fini(&snapshot);
	portd_client_close(client);
}

void check_port_settings(struct checkup *checkup, struct finding *finding)
{
	struct port_file file;
	unsigned int i, number = 0;
	int err = port_file_read(port_file_path, &file, &number);

	if (err == -EINVAL)
		found(finding, VERDICT_BAD, "line %u of %s is wrong", number, port_file_path);
	else if (err == -EPROTONOSUPPORT)
		found(finding, VERDICT_BAD, "line %u of %s asks for RoCE v1", number,
		      port_file_path);
	else if (err)
		found(finding, VERDICT_BAD, "%s cannot be read: %s", port_file_path,
		      strerror(-err));
	for (i = 0; !err && i < checkup->n_ports; i++)
		if (check_port_is_roce(&checkup->port[i]))
			found(finding, VERDICT_OK,
			      "%s/%u has default_roce_tos=%u, default_roce_mode=RoCE v2",
			      checkup->port[i].device, checkup->port[i].port_num,
			      port_file_tos(&file, checkup->port[i].device,
					    checkup->port[i].port_num));
}
