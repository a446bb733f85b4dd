/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cmportd for this process only: see inline.h.
 *
 * The server's thread holds one lock during its turns, and releases it while waiting. So fork()
 * finds the server between two turns, and the child can close its copies of the server's
 * descriptors, which would otherwise outlive the parent.
 */
#include "lib/portd/inline.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "lib/portd/proto/port_file.h"
#include "lib/portd/server/server.h"

#define END_WAIT_MS  2000 /* for the end of a previous server */
#define FORK_WAIT_MS 1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below, and the server */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct server *server; /* NULL: none runs */
static bool is_exiting;
static __thread bool is_held __attribute__((tls_model("initial-exec"))); /* by the forking thread */

/* Turns are short, so an exiting or forking thread does not wait for long. */
static bool lock_within(int ms)
{
	const struct timespec look = { .tv_nsec = 1000000 };

	for (; pthread_mutex_trylock(&lock); ms--) {
		if (ms <= 0)
			return false;
		nanosleep(&look, NULL);
	}
	return true;
}

/* --- thread --------------------------------------------------------------- */

static void unlock_server(void)
{
	pthread_mutex_unlock(&lock);
}

static void lock_server(void)
{
	pthread_mutex_lock(&lock);
}

static void *run_server(void *arg)
{
	pthread_setname_np(pthread_self(), "purecm-cmportd");
	pthread_mutex_lock(&lock);
	server_serve(arg);
	server = NULL;
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Return: 0 when no server runs; -ETIMEDOUT; the lock is held. */
static int await_end(const struct timespec *until)
{
	int err = 0;

	while (server && !err)
		err = pthread_cond_clockwait(&ended, &lock, CLOCK_MONOTONIC, until);
	return server ? -ETIMEDOUT : 0;
}

/* --- forks --------------------------------------------------------------- */

static void hold_server(void)
{
	if (lock_within(FORK_WAIT_MS))
		is_held = true;
}

static void let_server_run(void)
{
	if (!is_held)
		return;
	is_held = false;
	pthread_mutex_unlock(&lock);
}

/* The parent's server continues there. Its memory is leaked in the child on purpose. */
static void forget_server(void)
{
	if (is_held && server)
		server_after_fork(server);
	is_held = false;
	server = NULL;
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&ended, NULL);
}

static void handle_forks(void)
{
	static bool are_handled;

	if (!are_handled)
		pthread_atfork(hold_server, let_server_run, forget_server);
	are_handled = true;
}

/* --- client --------------------------------------------------------------- */

static int start_server(int client_fd)
{
	const struct server_options options = { .unlock = unlock_server,
						.lock = lock_server,
						.client_fd = client_fd,
						.stop_fd = -1,
						.reload_fd = -1,
						.port_file = port_file_path };
	int err;

	err = server_start(&options, &server);
	if (err)
		return err;
	err = thread_start(run_server, server);
	if (err) {
		server_drop(server);
		server = NULL;
	}
	return err;
}

static int connect_locked(int *ret_fd)
{
	const struct timespec until = clock_after_ms(END_WAIT_MS);
	int pair[2];
	int err;

	if (is_exiting)
		return -ESHUTDOWN;
	if (await_end(&until))
		return -EBUSY;
	handle_forks();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = start_server(pair[0]);
	if (err) {
		close(pair[1]);
		return err;
	}
	*ret_fd = pair[1];
	return 0;
}

int inline_connect(int *ret_fd, struct portd_why *ret_why)
{
	int err;

	pthread_mutex_lock(&lock);
	err = connect_locked(ret_fd);
	pthread_mutex_unlock(&lock);
	if (err)
		snprintf(ret_why->text, sizeof(ret_why->text),
			 "this process cannot be its own cmportd");
	return err;
}

void inline_end(int ms)
{
	const struct timespec until = clock_after_ms((unsigned int)ms);

	if (!lock_within(ms))
		return;
	is_exiting = true;
	await_end(&until);
	pthread_mutex_unlock(&lock);
}
