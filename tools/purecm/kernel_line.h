/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts lines of the kernel's tracer about its connection manager (events of the system
 * rdma_cma) to messages. Pure. Fields that the kernel does not report are zero; comm ids are
 * numbers assigned here.
 */
#ifndef TOOLS_PURECM_KERNEL_LINE_H
#define TOOLS_PURECM_KERNEL_LINE_H

#include "tools/purecm/observation.h"

#define KERNEL_LINE_MESSAGES 2 /* one event may imply a message and its response */
#define KERNEL_LINE_NOTE     256

struct kernel_lines;

/**
 * kernel_lines_new() - start without connections, for kernel_lines_free(). Return: NULL on ENOMEM.
 */
struct kernel_lines *kernel_lines_new(void);

/** kernel_lines_free() - free the state; NULL is allowed */
void kernel_lines_free(struct kernel_lines *lines);

/**
 * kernel_line_take() - convert a line
 * @line: as in the files trace and trace_pipe of tracefs
 * @ret:  way, addresses, MAD and time_ns, on the clock of the trace
 * @note: what the line reports besides messages, as text; empty if nothing
 *
 * Return: number of messages.
 */
int kernel_line_take(struct kernel_lines *lines, const char *line,
		     struct observation ret[KERNEL_LINE_MESSAGES], char note[KERNEL_LINE_NOTE]);

#endif
