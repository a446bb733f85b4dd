/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints every error text of the library, as the end of docs/troubleshooting.md, by calling the
 * functions that make them. state_table.py compares it with the page; errors.py checks that no
 * function is left out.
 */
#include <errno.h>
#include <pthread.h>
#include <purecm/purecm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/diag/failure.h"
#include "lib/diag/warning.h"

#define TEXT_BYTES  512
#define ERRNO_MAX   133
#define REASONS_MAX 64
#define LINE_BYTES  1024

static const char intro[] =
	"## Texts of the library\n"
	"\n"
	"A program that calls the functions which make the texts prints the rest of this page; names\n"
	"and numbers are examples.\n";

/* --- failures ------------------------------------------------------------ */

static struct id id = { .lock = PTHREAD_MUTEX_INITIALIZER };
static union addr local, peer;

static void set_addr(union addr *addr, uint32_t host, uint16_t port)
{
	addr_set_any(addr, AF_INET);
	addr->in4.sin_addr.s_addr = htonl(host);
	addr_set_port(addr, port);
}

static void address(int err)
{
	failure_of_address(&id, &local, err);
}

static void port(int err)
{
	failure_of_port(&id, &local, err);
}

static void route(int err)
{
	failure_of_route(&id, &peer, err);
}

static void device(int err)
{
	failure_of_device(&id, &peer, &id.path.route, err);
}

static void path(int err)
{
	failure_of_path(&id, err);
}

static void loopback(int err)
{
	id.path.loopback = true;
	failure_of_path(&id, err);
	id.path.loopback = false;
}

static void neighbour(int err)
{
	(void)err;
	failure_of_neighbour(&id);
}

static void gateway(int err)
{
	id.path.route.gateway = true;
	neighbour(err);
}

static void move(int err)
{
	static const uint8_t from[] = { 2, 0, 0, 0, 0, 1 }, to[] = { 2, 0, 0, 0, 0, 2 };

	(void)err;
	failure_of_move(&id, from, to);
}

static void answer(int err)
{
	(void)err;
	failure_of_answer(&id);
}

static void print_failure(int err)
{
	char text[TEXT_BYTES];

	if (purecm_last_failure(&id.pub, text, sizeof(text)))
		abort();
	printf("- %s: %s\n", strerrorname_np(err), text);
}

/* Errors with texts of their own; other codes use strerror(). */
static void print_phrases(void (*fail)(int err))
{
	char text[TEXT_BYTES];
	int err;

	for (err = 1; err <= ERRNO_MAX; err++) {
		fail(-err);
		if (purecm_last_failure(&id.pub, text, sizeof(text)))
			abort();
		if (!strstr(text, strerror(err)))
			print_failure(err);
	}
}

static void print_one(void (*fail)(int err), int err)
{
	fail(-err);
	print_failure(err);
}

static void print_failures(void)
{
	set_addr(&local, 0xc0000201, 7174);
	set_addr(&peer, 0xc0000202, 7174);
	id.claim.local = local;
	id.claim.peer = peer;
	set_addr(&id.path.route.src, 0xc0000201, 0);
	set_addr(&id.path.route.next_hop, 0xc0000202, 0);
	printf("\n## Addresses and routes: purecm_last_failure()\n\n"
	       "For any other errno the text of strerror(3) follows the colon.\n\n");
	print_phrases(address);
	print_phrases(port);
	print_phrases(route);
	print_one(device, ENODEV);
	print_one(neighbour, ETIMEDOUT);
	print_one(gateway, ETIMEDOUT);
	print_one(move, ETIMEDOUT);
	print_one(answer, ETIMEDOUT);
	print_one(loopback, ENODEV);
	print_one(path, ENETUNREACH);
	id.path.route.ifindex = 1;
	print_one(path, EINVAL);
	free(id.failure);
}

/* --- warnings ------------------------------------------------------------ */

static void warn_of_all(void)
{
	struct ibv_qp_cap cap = { .max_send_wr = 100000, .max_recv_wr = 64 };
	struct ibv_device_attr attr = { .max_qp_wr = 16384, .max_sge = 32, .max_qp = 1024 };
	int lie;

	cap.max_send_sge = cap.max_recv_sge = 1;
	warning_of_device("rxe0", -EACCES);
	warning_of_no_device();
	warning_of_port("rxe0", 1, -EBUSY, "kernel module ib_cm", "modprobe -r rdma_cm ib_cm");
	warning_of_port("rxe0", 1, -ENXIO, "", "");
	warning_of_port_lost("rxe0", 1, -EADDRINUSE);
	warning_of_removal("rxe0");
	warning_of_cmportd("cmportd at /run/purecm/cmportd.sock cannot be reached", -EACCES);
	warning_of_cmportd_lost(-ENOENT);
	warning_of_claim(7174, -EADDRINUSE);
	warning_of_untracked();
	warning_of_requests();
	warning_of_event(RDMA_CM_EVENT_DISCONNECTED);
	warning_of_new_id(-ENODEV);
	warning_of_queue_pair(0x12, IBV_QPS_RTR, -EINVAL);
	warning_of_no_queue_pair(&cap, &attr, -EINVAL);
	warning_of_private_data(57, 56);
	warning_of_failure("a text of purecm_last_failure()");
	warning_of_ibacm(-EPROTO);
	warning_of_tcp("192.0.2.2", "8000", "it did not answer over RDMA lately");
	warning_of_tcp_listener(5, -EADDRINUSE);
	warning_of_lost("exec");
	warning_of_variable("PURECM_RETRIES", "many");
	for (lie = 0; lie < SOCKET_N_LIES; lie++)
		warning_of_peer(3, (enum socket_lie)lie, 0x20000001);
}

/* Warnings go to standard error, which is a file here, and are read from it. */
static void print_warnings(void)
{
	char line[LINE_BYTES];
	FILE *kept = tmpfile();
	char *said;

	if (!kept || dup2(fileno(kept), STDERR_FILENO) < 0)
		abort();
	warn_of_all();
	rewind(kept);
	printf("\n## Warnings: PURECM_LOG=warn\n\n");
	while (fgets(line, sizeof(line), kept)) {
		said = strstr(line, "warn: ");
		if (!said)
			abort();
		printf("- %s", said + strlen("warn: "));
	}
	fclose(kept);
}

/* --- texts about peers --------------------------------------------------- */

static void print_answers(const char *title, const char *(*text_of)(int code), int from)
{
	const char *reserved = text_of(REASONS_MAX);
	int code;

	printf("\n## %s\n\n", title);
	for (code = from; code < REASONS_MAX; code++) {
		if (strcmp(text_of(code), reserved))
			printf("- %d: %s\n", code, text_of(code));
	}
	printf("- any other: %s\n", reserved);
}

int main(void)
{
	if (setenv("PURECM_LOG", "warn", 1)) /* the variable is read once */
		return 1;
	fputs(intro, stdout);
	print_failures();
	print_answers("The peer rejects: RDMA_CM_EVENT_REJECTED, purecm_reject_str()",
		      purecm_reject_str, 1);
	print_answers("The peer does not offer a datagram service: RDMA_CM_EVENT_UNREACHABLE, "
		      "purecm_sidr_str()",
		      purecm_sidr_str, 1);
	print_warnings();
	return 0;
}
