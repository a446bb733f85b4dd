/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Confinement of cmportd before it serves clients, whoever has started it: it drops all
 * capabilities except CAP_NET_RAW, and all system calls except those listed in confine.c.
 */
#ifndef TOOLS_CMPORTD_CONFINE_H
#define TOOLS_CMPORTD_CONFINE_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1 /* allows more system calls: see confine.c */
#else
#define CONFINE_SANITIZED 0
#endif

enum confine_how {
	CONFINE_REFUSE, /* other calls fail with ENOSYS, and the kernel logs them */
	CONFINE_KILL,	/* other calls end the process */
	CONFINE_NOT,	/* no confinement */
};

/**
 * confine() - permanently drop unneeded privileges of this process
 *
 * Features that the kernel does not support are logged. To be called while there is only one
 * thread.
 *
 * Return: 0, or -errno if a capability could not be dropped.
 */
int confine(enum confine_how how);

#endif
