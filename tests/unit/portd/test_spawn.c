/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting cmportd: the effect on the starting program, and the state that cmportd inherits. The
 * cmportd in this program's folder is that of fake_server.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cpus.h"
#include "lib/portd/client/portd_client.h"
#include "lib/portd/proto/socket_path.h"
#include "lib/portd/client/spawn.h"
#include "tests/unit/lib/threads.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#define NO_LIBRARY	  ":" /* for LD_PRELOAD: a sanitizer must be the first library */
#define CROWD		  20
#define OTHERS_MS	  1000
#define WAIT_MS		  20000
#define NOBODY		  65534
#define STOP_SIGNALS_ONLY "0000000000004003" /* SIGHUP, SIGINT, SIGTERM: it reads them */
#define SIGPIPE_ONLY	  "0000000000001000"

static char seen_path[128]; /* a FIFO */
static int seen_fd;
static char seen[16384];

/* --- the state that the fake inherited ----------------------------------- */

/* Return: false if nothing arrives in time. */
static bool read_seen(int wait_ms)
{
	struct pollfd poll_fd = { .fd = seen_fd, .events = POLLIN };
	size_t n_seen = strlen(seen);
	ssize_t n;

	if (poll(&poll_fd, 1, wait_ms) != 1)
		return false;
	n = read(seen_fd, seen + n_seen, sizeof(seen) - 1 - n_seen);
	seen[n < 0 ? n_seen : n_seen + (size_t)n] = '\0';
	return n > 0;
}

static void wait_seen(void)
{
	while (!strstr(seen, "\nend\n") && read_seen(WAIT_MS))
		;
	ck_assert_ptr_nonnull(strstr(seen, "\nend\n"));
}

/* The rest of the first line with this beginning. */
static const char *log_text(const char *begin)
{
	static char rest[256];
	const char *at = strstr(seen, begin);

	ck_assert_msg(at, "it does not say %s: %s", begin, seen);
	snprintf(rest, sizeof(rest), "%.*s", (int)strcspn(at + strlen(begin), "\n"),
		 at + strlen(begin));
	return rest;
}

static unsigned int count(const char *text)
{
	unsigned int n = 0;
	const char *at;

	for (at = strstr(seen, text); at; at = strstr(at + 1, text))
		n++;
	return n;
}

static void end_cmportd(void)
{
	pid_t pid = (pid_t)atoi(log_text("pid "));
	struct pollfd process = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	kill(pid, SIGTERM);
	ck_assert(process.fd < 0 || poll(&process, 1, WAIT_MS) == 1);
	close(process.fd);
}

static void setup(void)
{
	folder_make();
	snprintf(seen_path, sizeof(seen_path), "%s.seen", socket_path);
	ck_assert_int_eq(mkfifo(seen_path, 0600), 0);
	seen_fd = open(seen_path, O_RDWR | O_CLOEXEC);
	seen[0] = '\0';
	setenv("PURECM_IDLE_S", "30", 1); /* after a failed test it ends by itself */
}

static void teardown(void)
{
	read_seen(0);
	if (*seen)
		end_cmportd();
	close(seen_fd);
}

static void spawn(void)
{
	int fd;

	ck_assert_int_eq(spawn_cmportd(socket_path, -1, &fd), 0);
	close(fd);
}

/* Reads until the end, or until nothing arrives for 5 s. */
static const char *read_all(int fd)
{
	static char text[512];
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t n = 0;
	ssize_t more = 1;

	while (more > 0 && n < sizeof(text) - 1) {
		ck_assert_int_eq(poll(&poll_fd, 1, WAIT_MS), 1);
		more = read(fd, text + n, sizeof(text) - 1 - n);
		n += more > 0 ? (size_t)more : 0;
	}
	close(fd);
	text[n] = '\0';
	return text;
}

/* --- starting ------------------------------------------------------------ */

FIXTURE(setup, teardown);
TEST(spawned_cmportd_serves_the_given_path)
{
	spawn();
	wait_seen();
	ck_assert(socket_path_is_served(socket_path));
}

TEST(spawning_returns_when_cmportd_serves)
{
	int fd;

	ck_assert_int_eq(spawn_cmportd(socket_path, -1, &fd), 0);
	ck_assert_str_eq(read_all(fd), "");
	ck_assert(socket_path_is_served(socket_path));
	wait_seen();
}

TEST(spawning_returns_the_error_of_cmportd)
{
	static const char path[] = "/proc/purecm/s"; /* not even root can make a folder there */
	const char *said;
	int fd;

	ck_assert_int_eq(spawn_cmportd(path, -1, &fd), 0);
	said = read_all(fd);
	ck_assert_msg(strstr(said, path) && strstr(said, strerror(ENOENT)), "it said: %s", said);
}

/* Not after the 5 s that a slow cmportd would get. */
TEST(client_gets_the_error_of_cmportd_at_once)
{
	struct portd_client *client;
	time_t begin = time(NULL);
	struct portd_ids ids;
	struct portd_why why;

	setenv("PURECM_SOCKET", "/proc/purecm/a/s", 1);
	ck_assert_int_eq(portd_client_open(&client, &ids, &why), -ENOENT);
	ck_assert_msg(strstr(why.text, "/proc/purecm/a") && strstr(why.text, "PURECM_PORTD=inline"),
		      "it says: %s", why.text);
	ck_assert_int_le(time(NULL) - begin, 3);
}

TEST(client_without_permission_for_the_socket_gets_an_error)
{
	struct portd_client *client;
	struct portd_ids ids;
	struct portd_why why;

	if (!is_root())
		return;
	setenv("PURECM_SOCKET", "/etc/purecm.none/s", 1);
	ck_assert_int_eq(seteuid(NOBODY), 0);
	ck_assert_int_eq(portd_client_open(&client, &ids, &why), -EACCES);
	ck_assert_int_eq(seteuid(0), 0);
}

static void make_file(const char *suffix)
{
	char path[128];

	snprintf(path, sizeof(path), "%s.%s", socket_path, suffix);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* The fake accepts no client. */
static void check_that_it_is_found(void)
{
	struct portd_client *client;
	struct portd_ids ids;
	struct portd_why why;
	int err;

	setenv("PURECM_SOCKET", socket_path, 1);
	err = portd_client_open(&client, &ids, &why);
	ck_assert_msg(strstr(why.text, "hangs up"), "%s: %s", strerror(-err), why.text);
	wait_seen();
}

TEST(slow_cmportd_is_waited_for)
{
	make_file("slow");
	check_that_it_is_found();
}

TEST(cmportd_that_is_killed_before_it_serves_is_started_again)
{
	make_file("mortal");
	check_that_it_is_found();
}

static int spawn_once(void)
{
	char text[64];
	int fd;
	int err = spawn_cmportd(socket_path, -1, &fd);

	if (err || fcntl(fd, F_SETFL, 0))
		return 1;
	while (read(fd, text, sizeof(text)) > 0)
		;
	return 0;
}

TEST(concurrent_spawns_leave_one_cmportd)
{
	pid_t pid[CROWD];
	int i, status;

	for (i = 0; i < CROWD; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			_exit(spawn_once());
	}
	for (i = 0; i < CROWD; i++) {
		ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
		ck_assert_int_eq(status, 0);
	}
	wait_seen();
	ck_assert_uint_eq(count("pid "), 1);
	ck_assert(socket_path_is_served(socket_path));
}

static int take_turn(void)
{
	struct sockaddr_un turn = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(turn.sun_path + 1, sizeof(turn.sun_path) - 1, "%.100s.start", socket_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&turn, sizeof(turn)), 0);
	return fd;
}

static pid_t fork_searcher(int turn)
{
	struct portd_client *client;
	struct portd_ids ids;
	struct portd_why why;
	pid_t pid;

	setenv("PURECM_SOCKET", socket_path, 1);
	pid = fork();
	if (pid == 0) {
		close(turn);
		_exit(portd_client_open(&client, &ids, &why) != 0);
	}
	return pid;
}

static void end_searcher(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Any user can bind that name. */
TEST(unstarted_cmportd_of_another_is_waited_for_a_second)
{
	const int turn = take_turn();
	const pid_t pid = fork_searcher(turn);

	wait_seen();
	end_searcher(pid);
	close(turn);
}

TEST(unstarted_cmportd_of_root_is_waited_for_until_its_program_ends)
{
	const int turn = take_turn();
	pid_t pid;

	ck_assert_int_eq(listen(turn, 1), 0);
	pid = fork_searcher(turn);
	ck_assert_int_ge(accept(turn, NULL, NULL), 0);
	ck_assert(!read_seen(2 * OTHERS_MS));
	close(turn);
	wait_seen();
	end_searcher(pid);
}

static void *search(void *arg)
{
	check_that_it_is_found();
	return arg;
}

/* Return: the number of descriptors that hold the turn, or are connected to it. */
static unsigned int count_turns(void)
{
	struct sockaddr_un addr;
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		socklen_t bytes = sizeof(addr);

		memset(&addr, 0, sizeof(addr));
		if (!getsockname(fd, (struct sockaddr *)&addr, &bytes) && !addr.sun_path[0])
			n += strstr(addr.sun_path + 1, ".start") != NULL;
	}
	return n;
}

/* A worker would keep it for all its life, and programs would wait for that. */
TEST(child_that_is_forked_during_a_search_does_not_hold_the_turn)
{
	pthread_t searcher;
	int status;
	pid_t pid;

	make_file("slow");
	ck_assert(!pthread_create(&searcher, NULL, search, NULL));
	while (!count_turns())
		sched_yield();
	pid = fork();
	if (pid == 0) {
		portd_client_after_fork();
		_exit(count_turns() != 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	pthread_join(searcher, NULL);
}

/* --- effects on the program ---------------------------------------------- */

static volatile sig_atomic_t sigchlds;
static unsigned int forks;
static pid_t our_pid;
static volatile sig_atomic_t strangers;

static void count_sigchld(int number)
{
	(void)number;
	sigchlds = sigchlds + 1;
}

static void count_fork(void)
{
	forks++;
}

/* getpid() is not cached by the C library. */
static void count_stranger(int number)
{
	(void)number;
	if (getpid() != our_pid)
		strangers = strangers + 1;
}

TEST(spawning_leaves_no_child_and_no_sigchld)
{
	signal(SIGCHLD, count_sigchld);
	spawn();
	wait_seen();
	end_cmportd();
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	ck_assert_int_eq(errno, ECHILD);
	ck_assert_int_eq(sigchlds, 0);
}

TEST(cmportd_starts_although_sigchld_is_ignored)
{
	signal(SIGCHLD, SIG_IGN);
	spawn();
	wait_seen();
}

TEST(spawning_runs_no_fork_handler)
{
	pthread_atfork(count_fork, count_fork, count_fork);
	spawn();
	wait_seen();
	ck_assert_uint_eq(forks, 0);
}

static _Atomic bool is_waiting;

static void *wait_for_any(void *arg)
{
	pid_t *first = arg;

	is_waiting = true;
	*first = waitpid(-1, NULL, 0);
	return NULL;
}

TEST(program_that_waits_for_any_child_gets_only_its_own)
{
	pid_t pid = fork(), first = 0;
	pthread_t thread;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_any, &first), 0);
	while (!is_waiting)
		sched_yield();
	threads_wait_asleep();
	spawn();
	wait_seen();
	kill(pid, SIGKILL);
	pthread_join(thread, NULL);
	ck_assert_int_eq(first, pid);
}

TEST(spawning_runs_no_signal_handler_in_the_child)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	int i;

	our_pid = getpid();
	signal(SIGALRM, count_stranger);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 50; i++)
		spawn();
	setitimer(ITIMER_REAL, &never, NULL);
	wait_seen();
	ck_assert_int_eq(strangers, 0);
}

TEST(spawning_preserves_mask_and_errno)
{
	sigset_t before, after;

	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = E2BIG;
	spawn();
	ck_assert_int_eq(errno, E2BIG);
	sigprocmask(SIG_SETMASK, NULL, &after);
	ck_assert(sigismember(&after, SIGUSR1) && !sigismember(&after, SIGTERM));
	wait_seen();
}

/* --- the inherited state ------------------------------------------------- */

TEST(spawning_leaks_no_descriptor)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/leak", folder);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	ck_assert_int_ge(dup2(fd, 100), 0);
	ck_assert_int_ge(dup2(fd, 500), 0);
	ck_assert_int_ge(dup2(fd, STDIN_FILENO), 0);
	spawn();
	wait_seen();
	ck_assert_uint_eq(count("/leak"), 0);
	ck_assert_uint_eq(count("pipe:"), 0);
	ck_assert_uint_eq(count(" /dev/null"), 3);
	ck_assert_uint_eq(count("fd "),
			  9); /* plus folder, state, socket, signals twice, and the report */
}

TEST(blocked_and_ignored_signals_are_not_inherited)
{
	sigset_t all;
	int i;

	for (i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	spawn();
	wait_seen();
	ck_assert_str_eq(log_text("SigBlk:\t"), STOP_SIGNALS_ONLY);
	ck_assert_str_eq(log_text("SigIgn:\t"), SIGPIPE_ONLY);
}

TEST(spawned_cmportd_has_a_clean_environment)
{
	setenv("SECRET", "1", 1);
	setenv("LD_LIBRARY_PATH", "/nowhere", 1);
	setenv("PURECM_LOG", "debug", 1);
	spawn();
	wait_seen();
	ck_assert_uint_eq(count("env "), 4);
	ck_assert_uint_eq(count("env PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"), 1);
	ck_assert_str_eq(log_text("env PURECM_SOCKET="), socket_path);
	ck_assert_str_eq(log_text("env PURECM_LOG="), "debug");
	ck_assert_str_eq(log_text("env PURECM_IDLE_S="), "30");
}

TEST(spawned_cmportd_finds_the_libraries_of_a_soft_fabric)
{
	setenv("PURECM_FABRIC", "/tmp/f/hosts/a", 1);
	setenv("LD_LIBRARY_PATH", "/nowhere", 1);
	setenv("PURECM_FABRIC_PRELOAD", NO_LIBRARY, 1);
	spawn();
	wait_seen();
	ck_assert_str_eq(log_text("env PURECM_FABRIC="), "/tmp/f/hosts/a");
	ck_assert_str_eq(log_text("env LD_LIBRARY_PATH="), "/nowhere");
	ck_assert_str_eq(log_text("env LD_PRELOAD="), NO_LIBRARY);
}

TEST(preloaded_libraries_of_a_fabric_are_not_preloaded_elsewhere)
{
	setenv("PURECM_FABRIC_PRELOAD", NO_LIBRARY, 1);
	spawn();
	wait_seen();
	ck_assert_uint_eq(count("env LD_PRELOAD="), 0);
	ck_assert_uint_eq(count("env PURECM_FABRIC_PRELOAD="), 0);
}

TEST(spawned_cmportd_has_its_own_session_and_folder)
{
	ck_assert_int_eq(chdir(folder), 0);
	spawn();
	wait_seen();
	ck_assert_str_eq(log_text("cwd "), "/");
	ck_assert_int_eq(atoi(log_text("sid ")), atoi(log_text("pid ")));
}

static void set_oom(const char *value)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);

	ck_assert(write(fd, value, strlen(value)) > 0 || errno == EACCES);
	close(fd);
}

static void read_line_of(const char *path, const char *begin, char ret[256])
{
	FILE *file = fopen(path, "re");

	while (fgets(ret, 256, file) && strncmp(ret, begin, strlen(begin)) != 0)
		continue;
	fclose(file);
	ret[strcspn(ret, "\n")] = '\0';
}

/* As a program that polls: the last CPU for itself, in real time if permitted. */
static void ignore_children(void)
{
	struct sched_param param = { .sched_priority = 5 };
	cpu_set_t cpus, last;
	int i = CPU_SETSIZE - 1;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	while (!CPU_ISSET(i, &cpus))
		i--;
	CPU_ZERO(&last);
	CPU_SET(i, &last);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(last), &last), 0);
	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		param.sched_priority = 0;
		ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	}
}

/* Whether root or another user has started it: CAP_NET_RAW is bit 13. */
TEST(spawned_cmportd_has_dropped_its_capabilities)
{
	static const char *const sets[] = { "CapInh:\t", "CapPrm:\t", "CapEff:\t", "CapAmb:\t" };
	unsigned int i;

	spawn();
	wait_seen();
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		ck_assert_uint_eq(strtoull(log_text(sets[i]), NULL, 16) & ~(1ull << 13), 0);
	if (geteuid() == 0)
		ck_assert_uint_eq(strtoull(log_text("CapBnd:\t"), NULL, 16) & ~(1ull << 13), 0);
	ck_assert_str_eq(log_text("NoNewPrivs:\t"), "1");
	ck_assert_str_eq(log_text("Seccomp:\t"), "2");
}

TEST(spawned_cmportd_has_the_default_scheduling)
{
	char wanted[256];
	struct cpus cpus;

	ck_assert_int_eq(cpus_of_host(&cpus), 0);
	sched_setaffinity(0, cpus.bytes, (cpu_set_t *)cpus.mask);
	read_line_of("/proc/self/status", "Cpus_allowed_list:\t", wanted);
	ignore_children();
	if (geteuid() == 0)
		setpriority(PRIO_PROCESS, 0, 5);
	spawn();
	wait_seen();
	ck_assert_str_eq(log_text("Cpus_allowed_list:\t"), strchr(wanted, '\t') + 1);
	ck_assert_str_eq(log_text("policy "), "0");
	ck_assert_str_eq(log_text("nice "), "0");
}

TEST(spawned_cmportd_has_no_file_size_limit)
{
	struct rlimit limit;
	char hard[32];

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 4096;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	snprintf(hard, sizeof(hard), "%llu", (unsigned long long)limit.rlim_max);
	spawn();
	wait_seen();
	if (limit.rlim_max == RLIM_INFINITY)
		ck_assert_str_eq(log_text("fsize "), hard);
	ck_assert_str_ne(log_text("fsize "), "4096");
}

/* If an administrator has set more, a user cannot have less. */
TEST(spawned_cmportd_has_the_default_oom_score)
{
	char wanted[256];

	set_oom("500");
	set_oom("0");
	read_line_of("/proc/self/oom_score_adj", "", wanted);
	set_oom("500");
	spawn();
	wait_seen();
	ck_assert_str_eq(log_text("oom "), wanted);
}

TEST(spawned_cmportd_logs_to_the_file_in_the_environment)
{
	char log[128], text[256] = "";
	int fd;

	snprintf(log, sizeof(log), "%s/log", folder);
	setenv("PURECM_PORTD_LOG", log, 1);
	setenv("PURECM_LOG", "debug", 1);
	spawn();
	wait_seen();
	fd = open(log, O_RDONLY);
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	close(fd);
	ck_assert_ptr_nonnull(strstr(text, "idle after 30 s\n"));
	ck_assert_int_eq(strncmp(text, "cmportd: ", 9), 0);
}
