/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the kernel's tracer about its connection manager (events of the system rdma_cma), as
 * the messages that they tell of. Pure. What the kernel does not tell of a message is zero in it;
 * comm ids are numbers of this trace.
 */
#ifndef TOOLS_PURECM_KERNEL_LINE_H
#define TOOLS_PURECM_KERNEL_LINE_H

#include "tools/purecm/observation.h"

#define KERNEL_LINE_MESSAGES 2 /* one event may tell of a message and of its answer */
#define KERNEL_LINE_NOTE     256

struct kernel_lines;

/** kernel_lines_new() - no connection seen. Return: given back with kernel_lines_free(); NULL. */
struct kernel_lines *kernel_lines_new(void);

/** kernel_lines_free() - NULL is allowed. */
void kernel_lines_free(struct kernel_lines *lines);

/**
 * kernel_line_take() - the messages that a line tells of
 * @line: as the file trace or trace_pipe of tracefs has it
 * @ret:  way, addresses, MAD and time_ns, by the clock of the trace
 * @note: in words, what the line reports besides messages; empty if nothing
 *
 * Return: how many messages.
 */
int kernel_line_take(struct kernel_lines *lines, const char *line,
		     struct observation ret[KERNEL_LINE_MESSAGES], char note[KERNEL_LINE_NOTE]);

#endif
