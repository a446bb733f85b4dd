/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting cmportd from a program that uses it. */
#ifndef LIB_PORTD_CLIENT_SPAWN_H
#define LIB_PORTD_CLIENT_SPAWN_H

#include <limits.h>

/**
 * spawn_cmportd() - start cmportd for a socket path, or for one client, in a session of its own
 * @path:      of the socket, absolute; NULL: none, it serves @client_fd only
 * @client_fd: the server's end of a socket pair, which stays the caller's; -1 with a path
 * @ret_fd: a zero byte when that cmportd serves, end of file when it has ended; text that nothing
 *          follows says why it does not serve. Non-blocking, to be closed by the caller; -1 on
 *          error
 *
 * The program is searched relative to the directory of the file that this code was loaded from
 * (build tree, then installation), then at its installation path; a setuid program uses only the
 * latter. It must be owned by root or by the owner of that directory.
 *
 * At SOCKET_PATH_DEFAULT, cmportd runs in the network namespace of the host's first process if
 * possible; elsewhere in ours. It gets a clean environment (PATH, PURECM_SOCKET, PURECM_LOG,
 * PURECM_IDLE_S, PURECM_PORTD_LOG), /dev/null as standard streams (but see @ret_fd), no other of
 * our descriptors than @client_fd, and default dispositions and an empty mask of signals. It is
 * scheduled as SCHED_OTHER on all CPUs (cpus.h) with nice value 0; resource limits that would end
 * it are the host's, not ours. The calling program gets no SIGCHLD and no child to wait
 * for, and its fork handlers do not run; only a program that inherits orphans, like the first
 * process of a container, becomes cmportd's parent. If several processes call this at once, one
 * cmportd remains. errno is preserved.
 *
 * Return: 0 when it was started (connect to find out whether it runs), -ENOENT if there is no such
 * program, -errno.
 */
int spawn_cmportd(const char *path, int client_fd, int *ret_fd);

/**
 * spawn_find_program() - the program that spawn_cmportd() would start
 *
 * Return: 0; -ENOENT; -EMFILE, -ENFILE or -ENOMEM if it cannot be looked for.
 */
int spawn_find_program(char ret[PATH_MAX]);

#endif
