/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager's public interface: identifiers, events, addresses. Programs include
 * it and link with librdmacm.so.1. Names, layouts and values are the ABI of that library and
 * never change; what can be said to purecm alone is in <purecm/purecm.h>.
 *
 * Conventions of every function here
 * - int functions return 0, or -1 with errno set; pointer functions return NULL with errno set.
 * - A function that starts something returns 0 once it is started. What became of it is an event
 *   on the id's channel.
 * - An id made without a channel is synchronous: such a function returns only after the next event
 *   of the id, which stays readable in id->event until the next such call. An event that carries a
 *   failure makes the call return -1: ECONNREFUSED for RDMA_CM_EVENT_REJECTED, otherwise its
 * status.
 * - Functions may be called from any thread. One id belongs to one thread at a time, except that
 *   events of a channel may be taken and acknowledged anywhere.
 * - Addresses, ports, P_Keys, LIDs and GIDs are in network byte order, everything else in host
 * order.
 */
#ifndef RDMA_CMA_H
#define RDMA_CMA_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <infiniband/verbs.h>
#include <infiniband/sa.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library is built with -fvisibility=hidden: what is declared here is what it exports. */
#pragma GCC visibility push(default)

/**
 * enum rdma_cm_event_type - what an event reports
 * @RDMA_CM_EVENT_ADDR_RESOLVED:    rdma_resolve_addr() is done, the id has a device and a port
 * @RDMA_CM_EVENT_ADDR_ERROR:       it failed; the id is still bound and may try again
 * @RDMA_CM_EVENT_ROUTE_RESOLVED:   rdma_resolve_route() is done, id->route has its path records
 * @RDMA_CM_EVENT_ROUTE_ERROR:      it failed; the id may try again
 * @RDMA_CM_EVENT_CONNECT_REQUEST:  a peer asks; event->id is new, event->listen_id took the request
 * @RDMA_CM_EVENT_CONNECT_RESPONSE: the peer accepts an id without a queue pair of its own;
 *                                  move the program's, then call rdma_establish()
 * @RDMA_CM_EVENT_CONNECT_ERROR:    the queue pair could not be moved; the peer is told
 * @RDMA_CM_EVENT_UNREACHABLE:      nobody answered, or a datagram request was refused
 * @RDMA_CM_EVENT_REJECTED:         the peer said no; status is the REJ reason
 * @RDMA_CM_EVENT_ESTABLISHED:      the connection carries data; param.ud addresses a datagram peer
 * @RDMA_CM_EVENT_DISCONNECTED:     the connection is over, whoever ended it
 * @RDMA_CM_EVENT_DEVICE_REMOVAL:   the device went away; the id can only be destroyed
 * @RDMA_CM_EVENT_MULTICAST_JOIN:   the group is joined, param.ud addresses it
 * @RDMA_CM_EVENT_MULTICAST_ERROR:  it could not be joined, or was lost
 * @RDMA_CM_EVENT_ADDR_CHANGE:      the interface's hardware address changed below the id
 * @RDMA_CM_EVENT_TIMEWAIT_EXIT:    packets of the former connection can no longer arrive
 * @RDMA_CM_EVENT_ADDRINFO_RESOLVED: rdma_resolve_addrinfo() is done, rdma_query_addrinfo() has it
 * @RDMA_CM_EVENT_ADDRINFO_ERROR:   it failed
 * @RDMA_CM_EVENT_USER:             written by rdma_write_cm_event(); param.arg is the writer's
 * @RDMA_CM_EVENT_INTERNAL:         never handed to a program
 */
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED = 0,
	RDMA_CM_EVENT_ADDR_ERROR = 1,
	RDMA_CM_EVENT_ROUTE_RESOLVED = 2,
	RDMA_CM_EVENT_ROUTE_ERROR = 3,
	RDMA_CM_EVENT_CONNECT_REQUEST = 4,
	RDMA_CM_EVENT_CONNECT_RESPONSE = 5,
	RDMA_CM_EVENT_CONNECT_ERROR = 6,
	RDMA_CM_EVENT_UNREACHABLE = 7,
	RDMA_CM_EVENT_REJECTED = 8,
	RDMA_CM_EVENT_ESTABLISHED = 9,
	RDMA_CM_EVENT_DISCONNECTED = 10,
	RDMA_CM_EVENT_DEVICE_REMOVAL = 11,
	RDMA_CM_EVENT_MULTICAST_JOIN = 12,
	RDMA_CM_EVENT_MULTICAST_ERROR = 13,
	RDMA_CM_EVENT_ADDR_CHANGE = 14,
	RDMA_CM_EVENT_TIMEWAIT_EXIT = 15,
	RDMA_CM_EVENT_ADDRINFO_RESOLVED = 16,
	RDMA_CM_EVENT_ADDRINFO_ERROR = 17,
	RDMA_CM_EVENT_USER = 18,
	RDMA_CM_EVENT_INTERNAL = 19,
};

/**
 * enum rdma_port_space - whose port numbers an id uses, and what kind of service
 * @RDMA_PS_IPOIB: datagrams with the Q_Key of the IPoIB broadcast group
 * @RDMA_PS_TCP:   connections
 * @RDMA_PS_UDP:   datagrams with the Q_Key RDMA_UDP_QKEY
 * @RDMA_PS_IB:    any InfiniBand service
 */
enum rdma_port_space {
	RDMA_PS_IPOIB = 0x0002,
	RDMA_PS_TCP = 0x0106,
	RDMA_PS_UDP = 0x0111,
	RDMA_PS_IB = 0x013F,
};

/*
 * How a service id (sockaddr_ib.sib_sid, after be64toh) holds a port space and a port: the
 * first two are masks, the others what the upper 48 bits say.
 */
#define RDMA_IB_IP_PS_MASK   0xFFFFFFFFFFFF0000ULL
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFULL
#define RDMA_IB_IP_PS_TCP    0x0000000001060000ULL
#define RDMA_IB_IP_PS_UDP    0x0000000001110000ULL
#define RDMA_IB_PS_IB	     0x00000000013F0000ULL

/* The Q_Key both ends of RDMA_PS_UDP use without asking each other. */
#define RDMA_UDP_QKEY 0x01234567

/**
 * struct rdma_ib_addr - the InfiniBand side of an address pair
 * @sgid: own GID
 * @dgid: the peer's GID
 * @pkey: partition key, network byte order
 */
struct rdma_ib_addr {
	union ibv_gid sgid;
	union ibv_gid dgid;
	__be16 pkey;
};

/*
 * Both ends of an id, as socket addresses and as GIDs. Each union is as large as any address family
 * needs; src_addr.sa_family says which member holds.
 */
struct rdma_addr {
	union {
		struct sockaddr src_addr;
		struct sockaddr_in src_sin;
		struct sockaddr_in6 src_sin6;
		struct sockaddr_storage src_storage;
	};
	union {
		struct sockaddr dst_addr;
		struct sockaddr_in dst_sin;
		struct sockaddr_in6 dst_sin6;
		struct sockaddr_storage dst_storage;
	};
	union {
		struct rdma_ib_addr ibaddr;
	} addr;
};

/**
 * struct rdma_route - how an id reaches its peer
 * @addr:      both ends
 * @path_rec:  path records, the library's memory, NULL before RDMA_CM_EVENT_ROUTE_RESOLVED
 * @num_paths: how many: 1, or 2 with an alternate path
 */
struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec *path_rec;
	int num_paths;
};

/**
 * struct rdma_event_channel - where events of one or more ids arrive
 * @fd: readable exactly while rdma_get_cm_event() would not block; may be polled, put in an
 *      epoll set and switched to O_NONBLOCK by the program, but is read by the library alone
 */
struct rdma_event_channel {
	int fd;
};

/**
 * struct rdma_cm_id - one end of a connection, a listener, or a datagram endpoint
 * @verbs:           the device's context, shared by every id of the process on that device; NULL
 *                   until a device is known
 * @channel:         where its events arrive
 * @context:         the program's own, never looked at
 * @qp:              queue pair made by rdma_create_qp(), else NULL
 * @route:           addresses and paths
 * @ps:              port space
 * @port_num:        port of the device, 0 until one is known
 * @event:           synchronous ids: the last event
 * @send_cq_channel: completion channel of @send_cq
 * @send_cq:         completion queue the library made, destroyed with the queue pair
 * @recv_cq_channel: completion channel of @recv_cq
 * @recv_cq:         as @send_cq
 * @srq:             shared receive queue made by rdma_create_srq(), else NULL
 * @pd:              the device's default protection domain, or that of @qp once it exists
 * @qp_type:         what rdma_create_id() or rdma_create_ep() chose
 *
 * Made by the library only. Programs may read everything and write @context.
 */
struct rdma_cm_id {
	struct ibv_context *verbs;
	struct rdma_event_channel *channel;
	void *context;
	struct ibv_qp *qp;
	struct rdma_route route;
	enum rdma_port_space ps;
	uint8_t port_num;
	struct rdma_cm_event *event;
	struct ibv_comp_channel *send_cq_channel;
	struct ibv_cq *send_cq;
	struct ibv_comp_channel *recv_cq_channel;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	enum ibv_qp_type qp_type;
};

/* For rdma_conn_param: as many as the device (and, when accepting, the peer) can do. */
enum {
	RDMA_MAX_RESP_RES = 0xFF,
	RDMA_MAX_INIT_DEPTH = 0xFF,
};

/**
 * struct rdma_conn_param - what one side offers, or what an event says the other offered
 * @private_data:        bytes for the peer; in an event they die with rdma_ack_cm_event()
 * @private_data_len:    how many. At most 56 in a request (92 with AF_IB), 196 when
 *                       accepting and 148 when rejecting. In an event always that maximum,
 *                       padded with zeros
 * @responder_resources: RDMA reads and atomics of the peer served at once; 0 means none
 * @initiator_depth:     own RDMA reads and atomics in flight at once
 * @flow_control:        end-to-end flow control wanted
 * @retry_count:         resends of a lost packet, 0 to 7; ignored when accepting
 * @rnr_retry_count:     resends to a receiver that was not ready, 0 to 7; 7 is for ever
 * @srq:                 nonzero if the queue pair has a shared receive queue. Taken from id->qp
 *                       when there is one
 * @qp_num:              number of the queue pair, 24 bits. As @srq
 *
 * In an event the two depths are already seen from the receiving side: pass them on to
 * rdma_accept() as they are.
 */
struct rdma_conn_param {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qp_num;
};

/**
 * struct rdma_ud_param - what a datagram event says about the other end
 * @private_data:     the peer's bytes (180 of a request, 216 with AF_IB, 136 of an answer), or the
 *                    context given to rdma_join_multicast()
 * @private_data_len: how many
 * @ah_attr:          ready for ibv_create_ah()
 * @qp_num:           where to send to, 24 bits
 * @qkey:             with which Q_Key
 */
struct rdma_ud_param {
	const void *private_data;
	uint8_t private_data_len;
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num;
	uint32_t qkey;
};

/**
 * struct rdma_cm_event - one event; the library's memory until rdma_ack_cm_event()
 * @id:        whom it is about
 * @listen_id: RDMA_CM_EVENT_CONNECT_REQUEST: the listener, else NULL
 * @event:     what happened
 * @status:    0, a negative errno, or a positive code of the peer (REJ reason, SIDR status)
 * @param:     conn for connections, ud for datagrams and multicast, arg for RDMA_CM_EVENT_USER
 */
struct rdma_cm_event {
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	enum rdma_cm_event_type event;
	int status;
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
		uint64_t arg;
	} param;
};

/* rdma_addrinfo.ai_flags */
#define RAI_PASSIVE	0x00000001 /* for listening: the result is a source address */
#define RAI_NUMERICHOST 0x00000002 /* node is a number, ask no name server */
#define RAI_NOROUTE	0x00000004 /* do not wait for path records */
#define RAI_FAMILY	0x00000008 /* hints: ai_family says how node is written */
#define RAI_SA		0x00000010 /* ask the subnet administrator for the service */
#define RAI_DNS		0x00000020 /* ask the name server for the node */

/**
 * struct rdma_addrinfo - an address as rdma_getaddrinfo() finds it and rdma_create_ep() takes it
 * @ai_flags:         RAI_ bits
 * @ai_family:        AF_INET, AF_INET6 or AF_IB
 * @ai_qp_type:       enum ibv_qp_type
 * @ai_port_space:    enum rdma_port_space
 * @ai_src_len:       bytes of @ai_src_addr
 * @ai_dst_len:       bytes of @ai_dst_addr
 * @ai_src_addr:      own address, or NULL
 * @ai_dst_addr:      the peer's address, or NULL
 * @ai_src_canonname: own canonical name, or NULL
 * @ai_dst_canonname: the peer's canonical name, or NULL
 * @ai_route_len:     bytes of @ai_route
 * @ai_route:         array of struct ibv_path_data, or NULL
 * @ai_connect_len:   bytes of @ai_connect
 * @ai_connect:       goes before the private data of the connection, or NULL
 * @ai_next:          next result, or NULL
 */
struct rdma_addrinfo {
	int ai_flags;
	int ai_family;
	int ai_qp_type;
	int ai_port_space;
	socklen_t ai_src_len;
	socklen_t ai_dst_len;
	struct sockaddr *ai_src_addr;
	struct sockaddr *ai_dst_addr;
	char *ai_src_canonname;
	char *ai_dst_canonname;
	size_t ai_route_len;
	void *ai_route;
	size_t ai_connect_len;
	void *ai_connect;
	struct rdma_addrinfo *ai_next;
};

/* rdma_cm_join_mc_attr_ex.comp_mask: which of the other members are filled in. */
enum rdma_cm_join_mc_attr_mask {
	RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1 << 0,
	RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 1 << 1,
	RDMA_CM_JOIN_MC_ATTR_RESERVED = 1 << 2,
};

/* rdma_cm_join_mc_attr_ex.join_flags: send and receive, or send only. */
enum rdma_cm_mc_join_flags {
	RDMA_MC_JOIN_FLAG_FULLMEMBER,
	RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
	RDMA_MC_JOIN_FLAG_RESERVED,
};

/**
 * struct rdma_cm_join_mc_attr_ex - how to join a multicast group
 * @comp_mask:  enum rdma_cm_join_mc_attr_mask bits; both are needed
 * @join_flags: enum rdma_cm_mc_join_flags
 * @addr:       the group
 */
struct rdma_cm_join_mc_attr_ex {
	uint32_t comp_mask;
	uint32_t join_flags;
	struct sockaddr *addr;
};

/* rdma_set_option(): levels, then the options of each. */
enum {
	RDMA_OPTION_ID = 0,
	RDMA_OPTION_IB = 1,
};

/**
 * Options of RDMA_OPTION_ID
 * @RDMA_OPTION_ID_TOS:         uint8_t, type of service; to be set before rdma_resolve_route()
 * @RDMA_OPTION_ID_REUSEADDR:   int, nonzero lets several ids bind one port. On in any state but
 *                              listening, off only before binding
 * @RDMA_OPTION_ID_AFONLY:      int, nonzero keeps IPv4 peers from an IPv6 listener; to be set
 *                              before listening
 * @RDMA_OPTION_ID_ACK_TIMEOUT: uint8_t, local ACK timeout of the queue pair as an InfiniBand time
 *                              (4.096 us * 2^n, 0 for none); reliable connections only
 */
enum {
	RDMA_OPTION_ID_TOS = 0,
	RDMA_OPTION_ID_REUSEADDR = 1,
	RDMA_OPTION_ID_AFONLY = 2,
	RDMA_OPTION_ID_ACK_TIMEOUT = 3,
};

/**
 * Options of RDMA_OPTION_IB
 * @RDMA_OPTION_IB_PATH: struct ibv_path_data[], takes the place of rdma_resolve_route() and
 *                       ends with RDMA_CM_EVENT_ROUTE_RESOLVED. The first entry whose flags are
 *                       exactly GMP, PRIMARY and BIDIRECTIONAL is used
 */
enum {
	RDMA_OPTION_IB_PATH = 1,
};

/**
 * rdma_create_event_channel() - open a place for events to arrive
 *
 * Its fd is blocking and close-on-exec.
 *
 * Return: the channel, for rdma_destroy_event_channel(); or NULL with errno set: ENODEV if the
 * system has no RDMA device, EMFILE, ENOMEM.
 */
struct rdma_event_channel *rdma_create_event_channel(void);

/**
 * rdma_destroy_event_channel() - close a channel
 * @channel: with no ids left on it and every event acknowledged
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel);

/**
 * rdma_create_id() - make an id
 * @channel: where its events go; NULL makes it synchronous, with a channel of its own
 * @id:      the new id, for rdma_destroy_id(); untouched on failure
 * @context: put into id->context
 * @ps:      RDMA_PS_UDP and RDMA_PS_IPOIB make a datagram id, the others a connected one
 *
 * Return: 0, or -1 with errno set: EINVAL for an unknown port space, ENODEV, ENOMEM.
 */
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps);

/**
 * rdma_create_ep() - make a synchronous id, resolved or bound, in one call
 * @id:           the new id, for rdma_destroy_ep(); untouched on failure
 * @res:          what rdma_getaddrinfo() found; may be freed afterwards
 * @pd:           protection domain of the queue pair, or NULL for the default
 * @qp_init_attr: the queue pair to make, or NULL for none
 *
 * Without RAI_PASSIVE the id is resolved up to its route and gets its queue pair; @qp_init_attr is
 * updated as by rdma_create_qp(). With RAI_PASSIVE it is bound only; @pd and a copy of
 * @qp_init_attr are kept for the ids that rdma_get_request() returns.
 *
 * Return: 0, or -1 with the errno of the step that failed.
 */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr);

/**
 * rdma_destroy_ep() - take down what rdma_create_ep() or rdma_get_request() made
 * @id: gone afterwards, with its queue pair and shared receive queue
 */
void rdma_destroy_ep(struct rdma_cm_id *id);

/**
 * rdma_destroy_id() - end an id
 * @id: freed unless the call fails; its queue pair is the caller's to destroy before
 *
 * Whatever is pending is given up, the peer is told what its state calls for, events not yet taken
 * are dropped. Blocks until every event taken from this id is acknowledged; for a listener that
 * includes its connection requests. Must not be called before acknowledging the event being
 * handled.
 *
 * Return: 0, or -1 with errno set, and the id is still there.
 */
int rdma_destroy_id(struct rdma_cm_id *id);

/**
 * rdma_bind_addr() - choose the local address
 * @id:   neither bound nor resolved yet
 * @addr: IPv4, IPv6 or AF_IB, copied. Port 0 takes a free one; a wildcard or loopback address
 *        leaves the device open
 *
 * Done at once, without event. id->route.addr.src_addr has the port taken.
 *
 * Return: 0, or -1 with errno set: EINVAL if bound before or for an unknown family, EADDRNOTAVAIL
 * if the address is not local or the port conflicts with a wildcard, EADDRINUSE if the port is
 * taken, EACCES for a privileged port, ENODEV if the interface has no RDMA device.
 */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

/**
 * rdma_resolve_addr() - find the device and hardware address that lead to a peer
 * @id:         bound or not
 * @src_addr:   bound to first, or NULL; ignored if @id is bound
 * @dst_addr:   the peer, copied
 * @timeout_ms: how long to look for its hardware address
 *
 * Done with RDMA_CM_EVENT_ADDR_RESOLVED or RDMA_CM_EVENT_ADDR_ERROR.
 *
 * Return: 0, or -1 with errno set and no event to come: EINVAL in a wrong state or for a mix of
 * families, ENETUNREACH, EHOSTUNREACH, ENODEV, and those of rdma_bind_addr().
 */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms);

/**
 * rdma_resolve_route() - find the path to the resolved address
 * @id:         after RDMA_CM_EVENT_ADDR_RESOLVED
 * @timeout_ms: how long to ask, above 0
 *
 * Done with RDMA_CM_EVENT_ROUTE_RESOLVED or RDMA_CM_EVENT_ROUTE_ERROR.
 *
 * Return: 0, or -1 with errno set: EINVAL in a wrong state or for no timeout.
 */
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/**
 * rdma_create_qp() - make a queue pair and move it to where connecting needs it
 * @id:           with a device, without a queue pair
 * @pd:           of the same device, or NULL for id->pd
 * @qp_init_attr: what to make; gets back the real capacities and the completion queues chosen
 *
 * A completion queue that is asked for by size but not given is made, with a completion channel,
 * and kept in the id. A connected queue pair is left in INIT, a datagram one in RTS. The library
 * moves it from then on; rdma_destroy_qp() is the way to be rid of it.
 *
 * Return: 0, or -1 with errno set: EINVAL if there is a queue pair, no device, or a @pd of another
 * one; else what the device says.
 */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/**
 * rdma_create_qp_ex() - rdma_create_qp() with extended attributes
 * @id:           as there
 * @qp_init_attr: as there; the protection domain is its member, and is filled in if absent
 *
 * Return: as rdma_create_qp().
 */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr);

/**
 * rdma_destroy_qp() - destroy the id's queue pair and its completion queues
 * @id: with a queue pair; id->qp is NULL afterwards
 */
void rdma_destroy_qp(struct rdma_cm_id *id);

/**
 * rdma_connect() - ask the peer for a connection, or for its datagram queue pair
 * @id:    after RDMA_CM_EVENT_ROUTE_RESOLVED
 * @param: what to offer, copied; NULL for the most the device can do, if @id has a queue pair
 *
 * Done with RDMA_CM_EVENT_ESTABLISHED (RDMA_CM_EVENT_CONNECT_RESPONSE without a queue pair), or
 * with REJECTED, UNREACHABLE or CONNECT_ERROR, after which the id can only be destroyed.
 *
 * Return: 0, or -1 with errno set and nothing sent: EINVAL in a wrong state, for too much private
 * data, for depths above the device's, or without both queue pair and @param.
 */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);

/**
 * rdma_listen() - take connection requests
 * @id:      bound; if not, it gets the IPv4 wildcard and a free port
 * @backlog: requests kept until they are taken by rdma_get_cm_event(); 0 or less for the most
 *
 * Each request is a RDMA_CM_EVENT_CONNECT_REQUEST. Requests beyond @backlog are not answered, so
 * that the peer tries again.
 *
 * Return: 0, or -1 with errno set: EINVAL in a wrong state, and those of rdma_bind_addr().
 */
int rdma_listen(struct rdma_cm_id *id, int backlog);

/**
 * rdma_get_request() - wait for the next request of a synchronous listener
 * @listen: a synchronous id that listens
 * @id:     the requester's id, synchronous too, with the queue pair that @listen was made for
 *
 * The event is in (*id)->event, and is acknowledged by rdma_accept() or rdma_destroy_id() on @id.
 *
 * Return: 0, or -1 with errno set: EINVAL if @listen has a channel of the program's.
 */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

/**
 * rdma_accept() - accept a pending connection request
 * @id:    the id that came with RDMA_CM_EVENT_CONNECT_REQUEST, not the listener
 * @param: what to offer the peer, or NULL to match what it asked for
 *
 * Moves the queue pair of @id to RTS and sends REP. The connection may carry data once
 * RDMA_CM_EVENT_ESTABLISHED arrives. @param->private_data is copied before the call returns.
 * A datagram request is answered, and no event follows.
 *
 * Return: 0, or -1 with errno set: EINVAL if @id has no request pending or for too much private
 * data; the queue pair is then in error, and the peer rejected.
 */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);

/**
 * rdma_reject() - refuse a pending request, or an answer
 * @id:               as in rdma_accept(), or after RDMA_CM_EVENT_CONNECT_RESPONSE. Still to be
 *                    destroyed by the caller
 * @private_data:     says why, copied; may be NULL
 * @private_data_len: at most 148, for datagrams 136
 *
 * Return: 0, or -1 with errno set: EINVAL if there is nothing to reject or for too much private
 * data.
 */
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/**
 * rdma_reject_ece() - rdma_reject(), because connection options do not fit
 * @id:               as there
 * @private_data:     as there
 * @private_data_len: as there
 *
 * Return: as rdma_reject().
 */
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/**
 * rdma_notify() - pass on an asynchronous verbs event that concerns the connection
 * @id:    with a connection
 * @event: IBV_EVENT_COMM_EST: data came before the peer's RTU, so the connection is up.
 *         IBV_EVENT_PATH_MIG: the device changed over to the alternate path
 *
 * Return: 0, or -1 with errno set: EISCONN if established already, which may be ignored; EINVAL.
 */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);

/**
 * rdma_establish() - finish connecting with a queue pair of one's own
 * @id: after RDMA_CM_EVENT_CONNECT_RESPONSE, with the program's own queue pair in RTS
 *
 * Sends RTU. No event follows.
 *
 * Return: 0, or -1 with errno set: EINVAL if id->qp is set or no answer is pending.
 */
int rdma_establish(struct rdma_cm_id *id);

/**
 * rdma_disconnect() - end a connection, or agree to its end
 * @id: connected now or before
 *
 * Moves the queue pair to error, which flushes it. Done with RDMA_CM_EVENT_DISCONNECTED. Both
 * sides call it; calling it for a connection that is gone is no error.
 *
 * Return: 0, or -1 with errno set: EINVAL if there never was a connection.
 */
int rdma_disconnect(struct rdma_cm_id *id);

/**
 * rdma_join_multicast() - join a multicast group as a full member
 * @id:      a datagram id with a device
 * @addr:    the group, copied; an IP address, or AF_IB with the MGID
 * @context: comes back as param.ud.private_data of the group's events
 *
 * Done with RDMA_CM_EVENT_MULTICAST_JOIN, id->qp being attached, or RDMA_CM_EVENT_MULTICAST_ERROR.
 *
 * On RoCE v2 there are groups of IPv4 only, and full members make their host a member by IGMP.
 *
 * Return: 0, or -1 with errno set: EINVAL without device, for a zero address or an unknown family;
 * 524, the kernel's ENOTSUPP, for a group that the link layer has no form for.
 */
int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);

/**
 * rdma_join_multicast_ex() - rdma_join_multicast() with a choice of membership
 * @id:           as there
 * @mc_join_attr: group and membership, copied
 * @context:      as there
 *
 * Return: as there; also ENOTSUP for unknown bits in comp_mask, EINVAL for missing ones or unknown
 * flags.
 */
int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context);

/**
 * rdma_leave_multicast() - leave a group
 * @id:   that joined it
 * @addr: byte for byte the address it was joined by
 *
 * Blocks until the group's events are acknowledged.
 *
 * Return: 0, or -1 with errno set: EADDRNOTAVAIL if not joined, EINVAL for an unknown family, ENXIO
 * if the device is gone (the group is left all the same).
 */
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);

/**
 * rdma_get_cm_event() - take the next event of a channel
 * @channel: from which; several threads may wait, each event goes to one of them
 * @event:   the event, for rdma_ack_cm_event(); untouched on failure
 *
 * Blocks until there is one, unless the channel's fd is O_NONBLOCK. Moves the queue pair as the
 * event demands, in the calling thread, before it returns. A cancellation point.
 *
 * Return: 0, or -1 with errno set: EAGAIN, EINTR after a signal handler without SA_RESTART, EINVAL
 * for no @event, EBADF if the channel was destroyed.
 */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

/**
 * rdma_ack_cm_event() - give an event back
 * @event: freed, together with the private data it points to
 *
 * Return: 0, or -1 with errno EINVAL for NULL.
 */
int rdma_ack_cm_event(struct rdma_cm_event *event);

/**
 * rdma_get_src_port() - the local port
 * @id: any id
 *
 * Return: port in network byte order, 0 if not bound.
 */
__be16 rdma_get_src_port(struct rdma_cm_id *id);

/**
 * rdma_get_dst_port() - the peer's port
 * @id: any id
 *
 * Return: port in network byte order, 0 if there is no peer.
 */
__be16 rdma_get_dst_port(struct rdma_cm_id *id);

/**
 * rdma_get_local_addr() - the local address
 * @id: any id
 *
 * Return: the address inside @id; its family is 0 if not bound.
 */
static __inline__ struct sockaddr *rdma_get_local_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.src_addr;
}

/**
 * rdma_get_peer_addr() - the peer's address
 * @id: any id
 *
 * Return: the address inside @id; its family is 0 if there is no peer.
 */
static __inline__ struct sockaddr *rdma_get_peer_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.dst_addr;
}

/**
 * rdma_get_devices() - list the RDMA devices
 * @num_devices: how many, or NULL
 *
 * The contexts are the ones ids have in id->verbs. They stay open after rdma_free_devices().
 *
 * Return: array ended by NULL, for rdma_free_devices(); or NULL with errno set: ENODEV, ENOMEM.
 */
struct ibv_context **rdma_get_devices(int *num_devices);

/**
 * rdma_free_devices() - free the array of rdma_get_devices()
 * @list: the array
 */
void rdma_free_devices(struct ibv_context **list);

/**
 * rdma_event_str() - name of an event type
 * @event: any value
 *
 * Return: its enumerator as text that is never freed; "UNKNOWN EVENT" for RDMA_CM_EVENT_USER and
 * whatever comes after it.
 */
const char *rdma_event_str(enum rdma_cm_event_type event);

/**
 * rdma_set_option() - set an option of an id
 * @id:      the id
 * @level:   RDMA_OPTION_ID or RDMA_OPTION_IB
 * @optname: an option of that level; the lists above say when it may be set
 * @optval:  the value, copied
 * @optlen:  its size in bytes, exactly that of the option's type
 *
 * Return: 0, or -1 with errno set: ENOSYS for an unknown level or option, EINVAL for a wrong size,
 * value or state, EFAULT if there is a size and no value.
 */
int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/**
 * rdma_migrate_id() - move an id to another channel
 * @id:      in any state
 * @channel: the new one; NULL makes the id synchronous
 *
 * Events not yet taken move along, in order. Blocks until those taken are acknowledged. Nobody may
 * wait on the old channel for this id meanwhile.
 *
 * Return: 0, or -1 with errno set: EINVAL if @channel is NULL and the id is synchronous already.
 */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/**
 * rdma_getaddrinfo() - turn names into what rdma_create_ep() needs
 * @node:    host name or address, or NULL
 * @service: service name or port, or NULL
 * @hints:   what is wanted, or NULL
 * @res:     list of results, for rdma_freeaddrinfo()
 *
 * One address is found, the first that getaddrinfo() knows; it is a source with RAI_PASSIVE in the
 * hints and a destination else. Where ibacm runs and knows a path to it, ai_route has the path and
 * an AF_IB entry goes in front. Without @node and @service the addresses of @hints are taken. With
 * RAI_SA the subnet administrator is asked for @service.
 *
 * Return: 0; -1 with errno set: EINVAL if all three are NULL, ENODEV, ENOMEM, for RAI_SA also
 * EOPNOTSUPP with a @node or RAI_DNS, EINVAL without @service, ENOENT if no port is on an
 * InfiniBand subnet; or an EAI_ code of getaddrinfo() if the name could not be resolved.
 */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res);

/**
 * rdma_freeaddrinfo() - free a list of results
 * @res: the list, or NULL
 */
void rdma_freeaddrinfo(struct rdma_addrinfo *res);

/**
 * rdma_init_qp_attr() - what ibv_modify_qp() needs for a queue pair of one's own
 * @id:           being connected, without a queue pair of the library's
 * @qp_attr:      qp_state says where to: IBV_QPS_INIT, IBV_QPS_RTR or IBV_QPS_RTS. The rest
 *                is filled in
 * @qp_attr_mask: the matching IBV_QP_ bits
 *
 * Return: 0, or -1 with errno set: EINVAL without device or if the id has not come that far.
 */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/**
 * rdma_set_local_ece() - enhanced connection options to send
 * @id:  without a queue pair of the library's, before rdma_connect() or rdma_accept()
 * @ece: copied; comp_mask 0 and a vendor_id
 *
 * Return: 0, or -1 with errno EINVAL.
 */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/**
 * rdma_get_remote_ece() - enhanced connection options the peer sent
 * @id:  without a queue pair of the library's, after the peer's request or answer
 * @ece: filled in; vendor_id 0 if there were none
 *
 * Return: 0, or -1 with errno EINVAL.
 */
int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/**
 * rdma_resolve_addrinfo() - rdma_getaddrinfo() that ends with an event
 * @id:      whose event it will be; bound to an InfiniBand port for RAI_SA
 * @node:    as there; NULL for RAI_SA
 * @service: as there; for RAI_SA a service id or a service name
 * @hints:   as there; RAI_SA or RAI_DNS in ai_flags says whom to ask, RAI_DNS if neither
 *
 * Everything is copied. Done with RDMA_CM_EVENT_ADDRINFO_RESOLVED or, if the name server does not
 * know the name (ENOENT) or does not answer (ETIMEDOUT), with RDMA_CM_EVENT_ADDRINFO_ERROR. A name
 * server is not waited for here; what is wrong without asking one is an errno.
 *
 * Return: 0, or -1 with errno set: EBUSY before an earlier result was queried, ENOENT for an
 * unknown service, EAFNOSUPPORT, ESOCKTNOSUPPORT; EINVAL for nothing to resolve; for RAI_SA also
 * ENOTSUP with a @node or with RAI_DNS, EINVAL without @service or device, EOPNOTSUPP on a port of
 * RoCE.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);

/**
 * rdma_query_addrinfo() - the results of rdma_resolve_addrinfo()
 * @id:   after RDMA_CM_EVENT_ADDRINFO_RESOLVED
 * @info: list of results, for rdma_freeaddrinfo(). Handed over once
 *
 * Return: 0, or -1 with errno set: ENOENT if there are none.
 */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/**
 * rdma_write_cm_event() - queue an event of the program's own
 * @id:     whose event it will be
 * @event:  RDMA_CM_EVENT_USER
 * @status: comes back as event->status
 * @arg:    comes back as event->param.arg
 *
 * It takes its place among the other events of the channel, and is acknowledged as they are. May be
 * called from any thread.
 *
 * Return: 0, or -1 with errno set: EINVAL for any other @event or an id that is being destroyed,
 * ENOMEM.
 */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* RDMA_CMA_H */
