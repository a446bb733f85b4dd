/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the library is put together: diag, event, engine, device, path, id, verbs, sync, names,
 * group, conn. Each room calls those before it by name. The engine and cmportd's host call the
 * rooms above them by tables, and here is the one place that fills those.
 */
#ifndef LIB_CONN_ROOMS_H
#define LIB_CONN_ROOMS_H

/** rooms_start() - make the engine, once in a process. Return: 0 or -errno. */
int rooms_start(void);

#endif
