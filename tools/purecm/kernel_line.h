/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Converts lines of the kernel's tracer about its connection manager (events of the system
 * rdma_cma) to messages. Pure. Fields that the kernel does not report are zero; comm ids are
 * numbers assigned here.
 */
#ifndef TOOLS_PURECM_KERNEL_LINE_H
#define TOOLS_PURECM_KERNEL_LINE_H

#include "tools/purecm/observation.h"

/*
 * A line about the connection manager or about a MAD of the CM class:
 *
 *   rping-281 [000] .....  73.228509: cm_send_req: cm.id=0 src=IP:PORT dst=IP:PORT tos=0 qp_num=17
 *   kworker.. [000] .....  74.655941: cm_event_handler: cm.id=1 src=.. dst=.. tos=0 REJECTED (8/8)
 *   rping-281 [000] .....  73.228609: ib_mad_ib_send_mad: .. 15/15 retries(0); .. class 0x7 ..
 *                                     tid 0x2f2109e1c attr_id 0x10 ..
 *   kworker.. [000] .....  20.905596: icm_send_rej: local_id=3809050595 remote_id=12963843
 *                                     state=REQ_RCVD reason=REJ_INVALID_GID
 */

/* One end; the port is in host byte order. */
struct kernel_end {
	struct mad_gid gid;
	uint16_t port;
};

struct kernel_event {
	uint64_t time_ns;
	uint32_t pid;
	char name[32];
	struct kernel_end ends[2];
	bool has_ends;
	uint32_t qpn;
	char word[32]; /* REJECTED, REJ_INVALID_GID */
	int status;
	bool is_icm;	    /* an event of ib_cm, which has comm ids, not addresses */
	bool is_of_request; /* about a received request */
	/* For a MAD: */
	uint64_t tid;
	unsigned int attr; /* 0: none */
	unsigned int lid;  /* the peer's; 0 on RoCE */
	enum observation_way way;
};

/** kernel_event_parse() - parse a line. Return: false for a line of another kind. */
bool kernel_event_parse(const char *line, struct kernel_event *ret);

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
