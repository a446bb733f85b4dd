/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses a child of a child, so that the calling program notices nothing. The first child shares its
 * memory (fork handlers do not run), ends without a signal, and is waited for here; the second
 * becomes cmportd, and is not the program's child by then. A single child does not suffice: a
 * process that executes a program sends SIGCHLD when it exits, whatever signal it was cloned with.
 *
 * Until it executes cmportd, a child runs in the memory of a program that it must not disturb:
 * nothing here takes a lock, allocates memory, or lets a signal handler run.
 */
#include "lib/portd/client/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpus.h"
#include "base/env.h"
#include "lib/portd/proto/socket_path.h"

#define STACK_BYTES  65536
#define SIGSET_BYTES 8 /* the kernel's: all signals, including those reserved by the C library */
#define FDS_MAX	     (1 << 20)
#define FDS_WANTED   65536 /* as in the service unit */
#define TIMER_NS     50000 /* the default timer slack */

/*
 * Size of the kernel's struct sigaction, which differs from the C library's; SIG_DFL is all zeros.
 */
#define DEFAULT_ACTION_BYTES 64

#define ENV_MAX		     9
#define ENV_BYTES	     (PATH_MAX + 32)

/* All data that a child needs, prepared before it is created. */
struct birth {
	const char *program;
	bool is_of_host; /* its socket is SOCKET_PATH_DEFAULT */
	char *argv[4];
	char *envp[ENV_MAX];
	char env[ENV_MAX][ENV_BYTES];
	char *stack; /* two stacks of STACK_BYTES */
	struct cpus cpus;
	int stderr_fd;
	int client_fd; /* becomes PORTD_CLIENT_FD; -1: none */
	int err;
};

/* --- finding the program ------------------------------------------------- */

/*
 * Candidates, relative to the directory of the file that this code is in; an absolute path is used
 * as it is. The build tree comes first: no file beside an installed library can be mistaken for it,
 * while "../../libexec" of a build tree may belong to any user.
 */
static const char *const candidate[] = {
	"../tools/cmportd/cmportd",
	PORTD_PROGRAM_FROM_LIB,
	PORTD_PROGRAM,
};

/* A line of /proc/self/maps: 55d0c0de1000-55d0c0de2000 r-xp 00001000 fd:00 1234   /path */
static bool is_our_file(const char *line, char ret[PATH_MAX])
{
	uintptr_t first, end, here = (uintptr_t)spawn_cmportd;
	const char *path = strchr(line, '/');
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &first, &end) != 2 || here < first ||
	    here >= end || !slash || slash - path >= PATH_MAX - 1)
		return false;
	snprintf(ret, PATH_MAX, "%.*s/", (int)(slash - path), path);
	return true;
}

/*
 * dladdr() and argv[0] are not used: they give names as passed by callers, perhaps relative to
 * another directory.
 */
static int find_our_folder(char ret[PATH_MAX])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (!maps)
		return -errno;
	while (!found && getline(&line, &room, maps) >= 0)
		found = is_our_file(line, ret);
	free(line);
	fclose(maps);
	return found ? 0 : -ENOENT;
}

/* Only root and the owner of the directory that this code came from may provide the program. */
static bool may_start(const char *program, uid_t our_owner)
{
	struct stat file;

	return !stat(program, &file) && S_ISREG(file.st_mode) &&
	       (file.st_uid == 0 || file.st_uid == our_owner) && !access(program, X_OK);
}

static int find_from(const char *our_folder, char ret[PATH_MAX])
{
	struct stat ours;
	unsigned int i;
	int n;

	if (stat(our_folder, &ours))
		return -ENOENT;
	for (i = 0; i < sizeof(candidate) / sizeof(candidate[0]); i++) {
		if (candidate[i][0] == '/')
			n = snprintf(ret, PATH_MAX, "%s", candidate[i]);
		else
			n = snprintf(ret, PATH_MAX, "%s%s", our_folder, candidate[i]);
		if (n < PATH_MAX && may_start(ret, ours.st_uid))
			return 0;
	}
	return -ENOENT;
}

/* A user can link a setuid program into another directory, so only the installed path counts. */
int spawn_find_program(char ret[PATH_MAX])
{
	char ours[PATH_MAX];
	int err = getauxval(AT_SECURE) ? -ENOENT : find_our_folder(ours);

	if (!err)
		return find_from(ours, ret);
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		return err;
	snprintf(ret, PATH_MAX, "%s", PORTD_PROGRAM);
	return may_start(ret, 0) ? 0 : -ENOENT;
}

/* --- environment ---------------------------------------------------------- */

static const char *const kept[] = { "PURECM_LOG", "PURECM_IDLE_S", "PURECM_PORTD_LOG" };

/* On a soft fabric, the device libraries are found through variables too. */
static const char *const kept_on_fabric[] = { "PURECM_FABRIC", "LD_LIBRARY_PATH" };

static void add_env(struct birth *birth, unsigned int *n, const char *name, const char *value)
{
	int bytes = snprintf(birth->env[*n], ENV_BYTES, "%s=%s", name, value);

	if (bytes < ENV_BYTES) {
		birth->envp[*n] = birth->env[*n];
		++*n;
	}
}

static void keep_env(struct birth *birth, unsigned int *n, const char *from, const char *name)
{
	const char *value = env_get(from);

	if (value)
		add_env(birth, n, name, value);
}

static void make_env(struct birth *birth, const char *path)
{
	unsigned int i, n = 0;

	add_env(birth, &n, "PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
	if (path)
		add_env(birth, &n, "PURECM_SOCKET", path);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		keep_env(birth, &n, kept[i], kept[i]);
	if (!env_get("PURECM_FABRIC"))
		return;
	for (i = 0; i < sizeof(kept_on_fabric) / sizeof(kept_on_fabric[0]); i++)
		keep_env(birth, &n, kept_on_fabric[i], kept_on_fabric[i]);
	keep_env(birth, &n, "PURECM_FABRIC_PRELOAD", "LD_PRELOAD");
}

/* --- in the child -------------------------------------------------------- */

/*
 * The host's cmportd serves all network namespaces, whichever client starts it, so it belongs where
 * the host's interfaces are. A process without permission starts it in its own.
 */
static void enter_network_of_host(void)
{
	int fd = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	syscall(SYS_setns, fd, CLONE_NEWNET);
	close(fd);
}

/* Limits that would end or cripple cmportd are not inherited from the program. */
static const struct {
	enum __rlimit_resource resource;
	rlim_t wanted;
} limits[] = {
	{ RLIMIT_AS, RLIM_INFINITY },	   { RLIMIT_CPU, RLIM_INFINITY },
	{ RLIMIT_DATA, RLIM_INFINITY },	   { RLIMIT_FSIZE, RLIM_INFINITY },
	{ RLIMIT_MEMLOCK, RLIM_INFINITY }, { RLIMIT_NOFILE, FDS_WANTED },
	{ RLIMIT_STACK, 8 << 20 },
};

/* Root may exceed the program's hard limit; others are raised to it. */
static void set_limit(enum __rlimit_resource resource, rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	if (limit.rlim_max < wanted) {
		limit.rlim_cur = limit.rlim_max = wanted;
		if (!setrlimit(resource, &limit) || getrlimit(resource, &limit))
			return;
	}
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(resource, &limit);
}

/*
 * Must precede execve(): behind a program that polls with SCHED_FIFO on its CPU, cmportd might
 * never run to do it itself. Refusals are ignored: an unprivileged user cannot lower a nice value.
 */
static void be_scheduled_as_others(const struct cpus *cpus)
{
	const struct sched_param param = { .sched_priority = 0 };

	syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &param);
	setpriority(PRIO_PROCESS, 0, 0);
	if (cpus->bytes)
		syscall(SYS_sched_setaffinity, 0, cpus->bytes, cpus->mask);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0); /* derived from the nice value */
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	prctl(PR_SET_TIMERSLACK, TIMER_NS, 0, 0, 0);
}

/*
 * The program may have closed its own streams, so the new descriptors must not use their numbers.
 */
static int open_streams(int stderr_fd)
{
	int null = open("/dev/null", O_RDWR);
	int fd = fcntl(stderr_fd, F_DUPFD, STDERR_FILENO + 1);
	int to;

	if (null < 0 || fd < 0)
		return -errno;
	for (to = STDIN_FILENO; to <= STDERR_FILENO; to++)
		if (dup2(to == STDERR_FILENO ? fd : null, to) < 0)
			return -errno;
	return 0;
}

/* Kernels before 5.9 lack close_range(). */
static void close_from(int first)
{
	struct rlimit limit = { .rlim_cur = FDS_MAX };
	int fd;

	if (!syscall(SYS_close_range, first, UINT_MAX, 0))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	for (fd = first; fd < FDS_MAX && (rlim_t)fd < limit.rlim_cur; fd++)
		close(fd);
}

/* Duplicated first: dup2() to the same number would leave it close-on-exec. */
static int keep_client(int client_fd)
{
	int fd = client_fd < 0 ? PORTD_CLIENT_FD - 1
			       : fcntl(client_fd, F_DUPFD, PORTD_CLIENT_FD + 1);

	if (fd < 0 || (client_fd >= 0 && dup2(fd, PORTD_CLIENT_FD) < 0))
		return -errno;
	close_from(client_fd < 0 ? PORTD_CLIENT_FD : PORTD_CLIENT_FD + 1);
	return 0;
}

__attribute__((no_sanitize("address"))) static int be_cmportd(void *arg)
{
	const char default_action[DEFAULT_ACTION_BYTES] = { 0 };
	struct birth *birth = arg;
	uint64_t no_signals = 0;
	gid_t gid = getegid();
	uid_t uid = geteuid();
	unsigned int i;

	setsid();
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		set_limit(limits[i].resource, limits[i].wanted);
	birth->err = open_streams(birth->stderr_fd);
	if (!birth->err)
		birth->err = keep_client(birth->client_fd);
	if (!birth->err) {
		if (birth->is_of_host)
			enter_network_of_host();
		be_scheduled_as_others(&birth->cpus);
		/*
		 * Raw system calls, because the C library would change all threads of the program
		 * whose memory we share. Needed so that the user of a setuid program cannot send
		 * signals to cmportd.
		 */
		syscall(SYS_setresgid, gid, gid, gid);
		syscall(SYS_setresuid, uid, uid, uid);
		/* Without handlers, signals may be delivered again. */
		for (i = 1; i < NSIG; i++)
			syscall(SYS_rt_sigaction, i, default_action, NULL, SIGSET_BYTES);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, SIGSET_BYTES);
		execve(birth->program, birth->argv, birth->envp);
		birth->err = -errno;
	}
	syscall(SYS_exit_group, 1);
	return 1;
}

/* Returns when cmportd has left our memory, by execve() or exit. */
__attribute__((no_sanitize("address"))) static int be_between(void *arg)
{
	struct birth *birth = arg;

	if (clone(be_cmportd, birth->stack + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK, birth) < 0)
		birth->err = -errno;
	syscall(SYS_exit_group, 0);
	return 0;
}

/* --- in the program ------------------------------------------------------ */

static int give_birth(struct birth *birth)
{
	uint64_t all = UINT64_MAX, before;
	int cancel_state;
	pid_t pid;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SIGSET_BYTES);
	pid = clone(be_between, birth->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, birth);
	if (pid < 0)
		birth->err = -errno;
	else
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGSET_BYTES);
	pthread_setcancelstate(cancel_state, NULL);
	return birth->err;
}

static int start_program(struct birth *birth, const char *path)
{
	char program[PATH_MAX], option[sizeof("--socket=") + PATH_MAX] = "--client";
	char name[] = "cmportd", started[] = "--started";
	int err = spawn_find_program(program);

	if (err)
		return err;
	if (path)
		snprintf(option, sizeof(option), "--socket=%s", path);
	birth->program = program;
	cpus_of_host(&birth->cpus);
	birth->is_of_host = path && strcmp(path, SOCKET_PATH_DEFAULT) == 0;
	birth->argv[0] = name;
	birth->argv[1] = option;
	birth->argv[2] = started;
	make_env(birth, path);
	birth->stack = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (birth->stack == MAP_FAILED)
		return -errno;
	err = give_birth(birth);
	munmap(birth->stack, 2 * STACK_BYTES);
	return err;
}

int spawn_cmportd(const char *path, int client_fd, int *ret_fd)
{
	int ends[2], err, saved = errno;
	struct birth *birth = calloc(1, sizeof(*birth));

	*ret_fd = -1;
	err = !birth ? -ENOMEM : pipe2(ends, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
	if (!err) {
		birth->stderr_fd = ends[1];
		birth->client_fd = client_fd;
		err = start_program(birth, path);
		close(ends[1]);
		if (err)
			close(ends[0]);
		else
			*ret_fd = ends[0];
	}
	free(birth);
	errno = saved;
	return err;
}
