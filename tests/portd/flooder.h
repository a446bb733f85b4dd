/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attacks of flooder.c by sockets of its own, and by messages of others. Functions that return bool
 * make one attempt, and return whether it succeeded.
 */
#ifndef TESTS_PORTD_FLOODER_H
#define TESTS_PORTD_FLOODER_H

#include <stdbool.h>

#include "lib/portd/client/portd_client.h"
#include "mad/cm_msg.h"
#include "mad/gid.h"

#define BATCH 32

struct portd_datagram;

/** die() - print an error, and end; @err is a negative errno */
void die(const char *what, int err);

/** flooder_client() - the connection to cmportd, until the next flooder_reconnect() */
struct portd_client *flooder_client(void);

/** flooder_port() - the handle of its port */
uint8_t flooder_port(void);

/** flooder_reconnect() - connect to cmportd again */
void flooder_reconnect(void);

/* --- functions of flooder.c ------------------------------------------------ */

/** flooder_id() - the next one of its comm ids */
uint32_t flooder_id(void);

/** flooder_send_to_itself() - send later requests to its own address */
void flooder_send_to_itself(void);

/** flooder_request() - a REQ to a port; @qpn: 0: one of its own for each */
void flooder_request(struct portd_mad *mad, uint16_t port, uint32_t qpn);

/** flooder_reply() - send a REP to a received REQ */
void flooder_reply(struct portd_mad *mad, uint32_t remote_comm_id, uint32_t qpn);

/** flooder_send() - send messages. Return: as portd_send_held(). */
int flooder_send(const struct portd_mad *mads, unsigned int n);

/** flooder_put() - make any other message */
void flooder_put(struct portd_mad *mad, const struct cm_msg *msg);

/* --- flooder_names.c --------------------------------------------------------- */

/** flooder_prepare() - prepare a kind of attack of this file */
void flooder_prepare(const char *kind);

/** rename_connection() - accept a rejected request, each time under another comm id */
bool rename_connection(void);

/** replace_lookalikes() - close the oldest of many similar connections, and make new ones */
bool replace_lookalikes(void);

/* --- flooder_sockets.c, flooder_forger.c, flooder_strangers.c -------------------- */

/** connect_repeatedly() - connect and disconnect without a request, which uses no quota */
bool connect_repeatedly(void);

/** connect_and_close() - as connect_repeatedly(), without waiting for earlier connections */
bool connect_and_close(void);

/**
 * hold_idle_sockets() - connect without a request; the latest connections stay, always about to
 * send one
 */
bool hold_idle_sockets(void);

/**
 * forge() - make a message of a connection of others, see flooder_forger.c
 * @own:    the address it is sent from
 * @victim: one end of the connection, whose cmportd has recorded it in $FLOODER_RECORDING; if it is
 *          another host, all messages go there
 * @ret_to: the end to send it to
 */
void forge(const struct mad_gid *own, const struct mad_gid *victim, struct mad_gid *ret_to,
	   uint8_t ret[MAD_BYTES]);

/** send_as_stranger() - send a message on the soft fabric from an unused address */
bool send_as_stranger(const struct mad_gid *own, const struct portd_mad *mad);

/** leave_lingering_sockets() - leave a socket whose close() waits in the queue of a connection */
bool leave_lingering_sockets(void);

/** fill_a_namespace() - connect from a new network namespace, and bind each port there once */
bool fill_a_namespace(void);

/*
 * Requests to the subnet administrator: paths to nowhere; paths cancelled at once; groups, most of
 * them left at once; new groups, likewise; tables of services; paths that do not work.
 */
bool ask_for_paths(void);
bool ask_for_paths_in_vain(void);
bool join_groups(void);
bool make_groups(void);
bool ask_for_tables(void);
bool doubt_paths(void);

/** send_lingering_sockets() - send a socket whose close() waits */
bool send_lingering_sockets(void);

#endif
