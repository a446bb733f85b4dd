/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of libibverbs on one device, whose queue pairs are connected to each other: objects
 * of all kinds, right and wrong arguments, every state. Prints each call with its result, and then
 * what it has led to: completions, states of queue pairs, a sum of all memory. A sequence follows
 * from its seed and from the results, so two devices that behave alike print the same.
 *
 * random_verbs DEVICE FIRST COUNT: each sequence in a process of its own.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS	   60
#define MAX	   4 /* objects of a kind */
#define PAGE	   4096u
#define PAGES	   8
#define QUIET_MS   20
#define PATIENCE_S 20
#define QKEY	   0x1234
#define PSN	   100
#define N(table)   (sizeof(table) / sizeof((table)[0]))

struct queue {
	struct ibv_qp *qp;
	unsigned int n_sends, n_receives; /* posted and not complete */
	unsigned int peer;		  /* the last that it was connected to */
};

static struct ibv_context *verbs;
static struct ibv_pd *pd[MAX];
static struct ibv_cq *cq[MAX];
static struct ibv_mr *mr[MAX];
static int access_of[MAX]; /* of mr */
static struct ibv_srq *srq[MAX];
static struct ibv_ah *ah[MAX];
static struct queue queue[MAX];
static char *arena;
static uint8_t gid_index;
static uint64_t state;

/* --- choices --------------------------------------------------------------- */

static uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % n;
}

static bool seldom(void)
{
	return random_below(12) == 0;
}

#define PICK(table) (table)[random_below(N(table))]

/* --- results ---------------------------------------------------------------- */

static void print_result(int ret)
{
	int err = ret < 0 ? errno : ret;

	printf(" = %s\n", err ? strerrorname_np(err) : "0");
}

static void print_object(const void *object)
{
	printf(" = %s\n", object ? "object" : strerrorname_np(errno));
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum ibv_qp_state state_of(unsigned int i)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (ibv_query_qp(queue[i].qp, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

/* Number of completions that must come. Sends have finite retries. */
static unsigned int n_due(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < MAX; i++) {
		enum ibv_qp_state is = queue[i].qp ? state_of(i) : IBV_QPS_RESET;

		if (is == IBV_QPS_RTS || is == IBV_QPS_SQE || is == IBV_QPS_ERR)
			n += queue[i].n_sends;
		if (is == IBV_QPS_ERR)
			n += queue[i].n_receives;
	}
	return n;
}

/* Completions of a settling, by queue pair: their order among queue pairs is open. */
static char said[MAX][2][4096];

static void note_completion(const struct ibv_wc *wc)
{
	unsigned int i, is_receive = wc->wr_id & 1;
	char *to;

	for (i = 0; i < MAX && !(queue[i].qp && queue[i].qp->qp_num == wc->qp_num); i++)
		continue;
	if (i == MAX)
		return;
	if (is_receive)
		queue[i].n_receives -= !queue[i].qp->srq;
	else
		queue[i].n_sends--;
	to = said[i][is_receive];
	to += strlen(to);
	snprintf(to, (size_t)(said[i][is_receive] + sizeof(said[i][0]) - to), "  q%u %s %u: %s", i,
		 is_receive ? "receive" : "send", (unsigned int)(wc->wr_id >> 1),
		 ibv_wc_status_str(wc->status));
	if (wc->status == IBV_WC_SUCCESS)
		sprintf(to + strlen(to), ", opcode %d", wc->opcode);
	if (wc->status == IBV_WC_SUCCESS && is_receive)
		sprintf(to + strlen(to), ", %u bytes, flags %x", wc->byte_len,
			wc->wc_flags & ~(unsigned int)IBV_WC_GRH);
	strcat(to, "\n");
}

static bool poll_all(void)
{
	struct ibv_wc wc;
	bool some = false;
	unsigned int i;

	for (i = 0; i < MAX; i++)
		while (cq[i] && ibv_poll_cq(cq[i], 1, &wc) > 0) {
			note_completion(&wc);
			some = true;
		}
	return some;
}

static void settle(void)
{
	uint64_t began_ms = now_ms(), quiet_ms = began_ms, ms;
	unsigned int i;

	memset(said, 0, sizeof(said));
	do {
		ms = now_ms();
		if (poll_all() || n_due())
			quiet_ms = ms;
		usleep(500);
	} while (ms - quiet_ms < QUIET_MS && ms - began_ms < PATIENCE_S * 1000);
	for (i = 0; i < MAX; i++)
		printf("%s%s", said[i][0], said[i][1]);
	if (ms - began_ms >= PATIENCE_S * 1000)
		printf("  %u completions do not come\n", n_due());
}

static void show_consequences(void)
{
	static enum ibv_qp_state before[MAX];
	static uint32_t sum_before;
	uint32_t sum = 2166136261u;
	unsigned int i;

	settle();
	for (i = 0; i < MAX; i++) {
		enum ibv_qp_state is = queue[i].qp ? state_of(i) : IBV_QPS_RESET;

		if (is != before[i])
			printf("  q%u is in state %d\n", i, is);
		before[i] = is;
	}
	for (i = 0; i < PAGES * PAGE; i++)
		sum = (sum ^ (uint8_t)arena[i]) * 16777619u;
	if (sum_before && sum != sum_before)
		printf("  memory %08x\n", sum);
	sum_before = sum;
}

/* --- objects ---------------------------------------------------------------- */

static struct ibv_pd *some_pd(void)
{
	return pd[seldom()];
}

static void toggle_pd(unsigned int i)
{
	i = 1 + i % (MAX - 1); /* the first remains */
	printf("pd%u: %s", i, pd[i] ? "dealloc" : "alloc");
	if (!pd[i]) {
		pd[i] = ibv_alloc_pd(verbs);
		print_object(pd[i]);
	} else {
		int err = ibv_dealloc_pd(pd[i]);

		print_result(err);
		pd[i] = err ? pd[i] : NULL;
	}
}

static void toggle_cq(unsigned int i)
{
	static const int sizes[] = { 64, 64, 100, 0, -1, 1 << 30 };

	i = 1 + i % (MAX - 1);
	if (cq[i]) {
		int err = ibv_destroy_cq(cq[i]);

		printf("cq%u: destroy", i);
		print_result(err);
		cq[i] = err ? cq[i] : NULL;
	} else {
		int cqe = PICK(sizes);

		cq[i] = ibv_create_cq(verbs, cqe, NULL, NULL, seldom() ? 9999 : 0);
		printf("cq%u: create with %d", i, cqe);
		print_object(cq[i]);
	}
}

static void toggle_mr(unsigned int i)
{
	static const int accesses[] = { 0, 1, 3, 5, 2, 8, 1 << 19 };
	int access = random_below(3) ? 15 : PICK(accesses);
	uint32_t first = random_below(PAGES), n = 1 + random_below(PAGES - first);
	struct ibv_pd *of = some_pd();

	if (mr[i] && seldom()) {
		int err = ibv_dereg_mr(mr[i]);

		printf("mr%u: dereg", i);
		print_result(err);
		mr[i] = err ? mr[i] : NULL;
	} else if (!mr[i] && of) {
		char *at = seldom() ? (char *)PAGE : arena + (size_t)first * PAGE;

		mr[i] = ibv_reg_mr(of, at, (size_t)n * PAGE, access);
		access_of[i] = access;
		printf("mr%u: %u pages %s%u, access %x", i, n, at < arena ? "nowhere " : "", first,
		       (unsigned int)access);
		print_object(mr[i]);
	}
}

static void toggle_srq(unsigned int i)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 2 } };
	struct ibv_srq_attr attr = { .max_wr = 16, .srq_limit = 2 };
	int err;

	if (!srq[i] && some_pd()) {
		if (seldom())
			init.attr.max_wr = 1u << 30;
		if (seldom())
			init.attr.max_sge = 1000;
		srq[i] = ibv_create_srq(pd[0], &init);
		printf("srq%u: create with %u of %u", i, init.attr.max_wr, init.attr.max_sge);
		print_object(srq[i]);
	} else if (srq[i] && random_below(2)) {
		err = ibv_destroy_srq(srq[i]);
		printf("srq%u: destroy", i);
		print_result(err);
		srq[i] = err ? srq[i] : NULL;
	} else if (srq[i]) {
		attr.srq_limit = random_below(2) ? 2 : 1000;
		err = ibv_modify_srq(srq[i], &attr, IBV_SRQ_LIMIT);
		printf("srq%u: limit %u", i, attr.srq_limit);
		print_result(err);
	}
}

static struct ibv_ah_attr address(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	ibv_query_gid(verbs, 1, gid_index, &attr.grh.dgid);
	attr.grh.sgid_index = gid_index;
	attr.grh.hop_limit = 64;
	return attr;
}

static struct ibv_ah_attr some_address(void)
{
	struct ibv_ah_attr attr = address();

	if (seldom())
		attr.port_num = 9;
	if (seldom())
		attr.is_global = 0;
	if (seldom())
		attr.grh.sgid_index = 200;
	return attr;
}

static void toggle_ah(unsigned int i)
{
	struct ibv_ah_attr attr = some_address();

	if (ah[i]) {
		int err = ibv_destroy_ah(ah[i]);

		printf("ah%u: destroy", i);
		print_result(err);
		ah[i] = NULL;
		return;
	}
	ah[i] = ibv_create_ah(pd[0], &attr);
	printf("ah%u: port %u, global %u, index %s", i, attr.port_num, attr.is_global,
	       attr.grh.sgid_index == gid_index ? "right" : "wrong");
	print_object(ah[i]);
}

/* --- queue pairs -------------------------------------------------------------- */

static void create_qp(unsigned int i)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	struct ibv_qp_init_attr init = {
		.qp_type = PICK(types),
		.sq_sig_all = 1,
		.send_cq = cq[0],
		.recv_cq = random_below(4) && cq[1] ? cq[1] : cq[0],
		.cap = { 4, 4, 2, 2, 32 },
	};
	unsigned int s = random_below(MAX);

	if (queue[i ^ 1].qp && !seldom())
		init.qp_type = queue[i ^ 1].qp->qp_type;
	if (random_below(4) == 0)
		init.srq = srq[s];
	if (seldom())
		init.cap.max_send_wr = 1u << 30;
	if (seldom())
		init.cap.max_recv_sge = 1000;
	queue[i] = (struct queue){ .qp = ibv_create_qp(pd[0], &init) };
	printf("q%u: create of type %d, %s, %u sends, %u elements", i, init.qp_type,
	       init.srq ? "srq" : "no srq", init.cap.max_send_wr > 9 ? 9 : 4,
	       init.cap.max_recv_sge > 9 ? 9 : 2);
	print_object(queue[i].qp);
}

static void destroy_qp(unsigned int i)
{
	int err = ibv_destroy_qp(queue[i].qp);

	printf("q%u: destroy", i);
	print_result(err);
	if (!err)
		queue[i].qp = NULL;
}

static struct ibv_qp_attr attributes(unsigned int peer, enum ibv_qp_state to)
{
	return (struct ibv_qp_attr){
		.qp_state = to,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = random_below(4) ? 15 : random_below(16),
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = queue[peer].qp ? queue[peer].qp->qp_num : 1,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 0,
		.rnr_retry = 0,
		.ah_attr = address(),
	};
}

static int mask_for(enum ibv_qp_type type, enum ibv_qp_state to)
{
	bool ud = type == IBV_QPT_UD, rc = type == IBV_QPT_RC;

	switch (to) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	case IBV_QPS_RTR:
		return ud ? IBV_QP_STATE
			  : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN |
				       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	case IBV_QPS_RTS:
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_MAX_QP_RD_ATOMIC
			   : 0);
	case IBV_QPS_RESET:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
	case IBV_QPS_UNKNOWN:
		break;
	}
	return IBV_QP_STATE;
}

static void modify_qp(unsigned int i, unsigned int peer, enum ibv_qp_state to, bool may_err)
{
	struct ibv_qp_attr attr = attributes(peer, to);
	int mask = mask_for(queue[i].qp->qp_type, to);

	if (may_err && seldom())
		mask ^= 1 << random_below(21);
	if (may_err && seldom())
		attr.ah_attr = some_address();
	if (may_err && seldom())
		attr.port_num = 9;
	if (may_err && seldom())
		attr.path_mtu = 9;
	if (may_err && seldom())
		attr.max_rd_atomic = attr.max_dest_rd_atomic = 255;
	/* A retry that lasts for ever, or an early answer, is not what this is about. */
	mask &= ~(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT);
	printf("q%u: to state %d, mask %x, of q%u", i, to, (unsigned int)mask, peer);
	print_result(ibv_modify_qp(queue[i].qp, &attr, mask));
	if (mask & IBV_QP_DEST_QPN)
		queue[i].peer = peer;
	if (state_of(i) == IBV_QPS_RESET)
		queue[i].n_sends = queue[i].n_receives = 0;
}

static void connect_qps(unsigned int a, unsigned int b)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS };
	unsigned int i;

	for (i = 0; i < N(states); i++) {
		modify_qp(a, b, states[i], false);
		if (a != b)
			modify_qp(b, a, states[i], false);
	}
}

/* --- work --------------------------------------------------------------------- */

/* One that will do, mostly. */
static unsigned int some_mr(void)
{
	unsigned int i = random_below(MAX), n = seldom() ? 0 : MAX;

	for (; n && !(mr[i] && access_of[i] == 15); n--)
		i = (i + 1) % MAX;
	return i;
}

/* Return: number of elements. */
static int some_elements(struct ibv_sge *sge, char *ret)
{
	static const uint32_t lengths[] = { 0, 1, 8, 8, 64, 1024, 1025, 4096 };
	unsigned int i, n = random_below(8) ? 1 : random_below(4), k;

	*ret = '\0';
	for (i = 0; i < n; i++) {
		k = some_mr();
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)arena, .length = PICK(lengths) };
		if (mr[k]) {
			sge[i].addr = (uintptr_t)mr[k]->addr;
			sge[i].lkey = mr[k]->lkey + seldom();
		}
		sprintf(ret + strlen(ret), " mr%u:%u", k, sge[i].length);
	}
	return (int)n;
}

static void post_send(unsigned int i, unsigned int number)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	unsigned int k = some_mr(), to = random_below(MAX), a = random_below(MAX);
	struct ibv_sge sge[4];
	char elements[64];
	struct ibv_send_wr *bad, wr = {
		.wr_id = 2u * number,
		.sg_list = sge,
		.num_sge = some_elements(sge, elements),
		.opcode = PICK(opcodes),
		.send_flags = IBV_SEND_SIGNALED | (seldom() ? IBV_SEND_FENCE : 0u),
		.imm_data = 7,
	};
	uint64_t addr = (uintptr_t)arena + (mr[k] ? (uintptr_t)mr[k]->addr - (uintptr_t)arena : 0);
	uint32_t rkey = (mr[k] ? mr[k]->rkey : 0) + seldom();
	bool ud = queue[i].qp->qp_type == IBV_QPT_UD;
	int err, n;

	/* Packets of connections do not have the sender's number, so another one's may be taken. */
	if (!ud && (queue[queue[i].peer].peer != i || !queue[queue[i].peer].qp ||
		    queue[queue[i].peer].qp->qp_type != queue[i].qp->qp_type))
		return;
	if (!ud && wr.opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr + (seldom() ? 4 : 0);
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
		wr.num_sge = wr.num_sge ? 1 : 0;
		sge[0].length = 8;
	} else if (ud) {
		if (!ah[a]) /* a NULL pointer is no argument */
			return;
		wr.opcode = IBV_WR_SEND;
		wr.wr.ud.ah = ah[a];
		wr.wr.ud.remote_qpn = queue[to].qp ? queue[to].qp->qp_num : 1;
		wr.wr.ud.remote_qkey = seldom() ? 1 : QKEY;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	if (seldom() && wr.opcode < IBV_WR_RDMA_READ)
		wr.send_flags |= IBV_SEND_INLINE;
	printf("q%u: post %u, opcode %d, flags %x, from%s to mr%u%s", i, number, wr.opcode,
	       wr.send_flags, elements, k, mr[k] && rkey != mr[k]->rkey ? " with another key" : "");
	err = ibv_post_send(queue[i].qp, &wr, &bad);
	print_result(err);
	queue[i].n_sends += !err;
	/* Again: a device may take a shorter way to where it has been. */
	for (n = wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_RDMA_WRITE ? 2 : 0; n && !err;
	     n--) {
		settle();
		err = ibv_post_send(queue[i].qp, &wr, &bad);
		queue[i].n_sends += !err;
	}
}

static void post_receive(unsigned int i, unsigned int number)
{
	struct ibv_sge sge[4];
	char elements[64];
	struct ibv_recv_wr *bad, wr = { .wr_id = 2u * number + 1, .sg_list = sge };
	unsigned int s = random_below(MAX);
	int err;

	wr.num_sge = some_elements(sge, elements);
	if (queue[i].qp->srq && srq[s]) {
		err = ibv_post_srq_recv(srq[s], &wr, &bad);
		printf("srq%u: receive %u into%s", s, number, elements);
		print_result(err);
		return;
	}
	if (queue[i].qp->srq)
		return;
	err = ibv_post_recv(queue[i].qp, &wr, &bad);
	printf("q%u: receive %u into%s", i, number, elements);
	print_result(err);
	queue[i].n_receives += !err;
}

/* --- sequences ------------------------------------------------------------------ */

static void call_for_qp(unsigned int i, unsigned int number)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS,   IBV_QPS_SQD,	 IBV_QPS_ERR };
	unsigned int other = seldom() ? random_below(MAX) : i ^ 1, what = random_below(24);

	if (!queue[i].qp)
		create_qp(i);
	else if (state_of(i) != IBV_QPS_RTS && what > 3 && queue[other].qp)
		connect_qps(i, other);
	else if (what == 0)
		destroy_qp(i);
	else if (what < 3)
		modify_qp(i, other, PICK(states), true);
	else if (what < 12)
		post_receive(i, number);
	else
		post_send(i, number);
}

static void call_something(unsigned int number)
{
	static void (*const toggles[])(unsigned int i) = { toggle_pd, toggle_cq,  toggle_mr,
							   toggle_mr, toggle_srq, toggle_ah };
	unsigned int i = random_below(MAX);

	if (random_below(4) == 0)
		PICK(toggles)(i);
	else
		call_for_qp(i, number);
}

static void find_gid(void)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	union ibv_gid gid;

	while (ibv_query_gid(verbs, 1, gid_index, &gid) || memcmp(gid.raw, ipv4, sizeof(ipv4)) != 0)
		gid_index++;
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned int i;

	for (i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			verbs = ibv_open_device(list[i]);
	if (!verbs)
		exit(2);
	find_gid();
}

static void play(const char *device, unsigned int seed)
{
	unsigned int i;

	state = 88172645463325252u + (uint64_t)seed * 2654435761u;
	open_device(device);
	arena = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < PAGES * PAGE; i++)
		arena[i] = (char)(i * 31 >> 3);
	pd[0] = ibv_alloc_pd(verbs);
	cq[0] = ibv_create_cq(verbs, 128, NULL, NULL, 0);
	printf("== %u\n", seed);
	for (i = 0; i < 20; i++)
		random_below(2);
	for (i = 0; i < MAX; i++) {
		create_qp(i);
		toggle_mr(i);
	}
	if (queue[0].qp && queue[1].qp)
		connect_qps(0, 1);
	for (i = 0; i < CALLS; i++) {
		call_something(i);
		show_consequences();
	}
}

int main(int argc, char **argv)
{
	unsigned int seed, first = argc > 3 ? (unsigned int)atoi(argv[2]) : 0;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (seed = first; argc > 3 && seed < first + (unsigned int)atoi(argv[3]); seed++) {
		pid_t child = fork();

		if (child == 0) {
			play(argv[1], seed);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			printf("  ended with status %x\n", status);
	}
	return argc > 3 ? 0 : 2;
}
