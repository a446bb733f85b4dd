/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the library is put together. Rooms call those below them by name; those above are called by
 * tables, and here is the one place that fills them.
 */
#ifndef LIB_ROOMS_H
#define LIB_ROOMS_H

/** rooms_start() - make the engine, once in a process. Return: 0 or -errno. */
int rooms_start(void);

#endif
