/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The player's command line:
 *
 *   player serve PORT
 *   player play SELF4 SELF6 PEER4 PEER6 CONTROL-PORT JOBS PAUSE-US LIMIT-MS < scripts
 *   player library
 *
 * A script is a line "== NAME" and a line for each call. Each is played in a process of its own;
 * JOBS at once.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <arpa/inet.h>

#include "player.h"

#define FIRST_BASE	8000
#define LAST_BASE	28000
#define JOBS_MAX	64
#define DESCRIPTORS_MAX 160 /* of an end */
#define SCRIPT_BYTES	16384
#define SCRIPT_LIMIT_S	60

struct options {
	char **hosts;
	const char *control_port;
	int jobs;
	unsigned pause_us, limit_ms;
};

struct job {
	pid_t pid; /* 0: none */
	int out;
	char name[64];
	time_t since;
};

static void ignore(int signum)
{
	(void)signum;
}

static int connect_control(const struct options *options)
{
	struct sockaddr_storage addr = host_addresses[2];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), i;

	((struct sockaddr_in *)&addr)->sin_port = htons(atoi(options->control_port));
	if (connect(fd, (void *)&addr, sizeof(struct sockaddr_in))) {
		printf("no peer: %s\n", strerror(errno));
		exit(3);
	}
	dprintf(fd, "%u %u %u", options->pause_us, options->limit_ms, base_port);
	for (i = 0; i < 4; i++)
		dprintf(fd, " %s", options->hosts[(i + 2) % 4]);
	dprintf(fd, "\n");
	return fd;
}

/* Takes all descriptors that the process may have, or gives them back. */
static void take_descriptors(bool all)
{
	static int taken[DESCRIPTORS_MAX];
	static size_t n;

	if (all)
		while (n < DESCRIPTORS_MAX && (taken[n] = dup(STDOUT_FILENO)) >= 0)
			n++;
	else
		while (n)
			close(taken[--n]);
}

/* A line may begin with b: at the other end; t: by the thread; !: while signals arrive; x: without
 * a free descriptor. */
bool play_line(struct play *p, char *line)
{
	static char none[] = "";
	char *words[MAX_WORDS + 1], *at;
	bool is_without = !strncmp(line, "x ", 2), is_made;
	int n;

	if (*line == 'b' && line[1] == ' ') {
		putchar('\n');
		if (p->control >= 0 && !send_line_to_peer(p, line + 2))
			return false;
		p->is_settled &= is_quiet(line + 2);
		settle(p);
		return true;
	}
	if (*line == 't' && line[1] == ' ' && !is_in_thread()) {
		hand_over(p, line + 2);
		return true;
	}
	p->is_stormy = !strncmp(line, "! ", 2);
	line += p->is_stormy || is_without ? 2 : 0;
	for (n = 0; n < MAX_WORDS; n++) {
		words[n] = strtok_r(n ? NULL : line, " ", &at);
		if (!words[n])
			break;
	}
	for (; n <= MAX_WORDS; n++)
		words[n] = none;
	p->words = words;
	take_descriptors(is_without);
	is_made = make_call(p);
	take_descriptors(false);
	show_changes(p);
	return is_made;
}

void open_end(struct play *p, unsigned pause_us)
{
	const struct rlimit limit = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };
	struct sigaction action = { .sa_handler = ignore };
	int i;

	sigaction(SIGALRM, &action, NULL);
	p->pause_us = pause_us;
	p->is_idle = sched_getscheduler(0) == SCHED_IDLE;
	for (i = 0; i < N_CHANNELS; i++) {
		p->channels[i] = rdma_create_event_channel();
		if (!p->channels[i]) {
			printf("no channel: %s\n", strerrorname_np(errno));
			exit(3);
		}
		fcntl(p->channels[i]->fd, F_SETFL, O_NONBLOCK);
	}
	setrlimit(RLIMIT_NOFILE, &limit);
	settle(p);
}

static void play_script(const struct options *options, char *script)
{
	static struct play p;
	char *line, *at;

	p.limit_ms = options->limit_ms;
	p.control = connect_control(options);
	open_end(&p, options->pause_us);
	SAY("base %u", base_port);
	for (line = strtok_r(script, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		fputs(line, stdout);
		if (!play_line(&p, line))
			exit(3);
		let_thread_go_on(&p);
		fflush(stdout); /* before a call that may crash */
	}
	printf("end\n");
	fflush(stdout);
}

static void start(struct job *job, const struct options *options, char *script, size_t number)
{
	int nothing;

	job->out = memfd_create("transcript", MFD_CLOEXEC);
	job->since = time(NULL);
	base_port = FIRST_BASE + number * N_PORTS % (LAST_BASE - FIRST_BASE);
	fflush(stdout);
	job->pid = fork();
	if (job->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(job->out, STDOUT_FILENO);
	/* exit() moves the offset of stdin, which must not be the one of the scripts. */
	nothing = open("/dev/null", O_RDONLY);
	dup2(nothing, STDIN_FILENO);
	close(nothing);
	play_script(options, script);
	/* What was not destroyed ends with the process. */
	_exit(0);
}

static void copy(const struct job *job)
{
	char bytes[4096];
	ssize_t n;

	lseek(job->out, 0, SEEK_SET);
	printf("== %s\n", job->name);
	while ((n = read(job->out, bytes, sizeof(bytes))) > 0)
		fwrite(bytes, 1, n, stdout);
}

static void end(struct job *job, int status)
{
	copy(job);
	if (WIFSIGNALED(status))
		printf("ended by signal %d\n", WTERMSIG(status));
	fflush(stdout);
	close(job->out);
	job->pid = 0;
}

/* Return: a job that is free, once there is one; or NULL if none runs and @all have to end. */
static struct job *wait_for(struct job *jobs, int n, bool all)
{
	struct job *idle;
	int i, status, running;

	for (;;) {
		idle = NULL;
		running = 0;
		for (i = 0; i < n; i++) {
			if (jobs[i].pid && waitpid(jobs[i].pid, &status, WNOHANG) == jobs[i].pid)
				end(&jobs[i], status);
			if (jobs[i].pid && time(NULL) - jobs[i].since > SCRIPT_LIMIT_S)
				kill(jobs[i].pid, SIGKILL);
			/* A call that the kernel does not interrupt may take minutes. */
			if (jobs[i].pid && time(NULL) - jobs[i].since > 2 * SCRIPT_LIMIT_S)
				end(&jobs[i], SIGKILL);
			running += !!jobs[i].pid;
			if (!jobs[i].pid)
				idle = &jobs[i];
		}
		if (all ? !running : !!idle)
			return idle;
		usleep(2000);
	}
}

static void play_all(const struct options *options)
{
	static struct job jobs[JOBS_MAX];
	static char script[SCRIPT_BYTES];
	char line[512], name[64];
	size_t number = 0, used;
	struct job *job;
	bool more = fgets(line, sizeof(line), stdin);

	while (more && sscanf(line, "== %63s", name) == 1) {
		for (used = 0; (more = fgets(line, sizeof(line), stdin)) && *line != '=';
		     used += strlen(line))
			if (used + strlen(line) < sizeof(script))
				strcpy(script + used, line);
		script[used] = '\0';
		job = wait_for(jobs, options->jobs, false);
		strcpy(job->name, name);
		start(job, options, script, number++);
	}
	wait_for(jobs, options->jobs, true);
}

int main(int argc, char **argv)
{
	struct options options;
	Dl_info info;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "library") &&
	    dladdr((void *)(uintptr_t)rdma_create_id, &info))
		return puts(info.dli_fname) < 0;
	if (argc != 10 || strcmp(argv[1], "play")) {
		fprintf(stderr, "usage: player serve PORT\n"
				"       player play SELF4 SELF6 PEER4 PEER6 PORT JOBS PAUSE-US "
				"LIMIT-MS < SCRIPTS\n"
				"       player library\n");
		return 2;
	}
	options =
		(struct options){ argv + 2, argv[6], atoi(argv[7]), atoi(argv[8]), atoi(argv[9]) };
	if (options.jobs < 1 || options.jobs > JOBS_MAX)
		options.jobs = JOBS_MAX;
	parse_hosts(options.hosts);
	ibv_free_device_list(ibv_get_device_list(NULL)); /* loads drivers, for all players */
	play_all(&options);
	return 0;
}
