/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quirks: behaviour of some real devices, which a host's device can be given; bits of
 * fab_page.quirks. A new quirk is a row here, one in plan.py, and its code in verbs/.
 */
#ifndef FABRIC_QUIRKS_H
#define FABRIC_QUIRKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/fabric/wire/page.h"

#define FAB_QUIRKS(X)                                                                             \
	X(NO_FAST_PATH, "no-fast-path") /* what is for QP1 and not from QP1 is lost */            \
	X(SENT_SL, "sent-sl") /* of a datagram over RoCE, in wc.sl; else the packet type */       \
	X(NO_SL, "no-sl")     /* of a datagram in wc.sl: always 0 */                              \
	X(NO_CM, "no-cm") /* no connection manager: datagrams only, no umad, GIDs are not IP's */ \
	X(GRH_REQUIRED, "grh-required")	  /* of what leaves a port of InfiniBand, too */          \
	X(SECOND_PORT, "second-port")	  /* the first is down: see main.c */                     \
	X(UMAD_BLOCKS, "umad-blocks")	  /* for a second, with each new peer: see blocking/ */   \
	X(GIDS_LAST, "gids-last")	  /* the GID table is filled from its end */              \
	X(STRICT_NOTIFY, "strict-notify") /* of completions after ibv_req_notify_cq() only */

enum fab_quirk {
#define X(name, text) FAB_QUIRK_##name,
	FAB_QUIRKS(X)
#undef X
};

/** fab_quirk_find() - by its name. Return: false if there is none of that name. */
bool fab_quirk_find(const char *name, enum fab_quirk *ret);

/** fab_has_quirk() - has the device of a page this one? */
static inline bool fab_has_quirk(const struct fab_page *page, enum fab_quirk quirk)
{
	return page->quirks >> quirk & 1;
}

/** fab_needs_grh() - has what leaves a port to have one? RoCE has no other address. */
static inline bool fab_needs_grh(const struct fab_page *page, uint8_t port_num)
{
	return page->port[port_num - 1].link_layer == IBV_LINK_LAYER_ETHERNET ||
	       fab_has_quirk(page, FAB_QUIRK_GRH_REQUIRED);
}

#endif
