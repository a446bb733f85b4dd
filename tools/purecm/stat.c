/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm stat: the ids, connections and counters of this host.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/portd/client/portd_client.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/snapshot.h"

#define WAIT_S 1

struct stat_options {
	struct snapshot_filter filter; /* first */
	bool json;
	bool prometheus;
	bool kernel;
	bool quotas;
	bool sockets;
	double watch_s; /* 0: print once */
	double wait_s;
};

static void check_options(const void *input, struct argp_state *state)
{
	const struct stat_options *options = input;

	if (options->prometheus && (options->json || options->watch_s > 0))
		argp_error(state, "--prometheus stands alone: a scraper comes again itself");
	if (options->sockets && (options->kernel || options->quotas || options->prometheus))
		argp_error(state, "--sockets are those of programs, and not for Prometheus");
	if ((options->sockets || options->quotas) &&
	    (options->filter.peer || options->filter.port || options->filter.states))
		argp_error(state, "--peer, --port and --state are of ids, not of --sockets or "
				  "--quotas");
	snapshot_check(input, state);
	if (options->quotas && (options->filter.pid || options->prometheus || options->kernel))
		argp_error(state, "--quotas are cmportd's, of users, and not for Prometheus");
}

/* clang-format off */
static const struct command_option option_table[] = {
	{ "kernel", 0, NULL, "those of the kernel's connection manager",
	  COMMAND_FLAG_AT(stat_options, kernel) },
	{ "watch", 0, "SECONDS", "again and again, until Ctrl-C; every 2 s without SECONDS",
	  COMMAND_SECONDS_AT(stat_options, watch_s, 0.05, 86400), .is_optional = true, .preset = 2 },
	{ "wait", 0, "SECONDS", "for processes that do not answer; 1 without it",
	  COMMAND_SECONDS_AT(stat_options, wait_s, 0.05, 86400) },
	{ "quotas", 0, NULL, "instead: the quotas of users, and what they use of them; see cmportd(8)",
	  COMMAND_FLAG_AT(stat_options, quotas) },
	{ "sockets", 0, NULL, "instead: the connections of sockets, over RDMA and over TCP, and why",
	  COMMAND_FLAG_AT(stat_options, sockets) },
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(stat_options, json) },
	{ "prometheus", 0, NULL, "as Prometheus reads it",
	  COMMAND_FLAG_AT(stat_options, prometheus) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.doc = "Shows all ids and connections of programs over purecm on this host, and their "
	       "counters; root those of all users, others their own.",
	.options = option_table,
	.more = snapshot_options,
	.check = check_options,
};

/* --- one snapshot --------------------------------------------------------- */

static bool nobody_is_there(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED;
}

static int visit_cmportd(const struct stat_options *options, struct portd_client **ret)
{
	struct portd_why why = { "" };
	int err = portd_client_visit(ret, &why);

	if (nobody_is_there(err) && options->prometheus)
		stat_print_prometheus(NULL); /* not an error */
	else if (nobody_is_there(err))
		complain("no cmportd runs, so no program uses purecm");
	else if (err)
		complain("%s%s%s", why.text, why.text[0] ? ": " : "", strerror(-err));
	return err;
}

static void print_snapshot(const struct stat_options *options, const struct snapshot *snapshot)
{
	if (options->prometheus)
		stat_print_prometheus(snapshot);
	else if (options->json)
		stat_print_json(snapshot);
	else if (options->quotas)
		stat_print_quotas(snapshot);
	else
		stat_print_text(snapshot, page_width());
}

static int gather_snapshot(const struct stat_options *options, struct portd_client *client,
			   struct snapshot *ret)
{
	int err = snapshot_gather(client, options->quotas ? PORTD_STAT_QUOTAS : options->filter.pid,
				  (unsigned int)(options->wait_s * 1000), ret);

	/* For Prometheus they would be counters that fall; it can add them up itself. */
	if (!err && !options->filter.pid && !options->prometheus && !options->quotas)
		err = snapshot_sum(ret);
	if (err)
		complain("cmportd does not answer: %s", strerror(-err));
	return err;
}

static int gather_kernel(const struct stat_options *options, struct snapshot *ret)
{
	int err = snapshot_gather_kernel(options->filter.pid, ret);

	if (err == -ENOENT && options->prometheus)
		return 0; /* a metric of its own */
	if (err == -ENOENT)
		complain("the kernel has no connection manager, or no RDMA device: modprobe "
			 "rdma_ucm loads the one, `rdma dev` shows the other");
	else if (err && err != -EIO)
		complain("the kernel's connection manager: %s", strerror(-err));
	return err;
}

static int look_once(const struct stat_options *options, struct portd_client *client)
{
	static struct snapshot snapshot;
	int err = options->kernel ? gather_kernel(options, &snapshot)
				  : gather_snapshot(options, client, &snapshot);

	if (!err) {
		snapshot_select(&snapshot, &options->filter);
		print_snapshot(options, &snapshot);
		snapshot_complain(&snapshot);
	}
	if (!err && options->filter.pid && snapshot.n_processes == 1) {
		complain("no program over %s has process id %u, or it is another user's",
			 options->kernel ? "the kernel's connection manager" : "purecm",
			 options->filter.pid);
		err = -ESRCH;
	}
	snapshot_fini(&snapshot);
	return err;
}

/* --- repeated snapshots --------------------------------------------------- */

static void begin_page(const struct stat_options *options)
{
	static bool is_later;
	char text[32];
	time_t now = time(NULL);
	struct tm at;

	if (options->json)
		return;
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	else if (is_later)
		putchar('\n');
	is_later = true;
	strftime(text, sizeof(text), "%F %T", localtime_r(&now, &at));
	printf("%s\n", text);
}

/* Reconnects to cmportd when it has ended. Ends on a write error or a signal. */
static int watch_snapshots(const struct stat_options *options)
{
	struct portd_client *client = NULL;

	do {
		begin_page(options);
		if (options->sockets)
			stat_print_sockets(options->filter.pid, options->json);
		else if (!client && !options->kernel && visit_cmportd(options, &client))
			client = NULL;
		if ((client || options->kernel) && look_once(options, client)) {
			portd_client_close(client);
			client = NULL;
		}
		if (fflush(stdout))
			break;
		command_sleep(options->watch_s);
	} while (!ferror(stdout));
	portd_client_close(client);
	return STATUS_FAILED;
}

int stat_main(int argc, char **argv)
{
	struct stat_options options = { .wait_s = WAIT_S };
	struct portd_client *client = NULL;
	int err;

	command_parse(&usage, argc, argv, &options);
	if (options.watch_s > 0)
		return watch_snapshots(&options);
	if (options.sockets)
		return stat_print_sockets(options.filter.pid, options.json) ? STATUS_OK
									    : STATUS_FAILED;
	err = options.kernel ? 0 : visit_cmportd(&options, &client);
	if (err)
		return options.prometheus && nobody_is_there(err) ? STATUS_OK : STATUS_FAILED;
	err = look_once(&options, client);
	portd_client_close(client);
	return err ? STATUS_FAILED : STATUS_OK;
}
