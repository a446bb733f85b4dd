/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of mad/umad.c and mad/umad_owner.c: a libibumad made of sockets; /sys, /proc and
 * /dev are folders below a temporary one. tests/judge/umad_lab.py asks a real kernel.
 */
#ifndef TESTS_UNIT_MAD_UMAD_FAKE_H
#define TESTS_UNIT_MAD_UMAD_FAKE_H

#include <stdbool.h>

#include "mad/umad.h"

#define N_FDS_MAX    8
#define OWNER_METHOD 8 /* the bit of method 3, Send */

/* Inputs and outputs of the tests; zeroed by set_up_fake_umad(). */
struct fake_umad {
	int fd[N_FDS_MAX], peer[N_FDS_MAX]; /* the other ends of opened descriptors, in order */
	long methods[N_FDS_MAX];
	int n_opened;
	int open_errno;	    /* of the next open() */
	int register_errno; /* of a registration with methods */
	int agent_errno;    /* of one without */
	bool is_stand_in;   /* has ports that sysfs does not have */
	int n_asked;	    /* calls of umad_open_port() */
};

extern struct fake_umad fake;
extern char root[64]; /* the folder of sys, proc and dev */

/**
 * set_up_fake_umad() - a host with the ports mlx5_0/1 (without a node in /dev) and rxe0/1 (umad7)
 */
void set_up_fake_umad(void);

/** tear_down_fake_umad() - close opened descriptors, remove the folder */
void tear_down_fake_umad(void);

/**
 * put_file() - write a file below root
 * @text:   its contents
 * @format: its path, relative
 */
__attribute__((format(printf, 2, 3))) void put_file(const char *text, const char *format, ...);

/** n_closed() - number of opened descriptors that umad.c has closed */
int n_closed(void);

/** open_rxe0() - open port 1 of rxe0, which must succeed */
struct mad_port *open_rxe0(void);

#endif
