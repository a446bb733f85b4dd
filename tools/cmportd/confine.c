/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Confinement: see confine.h. The list has the system calls of cmportd, the C library, libibverbs
 * with its providers and the soft fabric's device. Devices are opened, and providers loaded, long
 * after the filter is installed. A call that is not listed fails as not implemented, so libraries
 * fall back to an older one.
 */
#include "tools/cmportd/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define N_ROWS(table)	 (sizeof(table) / sizeof((table)[0]))
#define IOCTL_TYPE	 UINT64_C(0xff00)
#define IOCTL_OF_RDMA	 UINT64_C(0x1b00) /* umad and uverbs */
#define IOCTL_OF_SOCKETS UINT64_C(0x8900)

/* --- capabilities -------------------------------------------------------- */

/* If there is nothing to drop, as under the service unit, capset() may be forbidden already. */
static int keep_net_raw(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
	struct __user_cap_data_struct keeps[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, has))
		return -errno;
	keeps[0].permitted = has[0].permitted & CAP_TO_MASK(CAP_NET_RAW);
	keeps[0].effective = keeps[0].permitted;
	if (memcmp(has, keeps, sizeof(has)) == 0)
		return 0;
	return syscall(SYS_capset, &header, keeps) ? -errno : 0;
}

static int drop_capabilities(void)
{
	int cap;

	/*
	 * Without the permission to drop them, capabilities cannot be regained either: no_new_privs
	 * is set.
	 */
	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (cap != CAP_NET_RAW)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return keep_net_raw();
}

/* --- system calls -------------------------------------------------------- */

/* With any arguments; one row per purpose. */
static const char *const allowed[] = {
	/* descriptors */
	"read write readv writev pread64 pwrite64 lseek close close_range dup dup2 dup3 fcntl "
	"fcntl64 flock pipe pipe2 eventfd2 memfd_create ftruncate ftruncate64 fallocate fsync",
	/* waiting, and the time */
	"poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
	"epoll_pwait2 nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time "
	"timerfd_create timerfd_settime timerfd_gettime signalfd4 timer_create timer_settime "
	"timer_delete",
	/* files: the state file, sysfs, /proc, /dev/infiniband, libraries of providers */
	"open openat openat2 stat lstat fstat newfstatat fstatat64 stat64 lstat64 fstat64 statx "
	"statfs fstatfs access faccessat faccessat2 readlink readlinkat getdents getdents64 "
	"getcwd umask mkdir mkdirat unlink unlinkat",
	/* sockets; their kinds are limited below */
	"bind connect listen accept accept4 getsockname getpeername getsockopt setsockopt sendto "
	"sendmsg sendmmsg recvfrom recvmsg recvmmsg send recv shutdown",
	/* memory */
	"brk munmap mremap madvise mlock mlock2 munlock msync mincore",
	/* threads and signals of this process */
	"futex futex_time64 set_robust_list get_robust_list set_tid_address rseq membarrier "
	"gettid sched_yield sched_getaffinity sched_setaffinity sched_get_priority_min "
	"sched_get_priority_max getcpu exit exit_group restart_syscall "
	"rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn rt_sigtimedwait sigreturn "
	"sigaltstack",
	/* our identity, and the existence of clients */
	"getpid getppid getuid geteuid getgid getegid capget uname sysinfo getrandom getrlimit "
	"ugetrlimit getrusage pidfd_open",
};

/* Sanitizers look for leaks with a process that traces this one. */
static const char allowed_sanitizers[] =
	"clone ptrace wait4 prctl mprotect mmap kill tgkill personality setrlimit prlimit64 "
	"process_vm_readv";

/* With an argument that has these values in the bits of the mask. */
static const struct limited {
	int call;
	unsigned int arg;
	uint64_t mask;
	uint64_t is;
} limited[] = {
	{ SCMP_SYS(socket), 0, UINT32_MAX, AF_UNIX },
	{ SCMP_SYS(socket), 0, UINT32_MAX, AF_NETLINK },
	{ SCMP_SYS(socket), 0, UINT32_MAX, AF_INET },
	{ SCMP_SYS(socket), 0, UINT32_MAX, AF_INET6 },
	{ SCMP_SYS(socketpair), 0, UINT32_MAX, AF_UNIX },
	{ SCMP_SYS(ioctl), 1, IOCTL_TYPE, IOCTL_OF_RDMA },
	{ SCMP_SYS(ioctl), 1, IOCTL_TYPE, IOCTL_OF_SOCKETS },
	{ SCMP_SYS(ioctl), 1, UINT32_MAX, TCGETS },
	{ SCMP_SYS(ioctl), 1, UINT32_MAX, FIONREAD },
	{ SCMP_SYS(ioctl), 1, UINT32_MAX, FIONBIO },
	/* threads, not processes */
	{ SCMP_SYS(clone), 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM },
	/* no memory is both writable and executable */
	{ SCMP_SYS(mmap), 2, PROT_WRITE | PROT_EXEC, 0 },
	{ SCMP_SYS(mmap), 2, PROT_WRITE | PROT_EXEC, PROT_WRITE },
	{ SCMP_SYS(mmap), 2, PROT_WRITE | PROT_EXEC, PROT_EXEC },
	{ SCMP_SYS(mprotect), 2, PROT_EXEC, 0 },
	{ SCMP_SYS(fchmod), 1, S_ISUID | S_ISGID, 0 },
	{ SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NAME },
	{ SCMP_SYS(prctl), 0, UINT32_MAX, PR_CAPBSET_READ },
	{ SCMP_SYS(kill), 1, UINT32_MAX, 0 },
	{ SCMP_SYS(sched_setscheduler), 1, UINT32_MAX, SCHED_OTHER },
	{ SCMP_SYS(tgkill), 2, UINT32_MAX, SIGABRT },
	/* of our own limits */
	{ SCMP_SYS(prlimit64), 0, UINT32_MAX, 0 },
};

static int allow_all(scmp_filter_ctx filter, const char *names)
{
	char *copy = strdup(names), *rest = copy, *name;
	int call, err = copy ? 0 : -ENOMEM;

	while (!err && (name = strtok_r(rest, " ", &rest))) {
		call = seccomp_syscall_resolve_name(name);
		if (call == __NR_SCMP_ERROR)
			err = -EINVAL;
		else /* a call that this machine lacks is omitted */
			err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
	}
	free(copy);
	return err;
}

static int allow_limited(scmp_filter_ctx filter, const struct limited *row)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, row->call, 1,
				SCMP_CMP64(row->arg, SCMP_CMP_MASKED_EQ, row->mask, row->is));
}

static int add_rules(scmp_filter_ctx filter)
{
	size_t i;
	int err = CONFINE_SANITIZED ? allow_all(filter, allowed_sanitizers) : 0;

	for (i = 0; !err && i < N_ROWS(allowed); i++)
		err = allow_all(filter, allowed[i]);
	for (i = 0; !err && i < N_ROWS(limited); i++)
		err = allow_limited(filter, &limited[i]);
	return err;
}

static int load_filter(enum confine_how how)
{
	scmp_filter_ctx filter =
		seccomp_init(how == CONFINE_KILL ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(ENOSYS));
	int err;

	if (!filter)
		return -ENOMEM;
	/* Optional: the kernel may not support logging, nor the library sorting. */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	err = add_rules(filter);
	/* The filter cannot see its arguments; the C library falls back to clone() for threads. */
	if (!err && how == CONFINE_KILL)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = seccomp_load(filter); /* also sets no_new_privs, by default */
	seccomp_release(filter);
	return err;
}

int confine(enum confine_how how)
{
	int err;

	if (how == CONFINE_NOT)
		return 0;
	err = drop_capabilities();
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = load_filter(how);
	if (err)
		log_warn("all system calls stay allowed, without a filter: %s", strerror(-err));
	return 0;
}
