/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that need no packet (tools/fabric/verbs/direct.h): when they take place, what ends the
 * permission, that they keep their order among other requests, and that a peer that never makes a
 * call gets them. Runs on hosts of a soft fabric that permits them, and, with PACKETS=1, on some
 * that do not: tests/fabric/meson.build.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"
#include "tools/fabric/wire/grants.h"
#include "tools/fabric/wire/page.h"

#define BYTES	8
#define ANSWERS 500

/* --- the number of packets ------------------------------------------------ */

static atomic_uint n_packets;

/* Its calls are the device's, too. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static ssize_t (*next)(int fd, const struct msghdr *msg, int flags);

	if (!next)
		next = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	n_packets++;
	return next(fd, msg, flags);
}

static bool is_permitted(void)
{
	return !getenv("PACKETS");
}

/* --- requests -------------------------------------------------------------- */

static struct ibv_send_wr write_at(struct rig *rig, struct ibv_sge *sge, uint64_t offset,
				   uint32_t bytes)
{
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_RDMA_WRITE, sge, bytes);

	wr.wr.rdma.remote_addr += offset;
	return wr;
}

/* Return: number of packets that it took. */
static unsigned int write_text(struct rig *rig, const char *text, uint64_t offset)
{
	uint32_t bytes = (uint32_t)strlen(text);
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_at(rig, &sge, offset, bytes);
	unsigned int before = n_packets;

	memcpy(rig->a.memory, text, bytes);
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig->b.memory + offset, text, bytes), 0);
	return n_packets - before;
}

/*
 * The permission is there once the device's thread runs and the host's page stays as it is. Return:
 * false if a second of writes was in packets.
 */
static bool write_until_permitted(struct rig *rig)
{
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		if (!write_text(rig, "elephant", 0))
			return true;
		usleep(1000);
	}
	return false;
}

static void open_permitted(struct rig *rig)
{
	rig_open(rig, &(struct rig_config){ 0 });
	ck_assert_uint_ne(write_text(rig, "gazelles", 0), 0);
	ck_assert(write_until_permitted(rig));
}

TIME_LIMIT_S(60);

TEST(writes_need_no_packets_where_that_is_permitted)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ 0 });
	ck_assert_uint_ne(write_text(&rig, "gazelles", 0), 0);
	ck_assert_int_eq(write_until_permitted(&rig), is_permitted());
	rig_close(&rig);
}

TEST(write_is_there_when_the_call_returns)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	memcpy(rig.a.memory, "gazelles", BYTES);
	rig_post(&rig.a, &wr);
	ck_assert_int_eq(memcmp(rig.b.memory, "gazelles", BYTES), 0);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	rig_none(rig.a.cq);
	rig_close(&rig);
}

TEST(first_and_last_bytes_of_the_region_are_written)
{
	struct rig rig;

	open_permitted(&rig);
	ck_assert_uint_eq(write_text(&rig, "g", 0), 0);
	ck_assert_uint_eq(write_text(&rig, "gazelles", RIG_BYTES - BYTES), 0);
	ck_assert_uint_eq(write_text(&rig, "s", RIG_BYTES - 1), 0);
	rig_close(&rig);
}

TEST(short_writes_of_any_length_and_place_are_whole)
{
	struct rig rig;
	char text[40];
	uint32_t bytes, at;

	open_permitted(&rig);
	for (bytes = 1; bytes < sizeof(text); bytes++) {
		memset(text, (char)('a' + bytes % 26), sizeof(text));
		text[bytes] = '\0';
		for (at = 64; at < 72; at++) {
			memset(rig.b.memory, 0, 128);
			write_text(&rig, text, at);
			ck_assert_int_eq(rig.b.memory[at - 1], 0);
			ck_assert_int_eq(rig.b.memory[at + bytes], 0);
		}
	}
	rig_close(&rig);
}

/* All PSNs are in order, or a request would be refused or never answered. */
TEST(order_among_other_requests_is_kept)
{
	struct ibv_sge sge[3];
	struct rig rig;
	unsigned int i;

	open_permitted(&rig);
	for (i = 0; i < 50; i++) {
		struct ibv_send_wr write = write_at(&rig, &sge[0], 0, BYTES);
		struct ibv_send_wr read = rig_wr(&rig, IBV_WR_RDMA_READ, &sge[1], BYTES);
		struct ibv_send_wr send = rig_wr(&rig, IBV_WR_SEND, &sge[2], BYTES);

		write_text(&rig, i % 2 ? "gazelles" : "elephant", 0);
		sge[1].addr += 64;
		rig_receive(&rig.b, i, BYTES);
		memcpy(rig.a.memory, i % 2 ? "an otter" : "a weasel", BYTES);
		/* In a list they are outstanding together, and in packets. */
		write.next = &read;
		read.next = i % 3 ? &send : NULL;
		rig_post(&rig.a, &write);
		if (!read.next)
			rig_post(&rig.a, &send);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		rig_wait(rig.a.cq, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(rig.a.memory + 64, rig.a.memory, BYTES), 0);
		rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	}
	rig_close(&rig);
}

/* --- what ends the permission ---------------------------------------------- */

static void deregister(struct rig *rig)
{
	struct ibv_mr *mr = rig->b.mr;

	rig->b.mr = ibv_reg_mr(rig->pd, rig->b.memory, RIG_BYTES, RIG_ALL_ACCESS);
	ck_assert_ptr_nonnull(rig->b.mr);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
}

static void withdraw_access(struct rig *rig)
{
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
			 0);
}

static void change_domain(struct rig *rig)
{
	struct ibv_pd *pd = ibv_alloc_pd(rig->verbs);

	ck_assert_ptr_nonnull(pd);
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
}

static void shrink_region(struct rig *rig)
{
	ck_assert_int_eq(ibv_rereg_mr(rig->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      rig->b.memory + 64, 64, 0),
			 0);
}

static void withdraw_access_of_qp(struct rig *rig)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	ck_assert_int_eq(ibv_modify_qp(rig->b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static void enter_error(struct rig *rig)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ck_assert_int_eq(ibv_modify_qp(rig->b.qp, &attr, IBV_QP_STATE), 0);
}

static const struct {
	void (*end)(struct rig *rig);
	enum ibv_wc_status status;
} ends[] = {
	{deregister,	      IBV_WC_REM_ACCESS_ERR},
	{ withdraw_access,	   IBV_WC_REM_ACCESS_ERR},
	{ change_domain,	 IBV_WC_REM_ACCESS_ERR},
	{ shrink_region,	 IBV_WC_REM_ACCESS_ERR},
	{ withdraw_access_of_qp, IBV_WC_REM_ACCESS_ERR},
	{ enter_error,	       IBV_WC_RETRY_EXC_ERR },
};

TEST_LOOP(changes_at_the_peer_end_the_permission, 0, sizeof(ends) / sizeof(ends[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	memcpy(rig.a.memory, "intruder", BYTES);
	ends[_i].end(&rig);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, ends[_i].status);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", BYTES), 0);
}

static void use_other_key(struct ibv_send_wr *wr)
{
	wr->wr.rdma.rkey++;
}

static void begin_before(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr--;
}

static void end_after(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr += RIG_BYTES - BYTES + 1;
}

static void wrap_around(struct ibv_send_wr *wr)
{
	wr->wr.rdma.remote_addr = UINT64_MAX - 3;
}

static void (*const lies[])(struct ibv_send_wr *wr) = { use_other_key, begin_before, end_after,
							wrap_around };

TEST_LOOP(what_was_not_permitted_is_refused, 0, sizeof(lies) / sizeof(lies[0]))
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	memcpy(rig.a.memory, "intruder", BYTES);
	lies[_i](&wr);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", BYTES), 0);
}

TEST(unregistered_source_is_refused)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct rig rig;

	open_permitted(&rig);
	wr = write_at(&rig, &sge, 0, BYTES);
	sge.lkey++;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(memcmp(rig.b.memory, "elephant", BYTES), 0);
}

/* Ports that go down, P_Keys and GIDs change the page of the host. */
TEST(change_of_the_device_makes_the_peer_check_again)
{
	const char *folder = getenv("PURECM_FABRIC");
	struct fab_page *page;
	struct rig rig;
	char path[256];
	int fd;

	open_permitted(&rig);
	snprintf(path, sizeof(path), "%s/page", folder);
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	__atomic_add_fetch(&page->turn, 2, __ATOMIC_SEQ_CST);
	ck_assert_uint_ne(write_text(&rig, "gazelles", 0), 0);
	ck_assert(write_until_permitted(&rig));
	rig_close(&rig);
}

/* --- peers that stop or die while they write --------------------------------- */

static struct fab_grants *grants_of(const struct end *end)
{
	struct fab_grants *grants;
	char path[256];

	snprintf(path, sizeof(path), "%s/grants/%u", getenv("PURECM_FABRIC"),
		 end->qp->qp_num >> FAB_SLOT_SHIFT);
	ck_assert_int_eq(fab_grants_open(path, &grants), 0);
	return grants;
}

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
	/* Meanwhile others use packets. */
	ck_assert_uint_ne(write_text(&rig, "elephant", 0), 0);
	wr = write_at(&rig, &sge, 0, BYTES);
	deregister(&rig);
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

/* --- two processes ---------------------------------------------------------- */

/* Both have it mapped; the child's memory is in it. */
struct shared {
	atomic_uint qpn[2], rkey[2]; /* of the parent, of the child */
	atomic_uint is_ready;	     /* number of ends in RTS */
	atomic_uint n_packets;	     /* of the child's answers */
	uint64_t addr[2];
	char memory[2][4096];
};

static void shared_open(struct shared **ret)
{
	*ret = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(*ret, MAP_FAILED);
}

/* This process uses a of its rig only. */
static void connect_processes(struct rig *rig, struct shared *shared, unsigned int me)
{
	struct rig_config config = { .unconnected = true };
	struct ibv_qp qp = { .qp_num = 0 };
	struct end peer = { .qp = &qp };
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	unsigned int i;

	rig_open(rig, &config);
	ck_assert_int_eq(ibv_dereg_mr(rig->a.mr), 0);
	free(rig->a.memory);
	rig->a.memory = NULL;
	rig->a.mr =
		ibv_reg_mr(rig->pd, shared->memory[me], sizeof(shared->memory[me]), RIG_ALL_ACCESS);
	ck_assert_ptr_nonnull(rig->a.mr);
	shared->addr[me] = (uintptr_t)shared->memory[me];
	shared->rkey[me] = rig->a.mr->rkey;
	shared->qpn[me] = rig->a.qp->qp_num;
	while (!shared->qpn[!me])
		usleep(1000);
	qp.qp_num = shared->qpn[!me];
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(rig_modify(rig, &rig->a, &peer, states[i], &config), 0);
	shared->is_ready++;
	while (shared->is_ready < 2)
		usleep(1000);
}

/* The source is the sender's own part, from @offset on; it goes to the peer's. */
static void write_to_peer(struct rig *rig, struct shared *shared, unsigned int me, uint32_t offset,
			  uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)shared->memory[me] + offset, bytes, rig->a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.rkey = shared->rkey[!me];
	wr.wr.rdma.remote_addr = shared->addr[!me] + offset;
	rig_post(&rig->a, &wr);
}

static pid_t start_child(struct rig *rig, struct shared *shared,
			 void (*run)(struct rig *rig, struct shared *shared))
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		connect_processes(rig, shared, 1);
		run(rig, shared);
		_exit(0);
	}
	connect_processes(rig, shared, 0);
	return child;
}

static void sleep_for_ever(struct rig *rig, struct shared *shared)
{
	(void)rig;
	(void)shared;
	for (;;)
		pause();
}

static void write_once(struct rig *rig, struct shared *shared, char value)
{
	shared->memory[0][0] = value;
	write_to_peer(rig, shared, 0, 0, 1);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(shared->memory[1][0], value);
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

/* --- programs that poll memory ----------------------------------------------- */

/* Lengths whose last number is stored at once on any processor: see direct.c. */
static uint32_t length_of(unsigned int i)
{
	return i % 2 ? 1 + 2 * (i % 32) : 8 * (1 + i % 8);
}

static void fill(char *message, unsigned int i)
{
	memset(message, (int)(1 + i % 100), length_of(i));
}

/* Polls the last byte, and answers in place: nothing of the message may be stored after that. */
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

/* The permission must be there in the second half. Each write has a completion, so that the queue
 * never fills. */
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
