/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quirks: behaviour of some real devices that can be given to a host's device; bits of
 * fab_page.quirks. A new quirk needs a row here, one in plan.py, and code in verbs/.
 */
#ifndef FABRIC_QUIRKS_H
#define FABRIC_QUIRKS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/fabric/wire/page.h"

#define FAB_QUIRKS(X)                                                                             \
	X(NO_FAST_PATH, "no-fast-path") /* packets for QP1 are lost unless from QP1 */            \
	X(SENT_SL, "sent-sl") /* wc.sl of a RoCE datagram is its SL; else the packet type */      \
	X(NO_SL, "no-sl")     /* wc.sl of a datagram is always 0 */                               \
	X(NO_CM, "no-cm") /* no connection manager: datagrams only, no umad, GIDs are not IP's */ \
	X(GRH_REQUIRED, "grh-required")	  /* GRH required on InfiniBand too */                    \
	X(SECOND_PORT, "second-port")	  /* port 1 is down: see main.c */                        \
	X(LAG, "lag")			  /* the interface has two slaves: see lag.py */          \
	X(UMAD_BLOCKS, "umad-blocks")	  /* 1 s for each new peer: see blocking/ */              \
	X(GIDS_LAST, "gids-last")	  /* the GID table is filled from its end */              \
	X(STRICT_NOTIFY, "strict-notify") /* events only for later completions */                 \
	X(ECE, "ece")			  /* queue pairs agree on options of the vendor */        \
	X(NO_DIRECT, "no-direct")	  /* all goes by packets: grants.h */                     \
	X(WINDOWS_2A, "windows-2a")	  /* memory windows of type 2 are of type 2A, not 2B */   \
	X(RXE_FLUSH, "rxe-flush")	  /* the ICRC of flushes is rxe's: icrc.h */

enum fab_quirk {
#define X(name, text) FAB_QUIRK_##name,
	FAB_QUIRKS(X)
#undef X
};

/** fab_quirk_find() - look up a quirk by name. Return: false if there is none. */
bool fab_quirk_find(const char *name, enum fab_quirk *ret);

/** fab_has_quirk() - return whether a page's device has a quirk */
static inline bool fab_has_quirk(const struct fab_page *page, enum fab_quirk quirk)
{
	return page->quirks >> quirk & 1;
}

/** fab_needs_grh() - return whether packets from a port need a GRH; on RoCE they always do */
static inline bool fab_needs_grh(const struct fab_page *page, uint8_t port_num)
{
	return page->port[port_num - 1].link_layer == IBV_LINK_LAYER_ETHERNET ||
	       fab_has_quirk(page, FAB_QUIRK_GRH_REQUIRED);
}

#endif
