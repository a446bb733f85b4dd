/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by both sides of the connect benchmark. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

#define BENCH_PORT "7471"

/* Options from the command line. */
struct bench_options {
	const char *address; /* client: the server's; server: its own, or NULL for any */
	const char *counts;  /* client: connections at a time, such as "1,100,1000" */
	bool fake_qpn;	     /* no queue pairs: measures the connection manager alone */
};

/**
 * bench_client() - measure each step for each count, print one line for each
 * @options: the command line
 *
 * Return: exit status.
 */
int bench_client(const struct bench_options *options);

/**
 * bench_server() - accept until SIGTERM, print this side's time after each burst
 * @options: the command line
 *
 * Return: exit status.
 */
int bench_server(const struct bench_options *options);

/**
 * bench_die() - print what failed and errno, end the process with status 1
 * @format: as for printf
 */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/**
 * bench_now_us() - the monotonic clock
 *
 * Return: microseconds.
 */
double bench_now_us(void);

/**
 * bench_address() - parse a numeric address
 * @text:    the address, or NULL for the IPv6 wildcard, which includes IPv4
 * @address: the result
 */
void bench_address(const char *text, struct sockaddr_storage *address);

/**
 * bench_create_qp() - create a queue pair for an id, with a completion queue shared by the whole
 * process
 * @id: an id with a device
 */
void bench_create_qp(struct rdma_cm_id *id);

/**
 * bench_fake_qpn() - make a number for a connection without a queue pair
 *
 * Return: 24 bits, different at each call.
 */
uint32_t bench_fake_qpn(void);

#endif
