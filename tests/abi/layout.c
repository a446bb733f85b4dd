/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints sizes, offsets and values of the public headers. tests/abi/twice.py compiles it against
 * ours and against the distribution's, and compares.
 */
#include <stddef.h>
#include <stdio.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_cma_abi.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#define SIZE(type) { #type, sizeof(type), _Alignof(type) },
#define AT(type, member) \
	{ #type "." #member, offsetof(struct type, member), sizeof(((struct type *)0)->member) },
#define VALUE(constant) { #constant, (unsigned long long)(constant), sizeof(constant) },

static const struct row {
	const char *name;
	unsigned long long value, extra;
} rows[] = {
#include "layout.h"
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		printf("%s %llu %llu\n", rows[i].name, rows[i].value, rows[i].extra);
	return 0;
}
