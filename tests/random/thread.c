/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second thread of an end. Only the one whose turn it is goes on: the thread during a line of
 * its own, the first one otherwise. A call that waits for what others do leaves the turn meanwhile.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "player.h"

#define ROUNDS 4 /* after which a call of the thread waits for others */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static sem_t has_line, has_begun;
static char line_of_thread[LINE_BYTES];
static bool is_busy; /* under turn */
static _Thread_local bool is_thread;
static _Thread_local char **its_words;
static _Thread_local struct slot *its_slot;

bool is_in_thread(void)
{
	return is_thread;
}

void leave_turn(struct play *p)
{
	if (!is_thread)
		return;
	its_words = p->words;
	its_slot = p->slot;
	if (its_slot)
		its_slot->is_busy = true;
	pthread_mutex_unlock(&turn);
}

int enter_turn(struct play *p, int result)
{
	int cause = errno;

	if (is_thread) {
		pthread_mutex_lock(&turn);
		p->words = its_words;
		p->slot = its_slot;
		if (its_slot)
			its_slot->is_busy = false;
		printf("  thread: %s", its_words[0]);
	}
	errno = cause;
	return result;
}

static void *be_thread(void *arg)
{
	struct play *p = arg;
	char line[LINE_BYTES];
	sigset_t all;

	sigfillset(&all); /* they are for the first thread's calls */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	is_thread = true;
	for (;;) {
		sem_wait(&has_line);
		pthread_mutex_lock(&turn);
		sem_post(&has_begun);
		strcpy(line, line_of_thread);
		play_line(p, line);
		is_busy = false;
		pthread_mutex_unlock(&turn);
	}
	return NULL;
}

static void start_thread(struct play *p)
{
	static bool is_there;
	pthread_t thread;

	if (is_there)
		return;
	is_there = true;
	sem_init(&has_line, 0, 0);
	sem_init(&has_begun, 0, 0);
	pthread_mutex_lock(&turn);
	pthread_create(&thread, NULL, be_thread, p);
}

void let_thread_go_on(struct play *p)
{
	int i;

	for (i = 0; i < 4 && is_busy; i++) {
		p->is_settled = false;
		pthread_mutex_unlock(&turn);
		take_pause(p);
		pthread_mutex_lock(&turn);
	}
}

void hand_over(struct play *p, const char *line)
{
	int i;

	start_thread(p);
	if (is_busy) {
		SAY(" the thread is in a call");
		return;
	}
	strcpy(line_of_thread, line);
	is_busy = true;
	p->is_settled = false;
	putchar('\n');
	sem_post(&has_line);
	pthread_mutex_unlock(&turn);
	sem_wait(&has_begun);
	pthread_mutex_lock(&turn);
	for (i = 0; i < ROUNDS && is_busy; i++) {
		p->is_settled = false;
		settle(p);
		let_thread_go_on(p);
	}
	if (is_busy)
		SAY("  it waits");
}
