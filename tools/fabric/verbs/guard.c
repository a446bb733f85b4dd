/* SPDX-License-Identifier: BSD-2-Clause */
/* Access to memory that may be unmapped: see guard.h. */
#include "tools/fabric/verbs/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

static struct sigaction before[2];
/* Not allocated at first use, which may be in a signal handler. */
static __thread sigjmp_buf *way_out __attribute__((tls_model("initial-exec")));

/* As the kernel does: a handler without SA_SIGINFO has all three arguments, too. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
	const struct sigaction *action = &before[signal_number == SIGBUS];
	bool is_sent = info->si_code <= 0;

	if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
		action->sa_sigaction(signal_number, info, context);
		return;
	}
	if (is_sent && action->sa_handler == SIG_IGN)
		return;
	/* The access is repeated, and ends the process with the right signal. */
	sigaction(signal_number, action, NULL);
	if (is_sent)
		raise(signal_number);
}

/* A code above 0: from the kernel, for an access of this thread. */
static void handle_fault(int signal_number, siginfo_t *info, void *context)
{
	if (!way_out || info->si_code <= 0) {
		pass_on(signal_number, info, context);
		return;
	}
	pthread_sigmask(SIG_SETMASK, &((ucontext_t *)context)->uc_sigmask, NULL);
	siglongjmp(*way_out, 1);
}

static void install_for(int signal_number)
{
	struct sigaction *old = &before[signal_number == SIGBUS], action;

	sigaction(signal_number, NULL, old);
	action = *old;
	action.sa_flags = (old->sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
	action.sa_sigaction = handle_fault;
	sigaction(signal_number, &action, NULL);
}

static void install_all(void)
{
	install_for(SIGSEGV);
	install_for(SIGBUS);
}

void guard_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install_all);
}

bool guard_run(void (*access)(void *arg), void *arg)
{
	sigjmp_buf here;

	if (sigsetjmp(here, 0)) {
		way_out = NULL;
		return false;
	}
	way_out = &here;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	access(arg);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	way_out = NULL;
	return true;
}
