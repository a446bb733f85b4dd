/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running scenarios on two hosts in step. A TCP connection between the two parity programs carries
 * the scenario to run, the points where both sides wait for each other, small values that they
 * exchange, and the server's output.
 */
#ifndef PARITY_CONDUCT_H
#define PARITY_CONDUCT_H

#include "parity.h"

/**
 * meet() - wait until the other side's process of this scenario has reached this point
 * @s: the scene; ends the process with a message when the other side has ended
 */
void meet(struct scene *s);

/**
 * swap() - meet() and exchange a value
 * @s:      the scene
 * @mine:   @size bytes for the other side
 * @theirs: out: the other side's @size bytes
 * @size:   at most 256
 */
void swap(struct scene *s, const void *mine, void *theirs, size_t size);

/**
 * give_up() - print why this scenario cannot go on, and end its process
 * @format: as for printf
 */
void give_up(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/**
 * open_channel() - create the scene's event channel, for a scenario that starts without one
 * @s: the scene
 */
void open_channel(struct scene *s);

/**
 * run_local() - run a scenario without a server side, print its output
 * @scenario: the scenario
 * @self:     an address of this host, port 0
 * @peer:     an address of the other host, port 0
 *
 * Return: 0, or 1 when the scenario's process failed.
 */
int run_local(const struct scenario *scenario, const struct sockaddr_storage *self,
	      const struct sockaddr_storage *peer);

/**
 * run_pair() - run a scenario here and at the server, print both outputs
 * @scenario: the scenario
 * @self:     an address of this host, port 0
 * @peer:     an address of the other host, port 0
 * @control:  connection to the parity server
 *
 * Return: 0, or 1 when one of the two processes failed; -1 when the server is gone.
 */
int run_pair(const struct scenario *scenario, const struct sockaddr_storage *self,
	     const struct sockaddr_storage *peer, int control);

/**
 * serve_control() - run the scenarios that a client asks for until it hangs up
 * @control: connection from the parity client
 *
 * Return: 0, or -1 after an invalid frame of the client.
 */
int serve_control(int control);

/** now_ms() - the milliseconds since a fixed point in time */
int64_t now_ms(void);

#endif
