/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing in a form that is the same in two runs: pointers become set/NULL or the label of the id,
 * queue pair numbers become set/0, ephemeral ports become "ephemeral".
 */
#ifndef PARITY_SHOW_H
#define PARITY_SHOW_H

#include "parity.h"

/* Evaluate a call that returns 0 or -1/errno, print it with its result, and yield the result. */
#define DO(call) (errno = 0, show_call(#call, (call)))

/* Prints one line: a sentence and a number. */
#define SAY(...) (printf(__VA_ARGS__), (void)putchar('\n'))

/**
 * show_call() - print a call and its outcome: 0, a positive value, or -1 and errno's name
 * @what:   the text of the call
 * @result: what it returned; errno is read here
 *
 * Return: @result.
 */
int show_call(const char *what, int result);

/**
 * assign_id_name() - give an id a label for everything printed later
 * @id:    the id
 * @label: a string that outlives it
 */
void assign_id_name(const struct rdma_cm_id *id, const char *label);

/**
 * id_name() - the label of an id
 * @id: may be NULL
 *
 * Return: its label, "unnamed", or "NULL".
 */
const char *id_name(const struct rdma_cm_id *id);

/**
 * show_event() - print an event with every field that its type defines
 * @event: an event that has not been acknowledged yet
 */
void show_event(const struct rdma_cm_event *event);

/**
 * show_id() - print every visible field of an id
 * @id: the id
 */
void show_id(const struct rdma_cm_id *id);

/**
 * show_address() - print "what family address port"
 * @what: a label
 * @addr: IPv4, IPv6, or an all-zero address
 */
void show_address(const char *what, const struct sockaddr *addr);

/**
 * show_qp_attr() - print the attributes that a mask selects
 * @attr: attributes
 * @mask: enum ibv_qp_attr_mask
 */
void show_qp_attr(const struct ibv_qp_attr *attr, int mask);

/**
 * show_ah() - print an address vector, one line
 * @what: a label
 * @ah:   the address vector
 */
void show_ah(const char *what, const struct ibv_ah_attr *ah);

/**
 * has_flow_of_ports() - set the ports that a flow label may be derived from
 * @src_port: the active side's port, network byte order
 * @dst_port: the passive side's port, network byte order
 *
 * An ephemeral port makes the flow label differ from run to run; a label that follows from the two
 * ports is printed as "from-ports".
 */
void has_flow_of_ports(uint16_t src_port, uint16_t dst_port);

#endif
