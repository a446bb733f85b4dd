/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows, IBTA vol. 1, 10.6.7: type 1, bound by ibv_bind_mw() for all queue pairs of the
 * domain, and type 2B, bound by a work request for one queue pair, until invalidated.
 */
#ifndef FABRIC_WINDOW_H
#define FABRIC_WINDOW_H

#include "tools/fabric/verbs/objects.h"

/** window_alloc() - ibv_alloc_mw(), and window_dealloc() ibv_dealloc_mw(). */
struct ibv_mw *window_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int window_dealloc(struct ibv_mw *mw);

/** window_bind() - execute a bind request; locked. Return: false if it is not allowed. */
bool window_bind(struct fab_qp *qp, const struct fab_send *send);

/**
 * window_invalidate() - invalidate a window of type 2 until it is bound again; locked
 *
 * Return: false if this queue pair has no such window.
 */
bool window_invalidate(struct fab_qp *qp, uint32_t rkey);

/** window_forget() - unbind the windows of a queue pair that is destroyed; locked */
void window_forget(struct fab_qp *qp);

#endif
