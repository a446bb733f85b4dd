/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which hosts have answered requests, and which have not: for sockets that can have TCP instead
 * (RSOCK_HURRY). A host that has not is not asked for a second, then for two, up to 64. The oldest
 * of 16 hosts is replaced. The service's lock must be held.
 */
#ifndef LIB_RSOCKET_RDMA_HOSTS_H
#define LIB_RSOCKET_RDMA_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** hosts_note() - note that a host has answered, or has not */
void hosts_note(const struct sockaddr_storage *name, bool has_answered);

/** hosts_is_mute() - return whether a host has not answered lately */
bool hosts_is_mute(const struct sockaddr_storage *name);

/** hosts_patience_ms() - how much longer to wait for a host that has answered others, or 0 */
uint32_t hosts_patience_ms(const struct sockaddr_storage *name);

#endif
