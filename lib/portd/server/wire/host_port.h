/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports of this host. */
#ifndef LIB_PORTD_SERVER_WIRE_HOST_PORT_H
#define LIB_PORTD_SERVER_WIRE_HOST_PORT_H

#include "base/list.h"
#include "base/loop.h"
#include "cm/core.h"
#include "lib/net/gid_table.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/ledger/tracked.h"
#include "lib/portd/server/clients/read_batch.h"
#include "mad/port.h"
#include "mad/sender.h"
#include "mad/umad.h"

#define WAITING_NS     (1000 * CM_NS_PER_MS) /* before a client's own retransmission */
#define OUR_WAITING_NS (3500 * CM_NS_PER_MS) /* the kernel solicits three times, a second apart */
#define RECEIVE_BATCH  64
#define UNUSED_S       60 /* before an unused port is closed, if options.idle_s is 0 */
#define GIDS_AGAIN_NS  (20 * CM_NS_PER_MS) /* at most so often a GID table in doubt is read */
#define SEND_BATCH     16 /* REQs sent before pending responses are handled again */

struct client;
struct server;

/* A message to be sent. */
struct xmit {
	struct list link;      /* in a lane, or in the queue of a hop */
	struct lane *lane;     /* see unsent.c */
	struct list of_sender; /* in client.requests, while in a lane */
	struct host_port *host_port;
	struct client *sender;	 /* NULL: our own core, or a client that has disconnected */
	struct cm_time deadline; /* for the link address of the next hop */
	bool again;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* A port of this host whose CM class cmportd owns. */
struct host_port {
	struct cm_port cm; /* first */
	struct server *server;
	struct watch watch; /* QP1 */
	struct watch inbox; /* the sender's queue pair */
	struct watch async; /* the device's asynchronous events */
	uint8_t handle;
	uint8_t port_num;
	uint64_t of_device; /* bitmap of the handles of its device's ports */
	char device[PORTD_DEVICE_BYTES];
	uint8_t tos; /* for ids that set none */
	struct ibv_context *verbs;
	struct mad_port *mad;
	struct mad_sender *sender;   /* NULL: send everything through mad */
	unsigned int n_clients;	     /* that have opened the port */
	struct cm_time unused_at;    /* since when n_clients has been 0 */
	struct read_batch batch;     /* messages to try to receive per turn */
	unsigned int n_waiting;	     /* transmit entries waiting for link addresses */
	unsigned int n_unresolved;   /* times that a next hop had none */
	bool has_unread;	     /* the sender's queue pair must be polled without an event */
	struct cm_time probes_at;    /* when a probe of a peer is due, see mad/peers.h; 0: none */
	bool has_warned;	     /* the log says that the fast path does not reach a peer */
	bool is_gone;		     /* the device was removed; close at the end of this turn */
	bool has_moved;		     /* its GIDs have changed, so paths may have */
	struct subnet *subnet;	     /* NULL on RoCE */
	uint16_t n_pkeys;	     /* P_Key table size on InfiniBand; 0 on RoCE */
	struct gid_entry latest_gid; /* that host_port_gid() looked up */
	uint64_t passed[PORTD_N_COUNTERS][CM_TALLY_KINDS]; /* messages by counter and kind */
};

/**
 * host_port_open() - get the host port of a device's port, opening it if necessary
 * @ret_who: set on error: the owner of the port, and what to do about it
 *
 * Return: 0 or -errno as umad_port_open().
 */
int host_port_open(struct server *server, const char *device, uint8_t port_num,
		   struct host_port **ret, struct umad_owner *ret_who);

/** host_port_open_all() - open the ports of all devices; failures are logged */
void host_port_open_all(struct server *server);

/** host_port_heard() - learn a peer's queue pair @qpn from a message of a connection */
void host_port_heard(struct host_port *host_port, const struct mad_path *path, uint32_t qpn);

/** host_port_gid() - look up a source GID. Return: it, until the next call; NULL if unknown. */
const struct gid_entry *host_port_gid(struct host_port *host_port, uint8_t index);

/** host_port_mark_source() - store the source GID in a path, in case its index changes */
void host_port_mark_source(struct host_port *host_port, struct mad_path *path);

/** host_port_follow_source() - find the present index of that GID. Return: false if it is gone. */
bool host_port_follow_source(struct host_port *host_port, struct mad_path *path);

/** host_port_reaches_hop() - return whether the next hop has a link address; if not, solicit it */
bool host_port_reaches_hop(struct host_port *host_port, const struct mad_path *path);

/** host_port_may_solicit() - return whether to answer a host of no connection, or it has one */
bool host_port_may_solicit(struct host_port *host_port, const struct mad_path *path);

/** host_port_receive_inbox() - receive what has arrived at the sender's queue pair */
void host_port_receive_inbox(struct server *server, struct host_port *host_port);

/**
 * host_port_send() - send a message, a request at the end of the turn; @again: a retransmission
 * @sender: its client, or NULL; if it has one, the index of the source GID is the present one
 */
void host_port_send(struct server *server, struct host_port *host_port, struct client *sender,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool again);

/** host_port_flush() - send the messages that the sender holds */
void host_port_flush(struct server *server, struct host_port *host_port);

/** host_port_try() - send a message now. Return: false if its next hop has no link address. */
bool host_port_try(const struct xmit *xmit);

/** host_port_taken() - note that a client has opened the port */
void host_port_taken(struct client *client, struct host_port *host_port);

/** host_port_left() - note that a client has ended and no longer uses its ports */
void host_port_left(struct server *server, const struct client *client);

/** device_events_watch() - react to the events of a host port's device. Return: 0 or -errno. */
int device_events_watch(struct server *server, struct host_port *host_port);

/** host_port_deadline() - when to close the port if no client opens it before */
struct cm_time host_port_deadline(const struct host_port *host_port);

/** host_port_expire() - close unused ports, so that their drivers can be unloaded */
void host_port_expire(struct server *server);

/** host_port_close() - close a port; its connections are dropped and no message is sent */
void host_port_close(struct server *server, struct host_port *host_port);

/** host_port_group() - update of_device of all host ports, after one was added or removed */
void host_port_group(const struct server *server);

/** host_port_choose_handle() - the one that it had before, or another. Return: it, or -ENOSPC. */
int host_port_choose_handle(struct server *server, const struct host_port *opened);

/** host_port_follow_names() - adopt new names of devices of stored ports that are not open */
void host_port_follow_names(struct server *server);

/** host_port_follow_name() - adopt a new name of the device */
void host_port_follow_name(struct server *server, struct host_port *host_port);

/** host_port_paths_changed() - handle a change of routes or link addresses */
void host_port_paths_changed(struct host_port *host_port);

/* --- probes of the fast path: probes.c --------------------------------------- */

/** probe_peers() - send the probes that are due; warn once if they do not reach a peer */
void probe_peers(struct host_port *host_port);

/** probe_answer() - answer @mad if it is a probe of the peer at @path. Return: whether it was. */
bool probe_answer(struct host_port *host_port, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES]);

/* --- settings of ports made by root: port_defaults.c -------------------------- */

/** port_defaults_begin() - read the port file, and again when requested. Return: 0 or -errno. */
int port_defaults_begin(struct server *server);

/** port_defaults_tell() - send a client the settings of a port, if it has opened that port */
void port_defaults_tell(struct server *server, struct client *client,
			const struct host_port *host_port);

#endif
