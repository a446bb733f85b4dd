/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that a running cmportd knows, reachable from struct server. One thread, no lock; nothing in
 * it blocks. A turn of the loop reads what has come, sends the answers at its end, and then a few
 * REQs, so that no REP waits behind a burst of them.
 *
 * All messages of the host pass here in both directions. The hop costs a program less than posting
 * to the device itself would (a send() against rxe's whole transmit path), and connections are
 * tracked without being reported.
 *
 *   server.c     beginning, loop, timers and end
 *   client.c     a client's sockets: what it sends
 *   client_out.c and what it is sent
 *   request.c    what it asks for on its control socket
 *   user.c       what all clients of a user have together, for quotas
 *   peer_rate.c  how fast hosts may ask
 *   router.c     which client a message goes to, and whether a client may send it
 *   fields.c     what it may put there
 *   host_port.c  the ports of this host: receiving, and sending in the right order
 *   host_port_use.c  which of them are in use: others are closed
 *   defaults.c   what root has set for ports
 *   waiting.c    messages whose next hop has no link address
 *   probe.c      probes of the fast path, ours and those of peers
 *   recovery.c   the socket directory, and connections that a cmportd before us has left behind
 *   subnet.c     queries of clients to subnet administrators
 *   tracer.c     all messages, for tracers
 *   stat.c       the state of connections and counters
 */
#ifndef LIB_PORTD_SERVER_STATE_H
#define LIB_PORTD_SERVER_STATE_H

#include <sys/types.h>

#include "cm/core.h"
#include "base/list.h"
#include "base/loop.h"
#include "mad/port.h"
#include "mad/sender.h"
#include "mad/umad.h"
#include "lib/portd/proto/port_file.h"
#include "lib/portd/proto/trace_ring.h"
#include "lib/portd/proto/proto.h"
#include "lib/portd/server/net_ns.h"
#include "lib/portd/server/peer_rate.h"
#include "lib/portd/server/server.h"
#include "lib/portd/server/tracked.h"
#include "lib/portd/server/user.h"
#include "lib/portd/server/waiting.h"

#define HOST_PORTS_MAX 64
#define CLIENTS_MAX    4096
#define NOBODY	       UINT16_MAX
#define ID_BLOCKS      65536 /* of 65536 comm ids each */
#define ID_BLOCK_SHIFT 16
#define ID_BLOCKS_MAX  64  /* of one client: 4 million connections before an id comes back */
#define BEYOND_MAX     16  /* clients of a user who has enough, to be told so */
#define ROOT_CLIENTS   64  /* of CLIENTS_MAX, for root alone */
#define REQUESTS_MAX   512 /* REQs of one client on their way out; then it is not read from */
#define BACKLOG_MAX    64  /* datagrams that wait for one client that does not read */
#define WAITING_NS     (1000 * CM_NS_PER_MS) /* then a client says it again */
#define OUR_WAITING_NS (3500 * CM_NS_PER_MS) /* the kernel asks three times, a second apart */
#define RECEIVE_BATCH  64
#define REFUSALS_MAX   16   /* of those who connect, in a turn */
#define REQUEST_BURST  4000 /* REQs to one host at once */
#define UNUSED_S       60   /* before a port is closed, where options.idle_s does not say */
#define SEND_BATCH     16   /* REQs before answers get their turn again */

/* A message that is to leave. */
struct xmit {
	struct list link; /* in user.requests, or waiting for a hop */
	struct host_port *host_port;
	struct client *sender;	 /* NULL: our own core, or a client that has gone */
	struct cm_time deadline; /* while it waits for a link address */
	bool again;
	struct mad_path path;
	uint8_t mad[MAD_BYTES];
};

/* What a GID table said a moment ago, see tracer.c. */
struct traced_gid {
	bool is_known;
	uint8_t index;
	struct cm_time at;
	struct mad_gid gid;
};

/* A port of this host whose CM class is ours. */
struct host_port {
	struct cm_port cm; /* first */
	struct server *server;
	struct watch watch; /* of QP1 ... */
	struct watch inbox; /* ... and of the sender's queue pair */
	uint8_t handle;
	uint8_t port_num;
	char device[PORTD_DEVICE_BYTES];
	uint8_t tos; /* of ids that ask for none */
	struct ibv_context *verbs;
	struct mad_port *mad;
	struct mad_sender *sender; /* NULL: all goes through mad */
	unsigned int n_clients;	   /* that have opened it ... */
	struct cm_time unused_at;  /* ... or none since then */
	unsigned int batch;	   /* how many messages to try to receive in a turn */
	unsigned int n_waiting;	   /* transmit entries that wait for link addresses */
	bool has_unread;	   /* at the sender's queue pair: look there without being woken */
	bool is_probing;	   /* peers: probes may be due, see mad/peers.h */
	bool has_warned;	   /* that the fast path does not reach a peer */
	bool is_gone;		   /* its device: to be closed at the end of this turn */
	struct subnet *subnet;	   /* NULL on RoCE */
	uint16_t n_pkeys;	   /* in its table, if it is not */
	struct traced_gid traced_gid;
	uint64_t passed[PORTD_N_COUNTERS][CM_TALLY_KINDS]; /* what has passed here, by kind */
};

/* Messages on their way to a client. */
struct batch {
	struct list link;
	struct portd_datagram datagram;
};

struct client {
	struct server *server;
	uint16_t index;
	pid_t pid;	/* 0 if it is in a pid namespace that we cannot see */
	uint32_t start; /* process_start() of it */
	uid_t uid;
	struct user *user;
	struct list stranger; /* in server.strangers, until its first request */
	struct cm_time speaks_until;
	struct net_ns *net_ns; /* whose ports it asks for */
	bool is_beyond;	       /* what its user may have: its HELLO is refused */
	bool welcome;	       /* HELLO was answered */
	bool resuming;
	bool leaving;	      /* to be closed at the end of this turn */
	bool is_disconnected; /* and not read from any more */
	bool has_asked;
	struct portd_record asked; /* waits: HELLO for the end of the grace period, BIND a turn */
	bool looked_again;
	int asked_fd;
	struct portd_datagram *rest; /* of the datagram that it was in; NULL if there is none */
	struct watch control;
	struct watch data;
	struct list asks; /* of subnet administrators */
	unsigned int n_asks;
	uint64_t host_ports; /* a bit for each handle that it has opened */
	unsigned int n_blocks;
	uint16_t block[ID_BLOCKS_MAX];
	double tokens; /* what is left of its rate */
	struct cm_time tokens_at;
	bool throttled;
	bool was_refused;   /* a TRACK of it; the log says so once */
	bool is_tracer;	    /* is shown all messages */
	struct list asleep; /* in server.asleep: wants to be told of the next one */
	bool visits;	    /* connects nothing */
	uint32_t stat_id;   /* of its last STAT; 0: there was none */
	struct cm_time stat_at;
	unsigned int n_requests; /* its transmit entries in user.requests ... */
	unsigned int n_waits;	 /* ... and that wait for hops */
	unsigned int batch;	 /* how many datagrams to try to read in a turn */
	struct list backlog;	 /* batches that its socket had no room for */
	unsigned int n_backlog;
	struct batch *out; /* being filled; sent at the end of the turn */
	struct list link;  /* in server.filled while out is set */
};

struct server;
struct client;
struct host_port;

/* Host ports and the way to subnet administrators call what is above them by this table only. */
struct server_rooms {
	/* a message has arrived at a host port, sent from @source_qpn */
	void (*received)(struct server *server, struct host_port *host_port,
			 const struct mad_path *path, uint32_t source_qpn,
			 const uint8_t mad[MAD_BYTES]);
	/* requests of a client have left, so it may be read from again */
	void (*may_send)(struct server *server, struct client *client);
	/* a host port is closed */
	void (*port_gone)(struct server *server, struct client *client, uint8_t handle);
	/* hand a client a record that it will not miss; sent at the end of the turn */
	void (*tell)(struct server *server, struct client *client,
		     const struct portd_record *record);
};

struct server {
	struct server_options options;
	const struct server_rooms *above;
	const struct server_recovery *recovery; /* of the options */
	struct socket_dir *dir;
	struct state_file *state_file; /* in it */
	struct loop loop;
	struct watch listening;
	struct watch net;
	struct net_watch *net_watch;
	struct watch stop;
	struct watch reload;
	struct port_file port_file;
	struct cm_time stop_at;	     /* it is to stop: the end, unless the dead are reaped before */
	struct cm_time linger_until; /* and until then for clients that got it, too */
	bool has_one_client;	     /* and leaves with it */
	bool any_leaving;
	bool any_gone;
	bool any_unread;
	uint64_t turn_no;
	struct cm_time now; /* of this turn */
	struct cm_time idle_since;
	struct cm_time listens_again_at; /* 0 ns: it is open */
	struct cm_time grace_until;	 /* 0 ns: there is none */
	struct cm_core core;		 /* connections of the dead, and answers for nobody */
	struct tracker *tracker;
	struct peer_rate peer_rate;
	struct peer_rate request_rate;	 /* of those that leave ... */
	struct peer_rate stray_rate;	 /* ... and of messages without a connection */
	struct cm_time recovery_look_at; /* at what was left behind */
	struct net_ns *home;
	struct client *client[CLIENTS_MAX];
	unsigned int n_clients;
	struct host_port *host_port[HOST_PORTS_MAX];
	unsigned int n_host_ports; /* handles that have been used: none is above */
	struct list users;
	uint16_t last_user;  /* the number of the one who came last */
	struct user nobody;  /* our own core, and clients that have gone */
	struct list senders; /* users with requests to send; who had his turn goes to the end */
	struct waiting waiting;
	struct list strangers; /* clients that have asked nothing yet, the oldest first */
	struct list filled;    /* clients with something to send */
	struct list spare;     /* batches ready for use */
	unsigned int n_spare;
	unsigned int n_throttled;
	unsigned int n_tracers;
	struct trace_ring trace_ring; /* while there is a tracer */
	struct trace_ring recording;  /* of the latest messages, in a file; zeros: none */
	uint64_t n_seen;	      /* the number of the last message in it */
	struct list asleep;	      /* tracers that wait for a message */
	uint32_t n_stats;	      /* questions of STAT so far */
	bool requests_left;	      /* the next turn must not wait */
	bool asks_again;	      /* nor this one: a question is to be asked again after it */
	uint16_t next_block;	      /* to be lent, where no recovery store counts them */
	uint16_t block_owner[ID_BLOCKS];
	struct portd_datagram in; /* what is being read */
};

/* What outlives a cmportd: a socket, and a file beside it. */
struct server_recovery {
	/* before there are clients and host ports; sets the listening socket */
	int (*open)(struct server *server);
	void (*close)(struct server *server);			 /* the last that is called */
	uint16_t (*id_block)(struct server *server);		 /* the number of the next one */
	uint64_t (*lend)(struct server *server, uint16_t block); /* Return: a new secret of it */
	bool (*was_lent)(struct server *server, uint16_t block, uint64_t secret);
	void (*welcome)(struct server *server, struct client *client); /* it said HELLO */
	void (*introduce)(struct server *server,
			  const struct client *client);			     /* has a first block */
	void (*dismiss)(struct server *server, const struct client *client); /* it has gone */
	void (*returns)(struct server *server,
			const struct client *client); /* held its first ids */
	void (*resumed)(struct server *server, const struct client *client); /* and reported all */
	bool (*awaits)(struct server *server); /* may somebody resume? */
	bool (*is_none)(const struct server *server);
	void (*settle)(struct server *server); /* each turn */
	struct cm_time (*deadline)(const struct server *server);
	int (*handle)(struct server *server, const char *device, uint8_t port_num); /* or -ENOSPC */
};

/* What clients are shown of others. */
struct server_tracing {
	/* Before there are messages. @fd, of the recording's file, is its own from now on. */
	void (*record)(struct server *server, int fd);
	/* Return: a descriptor of the trace ring, owned by the caller; -EPERM; -errno. */
	int (*begin)(struct server *server, struct client *client);
	/* An AWAIT, to be told when there is a message. Return: false if it is not from one. */
	bool (*await)(struct server *server, struct client *client,
		      const struct portd_record *record);
	void (*end)(struct server *server, struct client *client); /* it goes */
	void (*message)(struct server *server, struct host_port *host_port, enum portd_way way,
			const struct client *whose, const struct mad_path *path,
			const uint8_t mad[MAD_BYTES]);
	/* A client asks how things stand; others answer. Return: as stat_ask() and stat_row(). */
	int (*ask)(struct server *server, struct client *client, uint32_t pid,
		   struct portd_reply *ret);
	bool (*row)(struct server *server, struct client *client, struct portd_record *record);
};

static inline struct host_port *host_port_of(struct cm_port *cm)
{
	return (struct host_port *)cm;
}

/** server_next_client() - the next from @at, which it moves on; NULL if there is none. */
static inline struct client *server_next_client(const struct server *server, unsigned int *at)
{
	while (*at < CLIENTS_MAX)
		if (server->client[(*at)++])
			return server->client[*at - 1];
	return NULL;
}

/** server_next_host_port() - as server_next_client(), for open ports. */
static inline struct host_port *server_next_host_port(const struct server *server, unsigned int *at)
{
	while (*at < server->n_host_ports)
		if (server->host_port[(*at)++])
			return server->host_port[*at - 1];
	return NULL;
}

/* Those that are there; any of them may go meanwhile. */
#define for_each_client(client, server) \
	for (unsigned int at_ = 0; ((client) = server_next_client(server, &at_));)
#define for_each_host_port(host_port, server) \
	for (unsigned int at_ = 0; ((host_port) = server_next_host_port(server, &at_));)

/**
 * server_begin() - take the socket directory, and have everything that a turn needs
 * @server: zeroed, with its options; to be given back with server_end(), also on an error
 *
 * Return: as server_run().
 */
int server_begin(struct server *server);

/** server_turn() - wait until something has to be done, and do it. */
void server_turn(struct server *server);

/** server_is_over() - nothing is left to do: server_end(). */
bool server_is_over(const struct server *server);

/**
 * server_end() - leave the socket directory and free all that the server owns
 *
 * The struct itself is not freed. No message is sent.
 */
void server_end(struct server *server);

/** server_close() - stop watching a descriptor, and close it. */
void server_close(struct server *server, struct watch *watch);

/** server_in_grace() - may clients of a predecessor still come back? */
bool server_in_grace(struct server *server);

/**
 * client_new() - somebody has connected; @fd is owned by the client
 *
 * Return: false if his user has connected too often, which costs next to nothing.
 */
bool client_new(struct server *server, int fd);

/** client_host_port() - a port that the client has opened, by its handle; else NULL. */
static inline struct host_port *client_host_port(const struct server *server,
						 const struct client *client, uint8_t handle)
{
	return handle < HOST_PORTS_MAX && client->host_ports >> handle & 1
		       ? server->host_port[handle]
		       : NULL;
}

/** client_may_send() - is it read from? */
static inline bool client_may_send(const struct client *client)
{
	return !client->throttled && client->n_requests < REQUESTS_MAX;
}

/** client_open_data() - have a data socket; @ret_fd is the client's end. Return: 0 or -errno. */
int client_open_data(struct server *server, struct client *client, int *ret_fd);

/** client_ask_again() - ask what was kept until now. */
void client_ask_again(struct server *server, struct client *client);

/** client_takes_requests() - is there room for one more, or does it not read? */
bool client_takes_requests(struct client *client);

/** client_deliver() - hand a message to a client; sent at the end of the turn. */
void client_deliver(struct server *server, struct client *client, struct host_port *host_port,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool is_request);

/** client_disconnect() - hang up at the end of the turn, and read no more of what it has sent. */
void client_disconnect(struct server *server, struct client *client, const char *why);

/**
 * client_tell() - hand a client an answer, which it does not miss; sent at the end of the turn
 *
 * One that asks on and on, and does not read, is disconnected.
 */
void client_tell(struct server *server, struct client *client, const struct portd_record *record);

/**
 * client_show() - hand a SEEN or STAT_* to who asked, who loses it if it does not read
 * @room: how many datagrams may wait for it before that
 *
 * Return: false if it was lost.
 */
bool client_show(struct server *server, struct client *client, const struct portd_record *record,
		 unsigned int room);

/** client_port_gone() - a host port is closed; tell a client that has opened it. */
void client_port_gone(struct server *server, struct client *client, uint8_t handle);

/** client_watch_data() - wake up for what it may do on its data socket by now. */
void client_watch_data(struct server *server, struct client *client);

/** client_send_backlog() - its socket has room again. */
void client_send_backlog(struct server *server, struct client *client);

/** client_flush() - send what was filled in this turn. */
void client_flush(struct server *server, struct client *client);

/** client_unthrottle() - clients that had used up their rate may send again. */
void client_unthrottle(struct server *server);

/** client_expire() - disconnect those who have connected, and ask for nothing. */
void client_expire(struct server *server);

/** client_forget() - free a client that the next cmportd will hear from. */
void client_forget(struct server *server, struct client *client);

/** client_close() - a client is gone: adopt its tracked connections, release all it had, free it.
 */
void client_close(struct server *server, struct client *client);

/** client_after_fork() - in a child: close the copies of its sockets. */
void client_after_fork(const struct client *client);

/**
 * request_handle() - a record came on a control socket
 * @fd: that came with it, or -1; owned by the callee
 *
 * Return: 0, with *ret to be sent unless the record is a one-way one; -EPROTO for a client that
 * does not keep to the protocol; -EAGAIN to ask again after the grace period, or in the next turn.
 */
int request_handle(struct server *server, struct client *client, const struct portd_record *record,
		   int fd, struct portd_reply *ret, int ret_fd[2]);

/**
 * stat_ask() - a client wants to know how things stand: have the others asked
 * @pid: of one of them; 0 for all
 *
 * Of others than its own user's processes only root hears, and who runs cmportd.
 *
 * Return: 0, with the question's number and how many will answer in @ret; -EBUSY if it has asked
 * just now.
 */
int stat_ask(struct server *server, struct client *client, uint32_t pid, struct portd_reply *ret);

/** stat_row() - a client answers. Return: false if the record is none of an answer. */
bool stat_row(struct server *server, struct client *client, struct portd_record *record);

/** stat_count() - a message passes a host port, or comes to nothing there; NULL: which is unknown
 */
static inline void stat_count(struct host_port *host_port, enum portd_stat_counter what,
			      const uint8_t *mad)
{
	host_port->passed[what][mad ? cm_tally_kind(cm_mad_attr(mad)) : CM_TALLY_NONE]++;
}

/** tracer_show() - a message passes: record it, show it to tracers; @whose may be NULL */
static inline void tracer_show(struct server *server, struct host_port *host_port,
			       enum portd_way way, const struct client *whose,
			       const struct mad_path *path, const uint8_t mad[MAD_BYTES])
{
	if (server->recording.ring || server->n_tracers)
		server->options.tracing->message(server, host_port, way, whose, path, mad);
}

/** router_received() - a message has arrived at a host port, sent from @source_qpn. */
void router_received(struct server *server, struct host_port *host_port,
		     const struct mad_path *path, uint32_t source_qpn,
		     const uint8_t mad[MAD_BYTES]);

/** router_sent() - a client sends a message; @mad: its path is made true */
void router_sent(struct server *server, struct client *client, struct portd_mad *mad);

/** router_reap() - end a connection of a client that is gone, as the kernel would. */
void router_reap(struct server *server, const struct cm_record *tracked);

/** router_expire() - run the timers of our own core. */
void router_expire(struct server *server);

/**
 * host_port_open() - the host port of a port, opened if need be
 * @ret_who: filled on an error: what is in the way, and what helps
 *
 * Return: 0 or -errno as umad_port_open().
 */
int host_port_open(struct server *server, const char *device, uint8_t port_num,
		   struct host_port **ret, struct umad_owner *ret_who);

/** host_port_open_all() - those of all devices; of one that cannot be had the log says why. */
void host_port_open_all(struct server *server);

/** defaults_begin() - read the file of ports, and watch for orders to read it again. Return: 0 or
 * -errno. */
int defaults_begin(struct server *server);

/** defaults_tell() - tell a client what a port is set to, if it has opened that. */
void defaults_tell(struct server *server, struct client *client, const struct host_port *host_port);

/** host_port_heard() - a connection's message has come from the peer's queue pair @qpn. */
void host_port_heard(struct host_port *host_port, const struct mad_path *path, uint32_t qpn);

/** host_port_mark_source() - note which GID a path leaves by, whatever its index will be */
void host_port_mark_source(const struct host_port *host_port, struct mad_path *path);

/** host_port_follow_source() - find that GID's present index. Return: false if it has gone. */
bool host_port_follow_source(const struct host_port *host_port, struct mad_path *path);

/** host_port_reaches_hop() - has the next hop of a path a link address? If not, it is asked for. */
bool host_port_reaches_hop(const struct host_port *host_port, const struct mad_path *path);

/** probe_peers() - hold the probes that are due; warn once if the fast path does not reach a peer
 */
void probe_peers(struct host_port *host_port);

/** probe_self() - find out whether the fast path reaches the port itself, unless it is known */
void probe_self(struct host_port *host_port);

/** probe_answer() - answer @mad if it is a probe of the peer at @path. Return: was it one? */
bool probe_answer(struct host_port *host_port, const struct mad_path *path,
		  const uint8_t mad[MAD_BYTES]);

/** host_port_receive_inbox() - take what has arrived at the sender's queue pair. */
void host_port_receive_inbox(struct server *server, struct host_port *host_port);

/**
 * host_port_send() - a message is to leave: a request at the end of the turn, all else at once
 * @sender: whose it is, or NULL
 */
void host_port_send(struct server *server, struct host_port *host_port, struct client *sender,
		    const struct mad_path *path, const uint8_t mad[MAD_BYTES], bool again);

/** host_port_forget_sender() - a client is gone; what it has sent leaves nevertheless. */
void host_port_forget_sender(struct server *server, const struct client *sender);

/** host_port_send_requests() - those that have gathered, SEND_BATCH at most, of one user after the
 * other, and to each host three quarters of the rate that it accepts. */
void host_port_send_requests(struct server *server);

/** host_port_flush() - send what is held. */
void host_port_flush(struct server *server, struct host_port *host_port);

/** host_port_try() - send a message now. Return: false if its next hop has no link address. */
bool host_port_try(const struct xmit *xmit);

/** host_port_taken() - a client has opened it. */
void host_port_taken(struct client *client, struct host_port *host_port);

/** host_port_left() - a client ends; it no longer uses the ports that it has opened. */
void host_port_left(struct server *server, const struct client *client);

/** host_port_deadline() - when to close it, unless somebody opens it until then. */
struct cm_time host_port_deadline(const struct host_port *host_port);

/** host_port_expire() - close those that nobody uses, so that their driver can be unloaded. */
void host_port_expire(struct server *server);

/** host_port_close() - forget a port; its connections are forgotten without a word. */
void host_port_close(struct server *server, struct host_port *host_port);

/** host_port_after_fork() - in a child: close the copies of its descriptors, give nothing back. */
void host_port_after_fork(struct host_port *host_port);

/** host_port_paths_changed() - routes or link addresses have changed. */
void host_port_paths_changed(struct host_port *host_port);

#endif
