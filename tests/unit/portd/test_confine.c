/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A confined cmportd that an attacker has taken over: further attacks fail, while the same calls
 * work in this program.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"
#include "tools/cmportd/confine.h"

#define PAGE 4096

/* --- attacks ------------------------------------------------------------- */

static long execute(void)
{
	return execl("/bin/true", "true", NULL);
}

static long execute_by_descriptor(void)
{
	char *argv[] = { NULL };

	return syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv, 0);
}

__attribute__((unused)) static long make_a_process(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	return pid;
}

__attribute__((unused)) static long trace(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static long write_to_another(void)
{
	return syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0);
}

__attribute__((unused)) static long signal_another(void)
{
	return kill(getppid(), SIGCONT);
}

static long enter_a_namespace(void)
{
	return unshare(CLONE_NEWNS);
}

static long join_a_namespace(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	return setns(fd, CLONE_NEWNET);
}

static long mount_something(void)
{
	long err = mount("none", folder, "tmpfs", 0, NULL);

	if (!err)
		umount2(folder, MNT_DETACH);
	return err;
}

static long change_root(void)
{
	return chroot("/");
}

static long read_packets(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static long use_kernel_crypto(void)
{
	return socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static long use_bluetooth(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

__attribute__((unused)) static long make_code(void)
{
	return mmap(NULL, PAGE, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? -1
		       : 0;
}

__attribute__((unused)) static long make_data_executable(void)
{
	void *page = mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

static int own_file(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/file", folder);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static long make_setuid(void)
{
	return fchmod(own_file(), 04755);
}

static long give_file_away(void)
{
	return fchown(own_file(), geteuid(), getegid());
}

static long be_another(void)
{
	return syscall(SYS_setresuid, -1, -1, -1);
}

static long type_at_a_terminal(void)
{
	return ioctl(STDERR_FILENO, TIOCSTI, "x");
}

static long load_bpf(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static long watch_the_kernel(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static long bypass_filter(void)
{
	struct io_uring_params params = { .flags = 0 };

	return syscall(SYS_io_uring_setup, 1, &params);
}

static long load_a_module(void)
{
	return syscall(SYS_finit_module, -1, "", 0);
}

static long take_keys(void)
{
	return syscall(SYS_add_key, "user", "purecm", "x", 1, -2);
}

__attribute__((unused)) static long be_dumped(void)
{
	return syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1, 0, 0, 0);
}

static const struct attack {
	const char *name;
	long (*do_it)(void);
} attacks[] = {
#define ATTACK(name)        \
	{                   \
#name, name \
	}
	ATTACK(execute),
	ATTACK(execute_by_descriptor),
	ATTACK(write_to_another),
	ATTACK(enter_a_namespace),
	ATTACK(join_a_namespace),
	ATTACK(mount_something),
	ATTACK(change_root),
	ATTACK(read_packets),
	ATTACK(use_kernel_crypto),
	ATTACK(use_bluetooth),
	ATTACK(make_setuid),
	ATTACK(give_file_away),
	ATTACK(be_another),
	ATTACK(type_at_a_terminal),
	ATTACK(load_bpf),
	ATTACK(watch_the_kernel),
	ATTACK(bypass_filter),
	ATTACK(load_a_module),
	ATTACK(take_keys),
#if !CONFINE_SANITIZED /* sanitizers need these themselves */
	ATTACK(make_a_process),
	ATTACK(trace),
	ATTACK(signal_another),
	ATTACK(make_code),
	ATTACK(make_data_executable),
	ATTACK(be_dumped),
#endif
#undef ATTACK
};

/* --- results ------------------------------------------------------------- */

/* Return: its status, as from wait(); status 0 if the call exists. */
static int try(const struct attack *attack, enum confine_how how)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		if (confine(how))
			_exit(2);
		_exit(attack->do_it() < 0 && errno == ENOSYS);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

FIXTURE(folder_make, NULL);
/* Two calls that a kernel, or a container, may itself refuse with ENOSYS do not count. */
TEST(attacks_are_possible_without_a_filter)
{
	unsigned int i, n = 0;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		n += try(&attacks[i], CONFINE_NOT) == 0;
	ck_assert_uint_ge(n, sizeof(attacks) / sizeof(attacks[0]) - 2);
}

TEST(filter_makes_attacks_fail)
{
	unsigned int i;
	int status;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		status = try(&attacks[i], CONFINE_REFUSE);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%s: status %d",
			      attacks[i].name, status);
	}
}

TEST(filter_can_kill_an_attacker)
{
	unsigned int i;
	int status;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		status = try(&attacks[i], CONFINE_KILL);
		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s: status %d",
			      attacks[i].name, status);
	}
}

static void *write_byte(void *arg)
{
	const int *fd = arg;

	return write(*fd, "", 1) == 1 ? arg : NULL;
}

/* cmportd sets the scheduling of its threads. */
/* The filter alone would stop the attacks above. */
static bool has_only_net_raw(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
	const uint32_t net_raw = CAP_TO_MASK(CAP_NET_RAW);

	return !syscall(SYS_capget, &header, has) && !has[1].permitted && !has[1].effective &&
	       !has[1].inheritable && !has[0].inheritable && !(has[0].permitted & ~net_raw) &&
	       !(has[0].effective & ~net_raw);
}

TEST(confined_process_keeps_only_net_raw)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (confine(CONFINE_REFUSE))
			_exit(2);
		_exit(has_only_net_raw() ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(confined_process_may_start_a_thread)
{
	int status, ends[2];
	pid_t pid;
	char byte;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		if (confine(CONFINE_KILL) || thread_start(write_byte, &ends[1]))
			_exit(1);
		_exit(read(ends[0], &byte, 1) != 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(ends[0]);
	close(ends[1]);
}
