/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The complete state of a running cmportd, reachable from struct server. One thread, no locks;
 * nothing blocks. A turn of the event loop processes all pending input, sends the responses at its
 * end, and then sends a few REQs, so that no REP waits behind a burst of REQs.
 *
 * All CM messages pass through cmportd in both directions, which lets it track connections without
 * reports from clients, and costs a program less than posting to the device itself would.
 *
 *   server.c         start, event loop, timers and shutdown
 *   admit.c          which processes become clients
 *   client.c         the sockets of a client: what it sends
 *   client_out.c     what is sent to a client
 *   request.c        requests on a client's control socket
 *   limits.c         all limits
 *   user.c           what each user has, and may have
 *   closer.c         threads that close what users have sent
 *   peer_rate.c      rates by remote host; strangers.c: what hosts may ask
 *   router.c         which client receives a message, and whether a client may send one
 *   fields.c         which values a client may put into a message
 *   host_port.c      the ports of this host: receiving, and sending in the right order
 *   host_port_gid.c  the source GIDs of messages
 *   host_port_name.c names of devices, and handles
 *   host_port_use.c  which ports are in use; unused ones are closed
 *   device_events.c  asynchronous events of devices
 *   defaults.c       port settings made by root
 *   requests.c       requests that are not sent yet
 *   waiting.c        messages whose next hop has no link address
 *   probe.c          probes of the fast path, ours and those of peers
 *   port_holders.c   the holders of ports, for the next cmportd
 *   recovery.c       clients of a previous cmportd, which resume
 *   orphans.c        its connections, which nobody resumes
 *   subnet.c         queries of clients to subnet administrators
 *   tracer.c         copies of all messages for tracers
 *   stat.c           the state of connections, and counters
 */
#ifndef LIB_PORTD_SERVER_STATE_H
#define LIB_PORTD_SERVER_STATE_H

#include <sys/types.h>

#include "cm/core.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/loop.h"
#include "mad/port.h"
#include "mad/sender.h"
#include "mad/umad.h"
#include "lib/portd/proto/port_file.h"
#include "lib/portd/proto/trace_ring.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/limits.h"
#include "lib/portd/server/net_ns.h"
#include "lib/portd/server/peer_rate.h"
#include "lib/portd/server/process.h"
#include "lib/portd/server/requests.h"
#include "lib/portd/server/server.h"
#include "lib/portd/server/strangers.h"
#include "lib/portd/server/tracked.h"
#include "lib/portd/server/user.h"
#include "lib/portd/server/waiting.h"

#define NOBODY	       UINT16_MAX
#define ID_BLOCKS      65536 /* of 65536 comm ids each */
#define ID_BLOCK_SHIFT 16
#define WAITING_NS     (1000 * CM_NS_PER_MS) /* before a client's own retransmission */
#define OUR_WAITING_NS (3500 * CM_NS_PER_MS) /* the kernel solicits three times, a second apart */
#define RECEIVE_BATCH  64
#define REFUSALS_MAX   16 /* refused connections per turn */
#define UNUSED_S       60 /* before an unused port is closed, if options.idle_s is 0 */
#define GIDS_AGAIN_NS  (20 * CM_NS_PER_MS) /* at most so often a GID table in doubt is read */
#define SEND_BATCH     16 /* REQs sent before pending responses are handled again */

/* A message to be sent. */
struct xmit {
	struct list link;      /* in a lane, or in the queue of a hop */
	struct lane *lane;     /* see requests.c */
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
	unsigned int batch;	     /* messages to try to receive per turn */
	unsigned int n_waiting;	     /* transmit entries waiting for link addresses */
	unsigned int n_unresolved;   /* times that a next hop had none */
	bool has_unread;	     /* the sender's queue pair must be polled without an event */
	struct cm_time probes_at;    /* when a probe of a peer is due, see mad/peers.h; 0: none */
	bool has_warned;	     /* the log says that the fast path does not reach a peer */
	bool is_gone;		     /* the device was removed; close at the end of this turn */
	struct subnet *subnet;	     /* NULL on RoCE */
	uint16_t n_pkeys;	     /* P_Key table size on InfiniBand; 0 on RoCE */
	struct gid_entry latest_gid; /* that host_port_gid() looked up */
	uint64_t passed[PORTD_N_COUNTERS][CM_TALLY_KINDS]; /* messages by counter and kind */
};

/* Messages to be sent to a client. */
struct batch {
	struct list link;
	struct portd_datagram datagram;
};

struct client {
	struct server *server;
	uint16_t index;
	pid_t pid;	/* 0 if the process is in a pid namespace that we cannot see */
	uint32_t start; /* process_start() of pid */
	uid_t uid;
	struct user *user;
	struct list stranger; /* in server.strangers until the first request */
	struct cm_time speaks_until;
	struct net_ns *net_ns; /* whose port spaces the client uses */
	bool welcome;	       /* HELLO was accepted */
	bool resuming;
	bool leaving;	      /* close at the end of this turn */
	bool is_ending;	      /* sockets are closed, connections are being ended */
	bool is_disconnected; /* no longer read from */
	bool has_asked;
	struct portd_record asked; /* deferred: HELLO in the grace period, BIND for a turn */
	bool looked_again;
	int asked_fd;
	struct watch control;
	struct watch data;
	struct list asks; /* pending queries to subnet administrators */
	unsigned int n_asks;
	uint64_t host_ports; /* bitmap of opened port handles */
	unsigned int n_blocks;
	uint16_t block[ID_BLOCKS_MAX];
	bool throttled;
	bool is_tracer;		    /* receives copies of all messages */
	struct list asleep;	    /* in server.asleep while it waits for the next message */
	bool visits;		    /* makes no connections */
	uint32_t stat_no, stat_pid; /* of the latest STAT query; 0: none, all */
	uint32_t n_stats_before;    /* its HELLO */
	struct cm_time stat_at;
	struct list requests; /* transmit entries in lanes of its user, oldest first */
	unsigned int n_requests;
	unsigned int n_waits; /* transmit entries waiting for a hop */
	unsigned int batch;   /* datagrams to try to read per turn */
	int n_buffer_bytes;   /* of the data socket */
	struct list backlog;  /* batches that the socket had no room for */
	unsigned int n_backlog;
	struct batch *out; /* being filled; sent at the end of the turn */
	struct list link;  /* in server.filled while out is set */
};

struct server;

/* The upcalls from below client.c and router.c, which call those by no name. */
struct server_rooms {
	/* a message arrived at a host port, sent from @source_qpn */
	void (*received)(struct server *server, struct host_port *host_port,
			 const struct mad_path *path, uint32_t source_qpn,
			 const uint8_t mad[MAD_BYTES]);
	/* requests of a client have been sent; it may be read from again */
	void (*may_send)(struct server *server, struct client *client);
	/* a host port was closed */
	void (*port_gone)(struct server *server, struct client *client, uint8_t handle);
	/* messages may need other paths to their peers */
	void (*paths_changed)(struct host_port *host_port);
	/* as client_tell() and client_show() */
	void (*tell)(struct server *server, struct client *client,
		     const struct portd_record *record);
	bool (*show)(struct server *server, struct client *client,
		     const struct portd_record *record, unsigned int room);
};

struct server {
	struct server_options options;
	const struct server_rooms *above;
	struct socket_dir *dir;
	struct state_file *state_file; /* owned by dir */
	uint16_t *port_holders;	       /* mapped, see port_holders.h; or NULL */
	struct loop loop;
	struct watch listening, net;
	struct net_watch *net_watch;
	struct watch stop, reload;
	struct port_file port_file;
	struct cm_time stop_at;	     /* shutdown was requested; its last deadline */
	struct cm_time linger_until; /* shutdown deadline while clients are connected */
	bool has_one_client;	     /* client_fd was given; the server ends after that client */
	bool any_leaving, any_gone, any_unread;
	uint64_t turn_no;
	struct cm_time now; /* start of this turn */
	struct cm_time idle_since;
	struct cm_time listens_again_at; /* 0 ns: connections are accepted */
	struct cm_time grace_until;	 /* 0 ns: no grace period */
	uint64_t grace_turn;		 /* the last in which it was looked at */
	struct cm_core core;		 /* ended processes' connections, stray messages */
	struct tracker *tracker;
	struct strangers strangers_rate;	   /* what remote hosts ask */
	struct peer_rate request_rate, unanswered; /* REQs sent to remote hosts; unanswered ones */
	struct peer_rate said_rate;		   /* messages of connections, by user and host */
	struct cm_time recovery_look_at;	   /* when to check the orphans next */
	const struct tracked *next_orphan;	   /* where to go on; NULL: with the first */
	struct process_look process_look[PROCESS_LOOKS];
	uint64_t n_process_looks; /* so far */
	struct net_ns *home;
	struct client *client[CLIENTS_MAX];
	unsigned int n_clients;
	int64_t n_buffer_bytes; /* of all clients' data sockets */
	struct host_port *host_port[HOST_PORTS_MAX];
	unsigned int n_host_ports; /* highest handle ever used, plus one */
	struct users users;
	struct closer
		*closer;     /* NULL: the only client is trusted, its descriptors are closed here */
	struct user nobody;  /* our own core, and clients that have disconnected */
	struct list senders; /* users with requests to send, in round-robin order */
	struct list holders; /* users with requests that their hosts do not take yet, likewise */
	struct cm_time resume_at; /* when to look at these next */
	struct cm_index lanes;	  /* their unsent requests by user and peer */
	struct cm_index asks;	  /* pending queries by client and ask_id, see subnet.c */
	struct list tellers;	  /* users whose clients are being told tables */
	struct waiting waiting;
	struct list strangers; /* clients that have sent no request yet, oldest first */
	struct list filled;    /* clients with an unsent batch */
	struct list spare;     /* unused batches */
	unsigned int n_spare;
	unsigned int n_throttled;
	struct cm_time unthrottle_at; /* when to look at them next */
	unsigned int n_tracers;
	struct trace_ring trace_ring; /* exists while there are tracers */
	struct trace_ring recording;  /* the latest messages, in a file; zeros: none */
	uint64_t n_seen;	      /* number of the latest message in trace_ring */
	struct list asleep;	      /* tracers that wait for a message */
	uint32_t n_stats;	      /* STAT queries so far */
	bool requests_left;	      /* the next turn must not wait */
	bool asks_again;	      /* nor may this one: a request was deferred */
	uint16_t block_owner[ID_BLOCKS];
	/*
	 * When the owner ended; zeros: never. Blocks are lent in turn, so one is not soon lent
	 * again. It may be: held back, one user's short-lived programs would use up all of them.
	 */
	struct cm_time block_left[ID_BLOCKS];
	struct portd_datagram in; /* the datagram being read */
};

static inline struct host_port *host_port_of(struct cm_port *cm)
{
	return (struct host_port *)cm;
}

/** server_next_client() - the next client from index @at, which is advanced, or NULL */
static inline struct client *server_next_client(const struct server *server, unsigned int *at)
{
	while (*at < CLIENTS_MAX)
		if (server->client[(*at)++])
			return server->client[*at - 1];
	return NULL;
}

/** server_next_host_port() - like server_next_client(), for open ports */
static inline struct host_port *server_next_host_port(const struct server *server, unsigned int *at)
{
	while (*at < server->n_host_ports)
		if (server->host_port[(*at)++])
			return server->host_port[*at - 1];
	return NULL;
}

/* The body may remove any of the elements. */
#define for_each_client(client, server) \
	for (unsigned int at_ = 0; ((client) = server_next_client(server, &at_));)
#define for_each_host_port(host_port, server) \
	for (unsigned int at_ = 0; ((host_port) = server_next_host_port(server, &at_));)

/**
 * server_begin() - take the socket directory, and set up the event loop
 * @server: zeroed except for its options; release with server_end(), also on error
 *
 * Return: as server_run().
 */
int server_begin(struct server *server);

/** server_turn() - wait for events or timers, and handle them */
void server_turn(struct server *server);

/** server_is_over() - return whether the server has nothing left to do */
bool server_is_over(const struct server *server);

/** server_end() - leave the socket directory and free all but the struct; nothing is sent */
void server_end(struct server *server);

/** server_close() - stop watching a descriptor, and close it. */
static inline void server_close(struct server *server, struct watch *watch)
{
	int fd = watch->fd;

	loop_unwatch(&server->loop, watch);
	fd_close(&fd);
}

/**
 * client_new() - set up a client that has connected
 * @fd: its control socket, owned by the client
 *
 * Return: false if it was turned away; that costs next to nothing.
 */
bool client_new(struct server *server, int fd);

/** client_host_port() - look up a port that the client has opened. Return: NULL if it has not. */
static inline struct host_port *client_host_port(const struct server *server,
						 const struct client *client, uint8_t handle)
{
	return handle < HOST_PORTS_MAX && client->host_ports >> handle & 1
		       ? server->host_port[handle]
		       : NULL;
}

/** client_may_send() - return whether the client's messages are read */
static inline bool client_may_send(const struct client *client)
{
	return !client->throttled && client->n_requests < REQUESTS_MAX;
}

/** client_open_data() - create a data socket; @ret_fd is the client's end. Return: 0 or -errno. */
int client_open_data(struct server *server, struct client *client, int *ret_fd);

/** client_ask_again() - handle a deferred request */
void client_ask_again(struct server *server, struct client *client);

/** client_takes_requests() - return whether the client's backlog has room for one more request */
bool client_takes_requests(struct client *client);

/** client_deliver() - queue a message for a client; sent at the end of the turn */
void client_deliver(struct server *server, struct client *client, struct host_port *host_port,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES],
		    bool is_of_connection);

/** client_disconnect() - disconnect at the end of the turn; the rest of its input is discarded */
void client_disconnect(struct server *server, struct client *client, const char *why);

/**
 * client_tell() - queue a record that must not be lost; sent at the end of the turn
 *
 * A client that keeps sending requests and does not read is disconnected.
 */
void client_tell(struct server *server, struct client *client, const struct portd_record *record);

/**
 * client_show() - queue a SEEN or STAT_* record, which is lost if the client does not read
 * @room: limit of queued datagrams
 *
 * Return: false if the record was lost.
 */
bool client_show(struct server *server, struct client *client, const struct portd_record *record,
		 unsigned int room);

/** client_port_gone() - notify a client that a host port it has opened was closed */
void client_port_gone(struct server *server, struct client *client, uint8_t handle);

/** client_watch_data() - update the events that its data socket is polled for */
void client_watch_data(struct server *server, struct client *client);

/** client_send_backlog() - send queued batches; the socket has room again */
void client_send_backlog(struct server *server, struct client *client);

/** client_flush() - send the batch filled in this turn */
void client_flush(struct server *server, struct client *client);

/** client_unthrottle() - resume clients that had used up their rate */
void client_unthrottle(struct server *server);

/** client_expire() - disconnect clients that have sent no request in time */
void client_expire(struct server *server);

/** client_forget() - free a client that may resume with the next cmportd */
void client_forget(struct server *server, struct client *client);

/**
 * client_close() - end the tracked connections of a disconnected client, then free it
 *
 * Return: false if connections are left for the next turn.
 */
bool client_close(struct server *server, struct client *client);

/**
 * request_handle() - handle a record from a control socket
 * @fd: the descriptor that came with the record, or -1; owned by the callee
 *
 * Return: 0, with *@ret to be sent unless the record is a one-way one; -EPROTO if the client
 * violates the protocol; -EAGAIN to handle it again after the grace period, or in the next turn.
 */
int request_handle(struct server *server, struct client *client, const struct portd_record *record,
		   int fd, struct portd_reply *ret, int ret_fd[2]);

/**
 * stat_ask() - start a STAT query: ask clients for their connections
 * @pid: the process to ask; 0 for all
 *
 * Only root and the user that cmportd runs as see the processes of other users.
 *
 * Return: 0, with the query's id and the number of clients asked in @ret; -EBUSY if the client's
 * previous query was less than 20 ms ago.
 */
int stat_ask(struct server *server, struct client *client, uint32_t pid, struct portd_reply *ret);

/** stat_row() - forward a record of a client's report. Return: false for any other record. */
bool stat_row(struct server *server, struct client *client, struct portd_record *record);

/** stat_count() - count a message at a host port; @mad is NULL if its kind is unknown */
static inline void stat_count(struct host_port *host_port, enum portd_stat_counter what,
			      const uint8_t *mad)
{
	host_port->passed[what][mad ? cm_tally_kind(cm_mad_attr(mad)) : CM_TALLY_NONE]++;
}

/** tracer_record() - begin the recording of messages in a file, which is taken over */
void tracer_record(struct server *server, int fd);

/**
 * tracer_begin() - let a client see all messages
 *
 * Return: a descriptor of the trace ring, owned by the caller; -EPERM except for root and the user
 * that cmportd runs as; -errno.
 */
int tracer_begin(struct server *server, struct client *client);

/** tracer_await() - handle an AWAIT. Return: false for another record, or if it is no tracer. */
bool tracer_await(struct server *server, struct client *client, const struct portd_record *record);

/** tracer_end() - the client is disconnecting */
void tracer_end(struct server *server, struct client *client);

/** tracer_write() - as tracer_show(), if there is a recording or a tracer */
void tracer_write(struct server *server, struct host_port *host_port, enum portd_way way,
		  const struct client *whose, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES]);

/** tracer_show() - record a message and show it to tracers; @whose may be NULL */
static inline void tracer_show(struct server *server, struct host_port *host_port,
			       enum portd_way way, const struct client *whose,
			       const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	if (server->recording.ring || server->n_tracers)
		tracer_write(server, host_port, way, whose, path, mad);
}

/** router_received() - handle a message that arrived at a host port, sent from @source_qpn */
void router_received(struct server *server, struct host_port *host_port,
		     const struct mad_path *path, uint32_t source_qpn,
		     const uint8_t mad[MAD_BYTES]);

/** router_sent() - handle a message from a client; the path in @mad is corrected in place */
void router_sent(struct server *server, struct client *client, struct portd_mad *mad);

/** router_reap() - end a connection of an ended process, as the kernel would */
void router_reap(struct server *server, const struct cm_record *tracked);

/** router_left() - note that the program with the block of this comm id has ended just now */
void router_left(struct server *server, uint32_t comm_id);

/** router_expire() - run the timers of our own core */
void router_expire(struct server *server);

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

/** defaults_begin() - read the port file, and again when requested. Return: 0 or -errno. */
int defaults_begin(struct server *server);

/** defaults_tell() - send a client the settings of a port, if it has opened that port */
void defaults_tell(struct server *server, struct client *client, const struct host_port *host_port);

/** host_port_heard() - learn a peer's queue pair @qpn from a message of a connection */
void host_port_heard(struct host_port *host_port, const struct mad_path *path, uint32_t qpn);

/** host_port_gid() - as gid_by_index(), without a lookup if nothing has changed since the last */
int host_port_gid(struct host_port *host_port, uint8_t index, struct gid_entry *ret);

/* Store the source GID in a path, in case its index changes. @ret: it, without verbs if unknown. */
void host_port_mark_source(struct host_port *host_port, struct mad_path *path,
			   struct gid_entry *ret);
/* Find the present index of that GID. @ret: as above. Return: false if the GID has gone. */
bool host_port_follow_source(struct host_port *host_port, struct mad_path *path,
			     struct gid_entry *ret);

/** host_port_reaches_hop() - return whether the next hop has a link address; if not, solicit it */
bool host_port_reaches_hop(struct host_port *host_port, const struct mad_path *path);

/** host_port_may_solicit() - return whether to answer a host of no connection, or it has one */
bool host_port_may_solicit(struct host_port *host_port, const struct mad_path *path);

/** probe_peers() - send the probes that are due; warn once if they do not reach a peer */
void probe_peers(struct host_port *host_port);

/** probe_self() - probe whether the fast path reaches the port itself, unless that is known */
void probe_self(struct host_port *host_port);

/** probe_answer() - answer @mad if it is a probe of the peer at @path. Return: whether it was. */
bool probe_answer(struct host_port *host_port, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES]);

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

/** host_port_identity() - what the state file has of a host port */
struct tracked_port host_port_identity(const struct host_port *host_port);

/** host_port_choose_handle() - the one that it had before, or another. Return: it, or -ENOSPC. */
int host_port_choose_handle(struct server *server, const struct host_port *opened);

/** host_port_follow_names() - adopt new names of devices of stored ports that are not open */
void host_port_follow_names(struct server *server);

/** host_port_follow_name() - adopt a new name of the device */
void host_port_follow_name(struct server *server, struct host_port *host_port);

/** host_port_paths_changed() - handle a change of routes or link addresses */
void host_port_paths_changed(struct host_port *host_port);

#endif
