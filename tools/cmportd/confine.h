/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What cmportd gives up before it serves anybody, whoever has started it: all capabilities but
 * CAP_NET_RAW, and all system calls but those of the list in confine.c.
 */
#ifndef TOOLS_CMPORTD_CONFINE_H
#define TOOLS_CMPORTD_CONFINE_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1 /* then the list is longer: see confine.c */
#else
#define CONFINE_SANITIZED 0
#endif

enum confine_how {
	CONFINE_REFUSE, /* what is not in the list fails with ENOSYS, and the kernel logs it */
	CONFINE_KILL,	/* it ends the process */
	CONFINE_NOT,	/* nothing is given up */
};

/**
 * confine() - give up what this process does not need, for good
 *
 * What the kernel does not offer is logged. To be called before there is another thread.
 *
 * Return: 0 or -errno, if a capability could not be dropped.
 */
int confine(enum confine_how how);

#endif
