/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages that a program has registered, and `ulimit -l`. The limit applies if a command has changed
 * it: the machine's own, which nobody can raise without privileges, would be in the way of programs
 * that have a higher one where they run.
 */
#ifndef FABRIC_PINNED_H
#define FABRIC_PINNED_H

#include <stddef.h>
#include <stdint.h>

#include "tools/fabric/wire/page.h"

/**
 * pinned_take() - count the pages of a region
 *
 * A page that is in two regions counts twice. CAP_IPC_LOCK exempts from the limit.
 *
 * Return: 0, with *ret for pinned_drop(); ENOMEM.
 */
int pinned_take(const struct fab_page *page, const void *addr, size_t bytes, uint64_t *ret);
void pinned_drop(uint64_t n_pages);

#endif
