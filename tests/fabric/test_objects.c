/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules of objects: registration, states in which work may be posted, completion channels, events,
 * datagrams and groups. Runs on a host of a soft fabric: tests/fabric/meson.build.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric/rig.h"
#include "tests/unit/test.h"
#include "tools/fabric/verbs/objects.h"

#define GRH_BYTES 40
#define WAIT_MS	  30000
#define POLLS	  10000 /* enough to be taken for a program that polls */

static const struct rig_config rc = { .type = IBV_QPT_RC };
static const struct rig_config ud = { .type = IBV_QPT_UD };

TEST(object_in_use_cannot_be_destroyed)
{
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(ibv_dealloc_pd(rig.pd), EBUSY);
	ck_assert_int_eq(ibv_destroy_cq(rig.a.cq), EBUSY);
	ck_assert_int_eq(ibv_destroy_comp_channel(rig.channel), EBUSY);
	rig_close(&rig);
}

static const struct {
	unsigned int access;
	int error;
} registrations[] = {
	{ IBV_ACCESS_REMOTE_WRITE, EINVAL },
	{ IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
	{ 1u << 12, EINVAL },
};

TEST_LOOP(region_with_invalid_access_is_refused, 0, 3)
{
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, rig.a.memory, 10, registrations[_i].access));
	ck_assert_int_eq(errno, registrations[_i].error);
	rig_close(&rig);
}

/*
 * Functions of rdma-core 57 and later. Older headers do not declare them, and the test is linked
 * with stock's library, which lacks them.
 */
struct ibv_buf;
struct ibv_mr_init_attr;
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **ret);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t bytes,
			      int access);

#define NEWER(name) ((__typeof__(&(name)))dlsym(RTLD_DEFAULT, #name))

/* As struct ibv_mr_init_attr begins, which ends there in the first release that has it. */
struct mr_attr {
	size_t bytes;
	int access;
	uint64_t mask; /* 1: iova, 2: addr, 4: fd */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dma_handle;
};

TEST(buffer_is_registered_within_its_bounds_by_its_domain)
{
	struct ibv_pd *other;
	struct ibv_buf *buf;
	struct ibv_mr *mr;
	struct rig rig;
	char *memory;

	rig_open(&rig, &rc);
	memory = NEWER(ibv_alloc_buf)(rig.pd, 100, &buf);
	mr = NEWER(ibv_reg_buf_mr)(rig.pd, buf, memory + 40, 60, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_ptr_eq(mr->addr, memory + 40);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_ptr_null(NEWER(ibv_reg_buf_mr)(rig.pd, buf, memory + 40, 61, 0));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(NEWER(ibv_reg_buf_mr)(rig.pd, buf, memory - 1, 1, 0));
	ck_assert_int_eq(errno, EINVAL);
	other = ibv_alloc_pd(rig.verbs);
	ck_assert_ptr_null(NEWER(ibv_reg_buf_mr)(other, buf, memory, 100, 0));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(NEWER(ibv_export_buf_dmabuf_fd)(buf), -1);
	ck_assert_int_eq(errno, ENODATA);
	ibv_dealloc_pd(other);
	NEWER(ibv_free_buf)(buf);
	rig_close(&rig);
}

static const struct {
	uint64_t mask;
	int error;
} kinds_of_memory[] = {
	{ 0, EINVAL },		/* none */
	{ 2 + 4, EINVAL },	/* two */
	{ 4, EOPNOTSUPP },	/* a DMA-buf */
	{ 2 + 16, EOPNOTSUPP }, /* a DMA handle */
	{ 2 + (1ull << 40), EOPNOTSUPP },
};

TEST_LOOP(region_of_another_kind_of_memory_is_refused, 0, 5)
{
	struct mr_attr attr = { .bytes = 10, .mask = kinds_of_memory[_i].mask };
	struct rig rig;

	rig_open(&rig, &rc);
	attr.addr = rig.a.memory;
	ck_assert_ptr_null(NEWER(ibv_reg_mr_ex)(rig.pd, (void *)&attr));
	ck_assert_int_eq(errno, kinds_of_memory[_i].error);
	rig_close(&rig);
}

/* The address of a write is that of the attributes, not that of the memory. */
TEST(region_by_attributes_has_their_address)
{
	struct mr_attr attr = {
		.bytes = 10, .access = RIG_ALL_ACCESS, .mask = 1 + 2, .iova = 4096
	};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig rig;

	rig_open(&rig, &rc);
	attr.addr = rig.b.memory + 100;
	mr = NEWER(ibv_reg_mr_ex)(rig.pd, (void *)&attr);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 5);
	strcpy(rig.a.memory, "here");
	wr.wr.rdma.remote_addr = 4096;
	wr.wr.rdma.rkey = mr->rkey;
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	ck_assert_str_eq(rig.b.memory + 100, "here");
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	rig_close(&rig);
}

TEST(unmapped_memory_is_not_registered)
{
	char *memory = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig rig;

	rig_open(&rig, &rc);
	munmap(memory + 4096, 4096);
	ck_assert_ptr_null(ibv_reg_mr(rig.pd, memory, 8192, 0));
	ck_assert_int_eq(errno, EFAULT);
	rig_close(&rig);
}

/* As `ulimit -l` in a shell; an ordinary user has no capability to exceed it. */
static void limit_pages(rlim_t n)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { .effective = 0 } };
	struct rlimit limit = { n * 4096, n * 4096 };

	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert_int_eq(syscall(SYS_capset, &head, none), 0);
}

TEST(changed_memlock_limit_applies_to_registration)
{
	static char pages[3 * 4096] __attribute__((aligned(4096)));
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibv_mr *one, *two;

	limit_pages(2);
	one = ibv_reg_mr(pd, pages, 1, 0);
	ck_assert_ptr_nonnull(one);
	ck_assert_ptr_null(ibv_reg_mr(pd, pages + 4095, 2, 0));
	ck_assert_int_eq(errno, ENOMEM);
	two = ibv_reg_mr(pd, pages, sizeof(pages), IBV_ACCESS_ON_DEMAND);
	ck_assert_ptr_nonnull(two);
	ck_assert_int_eq(ibv_dereg_mr(two), 0);
	errno = 0;
	ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, pages, 8192, 0);
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(ibv_dereg_mr(one), 0);
	two = ibv_reg_mr(pd, pages + 4095, 2, 0);
	ck_assert_ptr_nonnull(two);
	ck_assert_int_eq(ibv_dereg_mr(two), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(verbs), 0);
	ibv_free_device_list(list);
}

TEST(work_can_be_posted_only_in_its_states)
{
	struct ibv_recv_wr *bad_recv, recv_wr = { .num_sge = 0 };
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .unconnected = true });
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 1);
	ck_assert_int_eq(ibv_post_recv(rig.a.qp, &recv_wr, &bad_recv), EINVAL);
	ck_assert_int_eq(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_INIT, &rc), 0);
	ck_assert_int_eq(ibv_post_recv(rig.a.qp, &recv_wr, &bad_recv), 0);
	ck_assert_int_eq(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_RTR, &rc), 0);
	ck_assert_int_eq(ibv_post_send(rig.a.qp, &wr, &bad), EINVAL);
	rig_close(&rig);
}

TEST(reset_drops_work_without_completions)
{
	struct rig rig;

	rig_open(&rig, &rc);
	rig_receive(&rig.a, 1, 10);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_RESET, &rc), 0);
	rig_none(rig.a.cq);
	rig_close(&rig);
}

TEST(error_state_flushes_pending_and_later_work)
{
	struct rig rig;

	rig_open(&rig, &rc);
	rig_receive(&rig.a, 1, 10);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_ERR, &rc), 0);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_WR_FLUSH_ERR).wr_id, 1);
	rig_receive(&rig.a, 2, 10);
	ck_assert_uint_eq(rig_wait(rig.a.cq, IBV_WC_WR_FLUSH_ERR).wr_id, 2);
	rig_close(&rig);
}

TEST(list_of_too_many_sends_is_refused_at_the_first_excess_send)
{
	struct ibv_send_wr *bad, wr[65];
	struct ibv_sge sge;
	struct rig rig;
	int i;

	rig_open(&rig, &rc);
	for (i = 0; i < 65; i++) {
		wr[i] = rig_wr(&rig, IBV_WR_SEND, &sge, 1);
		wr[i].next = i < 64 ? &wr[i + 1] : NULL;
	}
	ck_assert_int_eq(ibv_post_send(rig.a.qp, wr, &bad), ENOMEM);
	ck_assert_ptr_eq(bad, &wr[64]);
	rig_close(&rig);
}

/* --- completion channels and events -------------------------------------- */

#define QUIET_MS     50
#define READY_MAX_MS 10000

static bool channel_is_ready_within(struct rig *rig, int ms)
{
	struct pollfd ready = { .fd = rig->channel->fd, .events = POLLIN };

	return poll(&ready, 1, ms) == 1;
}

TEST(armed_queue_reports_the_next_completion_once)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_cq *cq;
	struct rig rig;
	void *context;

	rig_open(&rig, &rc);
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 1);
	ck_assert_int_eq(ibv_req_notify_cq(rig.b.cq, 0), 0);
	rig_receive(&rig.b, 1, 10);
	rig_receive(&rig.b, 2, 10);
	rig_post(&rig.a, &wr);
	ck_assert(channel_is_ready_within(&rig, READY_MAX_MS));
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), 0);
	ck_assert_ptr_eq(cq, rig.b.cq);
	rig_post(&rig.a, &wr);
	ck_assert(!channel_is_ready_within(&rig, QUIET_MS));
	ibv_ack_cq_events(cq, 1);
	rig_close(&rig);
}

TEST(arming_for_solicited_includes_failed_completions)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &rc);
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 1);
	ibv_req_notify_cq(rig.b.cq, 1);
	rig_receive(&rig.b, 1, 10);
	rig_receive(&rig.b, 2, 10);
	rig_post(&rig.a, &wr);
	ck_assert(!channel_is_ready_within(&rig, QUIET_MS));
	wr.send_flags |= IBV_SEND_SOLICITED;
	rig_post(&rig.a, &wr);
	ck_assert(channel_is_ready_within(&rig, READY_MAX_MS));
	rig_close(&rig);
}

TEST(empty_nonblocking_channel_is_eagain)
{
	struct ibv_cq *cq;
	struct rig rig;
	void *context;

	rig_open(&rig, &rc);
	fcntl(rig.channel->fd, F_SETFL, O_NONBLOCK);
	ck_assert_int_eq(ibv_get_cq_event(rig.channel, &cq, &context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	rig_close(&rig);
}

TEST(full_completion_queue_is_an_event)
{
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC, .cqe = 2 });
	rig_receive(&rig.a, 1, 10);
	rig_receive(&rig.a, 2, 10);
	rig_receive(&rig.a, 3, 10);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_ERR, &rc), 0);
	rig_event(&rig, IBV_EVENT_CQ_ERR);
	rig_close(&rig);
}

TEST(first_packet_before_rts_is_an_event)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .unconnected = true });
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_INIT, &rc), 0);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_RTR, &rc), 0);
	ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, IBV_QPS_RTS, &rc), 0);
	ck_assert_int_eq(rig_modify(&rig, &rig.b, &rig.a, IBV_QPS_INIT, &rc), 0);
	ck_assert_int_eq(rig_modify(&rig, &rig.b, &rig.a, IBV_QPS_RTR, &rc), 0);
	wr = rig_wr(&rig, IBV_WR_RDMA_WRITE, &sge, 1);
	rig_post(&rig.a, &wr);
	rig_event(&rig, IBV_EVENT_COMM_EST);
	rig_close(&rig);
}

TEST(shared_queue_reports_its_limit)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct rig rig;

	rig_open(&rig, &(struct rig_config){ .type = IBV_QPT_RC, .srq = true });
	rig_receive(&rig.b, 1, 10);
	rig_receive(&rig.b, 2, 10);
	ck_assert_int_eq(ibv_modify_srq(rig.srq, &attr, IBV_SRQ_LIMIT), 0);
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 1);
	rig_post(&rig.a, &wr);
	rig_event(&rig, IBV_EVENT_SRQ_LIMIT_REACHED);
	rig_close(&rig);
}

/* As the command `fabric port` does. */
static void order(const char *text)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control", getenv("PURECM_FABRIC"));
	ck_assert_int_eq(sendto(fd, text, strlen(text), 0, (struct sockaddr *)&addr, sizeof(addr)),
			 (int)strlen(text));
	close(fd);
}

static void open_device(struct rig *rig)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	rig->verbs = ibv_open_device(list[0]);
	ck_assert_ptr_nonnull(rig->verbs);
	ibv_free_device_list(list);
}

TEST(port_event_reaches_a_context_without_queue_pairs)
{
	struct rig rig;

	open_device(&rig);
	order("port 1 down");
	rig_event(&rig, IBV_EVENT_PORT_ERR);
	order("port 1 up");
	rig_event(&rig, IBV_EVENT_PORT_ACTIVE);
	ck_assert_int_eq(ibv_close_device(rig.verbs), 0);
}

/* As daemons do: they fork after they have opened the device. */
static void fork_and_use(struct ibv_context *verbs)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(20);
		init.send_cq = init.recv_cq = ibv_create_cq(verbs, 2, NULL, NULL, 0);
		_exit(ibv_create_qp(ibv_alloc_pd(verbs), &init) ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

TEST(forked_child_can_use_the_device)
{
	struct rig rig;

	open_device(&rig);
	fork_and_use(rig.verbs);
	ck_assert_int_eq(ibv_close_device(rig.verbs), 0);
}

struct holder {
	pthread_mutex_t *lock;
	pid_t forker;
	bool has_lock, is_forking;
};

/* Until the other thread waits, in fork() or for its child. */
static void *hold_lock(void *arg)
{
	struct holder *holder = arg;

	pthread_mutex_lock(holder->lock);
	__atomic_store_n(&holder->has_lock, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&holder->is_forking, __ATOMIC_ACQUIRE) ||
	       !rig_is_asleep(holder->forker))
		usleep(1000);
	pthread_mutex_unlock(holder->lock);
	return NULL;
}

TEST(child_forked_while_another_thread_has_the_lock_can_use_the_device)
{
	struct rig rig;
	struct holder holder = { .forker = (pid_t)syscall(SYS_gettid) };
	pthread_t thread;

	open_device(&rig);
	holder.lock = &to_context(rig.verbs)->lock;
	ck_assert_int_eq(pthread_create(&thread, NULL, hold_lock, &holder), 0);
	while (!__atomic_load_n(&holder.has_lock, __ATOMIC_ACQUIRE))
		usleep(1000);
	__atomic_store_n(&holder.is_forking, true, __ATOMIC_RELEASE);
	fork_and_use(rig.verbs);
	pthread_join(thread, NULL);
	ck_assert_int_eq(ibv_close_device(rig.verbs), 0);
}

/* Return: 0 if a message to itself arrives while nobody polls. */
static int send_without_polling(struct ibv_context *verbs)
{
	struct rig rig;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	int ms;

	rig_open_on(&rig, verbs, &rc);
	rig_receive(&rig.b, 1, 8);
	wr = rig_wr(&rig, IBV_WR_SEND, &sge, 8);
	rig.a.memory[0] = 1;
	rig_post(&rig.a, &wr);
	for (ms = 0; ms < WAIT_MS && !*(volatile char *)rig.b.memory; ms++)
		usleep(1000);
	return ms == WAIT_MS;
}

/* The device leaves packets to a program that polls, and begins a timer; the child has neither. */
TEST(forked_child_of_a_polling_program_has_a_device_that_works)
{
	struct rig rig;
	struct ibv_wc wc;
	int i, status;
	pid_t pid;

	rig_open(&rig, &rc);
	for (i = 0; i < POLLS; i++)
		ck_assert_int_eq(ibv_poll_cq(rig.a.cq, 1, &wc), 0);
	pid = fork();
	if (pid == 0)
		_exit(send_without_polling(rig.verbs));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	rig_close(&rig);
}

/* --- alternate paths ----------------------------------------------------- */

/* Return: as ibv_modify_qp(), for a connected queue pair. */
static int set_alternate(struct rig *rig, uint8_t port_num, uint16_t pkey_index, uint8_t timeout)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ck_assert_int_eq(ibv_query_qp(rig->a.qp, &attr, IBV_QP_AV, &init), 0);
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = port_num;
	attr.alt_pkey_index = pkey_index;
	attr.alt_timeout = timeout;
	attr.path_mig_state = IBV_MIG_REARM;
	return ibv_modify_qp(rig->a.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

TEST(alternate_path_is_checked)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_int_eq(set_alternate(&rig, 9, 0, 14), EINVAL);
	ck_assert_int_eq(set_alternate(&rig, 1, 5, 14), EINVAL);
	ck_assert_int_eq(set_alternate(&rig, 1, 0, 32), EINVAL);
	ck_assert_int_eq(set_alternate(&rig, 1, 0, 14), 0);
	ck_assert_int_eq(ibv_query_qp(rig.a.qp, &attr, IBV_QP_ALT_PATH, &init), 0);
	ck_assert_uint_eq(attr.alt_timeout, 14);
	rig_close(&rig);
}

/* --- datagrams ----------------------------------------------------------- */

static struct ibv_send_wr datagram(struct rig *rig, struct ibv_sge *sge, struct ibv_ah *ah,
				   uint32_t bytes)
{
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_SEND, sge, bytes);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = rig->b.qp->qp_num;
	wr.wr.ud.remote_qkey = RIG_QKEY;
	return wr;
}

TEST(datagram_has_its_header_in_front)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct rig rig;

	rig_open(&rig, &ud);
	ah = rig_ah(&rig);
	wr = datagram(&rig, &sge, ah, 4);
	memcpy(rig.a.memory, "four", 4);
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	wc = rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, GRH_BYTES + 4);
	ck_assert_uint_eq(wc.src_qp, rig.a.qp->qp_num);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_GRH);
	ck_assert_int_eq(memcmp(rig.b.memory + GRH_BYTES, "four", 4), 0);
	ck_assert_int_eq(ibv_destroy_ah(ah), 0);
	rig_close(&rig);
}

TEST(datagram_with_another_key_is_lost)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct rig rig;

	rig_open(&rig, &ud);
	ah = rig_ah(&rig);
	wr = datagram(&rig, &sge, ah, 4);
	wr.wr.ud.remote_qkey++;
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	rig_none(rig.b.cq);
	ibv_destroy_ah(ah);
	rig_close(&rig);
}

TEST(datagram_longer_than_the_mtu_is_an_error_of_the_send_queue)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct rig rig;

	rig_open(&rig, &ud);
	ah = rig_ah(&rig);
	wr = datagram(&rig, &sge, ah, 4097);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_LOC_LEN_ERR);
	wr = datagram(&rig, &sge, ah, 1);
	rig_post(&rig.a, &wr);
	rig_wait(rig.a.cq, IBV_WC_WR_FLUSH_ERR);
	ibv_destroy_ah(ah);
	rig_close(&rig);
}

TEST(queued_datagram_is_sent_in_rts)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct rig rig;

	rig_open(&rig, &ud);
	ah = rig_ah(&rig);
	wr = datagram(&rig, &sge, ah, 4);
	rig_receive(&rig.b, 1, 100);
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE), 0);
	rig_post(&rig.a, &wr);
	rig_none(rig.a.cq);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(ibv_modify_qp(rig.a.qp, &attr, IBV_QP_STATE), 0);
	rig_wait(rig.a.cq, IBV_WC_SUCCESS);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ibv_destroy_ah(ah);
	rig_close(&rig);
}

TEST(group_datagram_reaches_attached_queue_pairs)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct rig rig;

	attr.grh.dgid.raw[0] = 0xff;
	attr.grh.dgid.raw[1] = 0x15;
	attr.grh.dgid.raw[15] = 9;
	rig_open(&rig, &ud);
	ah = ibv_create_ah(rig.pd, &attr);
	wr = datagram(&rig, &sge, ah, 4);
	wr.wr.ud.remote_qpn = 0xffffff;
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	rig_none(rig.b.cq);
	ck_assert_int_eq(ibv_attach_mcast(rig.b.qp, &attr.grh.dgid, 0), 0);
	ck_assert_int_eq(ibv_destroy_qp(rig.b.qp), EBUSY);
	rig_post(&rig.a, &wr);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_detach_mcast(rig.b.qp, &attr.grh.dgid, 0), 0);
	ck_assert_int_eq(ibv_detach_mcast(rig.b.qp, &attr.grh.dgid, 0), EINVAL);
	ibv_destroy_ah(ah);
	rig_close(&rig);
}

/* Also on a host with --ports 2: tests/roce/meson.build. */
TEST(group_datagram_arrives_on_the_last_port)
{
	struct rig_config config = { .type = IBV_QPT_UD, .unconnected = true };
	struct ibv_ah_attr attr = { .is_global = 1 };
	struct ibv_device_attr device;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct rig rig;
	int state;

	rig_open(&rig, &config);
	ck_assert_int_eq(ibv_query_device(rig.verbs, &device), 0);
	attr.port_num = config.port_num = device.phys_port_cnt;
	for (state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		ck_assert_int_eq(rig_modify(&rig, &rig.a, &rig.b, state, &config), 0);
		ck_assert_int_eq(rig_modify(&rig, &rig.b, &rig.a, state, &config), 0);
	}
	attr.grh.dgid = (union ibv_gid){ .raw = { 0xff, 0x15, [15] = 10 } };
	ah = ibv_create_ah(rig.pd, &attr);
	wr = datagram(&rig, &sge, ah, 4);
	wr.wr.ud.remote_qpn = 0xffffff;
	ck_assert_int_eq(ibv_attach_mcast(rig.b.qp, &attr.grh.dgid, 0), 0);
	rig_receive(&rig.b, 1, 100);
	rig_post(&rig.a, &wr);
	rig_wait(rig.b.cq, IBV_WC_SUCCESS);
	ck_assert_int_eq(ibv_detach_mcast(rig.b.qp, &attr.grh.dgid, 0), 0);
	ibv_destroy_ah(ah);
	rig_close(&rig);
}

/* The IPv4 header of RoCE v2, in the second half of the GRH. */
static const struct {
	uint8_t to[4];
	int err;
} received[] = {
	{ { 10, 77, 0, 1 }, 0 },
	{ { 239, 1, 2, 3 }, 0 },
	{ { 10, 77, 0, 99 }, -1 },
};

TEST_LOOP(address_of_a_received_ipv4_packet_answers_it, 0, 3)
{
	static const uint8_t ours[] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };
	static const uint8_t sender[] = { [10] = 0xff, 0xff, 10, 77, 0, 2 };
	uint8_t header[GRH_BYTES] = { [20] = 0x45, 0x20, [28] = 7, [32] = 10, 77, 0, 2 };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;
	struct ibv_grh grh;
	union ibv_gid gid;
	struct rig rig;

	memcpy(header + 36, received[_i].to, 4);
	memcpy(&grh, header, sizeof(grh));
	rig_open(&rig, &ud);
	errno = 0;
	ck_assert_int_eq(ibv_init_ah_from_wc(rig.verbs, 1, &wc, &grh, &attr), received[_i].err);
	ck_assert_int_eq(errno, received[_i].err ? EINVAL : 0);
	if (!received[_i].err) {
		ck_assert_int_eq(ibv_query_gid(rig.verbs, 1, attr.grh.sgid_index, &gid), 0);
		ck_assert_int_eq(memcmp(&gid, ours, sizeof(ours)), 0);
		ck_assert_int_eq(memcmp(&attr.grh.dgid, sender, sizeof(sender)), 0);
		ck_assert_uint_eq(attr.grh.hop_limit, 7);
		ck_assert_uint_eq(attr.grh.traffic_class, 0x20);
	}
	rig_close(&rig);
}

TEST(address_handle_of_an_unknown_address_is_refused)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct rig rig;

	attr.grh.dgid.raw[15] = 1;
	rig_open(&rig, &ud);
	ck_assert_ptr_null(ibv_create_ah(rig.pd, &attr));
	ck_assert_int_eq(errno, EHOSTUNREACH);
	rig_close(&rig);
}
