/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager's public interface: identifiers, events, addresses. Programs include it
 * and link with librdmacm.so.1. Names, layouts and values are the ABI of that library and never
 * change; extensions of purecm are in <purecm/purecm.h>.
 *
 * Conventions of all functions here
 * - int functions return 0, or -1 with errno set; pointer functions return NULL with errno set.
 * - A function that starts an operation returns 0 once it has started. An event on the id's channel
 *   reports the result.
 * - An id that was created without a channel is synchronous: such a function returns only after the
 *   next event of the id, which stays readable in id->event until the next such call. An event that
 *   reports a failure makes the call return -1: with ECONNREFUSED for RDMA_CM_EVENT_REJECTED,
 *   otherwise with its status.
 * - Functions may be called from any thread. Only one thread may use an id at a time, except that
 *   any thread may get and acknowledge the events of a channel.
 * - Addresses, ports, P_Keys, LIDs and GIDs are in network byte order, all else in host byte order.
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

/* The library is built with -fvisibility=hidden; it exports what is declared here. */
#pragma GCC visibility push(default)

/**
 * enum rdma_cm_event_type - types of events
 * @RDMA_CM_EVENT_ADDR_RESOLVED:    rdma_resolve_addr() succeeded, the id has a device and a port
 * @RDMA_CM_EVENT_ADDR_ERROR:       it failed; the id is still bound, and may try again
 * @RDMA_CM_EVENT_ROUTE_RESOLVED:   rdma_resolve_route() succeeded, id->route has its path records
 * @RDMA_CM_EVENT_ROUTE_ERROR:      it failed; the id may try again
 * @RDMA_CM_EVENT_CONNECT_REQUEST:  a peer requests a connection; event->id is new, event->listen_id
 *                                  is the listener
 * @RDMA_CM_EVENT_CONNECT_RESPONSE: the peer has accepted, and the id has no queue pair of the
 *                                  library; move the program's own, then call rdma_establish()
 * @RDMA_CM_EVENT_CONNECT_ERROR:    the queue pair could not be moved; the peer gets a REJ
 * @RDMA_CM_EVENT_UNREACHABLE:      no answer, or a datagram request was refused
 * @RDMA_CM_EVENT_REJECTED:         the peer rejected the connection; status is the REJ reason
 * @RDMA_CM_EVENT_ESTABLISHED:      the connection carries data; param.ud addresses a datagram peer
 * @RDMA_CM_EVENT_DISCONNECTED:     the connection has ended, on either side's initiative
 * @RDMA_CM_EVENT_DEVICE_REMOVAL:   the device was removed; the id can only be destroyed
 * @RDMA_CM_EVENT_MULTICAST_JOIN:   the group was joined, param.ud addresses it
 * @RDMA_CM_EVENT_MULTICAST_ERROR:  the group could not be joined, or the membership was lost
 * @RDMA_CM_EVENT_ADDR_CHANGE:      the hardware address of the id's interface has changed
 * @RDMA_CM_EVENT_TIMEWAIT_EXIT:    packets of the former connection can no longer arrive
 * @RDMA_CM_EVENT_ADDRINFO_RESOLVED: rdma_resolve_addrinfo() succeeded, see rdma_query_addrinfo()
 * @RDMA_CM_EVENT_ADDRINFO_ERROR:   it failed
 * @RDMA_CM_EVENT_USER:             from rdma_write_cm_event(); param.arg is the writer's
 * @RDMA_CM_EVENT_INTERNAL:         never passed to a program
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
 * enum rdma_port_space - the port numbers that an id uses, and its kind of service
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
 * A service id (sockaddr_ib.sib_sid, after be64toh) holds a port space and a port: the first two
 * are masks, the others values of the upper 48 bits.
 */
#define RDMA_IB_IP_PS_MASK   0xFFFFFFFFFFFF0000ULL
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFULL
#define RDMA_IB_IP_PS_TCP    0x0000000001060000ULL
#define RDMA_IB_IP_PS_UDP    0x0000000001110000ULL
#define RDMA_IB_PS_IB	     0x00000000013F0000ULL

/* The Q_Key that both ends of RDMA_PS_UDP use without negotiation. */
#define RDMA_UDP_QKEY 0x01234567

/**
 * struct rdma_ib_addr - the InfiniBand addresses of an id
 * @sgid: own GID
 * @dgid: the peer's GID
 * @pkey: partition key, in network byte order
 */
struct rdma_ib_addr {
	union ibv_gid sgid;
	union ibv_gid dgid;
	__be16 pkey;
};

/*
 * Both ends of an id, as socket addresses and as GIDs. Each union has room for any address family;
 * src_addr.sa_family selects the member.
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
 * struct rdma_route - the route of an id to its peer
 * @addr:      addresses of both ends
 * @path_rec:  path records, owned by the library; NULL before RDMA_CM_EVENT_ROUTE_RESOLVED
 * @num_paths: number of path records: 1, or 2 with an alternate path
 */
struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec *path_rec;
	int num_paths;
};

/**
 * struct rdma_event_channel - a channel for events of one or more ids
 * @fd: readable exactly while rdma_get_cm_event() would not block; the program may poll it, add it
 *      to an epoll set and set O_NONBLOCK, but only the library reads it
 */
struct rdma_event_channel {
	int fd;
};

/**
 * struct rdma_cm_id - one end of a connection, a listener, or a datagram endpoint
 * @verbs:           device context, shared by all ids of the process on that device; NULL until a
 *                   device is known
 * @channel:         channel of its events
 * @context:         the program's own, not used by the library
 * @qp:              queue pair from rdma_create_qp(), else NULL
 * @route:           addresses and paths
 * @ps:              port space
 * @port_num:        port of the device, 0 until known
 * @event:           synchronous ids: the last event
 * @send_cq_channel: completion channel of @send_cq
 * @send_cq:         completion queue that the library created, destroyed with the queue pair
 * @recv_cq_channel: completion channel of @recv_cq
 * @recv_cq:         as @send_cq
 * @srq:             shared receive queue from rdma_create_srq(), else NULL
 * @pd:              the device's default protection domain, or that of @qp once it exists
 * @qp_type:         from rdma_create_id() or rdma_create_ep()
 *
 * Only the library allocates it. Programs may read all members and write @context.
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

/* For rdma_conn_param: the maximum of the device (and, when accepting, of the peer). */
enum {
	RDMA_MAX_RESP_RES = 0xFF,
	RDMA_MAX_INIT_DEPTH = 0xFF,
};

/**
 * struct rdma_conn_param - parameters that one side offers, or in an event, that the peer offered
 * @private_data:        data for the peer; in an event valid until rdma_ack_cm_event()
 * @private_data_len:    size in bytes: at most 56 in a request (92 with AF_IB), 196 when accepting,
 *                       148 when rejecting. In an event always that maximum, padded with zeros
 * @responder_resources: outstanding RDMA reads and atomics of the peer; 0 for none
 * @initiator_depth:     own outstanding RDMA reads and atomics
 * @flow_control:        nonzero for end-to-end flow control
 * @retry_count:         retransmissions of a lost packet, 0 to 7; ignored when accepting
 * @rnr_retry_count:     retransmissions to a receiver that is not ready, 0 to 7; 7 is unlimited
 * @srq:                 nonzero if the queue pair has a shared receive queue. Ignored if there is
 *                       an id->qp
 * @qp_num:              number of the queue pair, 24 bits. As @srq
 *
 * In an event both depths are already from the receiver's point of view: pass them to rdma_accept()
 * unchanged.
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
 * struct rdma_ud_param - the peer's addressing data in a datagram event
 * @private_data:     the peer's data (180 bytes in a request, 216 with AF_IB, 136 in a response),
 *                    or the context from rdma_join_multicast()
 * @private_data_len: size in bytes
 * @ah_attr:          for ibv_create_ah()
 * @qp_num:           destination queue pair, 24 bits
 * @qkey:             Q_Key to send with
 */
struct rdma_ud_param {
	const void *private_data;
	uint8_t private_data_len;
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num;
	uint32_t qkey;
};

/**
 * struct rdma_cm_event - an event; owned by the library, valid until rdma_ack_cm_event()
 * @id:        id that the event is about
 * @listen_id: RDMA_CM_EVENT_CONNECT_REQUEST: the listener, else NULL
 * @event:     type
 * @status:    0, a negative errno, or a positive code from the peer (REJ reason, SIDR status)
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
#define RAI_NUMERICHOST 0x00000002 /* node is numeric, use no name server */
#define RAI_NOROUTE	0x00000004 /* do not wait for path records */
#define RAI_FAMILY	0x00000008 /* hints: ai_family is the format of node */
#define RAI_SA		0x00000010 /* look the service up at the subnet administrator */
#define RAI_DNS		0x00000020 /* look node up at the name server */

/**
 * struct rdma_addrinfo - an address, from rdma_getaddrinfo(), for rdma_create_ep()
 * @ai_flags:         RAI_ bits
 * @ai_family:        AF_INET, AF_INET6 or AF_IB
 * @ai_qp_type:       enum ibv_qp_type
 * @ai_port_space:    enum rdma_port_space
 * @ai_src_len:       size of @ai_src_addr in bytes
 * @ai_dst_len:       size of @ai_dst_addr in bytes
 * @ai_src_addr:      own address, or NULL
 * @ai_dst_addr:      the peer's address, or NULL
 * @ai_src_canonname: own canonical name, or NULL
 * @ai_dst_canonname: the peer's canonical name, or NULL
 * @ai_route_len:     size of @ai_route in bytes
 * @ai_route:         array of struct ibv_path_data, or NULL
 * @ai_connect_len:   size of @ai_connect in bytes
 * @ai_connect:       sent in front of the private data of the connection, or NULL
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

/* rdma_cm_join_mc_attr_ex.comp_mask: which other members are valid. */
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
 * @RDMA_OPTION_ID_TOS:         uint8_t, type of service; must be set before rdma_resolve_route()
 * @RDMA_OPTION_ID_REUSEADDR:   int, nonzero lets several ids bind one port. Can be turned on in any
 *                              state but listening, and turned off only before binding
 * @RDMA_OPTION_ID_AFONLY:      int, nonzero keeps IPv4 peers from an IPv6 listener; must be set
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
 * @RDMA_OPTION_IB_PATH: struct ibv_path_data[], replaces rdma_resolve_route() and completes with
 *                       RDMA_CM_EVENT_ROUTE_RESOLVED. Uses the first entry whose flags are exactly
 *                       GMP, PRIMARY and BIDIRECTIONAL
 */
enum {
	RDMA_OPTION_IB_PATH = 1,
};

/**
 * rdma_create_event_channel() - create an event channel
 *
 * Its fd is blocking and close-on-exec.
 *
 * Return: the channel, for rdma_destroy_event_channel(); or NULL with errno set: ENODEV if the
 * system has no RDMA device, EMFILE, ENOMEM.
 */
struct rdma_event_channel *rdma_create_event_channel(void);

/**
 * rdma_destroy_event_channel() - close an event channel
 * @channel: without ids, and with all events acknowledged
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel);

/**
 * rdma_create_id() - create an id
 * @channel: channel for its events; NULL makes it synchronous, with a channel of its own
 * @id:      the new id, for rdma_destroy_id(); untouched on failure
 * @context: stored in id->context
 * @ps:      RDMA_PS_UDP and RDMA_PS_IPOIB create a datagram id, the others a connected one
 *
 * Return: 0, or -1 with errno set: EINVAL for an unknown port space, ENODEV, ENOMEM.
 */
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps);

/**
 * rdma_create_ep() - create a synchronous id, resolved or bound, in one call
 * @id:           the new id, for rdma_destroy_ep(); untouched on failure
 * @res:          result of rdma_getaddrinfo(); may be freed afterwards
 * @pd:           protection domain of the queue pair, or NULL for the default
 * @qp_init_attr: attributes of the queue pair, or NULL for none
 *
 * Without RAI_PASSIVE the id is resolved up to its route and gets its queue pair; @qp_init_attr is
 * updated as by rdma_create_qp(). With RAI_PASSIVE it is only bound; @pd and a copy of
 * @qp_init_attr are kept for the ids that rdma_get_request() returns.
 *
 * Return: 0, or -1 with the errno of the step that failed.
 */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr);

/**
 * rdma_destroy_ep() - destroy an id from rdma_create_ep() or rdma_get_request()
 * @id: freed, with its queue pair and shared receive queue
 */
void rdma_destroy_ep(struct rdma_cm_id *id);

/**
 * rdma_destroy_id() - destroy an id
 * @id: freed unless the call fails; the caller must have destroyed its queue pair
 *
 * Cancels pending operations, sends the peer the message that the id's state requires, and drops
 * events that were not taken. Blocks until every event taken from this id is acknowledged; for a
 * listener that includes its connection requests. Must not be called before acknowledging the event
 * being handled.
 *
 * Return: 0, or -1 with errno set, and the id still exists.
 */
int rdma_destroy_id(struct rdma_cm_id *id);

/**
 * rdma_bind_addr() - bind an id to a local address
 * @id:   neither bound nor resolved yet
 * @addr: IPv4, IPv6 or AF_IB address, copied. Port 0 assigns a free one; a wildcard or loopback
 *        address leaves the device open
 *
 * Completes at once, without event. id->route.addr.src_addr has the assigned port.
 *
 * Return: 0, or -1 with errno set: EINVAL if already bound or for an unknown family, EADDRNOTAVAIL
 * if the address is not local or the port conflicts with a wildcard, EADDRINUSE if the port is
 * taken, EACCES for a privileged port, ENODEV if the interface has no RDMA device.
 */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

/**
 * rdma_resolve_addr() - find the device and hardware address for a peer
 * @id:         bound or not
 * @src_addr:   address to bind to first, or NULL; ignored if @id is bound
 * @dst_addr:   the peer's address, copied
 * @timeout_ms: timeout for its hardware address, in milliseconds; negative: none
 *
 * Completes with RDMA_CM_EVENT_ADDR_RESOLVED or RDMA_CM_EVENT_ADDR_ERROR.
 *
 * Return: 0, or -1 with errno set and no event to come: EINVAL in a wrong state or for a mix of
 * families, ENETUNREACH, EHOSTUNREACH, ENODEV, and those of rdma_bind_addr().
 */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		      int timeout_ms);

/**
 * rdma_resolve_route() - find the path to the resolved address
 * @id:         after RDMA_CM_EVENT_ADDR_RESOLVED
 * @timeout_ms: timeout in milliseconds, not 0; negative: as long as possible
 *
 * Completes with RDMA_CM_EVENT_ROUTE_RESOLVED or RDMA_CM_EVENT_ROUTE_ERROR.
 *
 * Return: 0, or -1 with errno set: EINVAL in a wrong state or without a timeout.
 */
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/**
 * rdma_create_qp() - create a queue pair and prepare it for connecting
 * @id:           with a device, without a queue pair
 * @pd:           of the same device, or NULL for id->pd
 * @qp_init_attr: attributes; updated with the actual capacities and the completion queues used
 *
 * If @qp_init_attr has a size for a completion queue but no queue, one is created, with a
 * completion channel, and stored in the id. A connected queue pair is left in INIT, a datagram one
 * in RTS. From then on the library moves it; destroy it with rdma_destroy_qp() only.
 *
 * Return: 0, or -1 with errno set: EINVAL if there is a queue pair, no device, or a @pd of another
 * device; else the error of the device.
 */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/**
 * rdma_create_qp_ex() - rdma_create_qp() with extended attributes
 * @id:           as for rdma_create_qp()
 * @qp_init_attr: as for rdma_create_qp(), including the protection domain, which is filled in if
 *                absent
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
 * rdma_connect() - request a connection, or the peer's datagram queue pair
 * @id:    after RDMA_CM_EVENT_ROUTE_RESOLVED
 * @param: parameters to offer, copied; NULL for the maximum of the device, if @id has a queue pair
 *
 * Completes with RDMA_CM_EVENT_ESTABLISHED (RDMA_CM_EVENT_CONNECT_RESPONSE without a queue pair),
 * or with REJECTED, UNREACHABLE or CONNECT_ERROR, after which the id can only be destroyed.
 *
 * Return: 0, or -1 with errno set and nothing sent: EINVAL in a wrong state, for too much private
 * data, for depths above the device's, or without both queue pair and @param.
 */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param);

/**
 * rdma_listen() - listen for connection requests
 * @id:      bound; if not, it is bound to the IPv4 wildcard and a free port
 * @backlog: maximum number of requests not yet taken by rdma_get_cm_event(); 0 or less for the
 *           largest possible
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
 * @id:     the requester's id, also synchronous, with the queue pair from @listen's attributes
 *
 * The event is in (*id)->event, and is acknowledged by rdma_accept() or rdma_destroy_id() on @id.
 *
 * Return: 0, or -1 with errno set: EINVAL if @listen is not synchronous.
 */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

/**
 * rdma_accept() - accept a pending connection request
 * @id:    the id from RDMA_CM_EVENT_CONNECT_REQUEST, not the listener
 * @param: parameters to offer, or NULL to match the request
 *
 * Moves the queue pair of @id to RTS and sends REP. The connection may carry data once
 * RDMA_CM_EVENT_ESTABLISHED arrives. @param->private_data is copied before the call returns. A
 * datagram request is answered, and no event follows.
 *
 * Return: 0, or -1 with errno set: EINVAL if @id has no request pending or for too much private
 * data; the queue pair is then in the error state, and the peer is rejected.
 */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);

/**
 * rdma_reject() - reject a pending request or response
 * @id:               as for rdma_accept(), or after RDMA_CM_EVENT_CONNECT_RESPONSE. Must still be
 *                    destroyed by the caller
 * @private_data:     explanation for the peer, copied; may be NULL
 * @private_data_len: size in bytes, at most 148, for datagrams 136
 *
 * Return: 0, or -1 with errno set: EINVAL if there is nothing to reject or for too much private
 * data.
 */
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/**
 * rdma_reject_ece() - reject because enhanced connection options do not match
 * @id:               as for rdma_reject()
 * @private_data:     as for rdma_reject()
 * @private_data_len: as for rdma_reject()
 *
 * Return: as rdma_reject().
 */
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/**
 * rdma_notify() - report an asynchronous verbs event that concerns the connection
 * @id:    with a connection
 * @event: IBV_EVENT_COMM_EST: data came before the peer's RTU, so the connection is established.
 *         IBV_EVENT_PATH_MIG: the device has migrated to the alternate path
 *
 * Return: 0, or -1 with errno set: EISCONN if already established, which may be ignored; EINVAL.
 */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);

/**
 * rdma_establish() - complete a connection with the program's own queue pair
 * @id: after RDMA_CM_EVENT_CONNECT_RESPONSE, with the program's own queue pair in RTS
 *
 * Sends RTU. No event follows.
 *
 * Return: 0, or -1 with errno set: EINVAL if id->qp is set or no response is pending.
 */
int rdma_establish(struct rdma_cm_id *id);

/**
 * rdma_disconnect() - disconnect, or confirm the peer's disconnect
 * @id: connected now or before
 *
 * Moves the queue pair to the error state, which flushes it. Completes with
 * RDMA_CM_EVENT_DISCONNECTED. Both sides call it; a call on a connection that has already ended
 * succeeds.
 *
 * Return: 0, or -1 with errno set: EINVAL if there never was a connection.
 */
int rdma_disconnect(struct rdma_cm_id *id);

/**
 * rdma_join_multicast() - join a multicast group as a full member
 * @id:      a datagram id with a device
 * @addr:    address of the group, copied: an IP address, or AF_IB with the MGID
 * @context: returned as param.ud.private_data of the group's events
 *
 * Completes with RDMA_CM_EVENT_MULTICAST_JOIN, after attaching id->qp, or with
 * RDMA_CM_EVENT_MULTICAST_ERROR.
 *
 * RoCE v2 supports IPv4 groups only; a full member makes its host join the group by IGMP.
 *
 * Return: 0, or -1 with errno set: EINVAL without device, for a zero address or an unknown family;
 * 524, the kernel's ENOTSUPP, for a group that the link layer cannot represent.
 */
int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);

/**
 * rdma_join_multicast_ex() - rdma_join_multicast() with a choice of membership
 * @id:           as for rdma_join_multicast()
 * @mc_join_attr: group and membership, copied
 * @context:      as for rdma_join_multicast()
 *
 * Return: as rdma_join_multicast(); also ENOTSUP for unknown bits in comp_mask, EINVAL for missing
 * bits or unknown flags.
 */
int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			   void *context);

/**
 * rdma_leave_multicast() - leave a group
 * @id:   id that joined the group
 * @addr: the same bytes as on joining
 *
 * Blocks until the group's events are acknowledged.
 *
 * Return: 0, or -1 with errno set: EADDRNOTAVAIL if not joined, EINVAL for an unknown family, ENXIO
 * if the device is gone (the group is left all the same).
 */
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);

/**
 * rdma_get_cm_event() - get the next event of a channel
 * @channel: the channel; several threads may wait on it, each event goes to one of them
 * @event:   the event, for rdma_ack_cm_event(); untouched on failure
 *
 * Blocks until there is an event, unless the channel's fd is O_NONBLOCK. Moves the queue pair as
 * the event requires, in the calling thread, before it returns. A cancellation point.
 *
 * Return: 0, or -1 with errno set: EAGAIN, EINTR after a signal handler without SA_RESTART, EINVAL
 * if @event is NULL, EBADF if the channel was destroyed.
 */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

/**
 * rdma_ack_cm_event() - acknowledge an event
 * @event: freed, with the private data that it points to
 *
 * Return: 0, or -1 with errno EINVAL for NULL.
 */
int rdma_ack_cm_event(struct rdma_cm_event *event);

/**
 * rdma_get_src_port() - get the local port
 * @id: any id
 *
 * Return: port in network byte order, 0 if not bound.
 */
__be16 rdma_get_src_port(struct rdma_cm_id *id);

/**
 * rdma_get_dst_port() - get the peer's port
 * @id: any id
 *
 * Return: port in network byte order, 0 if there is no peer.
 */
__be16 rdma_get_dst_port(struct rdma_cm_id *id);

/**
 * rdma_get_local_addr() - get the local address
 * @id: any id
 *
 * Return: pointer into @id; the family is 0 if not bound.
 */
static __inline__ struct sockaddr *rdma_get_local_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.src_addr;
}

/**
 * rdma_get_peer_addr() - get the peer's address
 * @id: any id
 *
 * Return: pointer into @id; the family is 0 if there is no peer.
 */
static __inline__ struct sockaddr *rdma_get_peer_addr(struct rdma_cm_id *id)
{
	return &id->route.addr.dst_addr;
}

/**
 * rdma_get_devices() - list the RDMA devices
 * @num_devices: number of devices, or NULL
 *
 * The contexts are those in id->verbs. They stay open after rdma_free_devices().
 *
 * Return: NULL-terminated array, for rdma_free_devices(); or NULL with errno set: ENODEV, ENOMEM.
 */
struct ibv_context **rdma_get_devices(int *num_devices);

/**
 * rdma_free_devices() - free the array of rdma_get_devices()
 * @list: the array
 */
void rdma_free_devices(struct ibv_context **list);

/**
 * rdma_event_str() - get the name of an event type
 * @event: any value
 *
 * Return: the name of the enumerator, a static string; "UNKNOWN EVENT" for RDMA_CM_EVENT_USER and
 * all following values.
 */
const char *rdma_event_str(enum rdma_cm_event_type event);

/**
 * rdma_set_option() - set an option of an id
 * @id:      the id
 * @level:   RDMA_OPTION_ID or RDMA_OPTION_IB
 * @optname: an option of that level; the lists above define when it may be set
 * @optval:  the value, copied
 * @optlen:  size in bytes, exactly that of the option's type
 *
 * Return: 0, or -1 with errno set: ENOSYS for an unknown level or option, EINVAL for a wrong size,
 * value or state, EFAULT if there is a size but no value.
 */
int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/**
 * rdma_migrate_id() - move an id to another channel
 * @id:      in any state
 * @channel: the new channel; NULL makes the id synchronous
 *
 * Events not yet taken move along, in order. Blocks until all taken events are acknowledged. No
 * thread may wait for events of this id on the old channel meanwhile.
 *
 * Return: 0, or -1 with errno set: EINVAL if @channel is NULL and the id is already synchronous.
 */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/**
 * rdma_getaddrinfo() - translate names to addresses for rdma_create_ep()
 * @node:    host name or address, or NULL
 * @service: service name or port, or NULL
 * @hints:   selection criteria, or NULL
 * @res:     list of results, for rdma_freeaddrinfo()
 *
 * Returns one address, the first from getaddrinfo(): a source address with RAI_PASSIVE in the
 * hints, otherwise a destination. If ibacm runs and knows a path to it, ai_route has the path, and
 * an AF_IB entry precedes it. Without @node and @service the addresses of @hints are used. With
 * RAI_SA the subnet administrator looks up @service.
 *
 * Return: 0; -1 with errno set: EINVAL if all three are NULL, ENODEV, ENOMEM, for RAI_SA also
 * EOPNOTSUPP with a @node or RAI_DNS, EINVAL without @service, ENOENT if no subnet administrator
 * knows it, ETIMEDOUT if one does not answer, E2BIG for too many results; or an EAI_ code of
 * getaddrinfo() if the name could not be resolved.
 */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res);

/**
 * rdma_freeaddrinfo() - free a list of results
 * @res: the list, or NULL
 */
void rdma_freeaddrinfo(struct rdma_addrinfo *res);

/**
 * rdma_init_qp_attr() - get the attributes to move the program's own queue pair
 * @id:           being connected, without a queue pair of the library
 * @qp_attr:      in: qp_state, the target IBV_QPS_INIT, IBV_QPS_RTR or IBV_QPS_RTS; out: the other
 *                attributes for ibv_modify_qp()
 * @qp_attr_mask: the matching IBV_QP_ bits
 *
 * Return: 0, or -1 with errno set: EINVAL without device or if the connection is not that far.
 */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/**
 * rdma_set_local_ece() - set the enhanced connection options to send
 * @id:  without a queue pair of the library, before rdma_connect() or rdma_accept()
 * @ece: copied; with comp_mask 0 and a vendor_id
 *
 * Return: 0, or -1 with errno EINVAL.
 */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/**
 * rdma_get_remote_ece() - get the enhanced connection options of the peer
 * @id:  without a queue pair of the library, after the peer's request or response
 * @ece: filled in; vendor_id is 0 if there were none
 *
 * Return: 0, or -1 with errno EINVAL.
 */
int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/**
 * rdma_resolve_addrinfo() - rdma_getaddrinfo() that completes with an event
 * @id:      id of the event; bound to an InfiniBand port for RAI_SA
 * @node:    as for rdma_getaddrinfo(); NULL for RAI_SA
 * @service: as for rdma_getaddrinfo(); for RAI_SA a service id or a service name
 * @hints:   as for rdma_getaddrinfo(); RAI_SA or RAI_DNS in ai_flags selects the source, RAI_DNS by
 *           default
 *
 * All arguments are copied. Completes with RDMA_CM_EVENT_ADDRINFO_RESOLVED or, if the name server
 * does not know the name (ENOENT) or does not answer (ETIMEDOUT), with
 * RDMA_CM_EVENT_ADDRINFO_ERROR; with RAI_SA its status is an errno of rdma_getaddrinfo(). The call
 * does not wait for a server; errors that need none are returned in errno. With RAI_SA an id that
 * is bound to a GID then has the first result as its destination, and its route can be resolved.
 *
 * Return: 0, or -1 with errno set: EBUSY before an earlier result was queried, ENOENT for an
 * unknown service, EAFNOSUPPORT, ESOCKTNOSUPPORT; EINVAL for nothing to resolve; for RAI_SA also
 * ENOTSUP with a @node or with RAI_DNS, EINVAL without @service or device, EOPNOTSUPP on a RoCE
 * port.
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);

/**
 * rdma_query_addrinfo() - get the results of rdma_resolve_addrinfo()
 * @id:   after RDMA_CM_EVENT_ADDRINFO_RESOLVED
 * @info: list of results, for rdma_freeaddrinfo(). Returned only once
 *
 * Return: 0, or -1 with errno set: ENOENT if there are none.
 */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/**
 * rdma_write_cm_event() - queue an event of the program's own
 * @id:     id of the event
 * @event:  RDMA_CM_EVENT_USER
 * @status: returned as event->status
 * @arg:    returned as event->param.arg
 *
 * The event is queued behind the channel's other events, and acknowledged like them. Thread-safe.
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
