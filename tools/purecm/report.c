/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * purecm report: collects information for support in one file: the checks of doctor, the counters
 * of stat, the latest messages with the output of explain, and versions.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/purecm/mask.h"
#include "tools/purecm/pcapng.h"
#include "tools/purecm/reading.h"

#define MESSAGES   "messages.pcapng"
#define NAME_BYTES 64
#define ARGS_MAX   6

struct report {
	struct reading reading; /* first */
	const char *output;
	const char *target; /* an address for doctor, or NULL */
	bool masks;

	char self[PATH_MAX];   /* this program */
	char top[PATH_MAX];    /* temporary directory, empty: none, which has ... */
	char name[NAME_BYTES]; /* the directory to pack */
	char folder[PATH_MAX + NAME_BYTES + 1]; /* that one's path */
	struct mask *mask;
	struct pcapng *file;
	uint64_t n_messages;
	uint64_t n_left_out;
};

static void take_address(void *input, char *address, struct argp_state *state)
{
	struct report *report = input;

	if (report->target)
		argp_error(state, "one address is enough");
	report->target = address;
}

/* clang-format off */
static const struct command_option options[] = {
	{ "output", 'o', "FILE", "write there, not to purecm-report-DATE.tar.gz",
	  COMMAND_TEXT_AT(report, output) },
	{ "mask", 'm', NULL,
	  "replace addresses and GUIDs, each always by the same one, and leave out what programs "
	  "have sent with their requests", COMMAND_FLAG_AT(report, masks) },
	{ "read", 'r', "FILE", "the messages of a capture, instead of those that cmportd has recorded",
	  COMMAND_TAKEN_BY(reading_take_file) },
	{ 0 },
};
/* clang-format on */

static const struct command_line usage = {
	.args = "[ADDRESS]",
	.doc = "Packs into one file what a bug report needs: the checks of doctor (with an "
	       "address, also the way there), the counters of stat, the latest messages and "
	       "what explain prints of them, and versions.",
	.options = options,
	.take_arg = take_address,
};

/* --- parts ---------------------------------------------------------------- */

static FILE *open_part(const struct report *report, const char *name)
{
	char path[sizeof(report->folder) + NAME_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", report->folder, name);
	file = command_create(path);
	if (!file)
		complain("%s cannot be written: %s", name, strerror(errno));
	return file;
}

/*
 * Return: a temporary file with both output streams of a command, or only the errors if there is a
 * file for its output; NULL after an error message. It runs in the directory, so that its output
 * has no paths of this host.
 */
static FILE *run_command(const char *folder, const char *const argv[ARGS_MAX + 2], FILE *output,
			 int *ret_status)
{
	char *args[ARGS_MAX + 2];
	FILE *file = tmpfile();
	pid_t pid, done = -1;

	fflush(NULL);
	pid = file ? fork() : -1;
	if (pid == 0) {
		dup2(fileno(output ? output : file), STDOUT_FILENO);
		dup2(fileno(file), STDERR_FILENO);
		memcpy(args, argv, sizeof(args));
		if (chdir(folder) == 0)
			execvp(args[0], args);
		_exit(127);
	}
	/* A signal ends the command too. */
	while (pid > 0 && (done = waitpid(pid, ret_status, 0)) < 0 && errno == EINTR)
		kill(pid, SIGTERM);
	if (pid < 0 || done != pid) {
		complain("%s cannot be run: %s", argv[0], strerror(errno));
		if (file)
			fclose(file);
		return NULL;
	}
	rewind(file);
	return file;
}

static void copy_text(struct mask *mask, FILE *from, FILE *to)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, from) >= 0) {
		if (mask)
			mask_text(mask, line, to);
		else
			fputs(line, to);
	}
	free(line);
}

/* --- output of other commands --------------------------------------------- */

/* clang-format off */
static const struct said {
	const char *file;
	const char *args[ARGS_MAX]; /* "@" is replaced by the address, if there is one */
	bool is_masked; /* its input is masked already */
} all_said[] = {
	{ "doctor.txt", { "doctor", "@" }, false },
	{ "stat.txt", { "stat" }, false },
	{ "stat.json", { "stat", "--json" }, false },
	{ "explain.txt", { "explain", "-r", MESSAGES }, true },
	{ "trace.txt", { "trace", "-r", MESSAGES }, true },
};
/* clang-format on */

static int write_output(struct report *report, const struct said *said)
{
	const char *argv[ARGS_MAX + 2] = { report->self };
	int i, status, n = 1;
	FILE *to, *from;

	for (i = 0; i < ARGS_MAX && said->args[i]; i++) {
		if (strcmp(said->args[i], "@") != 0)
			argv[n++] = said->args[i];
		else if (report->target)
			argv[n++] = report->target;
	}
	to = open_part(report, said->file);
	from = to ? run_command(report->folder, argv, NULL, &status) : NULL;
	if (from) {
		copy_text(said->is_masked ? NULL : report->mask, from, to);
		fclose(from);
	}
	return to && !fclose(to) && from ? 0 : -EIO;
}

/* --- messages ------------------------------------------------------------- */

static int take_observation(void *arg, const struct observation *observation)
{
	struct observation masked = *observation;
	struct report *report = arg;

	if (report->mask && !mask_observation(report->mask, &masked)) {
		report->n_left_out++;
		return 0;
	}
	pcapng_put(report->file, &masked, NULL);
	report->n_messages++;
	return command_is_over ? READING_ENOUGH : 0;
}

/* A report without messages is useful too. Return: 0, or -EIO if a file cannot be written. */
static int write_messages(struct report *report)
{
	char path[sizeof(report->folder) + NAME_BYTES];

	snprintf(path, sizeof(path), "%s/" MESSAGES, report->folder);
	if (pcapng_open(path, &report->file))
		return -EIO;
	report->reading.recorded = !report->reading.file;
	reading_run(&report->reading, take_observation, report);
	return pcapng_close(report->file);
}

/* --- versions ------------------------------------------------------------- */

static void copy_lines(FILE *to, const char *path, const char *const *beginnings)
{
	FILE *from = fopen(path, "re");
	char *line = NULL;
	size_t room = 0, i;

	while (from && getline(&line, &room, from) >= 0) {
		for (i = 0; beginnings[i]; i++) {
			if (strncmp(line, beginnings[i], strlen(beginnings[i])) == 0)
				fputs(line, to);
		}
	}
	free(line);
	if (from)
		fclose(from);
}

static int write_versions(const struct report *report)
{
	static const char *const release[] = { "PRETTY_NAME=", NULL };
	static const char *const modules[] = { "ib_",	   "rdma_",	"mlx", "bnxt_re", "irdma",
					       "hns_roce", "qedr",	"siw", "iw_",	  "efa",
					       "rpcrdma",  "nvme_rdma", NULL };
	FILE *to = open_part(report, "versions.txt");
	struct utsname name;

	if (!to)
		return -EIO;
	fprintf(to, "%s\n", argp_program_version);
	if (!uname(&name))
		fprintf(to, "%s %s %s %s\n", name.sysname, name.release, name.version,
			name.machine);
	copy_lines(to, "/etc/os-release", release);
	fputs("kernel modules:\n", to);
	copy_lines(to, "/proc/modules", modules);
	fprintf(to, "messages: %llu%s\n", (unsigned long long)report->n_messages,
		report->mask ? ", addresses are masked" : "");
	if (report->n_left_out)
		fprintf(to, "left out, as they cannot be masked: %llu\n",
			(unsigned long long)report->n_left_out);
	return fclose(to) ? -EIO : 0;
}

/* --- the whole report ----------------------------------------------------- */

static int make_folder(struct report *report)
{
	const char *tmp = getenv("TMPDIR");
	ssize_t n = readlink("/proc/self/exe", report->self, sizeof(report->self) - 1);
	const time_t now = time(NULL);
	char date[32] = "";
	struct tm at;

	if (n < 0)
		return -errno;
	if (localtime_r(&now, &at))
		strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &at);
	snprintf(report->name, sizeof(report->name), "purecm-report-%s", date);
	snprintf(report->top, sizeof(report->top), "%s/purecm-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(report->top)) {
		report->top[0] = '\0';
		return -errno;
	}
	snprintf(report->folder, sizeof(report->folder), "%s/%s", report->top, report->name);
	return mkdir(report->folder, 0700) ? -errno : 0;
}

static int pack_files(struct report *report, const char *output)
{
	const char *const argv[ARGS_MAX + 2] = {
		"tar", "-C", report->top, "-czf", "-", report->name
	};
	FILE *file = command_create(output);
	FILE *said;
	char line[256];
	int status;

	if (!file)
		return -errno;
	said = run_command("/", argv, file, &status);
	while (said && fgets(line, sizeof(line), said))
		complain("%.*s", (int)strcspn(line, "\n"), line);
	if (said)
		fclose(said);
	return !fclose(file) && said && !status ? 0 : -EIO;
}

static void remove_folder(const struct report *report)
{
	const char *const argv[ARGS_MAX + 2] = { "rm", "-rf", "--", report->top };
	FILE *said;
	int status;

	if (!*report->top)
		return;
	signal(SIGINT, SIG_IGN); /* a second one would end rm */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	said = run_command("/", argv, NULL, &status);
	if (said)
		fclose(said);
}

static int write_all(struct report *report)
{
	size_t i;
	int err = write_messages(report);

	for (i = 0; !err && !command_is_over && i < sizeof(all_said) / sizeof(all_said[0]); i++)
		err = write_output(report, &all_said[i]);
	if (!err)
		err = write_versions(report);
	return err || !command_is_over ? err : -EINTR;
}

int report_main(int argc, char **argv)
{
	struct report report = { .output = NULL };
	char fallback[2 * NAME_BYTES];
	int err;

	command_parse(&usage, argc, argv, &report);
	if (reading_check_output(&report.reading, report.output))
		return STATUS_FAILED;
	umask(077);
	command_catch_end();
	report.mask = report.masks ? mask_new() : NULL;
	err = report.masks && !report.mask ? -ENOMEM : make_folder(&report);
	snprintf(fallback, sizeof(fallback), "%s.tar.gz", report.name);
	if (!report.output)
		report.output = fallback;
	if (!err)
		err = write_all(&report);
	if (!err)
		err = pack_files(&report, report.output);
	if (err)
		complain("no report was written: %s", strerror(-err));
	else
		printf("%s: %llu messages%s. Look at what is in it before you send it.\n",
		       report.output, (unsigned long long)report.n_messages,
		       report.mask ? "; addresses are masked" : "");
	remove_folder(&report);
	mask_free(report.mask);
	return err ? STATUS_FAILED : STATUS_OK;
}
