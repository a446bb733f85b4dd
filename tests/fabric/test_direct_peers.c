/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that need no packet: a peer that makes no calls receives them, and peers that stop, die or
 * forge grants. Runs on a host of a soft fabric: tests/fabric/meson.build.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/direct_rig.h"
#include "tests/unit/test.h"

#define ANSWERS 500

NEEDS(kernel_permits_writes);

/* --- peers that stop or die while they write --------------------------------- */

/* Return: a child that holds all locks of b's process. */
static pid_t start_writer(struct rig *rig)
{
	struct fab_grants *grants = grants_of(&rig->b);
	pid_t child;
	int ready[2];
	unsigned int i;
	char byte;

	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	for (i = 0; child == 0 && i < FAB_GRANTS; i++)
		ck_assert(fab_grant_trylock(&grants->grant[i]));
	if (child == 0) {
		ck_assert_int_eq(write(ready[1], "", 1), 1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	fab_grants_close(grants);
	return child;
}

TEST(region_is_deregistered_while_a_writer_is_stopped)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;
	pid_t child;

	open_permitted(&rig);
	child = start_writer(&rig);
	/* Other connections use packets meanwhile. */
	ck_assert_uint_ne(write_text(&rig, "elephant", 0), 0);
	wr = write_at(&rig, &sge, 0, BYTES);
	ck_assert_int_eq(ibv_dereg_mr(rig.b.mr), 0);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

TEST(writer_that_is_killed_releases_the_lock)
{
	struct rig rig;
	pid_t child;

	open_permitted(&rig);
	child = start_writer(&rig);
	ck_assert_uint_ne(write_text(&rig, "gazelles", 0), 0);
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert(write_until_permitted(&rig));
	rig_close(&rig);
}

TEST(stopped_process_gets_writes)
{
	struct shared *shared;
	struct rig rig;
	pid_t child;
	int status;

	shared_open(&shared);
	child = start_child(&rig, shared, sleep_for_ever);
	write_once(&rig, shared, 'e');
	ck_assert_int_eq(kill(child, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(WIFSTOPPED(status));
	write_once(&rig, shared, 'g');
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

TEST(writes_to_a_process_that_was_killed_fail)
{
	struct shared *shared;
	struct rig rig;
	pid_t child;

	shared_open(&shared);
	child = start_child(&rig, shared, sleep_for_ever);
	write_once(&rig, shared, 'e');
	write_once(&rig, shared, 'g');
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	write_to_peer(&rig, shared, 0, 0, 1);
	rig_wait(rig.a.cq, IBV_WC_RETRY_EXC_ERR);
}

/* --- peers that forge grants --------------------------------------------------- */

/* A forked child, with this process's memory at the same addresses. Return: its process id. */
static pid_t start_bystander(const char *memory, int go[2])
{
	pid_t child;
	char byte;

	ck_assert_int_eq(pipe(go), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child)
		return child;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	close(go[1]);
	_exit(read(go[0], &byte, 1) == 0 && memcmp(memory, "elephant", BYTES) == 0 ? 0 : 1);
}

TEST(changed_grant_does_not_redirect_writes_to_another_process)
{
	struct fab_grants *grants;
	struct rig rig;
	int status, go[2];
	pid_t child;

	open_permitted(&rig);
	grants = grants_of(&rig.b);
	child = start_bystander(rig.b.memory, go);
	grants->pid = child;
	write_text(&rig, "intruder", 0);
	close(go[1]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	fab_grants_close(grants);
	rig_close(&rig);
}

static struct fab_grant *find_valid(struct fab_grants *grants)
{
	unsigned int i;

	for (i = 0; i < FAB_GRANTS; i++)
		if (grants->grant[i].region[FAB_RIGHT_WRITE].rkey)
			return &grants->grant[i];
	ck_abort();
	return NULL;
}

TEST(write_to_a_grant_of_unmapped_memory_uses_a_packet)
{
	struct fab_grants *grants;
	struct rig rig;

	open_permitted(&rig);
	grants = grants_of(&rig.b);
	find_valid(grants)->region[FAB_RIGHT_WRITE].at = 4096;
	ck_assert_uint_ne(write_text(&rig, "gazelles", 0), 0);
	find_valid(grants)->region[FAB_RIGHT_WRITE].at = UINT64_MAX;
	ck_assert_uint_ne(write_text(&rig, "elephant", 0), 0);
	fab_grants_close(grants);
	rig_close(&rig);
}

/* Contents that a peer may have written to its file. */
enum lie {
	LIE_PID,
	LIE_ADDRESS,
	LIE_IOVA,
	LIE_BYTES,
	LIE_KEY,
	LIE_TURN,
	LIE_HOLDER,
	LIE_ALIVE,
	N_LIES
};

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void forge_grant(struct fab_grants *grants, struct fab_grant *grant, enum lie lie)
{
	uint64_t number = random_number() >> random_number() % 64;
	struct fab_granted *region = &grant->region[FAB_RIGHT_WRITE];
	unsigned char *alive = (unsigned char *)&grants->alive;

	switch (lie) {
	case LIE_PID:
		grants->pid = (int32_t)number;
		return;
	case LIE_ADDRESS:
		/* Otherwise it might hit the forger itself. */
		region->at = number | UINT64_C(1) << 62;
		return;
	case LIE_IOVA:
		region->iova ^= number << 32;
		return;
	case LIE_BYTES:
		region->bytes = number;
		return;
	case LIE_KEY:
		region->rkey = (uint32_t)number;
		return;
	case LIE_TURN:
		grant->turn = (uint32_t)number;
		return;
	case LIE_HOLDER:
		grant->holder = (uint32_t)number;
		return;
	case LIE_ALIVE:
		alive[number % sizeof(grants->alive)] = (unsigned char)(number >> 8);
		return;
	case N_LIES:
		break;
	}
}

static struct fab_grants *grants_of_child(const struct shared *shared)
{
	struct ibv_qp qp = { .qp_num = shared->qpn[1] };
	struct end child = { .qp = &qp };

	return grants_of(&child);
}

/* Each write arrives: without a packet, or, with an impossible grant, in one. */
TEST(writer_survives_any_forged_grant)
{
	struct fab_grants *grants, *copy = malloc(sizeof(*copy));
	struct shared *shared;
	struct rig rig;
	unsigned int i;
	pid_t child;

	shared_open(&shared);
	child = start_child(&rig, shared, sleep_for_ever);
	write_once(&rig, shared, 'e');
	grants = grants_of_child(shared);
	memcpy(copy, grants, sizeof(*copy));
	for (i = 0; i < 4500; i++) {
		forge_grant(grants, find_valid(copy) - copy->grant + grants->grant,
			    (enum lie)(i % N_LIES));
		write_once(&rig, shared, (char)i);
		memcpy(grants, copy, sizeof(*copy));
	}
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	free(copy);
}

/* --- programs that poll memory ----------------------------------------------- */

/* Lengths whose last number is stored in one piece on any processor: see direct.c. */
static uint32_t length_of(unsigned int i)
{
	return i % 2 ? 1 + 2 * (i % 32) : 8 * (1 + i % 8);
}

static void fill(char *message, unsigned int i)
{
	memset(message, (int)(1 + i % 100), length_of(i));
}

/*
 * The answer overwrites the message once its last byte has arrived: no other byte may be stored
 * later.
 */
static void wait_for(volatile char *message, unsigned int i)
{
	uint32_t bytes = length_of(i), n;

	while (message[bytes - 1] != (char)(1 + i % 100))
		continue;
	atomic_thread_fence(memory_order_acquire);
	for (n = 0; n < bytes; n++)
		ck_assert_int_eq(message[n], 1 + i % 100);
	memset((char *)(uintptr_t)message, 0, bytes);
}

/* The second half must need no packets. Each write has a completion, so the queue never fills. */
static void answer(struct rig *rig, struct shared *shared)
{
	unsigned int i, before = 0;
	char *mine = shared->memory[1], *source = mine + 1024;

	for (i = 0; i < ANSWERS; i++) {
		wait_for(mine, i);
		fill(source, i);
		write_to_peer(rig, shared, 1, 1024, length_of(i));
		rig_wait(rig->a.cq, IBV_WC_SUCCESS);
		if (i < ANSWERS / 2)
			before = n_packets;
	}
	shared->n_packets = n_packets - before;
}

TEST(two_programs_that_poll_memory_need_no_packets)
{
	unsigned int i, before = 0;
	struct shared *shared;
	struct rig rig;
	pid_t child;
	int status;

	shared_open(&shared);
	child = start_child(&rig, shared, answer);
	for (i = 0; i < ANSWERS; i++) {
		fill(shared->memory[0], i);
		write_to_peer(&rig, shared, 0, 0, length_of(i));
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		wait_for(shared->memory[0] + 1024, i);
		if (i < ANSWERS / 2)
			before = n_packets;
	}
	ck_assert_uint_eq(n_packets - before, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(shared->n_packets, 0);
}
