/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which socket each of the program's descriptors stands for. One that the preload library made is
 * open on /dev/null and stands for a socket of ours, which may change behind it. A listener has a
 * TCP socket besides, for peers without RDMA.
 */
#ifndef PRELOAD_MAP_H
#define PRELOAD_MAP_H

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/time.h"

#define MAP_FD_MAX 65535

struct sock {
	int refs; /* atomic: descriptors that stand for it */
	int rs;	  /* the socket of ours */
	int tcp;  /* TCP socket on the same port; -1: none */
	int domain;
	int type; /* with flags, as the program said */
	int protocol;
	int repoll;		  /* that has it, and tcp once it listens; -1: none */
	int epfd;		  /* beside which that instance is */
	struct epoll_event asked; /* by epoll_ctl() */
	bool is_repoll; /* the descriptor is an epoll one; rs: an instance of repoll beside it */
	struct sockaddr_storage target; /* of a pending connect() */
	socklen_t target_bytes;		/* 0: there is none */
	struct cm_time give_up;		/* when to try TCP */
	struct sock *next;		/* in the list of unused ones */
};

/** map_get() - Return: what a descriptor stands for, or NULL if for itself. */
struct sock *map_get(int fd);

/**
 * map_new() - a descriptor that stands for a socket
 * @rs: the socket, closed by map_forget()
 *
 * Return: the descriptor, or -1 with errno set; the socket is then still the caller's.
 */
int map_new(int rs, int domain, int type, int protocol);

/** map_become() - a TCP descriptor stands for a socket from now on. Return: 0, or -1; as it was. */
int map_become(int fd, int rs);

/** map_epoll() - an instance of repoll beside an epoll descriptor. Return: 0, or -1. */
int map_epoll(int epfd, int repoll);

/**
 * map_alias() - a duplicate, which is open already, stands for the same
 *
 * Return: 0; -1 with EMFILE if its number is beyond MAP_FD_MAX: it is closed then.
 */
int map_alias(int fd, struct sock *sock);

/** map_forget() - the descriptor stands for itself; the last closes the sockets behind. */
void map_forget(int fd);

/** map_swap() - from now on, the descriptor is this TCP socket, whose own number is closed. */
int map_swap(int fd, int tcp);

#endif
