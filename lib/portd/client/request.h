/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of cmportd, seen from inside: request.c finds cmportd and asks, resume.c finds the next
 * one, client.c is the rest of client.h.
 */
#ifndef LIB_PORTD_CLIENT_REQUEST_H
#define LIB_PORTD_CLIENT_REQUEST_H

#include <pthread.h>

#include "lib/portd/client/client.h"
#include "lib/portd/proto/lease.h"
#include "lib/portd/proto/socket_path.h"

#define BLOCKS_MAX 64
#define PORTS_MAX  64

struct open_port {
	char device[PORTD_DEVICE_BYTES];
	uint8_t port_num;
};

struct portd_client {
	pthread_mutex_t lock; /* of all that follows, down to the next one */
	pthread_cond_t resumed;
	unsigned int life; /* counts resumptions */
	bool visits;	   /* starts no cmportd, wants no comm ids */
	int (*reach)(int *ret_fd, struct portd_why *ret_why); /* NULL: at its path */
	bool broken;
	int control_fd;
	struct lease_page *page;
	int page_fd;
	unsigned int lease_count;      /* how many to ask for next */
	int n_free[LEASE_SPACES];      /* ports on the page, an estimate; atomic */
	bool has_leased[LEASE_SPACES]; /* ever; atomic */
	unsigned int n_blocks;
	struct portd_ids block[BLOCKS_MAX];
	unsigned int n_ports;
	struct open_port port[PORTS_MAX];
	char path[SOCKET_PATH_BYTES];

	int data_fd;

	pthread_mutex_t held_lock;
	struct portd_datagram held; /* what is to leave before the next messages, or with them */
};

/**
 * request_start() - connect to cmportd, started if need be, and say HELLO; the lock is held, or
 * nobody else knows the client yet
 * @resumes: with the page that the client has
 * @ret_ids: the first block; unused if it resumes
 *
 * Return: as portd_client_open().
 */
int request_start(struct portd_client *client, bool resumes, struct portd_ids *ret_ids,
		  struct portd_why *ret_why);

/**
 * request_exchange() - one record, and the answer if it gets one; the lock is held
 * @fd:     to be sent along, or -1
 * @ret_fd: two, that came along, or -1; owned by the caller. NULL: none is expected, and what came
 *          is closed. Untouched if there was no answer
 *
 * Return: 0 when there is an answer, whatever it is; else cmportd is gone.
 */
int request_exchange(struct portd_client *client, const struct portd_record *record, int fd,
		     struct portd_reply *ret, int ret_fd[2]);

/** request_ask() - ask, of the next cmportd if this one dies. Return: 0 or -errno, also its. */
int request_ask(struct portd_client *client, const struct portd_record *record,
		struct portd_reply *ret);

/** request_ask_with() - the same, with a descriptor that goes along, or -1 */
int request_ask_with(struct portd_client *client, const struct portd_record *record, int fd,
		     struct portd_reply *ret);

/**
 * request_prove() - what goes along with BIND: see net/low_port.h
 *
 * Return: a descriptor of the caller's; -1 if the port is not privileged or the thread may not have
 * it, which cmportd decides.
 */
int request_prove(const struct portd_claim *claim);

/** request_tell() - a record that is not answered. */
void request_tell(struct portd_client *client, const struct portd_record *record);

/** request_send() - put a record on a control socket. Return: 0 or -errno. */
int request_send(int to, const struct portd_record *record, int fd);

/** open_record() - the question for a port */
struct portd_record open_record(const char *device, uint8_t port_num);

#endif
