/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structure of the library: diag, event, engine, device, path, id, verbs, sync, names, group,
 * conn. Each room calls those before it by name. The engine and the host (cmportd) call the rooms
 * above them through tables, which are defined here only.
 */
#ifndef LIB_CONN_ROOMS_H
#define LIB_CONN_ROOMS_H

/** rooms_start() - start the engine, once per process. Return: 0 or -errno. */
int rooms_start(void);

#endif
