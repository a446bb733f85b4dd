/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What flooder.c does with sockets of its own, and with messages of others. The functions that
 * return bool do it once, and return whether that worked.
 */
#ifndef TESTS_PORTD_FLOODER_H
#define TESTS_PORTD_FLOODER_H

#include <stdbool.h>

#include "lib/portd/client/portd_client.h"
#include "mad/cm_msg.h"
#include "mad/gid.h"

#define BATCH 32

struct portd_datagram;

/** die() - say what is wrong, and end; @err is a negative errno */
void die(const char *what, int err);

/** flooder_client() - its connection to cmportd, until the next flooder_come_back() */
struct portd_client *flooder_client(void);

/** flooder_port() - the handle of its port */
uint8_t flooder_port(void);

/** flooder_come_back() - connect to cmportd again */
void flooder_come_back(void);

/* --- what the other files need of flooder.c -------------------------------- */

/** flooder_id() - the next one of its comm ids */
uint32_t flooder_id(void);

/** flooder_ask_itself() - from now on, its requests are to its own address */
void flooder_ask_itself(void);

/** flooder_request() - a REQ to a port; @qpn: 0: one of its own for each */
void flooder_request(struct portd_mad *mad, uint16_t port, uint32_t qpn);

/** flooder_reply() - a REP to a REQ that has come to it */
void flooder_reply(struct portd_mad *mad, uint32_t remote_comm_id, uint32_t qpn);

/** flooder_put() - any other message */
void flooder_put(struct portd_mad *mad, const struct cm_msg *msg);

/* --- flooder_names.c --------------------------------------------------------- */

/** flooder_prepare() - make what a kind of this file needs before it floods */
void flooder_prepare(const char *kind);

/** rename_connection() - accept a request that was rejected, each time under another name */
bool rename_connection(void);

/** replace_lookalikes() - close the oldest of many connections that are alike, and make others */
bool replace_lookalikes(void);

/* --- flooder_sockets.c, flooder_forger.c, flooder_strangers.c -------------------- */

/** knock() - connect without a word, and leave: one who says nothing has spent nothing */
bool knock(void);

/** rattle() - knock, without waiting for those who came before */
bool rattle(void);

/** stay_silent() - connect without a word; the latest stay, so some are always about to speak */
bool stay_silent(void);

/**
 * forge() - make a message of a connection that others have, see flooder_forger.c
 * @own:    the address it is sent from
 * @victim: one end of the connection, whose cmportd has recorded it in $FLOODER_RECORDING; if it
 *          is another host, all messages go there
 * @ret_to: the end to send it to
 */
void forge(const struct mad_gid *own, const struct mad_gid *victim, struct mad_gid *ret_to,
	   uint8_t ret[MAD_BYTES]);

/** send_as_stranger() - send a message on the soft fabric from an address that nobody has */
bool send_as_stranger(const struct mad_gid *own, const struct portd_mad *mad);

/** leave_lingering_sockets() - leave a socket whose close() waits in the queue of a connection */
bool leave_lingering_sockets(void);

/** fill_a_namespace() - connect from a new network namespace, and have each port there once */
bool fill_a_namespace(void);

/* Of the subnet administrator: paths to nowhere; with their questions withdrawn at once; groups,
 * each left at once but for a few; new groups, likewise; tables of services; paths that do not
 * work. */
bool ask_for_paths(void);
bool ask_for_paths_in_vain(void);
bool join_groups(void);
bool make_groups(void);
bool ask_for_tables(void);
bool doubt_paths(void);

/** send_lingering_sockets() - send a socket whose close() waits */
bool send_lingering_sockets(void);

#endif
