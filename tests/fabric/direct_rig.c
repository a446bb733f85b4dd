/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes that need no packet: see direct_rig.h. */
#include "tests/fabric/direct_rig.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define LONG_TIMEOUT 14 /* 67 ms */

/* --- number of packets ---------------------------------------------------- */

atomic_uint n_packets;

/* Called by the device too. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static ssize_t (*next)(int fd, const struct msghdr *msg, int flags);

	if (!next)
		next = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	n_packets++;
	return next(fd, msg, flags);
}

bool is_permitted(void)
{
	return !getenv("PACKETS");
}

/* --- requests -------------------------------------------------------------- */

struct ibv_send_wr write_at(struct rig *rig, struct ibv_sge *sge, uint64_t offset, uint32_t bytes)
{
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_RDMA_WRITE, sge, bytes);

	wr.wr.rdma.remote_addr += offset;
	return wr;
}

unsigned int write_text(struct rig *rig, const char *text, uint64_t offset)
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
 * The other end permits it in less than a second, on a busy host later. Packets are counted by
 * their system calls: after 32 of them short ones go through shared memory, so a test of packets
 * makes few attempts.
 */
static bool is_attempt(unsigned int i)
{
	if (i > 0)
		usleep(is_permitted() ? 1000 : 100000);
	return i < (is_permitted() ? ATTEMPTS_MAX : 10);
}

bool write_until_permitted(struct rig *rig)
{
	unsigned int i;

	for (i = 0; is_attempt(i); i++)
		if (!write_text(rig, "elephant", 0))
			return true;
	return false;
}

unsigned int read_text(struct rig *rig, const char *text, uint64_t offset)
{
	uint32_t bytes = (uint32_t)strlen(text);
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_RDMA_READ, &sge, bytes);
	unsigned int before = n_packets;

	wr.wr.rdma.remote_addr += offset;
	memset(rig->a.memory, 0, bytes);
	memcpy(rig->b.memory + offset, text, bytes);
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(rig->a.memory, text, bytes), 0);
	return n_packets - before;
}

bool read_until_permitted(struct rig *rig)
{
	unsigned int i;

	for (i = 0; is_attempt(i); i++)
		if (!read_text(rig, "elephant", 0))
			return true;
	return false;
}

void open_permitted(struct rig *rig)
{
	rig_open(rig, &(struct rig_config){ 0 });
	ck_assert_uint_ne(write_text(rig, "gazelles", 0), 0);
	ck_assert(write_until_permitted(rig));
}

/* --- permissions of the machine -------------------------------------------- */

/* Return: errno of a child's write to this process, or 0. */
static int refusal(void)
{
	char here = 0, from = 1;
	struct iovec local = { &from, 1 }, remote = { &here, 1 };
	pid_t parent = getpid(), child = fork();
	int status;

	if (child == 0)
		_exit(process_vm_writev(parent, &local, 1, &remote, 1, 0) == 1 ? 0 : errno);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return ECHILD;
	return WEXITSTATUS(status);
}

bool kernel_permits_writes(void)
{
	int err;

	if (!is_permitted())
		return true; /* expect packets then */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	err = refusal();
	if (err)
		printf("process_vm_writev() to another process of the user: %s\n", strerror(err));
	return !err;
}

struct fab_grants *grants_of(const struct end *end)
{
	struct fab_grants *grants;
	char path[256];
	int32_t pid;

	snprintf(path, sizeof(path), "%s/grants/%u", getenv("PURECM_FABRIC"),
		 end->qp->qp_num >> FAB_SLOT_SHIFT);
	ck_assert_int_eq(fab_grants_open(path, &grants, &pid), 0);
	return grants;
}

/* --- two processes ---------------------------------------------------------- */

void shared_open(struct shared **ret)
{
	*ret = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(*ret, MAP_FAILED);
}

/*
 * This process uses only a of its rig. Both may poll memory, so an acknowledgement may wait for a
 * processor.
 */
static void connect_processes(struct rig *rig, struct shared *shared, unsigned int me)
{
	struct rig_config config = { .unconnected = true, .timeout = LONG_TIMEOUT };
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

void write_to_peer(struct rig *rig, struct shared *shared, unsigned int me, uint32_t offset,
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

pid_t start_child(struct rig *rig, struct shared *shared,
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

void sleep_for_ever(struct rig *rig, struct shared *shared)
{
	(void)rig;
	(void)shared;
	for (;;)
		pause();
}

void write_once(struct rig *rig, struct shared *shared, char value)
{
	shared->memory[0][0] = value;
	write_to_peer(rig, shared, 0, 0, 1);
	rig_wait(rig->a.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(shared->memory[1][0], value);
}
