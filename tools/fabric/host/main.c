/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric-host, started by tools/fabric/fabric in a host's namespaces: see host.h. It prints "ready"
 * on standard output, and ends when its standard input does.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/fabric/host/host.h"
#include "tools/fabric/host/pma.h"
#include "tools/fabric/host/rmpp.h"
#include "tools/fabric/host/sa.h"
#include "tools/fabric/host/smi.h"
#include "tools/fabric/wire/quirks.h"

static void peers_ready(struct watch *watch)
{
	fab_peers_flush(&container_of(watch, struct host, peers_watch)->peers);
}

static void stdin_ready(struct watch *watch)
{
	char byte;

	if (read(watch->fd, &byte, 1) <= 0)
		container_of(watch, struct host, stdin_watch)->is_ending = true;
}

/* umad agents take precedence: a program may be the subnet administrator. */
static void handle_mad(struct host *host, uint8_t port_num, uint16_t dlid, struct ib_user_mad *head,
		       const uint8_t mad[FAB_MAD_BYTES])
{
	bool is_for_switch = dlid == SMI_LID_SWITCH;

	if (!is_for_switch && (rmpp_input(host, port_num, head, mad) ||
			       agents_receive(host, port_num, head, mad, FAB_MAD_BYTES) ||
			       sa_received(host, port_num, head, mad)))
		return;
	pma_received(host, port_num, dlid, head, mad);
}

static int make_folders(const struct host *host)
{
	static const char *const folder[] = { "hosts", "gids", "lids", "groups", "joined" };
	static const char *const of_host[] = { "", "/ctx", "/grants" };
	char path[FAB_PATH_BYTES];
	unsigned int i;

	for (i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", host->folder.dir, folder[i]);
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
	}
	for (i = 0; i < sizeof(of_host) / sizeof(of_host[0]); i++) {
		snprintf(path, sizeof(path), "%s/hosts/%s%s", host->folder.dir, host->folder.host,
			 of_host[i]);
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int open_all(struct host *host)
{
	int err;

	list_init(&host->conns);
	list_init(&host->pending);
	list_init(&host->rmpp_sendings);
	list_init(&host->rmpp_receivings);
	list_init(&host->services);
	err = sa_groups_init(host);
	if (err)
		return err;
	err = loop_init(&host->loop);
	if (!err)
		err = make_folders(host);
	if (!err)
		err = fab_counters_create(&host->folder, &host->counters);
	if (!err)
		err = fab_peers_init(&host->peers, host->folder.dir, 0);
	host->peers.faulty.counters = host->counters;
	if (!err)
		err = loop_watch(&host->loop, &host->peers_watch, host->peers.loop.fd, EPOLLIN,
				 peers_ready);
	if (!err)
		err = loop_watch(&host->loop, &host->stdin_watch, STDIN_FILENO, EPOLLIN,
				 stdin_ready);
	udp_capture_open(&host->capture, host->folder.dir);
	accept_reserve(host);
	if (!err)
		err = gsi_open(host, handle_mad);
	if (!err && host->wire == FAB_WIRE_ROCE)
		err = roce_open(host);
	/* Before the device appears: whoever sees that it is back may reset it again. */
	if (!err)
		err = control_open(host);
	if (!err)
		err = identity_open(host);
	if (!err)
		err = agents_open(host);
	return err ? err : sysfs_follow_counters(host);
}

static void run_loop(struct host *host)
{
	while (!host->is_ending) {
		loop_turn(&host->loop, -1); /* sysfs.c has a timer of half a second */
		identity_try_again(host);
	}
}

static int print_usage(void)
{
	fprintf(stderr, "usage: fabric-host --number N --link roce|ib [--wire unix|roce]\n"
			"                   [--lmc BITS] [--subnets N] [--pkey 0xNNNN]...\n"
			"                   [--quirk NAME]... [--limit NAME=VALUE]...\n"
			"                   --netdev NAME [--netdev NAME]\n"
			"with " FAB_ENV "=FOLDER/hosts/NAME; started by tools/fabric/fabric\n");
	return 2;
}

static bool take_quirk(struct host *host, const char *name)
{
	enum fab_quirk quirk;

	if (!fab_quirk_find(name, &quirk))
		return false;
	host->quirks |= UINT32_C(1) << quirk;
	return true;
}

/* Parses "inline=96". */
static bool take_limit(struct host *host, const char *text)
{
	static const char *const words[] = {
#define X(name, word, value) word "=",
		FAB_LIMITS(X)
#undef X
	};
	unsigned int i = 0;

	while (i < FAB_N_LIMITS && strncmp(text, words[i], strlen(words[i])) != 0)
		i++;
	if (i == FAB_N_LIMITS)
		return false;
	host->limit[i] = (uint32_t)strtoul(text + strlen(words[i]), NULL, 10);
	return host->limit[i] != 0;
}

static bool take_option(struct host *host, int option, const char *value)
{
	if (option == 'n')
		host->number = (unsigned int)atoi(value);
	else if (option == 'l')
		host->link_layer = strcmp(value, "ib") == 0 ? IBV_LINK_LAYER_INFINIBAND
							    : IBV_LINK_LAYER_ETHERNET;
	else if (option == 'w')
		host->wire = strcmp(value, "roce") == 0 ? FAB_WIRE_ROCE : FAB_WIRE_UNIX;
	else if (option == 'm')
		host->lmc = (uint8_t)atoi(value);
	else if (option == 's')
		host->n_subnets = (uint8_t)atoi(value);
	else if (option == 'p' && host->n_pkeys < FAB_PKEYS - 1)
		host->pkey[host->n_pkeys++] = (uint16_t)strtoul(value, NULL, 16);
	else if (option == 'd' && host->n_ports < FAB_PORTS)
		host->netdev[host->n_ports++] = value;
	else
		return option == 'q' ? take_quirk(host, value)
				     : option == 'L' && take_limit(host, value);
	return true;
}

static bool parse_options(int argc, char **argv, struct host *host)
{
	static const struct option options[] = {
		{ "number", required_argument, NULL, 'n' },
		{ "link", required_argument, NULL, 'l' },
		{ "wire", required_argument, NULL, 'w' },
		{ "lmc", required_argument, NULL, 'm' },
		{ "subnets", required_argument, NULL, 's' },
		{ "pkey", required_argument, NULL, 'p' },
		{ "quirk", required_argument, NULL, 'q' },
		{ "limit", required_argument, NULL, 'L' },
		{ "netdev", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(host, option, optarg))
			return false;
	return host->number > 0 && host->link_layer && host->n_ports && host->n_subnets &&
	       optind == argc;
}

int main(int argc, char **argv)
{
	struct host host = { .n_subnets = 1, .udp = { .fd = -1 } };
	int err;

	udp_out_clear(&host.out);

	if (!parse_options(argc, argv, &host))
		return print_usage();
	err = fab_folder_find(&host.folder);
	if (err)
		return print_usage();
	signal(SIGPIPE, SIG_IGN);
	err = open_all(&host);
	if (err) {
		host_log(&host, "cannot start: %s", strerror(-err));
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	run_loop(&host);
	if (!host.is_reset)
		sweep_processes(&host);
	agents_close(&host);
	rmpp_forget(&host, NULL);
	sa_groups_free(&host);
	sa_services_forget(&host);
	identity_close(&host);
	roce_close(&host);
	fab_peers_fini(&host.peers);
	udp_capture_close(&host.capture);
	if (!host.is_reset)
		return 0;
	execv("/proc/self/exe", argv);
	host_log(&host, "its device does not come back: %s", strerror(errno));
	return 1;
}
