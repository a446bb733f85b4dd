/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structure of the library: diag, event, engine, device, path, id, verbs, sync, names, group,
 * conn. The code in each folder calls those before it by name. The engine calls the folders above
 * it through two tables of upcalls, which are defined here only.
 */
#ifndef LIB_CONN_UPCALLS_H
#define LIB_CONN_UPCALLS_H

/** upcalls_start() - start the engine with its upcalls, once per process. Return: 0 or -errno. */
int upcalls_start(void);

#endif
