/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers for the functions in lib/later.h, so that a program that merely links with them loads and
 * runs, and one that calls them is told ENOSYS. Nothing in the library calls this file.
 */
#include <errno.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

/* The parameters only repeat the prototype, which the compiler then checks. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define LATER(type, failure, name, params) \
	type name params                   \
	{                                  \
		errno = ENOSYS;            \
		return failure;            \
	}

#include "later.h"
