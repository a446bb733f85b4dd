/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SOCKET.ports: which client holds each port, for the next cmportd. While clients of the previous
 * one may resume, a port is reserved for its holder: otherwise another client that resumes earlier
 * could bind it.
 *
 * One number per port: the first block of comm ids of the client, which shows the block's secret
 * when it resumes; 0 for none. Any content is safe, as a wrong number only makes others wait.
 */
#ifndef LIB_PORTD_SERVER_FILES_PORT_HOLDERS_H
#define LIB_PORTD_SERVER_FILES_PORT_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/net/port_space.h"

#define PORT_HOLDERS_SUFFIX  ".ports" /* after the socket's path */
#define PORT_HOLDERS_SEVERAL UINT16_MAX

/**
 * port_holders_map() - map the file
 * @fd: owned by the callee
 *
 * Return: the table, to be released with port_holders_unmap(); NULL without room, which is logged.
 */
uint16_t *port_holders_map(int fd);

/** port_holders_unmap() - unmap the file; NULL is allowed */
void port_holders_unmap(uint16_t *table);

/**
 * port_holders_note() - record the latest holder of a port
 * @table: NULL is allowed, here and below
 *
 * If the port has other holders, too, it is recorded as PORT_HOLDERS_SEVERAL, and the next cmportd
 * reserves it for nobody.
 */
void port_holders_note(uint16_t *table, const struct port_space *space, uint16_t ps, uint16_t port,
		       uint16_t block);

/** port_holders_forget() - record that a port has no holder, unless it still has one */
void port_holders_forget(uint16_t *table, const struct port_space *space, uint16_t ps,
			 uint16_t port);

/** port_holders_reserve() - reserve all recorded ports for their holders */
void port_holders_reserve(const uint16_t *table, struct port_space *space);

/** port_holders_end() - end those reservations, and forget ports that nobody has taken again */
void port_holders_end(uint16_t *table, struct port_space *space);

/** port_holders_reserves() - return whether a port is reserved for another client */
bool port_holders_reserves(const struct port_space *space, uint16_t ps, uint16_t port,
			   uint16_t block);

/**
 * port_holders_give() - end the reservation of a port if it is for this client
 *
 * Return: false if the port is reserved for another one.
 */
bool port_holders_give(struct port_space *space, uint16_t ps, uint16_t port, uint16_t block);

#endif
