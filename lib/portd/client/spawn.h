/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting cmportd from a program that needs one.
 */
#ifndef LIB_PORTD_CLIENT_SPAWN_H
#define LIB_PORTD_CLIENT_SPAWN_H

#include <limits.h>

/**
 * spawn_cmportd() - start one for a socket path, in a session of its own
 * @path:   of the socket, absolute
 * @ret_fd: readable to its end when that cmportd serves, or has ended; what can be read is why it
 *          has not come to serve. To be closed by the caller; does not block; -1 on an error
 *
 * The program is looked for beside the folder of the file that this code was loaded from (build
 * folder, then installation), then where it should have been installed; a setuid program takes
 * the last only. It has to be root's, or of the owner of that folder.
 *
 * At SOCKET_PATH_DEFAULT it runs in the network namespace of the host's first process, where
 * possible; elsewhere in ours. It gets a clean environment (PATH, PURECM_SOCKET, PURECM_LOG,
 * PURECM_IDLE_S, PURECM_PORTD_LOG), /dev/null for standard streams (but see @ret_fd), no descriptor
 * of ours, no signal blocked or ignored. It is scheduled as SCHED_OTHER on all CPUs (cpus.h), nice
 * 0; limits of resources that would end it are the host's, not ours. The calling program gets no
 * SIGCHLD, no child to wait for, and none of its fork handlers run; only if it inherits orphans, as
 * the first process of a container does, cmportd becomes its child. If several processes do this at
 * once, one cmportd remains. errno is kept.
 *
 * Return: 0 when it was started (whether it then runs is seen by connecting), -ENOENT if there is
 * no such program, -errno.
 */
int spawn_cmportd(const char *path, int *ret_fd);

/** spawn_find_program() - what spawn_cmportd() would start. Return: 0, or -ENOENT. */
int spawn_find_program(char ret[PATH_MAX]);

#endif
