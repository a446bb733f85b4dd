/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control group for a cmportd that a program of root has started: a transient scope of systemd.
 * In the group of the program it would end with it, and share its limits.
 */
#ifndef TOOLS_CMPORTD_OWN_GROUP_H
#define TOOLS_CMPORTD_OWN_GROUP_H

#include <sys/types.h>

/**
 * own_group_enter() - have systemd move this process to a scope of its own
 *
 * Without systemd, or without permission, the process stays where it is. To be called before
 * confine(): systemd asks for CAP_SYS_ADMIN. Takes a second at most if systemd does not answer.
 */
void own_group_enter(void);

/**
 * own_group_ask() - ask for a scope with a process, through a socket to the manager of units
 * @fd:  connected to /run/systemd/private, where systemd speaks D-Bus without a bus
 * @pid: as the manager counts
 * @ret: why it refuses, if it says so
 *
 * Return: 0 when the manager has queued the job, -errno.
 */
int own_group_ask(int fd, pid_t pid, char ret[128]);

#endif
