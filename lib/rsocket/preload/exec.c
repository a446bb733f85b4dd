/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librspreload.so: calls that run programs. The kernel's sockets survive exec(), ours do not. See
 * preload.h.
 */
#include <alloca.h>
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/diag/warning.h"
#include "lib/rsocket/preload/preload.h"

/* The thread that would copy for a connection of this process ends with it. */
static bool is_any_lost;

static void keep(int fd, struct sock *sock)
{
	if (sock->is_repoll || real()->fcntl(fd, F_GETFD) & FD_CLOEXEC)
		return;
	if (map_is_away(sock) || sock->backlog >= 0)
		relay_give(fd);
	else
		is_any_lost = true;
}

static void before_exec(void)
{
	if (own_is_lent())
		return;
	is_any_lost = relay_is_any();
	map_for_each(keep);
	if (is_any_lost)
		warning_of_lost("exec");
}

static void lose(int fd, struct sock *sock)
{
	(void)fd;
	is_any_lost |= !sock->is_repoll && !map_is_away(sock) && sock->backlog < 0;
	/* This process accepts no more, so its listeners leave their RDMA ports to the child. */
	sock->is_awaited = false;
}

EXPORT int daemon(int keeps_folder, int keeps_streams)
{
	is_any_lost = relay_is_any();
	map_for_each(lose);
	if (is_any_lost)
		warning_of_lost("daemon");
	return real()->daemon(keeps_folder, keeps_streams);
}

/* The C library's child has no handler of fork(), but this process goes on. */
static void before_spawn(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		relay_give(fd);
}

/* --- exec() --------------------------------------------------------------- */

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	before_exec();
	return real()->execve(path, argv, env);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	before_exec();
	return real()->execvpe(file, argv, env);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	before_exec();
	return real()->fexecve(fd, argv, env);
}

EXPORT int execveat(int folder, const char *path, char *const argv[], char *const env[], int flags)
{
	before_exec();
	return real()->execveat(folder, path, argv, env, flags);
}

/* The arguments from @arg to the NULL, as a vector of this function's caller. */
#define TAKE_ARGUMENTS(argv, arg, args)                          \
	do {                                                     \
		size_t n_args = 1;                               \
                                                                 \
		va_start(args, arg);                             \
		while (va_arg(args, char *))                     \
			n_args++;                                \
		va_end(args);                                    \
		(argv) = alloca((n_args + 1) * sizeof(*(argv))); \
		(argv)[0] = (char *)(uintptr_t)(arg);            \
		va_start(args, arg);                             \
		for (size_t i_arg = 1; i_arg <= n_args; i_arg++) \
			(argv)[i_arg] = va_arg(args, char *);    \
	} while (0)

EXPORT int execl(const char *path, const char *arg, ...)
{
	va_list args;
	char **argv;

	TAKE_ARGUMENTS(argv, arg, args);
	va_end(args);
	return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	va_list args;
	char **argv;

	TAKE_ARGUMENTS(argv, arg, args);
	va_end(args);
	return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	char **argv, *const *env;
	va_list args;

	TAKE_ARGUMENTS(argv, arg, args);
	env = va_arg(args, char *const *);
	va_end(args);
	return execve(path, argv, env);
}

/* --- children of the C library --------------------------------------------- */

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	before_spawn();
	return real()->posix_spawn(pid, path, actions, attr, argv, env);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	before_spawn();
	return real()->posix_spawnp(pid, file, actions, attr, argv, env);
}

EXPORT int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int from, int to)
{
	relay_give(from);
	return real()->posix_spawn_file_actions_adddup2(actions, from, to);
}

EXPORT int system(const char *command)
{
	before_spawn();
	return real()->system(command);
}

EXPORT FILE *popen(const char *command, const char *mode)
{
	before_spawn();
	return real()->popen(command, mode);
}

/* The parent's memory cannot be shared with a child that needs its connections. */
EXPORT pid_t vfork(void)
{
	return fork();
}
