/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/umad.c on a real port, for umad_lab.py: opens the port and prints the result, and sends DREPs
 * without a receiver to a GID of the port itself, to receive them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mad/cm_msg.h"
#include "mad/umad.h"

#define ARRIVAL_TIMEOUT_MS 20000
#define REMOVAL_TURNS	   1000
#define REMOVAL_TURN_US	   10000

struct load {
	struct mad_port *port;
	struct mad_path path;
	uint32_t comm_id; /* of the first message */
	int count;
	int err;
};

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

static void *send_load(void *arg)
{
	struct load *load = arg;

	for (int i = 0; i < load->count && !load->err; i++) {
		uint8_t mad[MAD_BYTES];
		struct cm_msg msg;

		cm_msg_init(&msg, CM_ATTR_DREP, 0);
		msg.drep.local_comm_id = load->comm_id + i;
		cm_msg_encode(&msg, mad);
		load->err = mad_port_send(load->port, &load->path, mad);
	}
	return NULL;
}

/* Return: the comm id of the next message, or -errno. */
static int64_t receive_one(struct mad_port *port, struct mad_path *path)
{
	struct pollfd poll_fd = { .fd = port->fd, .events = POLLIN };
	uint8_t mad[MAD_BYTES];
	struct cm_msg msg;
	int err;

	if (poll(&poll_fd, 1, ARRIVAL_TIMEOUT_MS) != 1)
		return -ETIMEDOUT;
	err = mad_port_receive(port, path, mad);
	if (err)
		return err;
	err = cm_msg_decode(mad, sizeof(mad), &msg);
	return err ? err : (int64_t)msg.drep.local_comm_id;
}

/* Receives each message once. Return: 0 or -errno. */
static int receive_load(struct mad_port *port, const struct mad_path *sent, int count,
			int64_t *ret_gap_us)
{
	char *seen = calloc(count, 1);
	int64_t last_us = now_us(), gap_us = 0;
	int err = 0;

	for (int i = 0; i < count && !err; i++) {
		struct mad_path path;
		int64_t id = receive_one(port, &path);

		if (id < 0 || id >= count)
			err = id < 0 ? id : -ERANGE;
		else if (seen[id]++)
			err = -EEXIST;
		else if (memcmp(&path.dgid, &sent->dgid, sizeof(path.dgid)) || !path.grh ||
			 path.sgid_index != sent->sgid_index)
			err = -EADDRNOTAVAIL;
		if (now_us() - last_us > gap_us)
			gap_us = now_us() - last_us;
		last_us = now_us();
	}
	free(seen);
	*ret_gap_us = gap_us;
	return err;
}

static struct mad_path path_to(const char *gid, int index)
{
	struct mad_path path = { .grh = true, .sgid_index = index, .hop_limit = 64 };

	if (inet_pton(AF_INET6, gid, path.dgid.raw) != 1) {
		fprintf(stderr, "umad_probe: %s is not a GID\n", gid);
		exit(2);
	}
	return path;
}

/* @stray: a GID without an owner, or NULL; a message is sent to it meanwhile */
static int loop(struct mad_port *port, struct mad_path path, int count, int n_threads,
		const char *stray)
{
	struct load load[8], lost = { .port = port, .count = 1 };
	int64_t start_us = now_us(), gap_us;
	pthread_t thread[8], lost_thread;
	int err;

	if (stray) {
		lost.path = path_to(stray, path.sgid_index);
		pthread_create(&lost_thread, NULL, send_load, &lost);
		usleep(100000);
	}
	for (int i = 0; i < n_threads; i++) {
		load[i] = (struct load){ .port = port, .path = path, .count = count / n_threads };
		load[i].comm_id = i * load[i].count;
		pthread_create(&thread[i], NULL, send_load, &load[i]);
	}
	err = receive_load(port, &path, count, &gap_us);
	printf("%d in %lld us, longest gap %lld us\n", count, (long long)(now_us() - start_us),
	       (long long)gap_us);
	for (int i = 0; i < n_threads; i++) {
		pthread_join(thread[i], NULL);
		err = err ? err : load[i].err;
	}
	if (stray) {
		pthread_join(lost_thread, NULL);
		printf("to nobody: %s\n", lost.err ? strerrorname_np(-lost.err) : "accepted");
	}
	return err;
}

/* Owns the port until it is killed or the device is removed. */
static int hold(struct mad_port *port)
{
	struct pollfd poll_fd = { .fd = port->fd, .events = POLLIN };
	uint8_t mad[MAD_BYTES] = { 0 };
	struct mad_path path = { 0 };
	int err = -EAGAIN;

	puts("held");
	fflush(stdout);
	while (err == -EAGAIN && poll(&poll_fd, 1, -1) > 0)
		err = mad_port_receive(port, &path, mad);
	printf("receive: %s\n", strerrorname_np(-err));
	/* The kernel blocks one descriptor after the other, and we send on others. */
	for (int i = 0; i < REMOVAL_TURNS; i++) {
		err = mad_port_send(port, &path, mad);
		if (err == -ENODEV)
			break;
		usleep(REMOVAL_TURN_US);
	}
	printf("send: %s\n", strerrorname_np(-err));
	return 0;
}

static int usage(void)
{
	fputs("usage: umad_probe DEVICE open | hold | loop GID INDEX COUNT THREADS [STRAY-GID]\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct umad_owner who = { .what = "", .remedy = "" };
	struct mad_port *port;
	int err;

	if (argc < 3)
		return usage();
	err = umad_port_open(argv[1], 1, &port, &who);
	if (err) {
		printf("%s: %s; %s\n", strerrorname_np(-err), who.what, who.remedy);
		return 1;
	}
	if (!strcmp(argv[2], "open"))
		puts("opened");
	else if (!strcmp(argv[2], "hold"))
		err = hold(port);
	else if (!strcmp(argv[2], "loop") && argc >= 7)
		err = loop(port, path_to(argv[3], atoi(argv[4])), atoi(argv[5]), atoi(argv[6]),
			   argc > 7 ? argv[7] : NULL);
	else
		return usage();
	mad_port_close(port);
	if (err)
		printf("failed: %s\n", strerrorname_np(-err));
	return err ? 1 : 0;
}
