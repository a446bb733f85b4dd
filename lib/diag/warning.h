/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The warnings of PURECM_LOG=warn: one function each, all texts in warning.c. tests/docs/errors.c
 * prints them into docs/troubleshooting.md. Texts about addresses and routes are in failure.h.
 *
 * All functions preserve errno, and may be called with any lock held. @err is a negative errno.
 */
#ifndef LIB_DIAG_WARNING_H
#define LIB_DIAG_WARNING_H

#include <rdma/rdma_cma.h>
#include <stdint.h>

/* Protocol violations by the peer of a socket. */
enum socket_lie {
	SOCKET_LIE_DATA,
	SOCKET_LIE_CREDIT,
	SOCKET_LIE_HALF,
	SOCKET_LIE_INDEX,
	SOCKET_LIE_CONTROL,
	SOCKET_LIE_OPERATION,
	SOCKET_N_LIES,
};

/** warning_of_device() - a device cannot be opened. */
void warning_of_device(const char *device, int err);

/** warning_of_no_device() - there is no RDMA device; logged once */
void warning_of_no_device(void);

/**
 * warning_of_port() - the CM class of a port is unavailable
 * @what:   its owner, or empty
 * @remedy: how to free it, or empty
 */
void warning_of_port(const char *device, uint8_t port_num, int err, const char *what,
		     const char *remedy);

/** warning_of_port_lost() - cmportd has lost a port. */
void warning_of_port_lost(const char *device, uint8_t port_num, int err);

/** warning_of_removal() - a device is gone. */
void warning_of_removal(const char *device);

/** warning_of_cmportd() - cmportd cannot be reached or started. @why: text, or empty */
void warning_of_cmportd(const char *why, int err);

/** warning_of_cmportd_lost() - cmportd has ended, and no other was found. */
void warning_of_cmportd_lost(int err);

/** warning_of_claim() - another process has taken a port. @port: in host byte order */
void warning_of_claim(uint16_t port, int err);

/** warning_of_untracked() - out of memory: cmportd cannot end connections after this process. */
void warning_of_untracked(void);

/** warning_of_requests() - out of memory: requests of peers are dropped. */
void warning_of_requests(void);

/** warning_of_event() - out of memory: an event is lost. */
void warning_of_event(enum rdma_cm_event_type type);

/** warning_of_new_id() - the id of a request could not be attached to device and path. */
void warning_of_new_id(int err);

/** warning_of_queue_pair() - a device refused to move a queue pair to @state. */
void warning_of_queue_pair(uint32_t qp_num, enum ibv_qp_state state, int err);

/**
 * warning_of_no_queue_pair() - a device has no queue pair as the program wants it
 * @attr: limits of the device
 */
void warning_of_no_queue_pair(const struct ibv_qp_cap *cap, const struct ibv_device_attr *attr,
			      int err);

/** warning_of_private_data() - private data are longer than the room in the message. */
void warning_of_private_data(size_t bytes, size_t room);

/** warning_of_failure() - an address or a route has failed. @text: from failure.c */
void warning_of_failure(const char *text);

/** warning_of_ibacm() - ibacm sent an invalid response. */
void warning_of_ibacm(int err);

/** warning_of_peer() - a socket's peer violated the protocol. @message: the message */
void warning_of_peer(int fd, enum socket_lie lie, uint32_t message);

/** warning_of_tcp() - librspreload.so: a connection uses TCP. @why: text */
void warning_of_tcp(const char *host, const char *port, const char *why);

/** warning_of_tcp_listener() - librspreload.so: this process does not listen over RDMA. */
void warning_of_tcp_listener(int fd, int err);

/** warning_of_lost() - librspreload.so: connections end by a call that takes their process. */
void warning_of_lost(const char *call);

/** warning_of_variable() - an environment variable has an invalid value. */
void warning_of_variable(const char *name, const char *text);

#endif
