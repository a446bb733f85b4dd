/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls of libibverbs on one device, whose queue pairs are connected to each other: objects
 * of all kinds, right and wrong arguments, every state. Prints each call with its result, and then
 * what it has led to: completions, events, states of queue pairs, a sum of all memory. Each call
 * follows from the seed, its number and the objects that there are, so two devices that behave
 * alike print the same.
 *
 * random_verbs DEVICE SEED QUIET_MS: what has not come for so long, and need not, does not come.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CALLS	    60
#define MAX	    4 /* queue pairs, and objects of a kind */
#define PAGE	    4096u
#define HALF	    4u /* pages that work begins at; as many that it goes to */
#define PATIENCE_S  20
#define QKEY	    0x1234
#define PSN	    100
#define DEPTH	    7 /* what rxe does not make larger */
#define ALL_ACCESS  0x1f
#define N(table)    (sizeof(table) / sizeof((table)[0]))
#define PICK(table) (table)[random_below(N(table))]

/* The odd queue pairs have a context of their own in some sequences. */
struct side {
	struct ibv_context *verbs;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd[2];	/* the first remains, as the first of cq */
	struct ibv_cq *cq[3];	/* the last has the channel */
	struct ibv_mr *mr[MAX]; /* the upper half of them, of the arena */
	int access[MAX];
	struct ibv_mw *mw[MAX];
	bool is_bound[MAX]; /* of mw */
	struct ibv_srq *srq[2];
	struct ibv_ah *ah[2];
	char *arena;
};

struct queue {
	struct ibv_qp *qp;
	struct side *side;
	unsigned int sent[DEPTH + 1], n_sent; /* signalled, not complete */
	unsigned int n_receives;	      /* posted, not complete */
	unsigned int peer;		      /* the last that it was connected to */
	unsigned int window;		      /* the last to be bound */
};

static struct side sides[2];
static unsigned int n_sides;
static struct queue queue[MAX];
static uint8_t gid_index;
static uint64_t state, quiet_ms;

static uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % n;
}

static void begin_choices(unsigned int seed, unsigned int number)
{
	unsigned int i;

	state = 88172645463325252u + (uint64_t)seed * 2654435761u + (uint64_t)number * 40503u;
	for (i = 0; i < 20; i++)
		random_below(2);
}

static bool seldom(void)
{
	return random_below(12) == 0;
}

static bool print_result(int ret)
{
	int err = ret < 0 ? errno : ret;

	printf(" = %s\n", err ? strerrorname_np(err) : "0");
	return !err;
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

	if (!queue[i].qp)
		return IBV_QPS_RESET;
	if (ibv_query_qp(queue[i].qp, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

/* Number of completions that must come. Sends have finite retries. */
static unsigned int n_due(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < MAX; i++) {
		enum ibv_qp_state is = state_of(i);

		if (is == IBV_QPS_RTS || is == IBV_QPS_SQE || is == IBV_QPS_ERR)
			n += queue[i].n_sent;
		if (is == IBV_QPS_ERR)
			n += queue[i].n_receives;
	}
	return n;
}

/* What came since the last call, by queue pair: the order among them is open. */
static char heard[MAX][2][4096], heard_of_others[4096];

static unsigned int queue_of(uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < MAX && !(queue[i].qp && queue[i].qp->qp_num == qpn); i++)
		continue;
	return i;
}

/* Those before it are complete, too. */
static void forget_sent(struct queue *q, unsigned int number)
{
	unsigned int i, kept = 0;

	for (i = 0; i < q->n_sent; i++)
		if (q->sent[i] > number)
			q->sent[kept++] = q->sent[i];
	q->n_sent = kept;
}

static void note_completion(const struct ibv_wc *wc)
{
	unsigned int i = queue_of(wc->qp_num), is_receive = wc->wr_id & 1;
	unsigned int number = (unsigned int)(wc->wr_id >> 1);
	char *to;

	if (i == MAX)
		return;
	if (!is_receive)
		forget_sent(&queue[i], number);
	else if (queue[i].n_receives)
		queue[i].n_receives--;
	to = strchr(heard[i][is_receive], '\0');
	to += sprintf(to, "  q%u %s %u: %s", i, is_receive ? "receive" : "send", number,
		      ibv_wc_status_str(wc->status));
	if (wc->status == IBV_WC_SUCCESS)
		to += sprintf(to, ", opcode %d", wc->opcode);
	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_BIND_MW)
		queue[i].side->is_bound[queue[i].window] = true;
	if (wc->status == IBV_WC_SUCCESS && is_receive)
		to += sprintf(to, ", %u bytes, flags %x, of q%u", wc->byte_len,
			      wc->wc_flags & ~(unsigned int)IBV_WC_GRH,
			      queue[i].qp->qp_type == IBV_QPT_UD ? queue_of(wc->src_qp) : 9);
	strcpy(to, "\n");
}

static bool take_all(const struct side *s)
{
	char *to = strchr(heard_of_others, '\0');
	struct ibv_async_event event;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	bool some = false;
	unsigned int i;

	while (ibv_get_async_event(s->verbs, &event) == 0) {
		to += sprintf(to, "  event %d\n", event.event_type);
		ibv_ack_async_event(&event);
	}
	while (ibv_get_cq_event(s->channel, &cq, &context) == 0) {
		to += sprintf(to, "  event of cq2\n");
		ibv_ack_cq_events(cq, 1);
	}
	for (i = 0; i < N(s->cq); i++)
		while (s->cq[i] && ibv_poll_cq(s->cq[i], 1, &wc) > 0) {
			note_completion(&wc);
			some = true;
		}
	return some;
}

/* Return: whether all came that must. */
static bool settle(void)
{
	uint64_t began_ms = now_ms(), some_ms = began_ms, ms;
	bool some;

	do {
		ms = now_ms();
		some = take_all(&sides[0]);
		if ((n_sides > 1 && take_all(&sides[1])) || some || n_due())
			some_ms = ms;
		usleep(500);
	} while (ms - some_ms < quiet_ms && ms - began_ms < PATIENCE_S * 1000);
	return ms - some_ms >= quiet_ms;
}

static void show_memory(void)
{
	static uint32_t before;
	uint32_t sum = 2166136261u;
	unsigned int i, s;

	for (s = 0; s < n_sides; s++)
		for (i = 0; i < 2 * HALF * PAGE; i++)
			sum = (sum ^ (uint8_t)sides[s].arena[i]) * 16777619u;
	if (before && sum != before)
		printf("  memory %08x\n", sum);
	before = sum;
}

static void show_consequences(void)
{
	static enum ibv_qp_state before[MAX];
	bool has_settled = settle();
	unsigned int i;

	for (i = 0; i < MAX; i++) {
		enum ibv_qp_state is = state_of(i);

		printf("%s%s", heard[i][0], heard[i][1]);
		if (is != before[i])
			printf("  q%u is in state %d\n", i, is);
		before[i] = is;
	}
	printf("%s", heard_of_others);
	memset(heard, 0, sizeof(heard));
	heard_of_others[0] = '\0';
	show_memory();
	if (!has_settled) {
		printf("  %u completions do not come\n", n_due());
		exit(0);
	}
}

static struct ibv_pd *some_pd(const struct side *s)
{
	return s->pd[seldom() && s->pd[1]];
}

static void use_pd(struct side *s)
{
	printf("pd1: %s", s->pd[1] ? "dealloc" : "alloc");
	if (!s->pd[1]) {
		s->pd[1] = ibv_alloc_pd(s->verbs);
		print_object(s->pd[1]);
	} else if (print_result(ibv_dealloc_pd(s->pd[1]))) {
		s->pd[1] = NULL;
	}
}

static void use_cq(struct side *s)
{
	static const int sizes[] = { 63, 63, 127, 0, -1, 1 << 30 };
	unsigned int i = 1 + random_below(2), what = random_below(3);
	int cqe = PICK(sizes), solicited = (int)random_below(2);

	if (!s->cq[i]) {
		printf("cq%u: create with %d", i, cqe);
		s->cq[i] = ibv_create_cq(s->verbs, cqe, NULL, i == 2 ? s->channel : NULL,
					 seldom() ? 9999 : 0);
		print_object(s->cq[i]);
	} else if (what == 0) {
		printf("cq%u: destroy", i);
		if (print_result(ibv_destroy_cq(s->cq[i])))
			s->cq[i] = NULL;
	} else if (what == 1) {
		printf("cq%u: resize to %d", i, cqe);
		print_result(ibv_resize_cq(s->cq[i], cqe));
	} else {
		printf("cq%u: notify, solicited %d", i, solicited);
		print_result(ibv_req_notify_cq(s->cq[i], solicited));
	}
}

static void use_mr(struct side *s)
{
	static const int accesses[] = { 0, 1, 3, 5, 2, 8, 1 << 19, 0x11, 0x10 };
	unsigned int i = random_below(MAX), first = random_below(HALF);
	unsigned int n = 1 + random_below(HALF - first);
	int access = random_below(3) ? ALL_ACCESS : PICK(accesses);
	char *at = s->arena + (size_t)(first + (i < MAX / 2 ? 0 : HALF)) * PAGE;
	bool is_nowhere = seldom();

	if (s->mr[i]) {
		printf("mr%u: dereg", i);
		if (print_result(ibv_dereg_mr(s->mr[i])))
			s->mr[i] = NULL;
		return;
	}
	s->mr[i] = ibv_reg_mr(some_pd(s), is_nowhere ? (char *)PAGE : at, (size_t)n * PAGE, access);
	s->access[i] = access;
	printf("mr%u: %u pages %s%u, access %x, %s", i, n, is_nowhere ? "nowhere " : "", first,
	       (unsigned int)access, s->mr[i] && s->mr[i]->pd == s->pd[1] ? "pd1" : "pd0");
	print_object(s->mr[i]);
}

static void use_mw(struct side *s)
{
	unsigned int i = random_below(MAX);
	enum ibv_mw_type type = random_below(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

	if (!s->mw[i]) {
		s->mw[i] = ibv_alloc_mw(some_pd(s), type);
		printf("mw%u: alloc type %d", i, type);
		print_object(s->mw[i]);
	} else if (random_below(3) == 0) {
		printf("mw%u: dealloc", i);
		if (print_result(ibv_dealloc_mw(s->mw[i])))
			s->mw[i] = NULL;
	}
}

static void use_srq(struct side *s)
{
	unsigned int i = random_below(N(s->srq)), what = random_below(3);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = seldom() ? 1u << 30 : DEPTH,
						    .max_sge = seldom() ? 1000 : 2 } };
	struct ibv_srq_attr attr = { .max_wr = 15, .srq_limit = random_below(4) ? 2 : 1000 };
	int mask = seldom() ? (int)random_below(4) : IBV_SRQ_LIMIT;

	if (!s->srq[i]) {
		s->srq[i] = ibv_create_srq(s->pd[0], &init);
		printf("srq%u: create with %s", i,
		       init.attr.max_sge > 2 || init.attr.max_wr > 99 ? "too much" : "7 of 2");
		print_object(s->srq[i]);
	} else if (what == 0) {
		printf("srq%u: destroy", i);
		if (print_result(ibv_destroy_srq(s->srq[i])))
			s->srq[i] = NULL;
	} else if (what == 1) {
		printf("srq%u: modify %x, limit %u", i, (unsigned int)mask, attr.srq_limit);
		print_result(ibv_modify_srq(s->srq[i], &attr, mask));
	} else {
		printf("srq%u: query, ", i);
		what = (unsigned int)ibv_query_srq(s->srq[i], &attr);
		printf("%u of %u, limit %u", attr.max_wr, attr.max_sge, attr.srq_limit);
		print_result((int)what);
	}
}

static struct ibv_ah_attr address(const struct side *s)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	ibv_query_gid(s->verbs, 1, gid_index, &attr.grh.dgid);
	attr.grh.sgid_index = gid_index;
	attr.grh.hop_limit = 64;
	return attr;
}

static struct ibv_ah_attr some_address(const struct side *s)
{
	struct ibv_ah_attr attr = address(s);

	attr.port_num = seldom() ? 9 : 1;
	attr.is_global = !seldom();
	if (seldom())
		attr.grh.sgid_index = 40; /* an empty one */
	printf("port %u, global %u, index %s ", attr.port_num, attr.is_global,
	       attr.grh.sgid_index == gid_index ? "right" : "wrong");
	return attr;
}

static void use_ah(struct side *s)
{
	unsigned int i = random_below(N(s->ah));
	struct ibv_ah_attr attr;

	printf("ah%u: ", i);
	if (s->ah[i]) {
		printf("destroy");
		print_result(ibv_destroy_ah(s->ah[i]));
		s->ah[i] = NULL;
		return;
	}
	attr = some_address(s);
	s->ah[i] = ibv_create_ah(s->pd[0], &attr);
	print_object(s->ah[i]);
}

/* --- queue pairs -------------------------------------------------------------- */

static void create_qp(unsigned int i)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	struct side *s = &sides[i % n_sides];
	struct ibv_qp_init_attr init = {
		.qp_type = PICK(types),
		.sq_sig_all = (int)random_below(2),
		.send_cq = s->cq[0],
		.recv_cq = s->cq[random_below(N(s->cq))],
		.cap = { DEPTH, DEPTH, 2, 2, 32 },
	};
	uint32_t *caps[] = { &init.cap.max_send_wr, &init.cap.max_recv_wr, &init.cap.max_send_sge,
			     &init.cap.max_recv_sge, &init.cap.max_inline_data };
	struct ibv_pd *pd = some_pd(s);

	if (!init.recv_cq)
		init.recv_cq = s->cq[0];
	if (queue[i ^ 1].qp && !seldom())
		init.qp_type = queue[i ^ 1].qp->qp_type;
	if (random_below(4) == 0)
		init.srq = s->srq[random_below(N(s->srq))];
	if (seldom())
		*PICK(caps) = 1u << 28;
	printf("q%u: create of type %d, pd%d, %s, %u %u %u %u %u", i, init.qp_type, pd != s->pd[0],
	       init.srq ? "srq" : "no srq", init.cap.max_send_wr, init.cap.max_recv_wr,
	       init.cap.max_send_sge, init.cap.max_recv_sge, init.cap.max_inline_data);
	queue[i] = (struct queue){ .side = s, .peer = i };
	queue[i].qp = ibv_create_qp(pd, &init);
	print_object(queue[i].qp);
}

static void query_qp(unsigned int i)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr init;
	int err = ibv_query_qp(queue[i].qp, &a, (1 << 21) - 1, &init);

	printf("q%u: query, state %d, access %x, qkey %x, rd %u %u, rnr %u %u, timeout %u, "
	       "retry %u, port %u, caps %u %u %u %u, signals %d",
	       i, a.qp_state, a.qp_access_flags, a.qkey, a.max_rd_atomic, a.max_dest_rd_atomic,
	       a.min_rnr_timer, a.rnr_retry, a.timeout, a.retry_cnt, a.port_num,
	       init.cap.max_send_wr, init.cap.max_recv_wr, init.cap.max_send_sge,
	       init.cap.max_recv_sge, init.sq_sig_all);
	print_result(err);
}

static void use_group(unsigned int i)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1 } };
	bool attach = random_below(3);

	gid.raw[15] = (uint8_t)(1 + random_below(2));
	printf("q%u: %s group %u", i, attach ? "attach to" : "detach from", gid.raw[15]);
	print_result((attach ? ibv_attach_mcast : ibv_detach_mcast)(queue[i].qp, &gid, 0xc000));
}

static struct ibv_qp_attr attributes(unsigned int i, unsigned int peer, enum ibv_qp_state to)
{
	return (struct ibv_qp_attr){
		.qp_state = to,
		.cur_qp_state = to,
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
		.ah_attr = address(queue[i].side),
	};
}

static int mask_for(enum ibv_qp_type type, enum ibv_qp_state to)
{
	bool ud = type == IBV_QPT_UD, rc = type == IBV_QPT_RC;

	if (to == IBV_QPS_INIT)
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (to == IBV_QPS_RTR && !ud)
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (to == IBV_QPS_RTS)
		return IBV_QP_STATE | IBV_QP_SQ_PSN |
		       (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_MAX_QP_RD_ATOMIC
			   : 0);
	return IBV_QP_STATE;
}

static void spoil(struct ibv_qp_attr *attr, int *mask)
{
	struct {
		uint8_t *at;
		uint8_t value;
		int mask;
	} wrong[] = { { &attr->port_num, 9, IBV_QP_PORT },
		      { &attr->port_num, 0, IBV_QP_PORT },
		      { (uint8_t *)&attr->pkey_index, 200, IBV_QP_PKEY_INDEX },
		      { (uint8_t *)&attr->path_mtu, 9, IBV_QP_PATH_MTU },
		      { (uint8_t *)&attr->path_mtu, IBV_MTU_4096, IBV_QP_PATH_MTU },
		      { &attr->max_rd_atomic, 255, IBV_QP_MAX_QP_RD_ATOMIC },
		      { &attr->max_rd_atomic, 0, IBV_QP_MAX_QP_RD_ATOMIC },
		      { &attr->max_dest_rd_atomic, 255, IBV_QP_MAX_DEST_RD_ATOMIC },
		      { &attr->max_dest_rd_atomic, 0, IBV_QP_MAX_DEST_RD_ATOMIC },
		      { &attr->min_rnr_timer, 32, IBV_QP_MIN_RNR_TIMER },
		      { &attr->timeout, 32, IBV_QP_TIMEOUT },
		      { &attr->retry_cnt, 8, IBV_QP_RETRY_CNT },
		      { &attr->rnr_retry, 8, IBV_QP_RNR_RETRY },
		      { (uint8_t *)&attr->cur_qp_state, IBV_QPS_SQE, IBV_QP_CUR_STATE } };
	unsigned int k = random_below(N(wrong));

	*wrong[k].at = wrong[k].value;
	printf("with %u for %x, ", wrong[k].value, (unsigned int)wrong[k].mask);
	if (seldom())
		*mask |= wrong[k].mask;
}

static void modify_qp(unsigned int i, unsigned int peer, enum ibv_qp_state to, bool may_err)
{
	struct ibv_qp_attr attr = attributes(i, peer, to);
	int mask = mask_for(queue[i].qp->qp_type, to);

	printf("q%u: ", i);
	if (may_err && random_below(3) == 0)
		mask ^= 1 << random_below(21);
	if (may_err && seldom())
		attr.ah_attr = some_address(queue[i].side);
	else if (may_err && random_below(3) == 0)
		spoil(&attr, &mask);
	/* A retry that lasts for ever, or an early answer, is not what this is about. */
	mask &= ~(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT);
	printf("to state %d, mask %x, access %x, of q%u", to, (unsigned int)mask,
	       attr.qp_access_flags, peer);
	if (print_result(ibv_modify_qp(queue[i].qp, &attr, mask)) && mask & IBV_QP_DEST_QPN)
		queue[i].peer = peer;
	if (state_of(i) == IBV_QPS_RESET)
		queue[i].n_sent = queue[i].n_receives = 0;
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

/* One that will do, mostly, of a half of the regions. */
static unsigned int some_mr(const struct side *s, unsigned int half)
{
	unsigned int i = half * MAX / 2 + random_below(MAX / 2), other = i ^ 1;
	bool is_good = s->mr[i] && s->access[i] == ALL_ACCESS && s->mr[i]->pd == s->pd[0];

	return is_good || !s->mr[other] || seldom() ? i : other;
}

/* What an access gets at. Return: its key, or another one. */
static uint32_t some_place(const struct side *s, unsigned int half, uint32_t length, bool is_remote,
			   uint64_t *addr)
{
	static const char *const wrongs[] = { "with another key", "beyond its end",
					      "before its begin", "misaligned" };
	unsigned int k = some_mr(s, half), wrong = random_below(16);
	const struct ibv_mr *mr = s->mr[k];
	const struct ibv_mw *mw = is_remote && random_below(3) == 0 ? s->mw[k] : NULL;

	printf(" %s%u", mw ? "mw" : "mr", k);
	*addr = (uintptr_t)s->arena + (half ? HALF * PAGE : 0);
	if (mr)
		*addr = (uintptr_t)mr->addr;
	if (mr && wrong == 1)
		*addr += mr->length - (length > 1024 ? 0 : length - 1);
	if (mr && wrong == 2)
		*addr -= 1;
	if (wrong < (is_remote ? 4u : 3u))
		printf(" %s", wrongs[wrong]);
	if (wrong == 3 && is_remote)
		*addr += 4;
	return (mw ? mw->rkey : !mr ? 0 : is_remote ? mr->rkey : mr->lkey) + (wrong == 0);
}

/* Return: number of elements. */
static int some_elements(const struct side *s, unsigned int half, struct ibv_sge *sge)
{
	static const uint32_t lengths[] = { 0, 1, 8, 8, 64, 1024, 1025, 4096 };
	unsigned int i, n = random_below(8) ? 1 : random_below(4);

	for (i = 0; i < n; i++) {
		sge[i].length = PICK(lengths);
		sge[i].lkey = some_place(s, half, sge[i].length, false, &sge[i].addr);
		printf(":%u", sge[i].length);
	}
	return (int)n;
}

/*
 * Reads and writes thrice: a device may take a shorter way to where it has been. Others thrice if
 * they have no completion; that of the last one shows that all are done.
 */
static void post_again(struct queue *q, struct ibv_send_wr *wr, bool is_silent)
{
	struct ibv_send_wr *bad;
	unsigned int n, number = (unsigned int)(wr->wr_id >> 1);

	for (n = 1; n < 3; n++) {
		if (!is_silent)
			settle();
		wr->wr_id = 2u * (number + n);
		wr->send_flags |= n == 2 ? IBV_SEND_SIGNALED : 0u;
		if (ibv_post_send(q->qp, wr, &bad))
			return;
		if (n == 2 || !is_silent)
			q->sent[q->n_sent++] = number + n;
	}
}

/*
 * The window to invalidate. One that is not bound takes the kernel of rxe with it. Return: whether
 * there is one.
 */
static bool set_window(struct side *s, struct ibv_send_wr *wr)
{
	unsigned int k = MAX / 2 + random_below(MAX / 2);

	if (!s->mw[k] || s->mw[k]->type != IBV_MW_TYPE_2 || !s->is_bound[k])
		return false;
	printf(" of mw%u", k);
	wr->invalidate_rkey = s->mw[k]->rkey;
	s->is_bound[k] = false;
	return true;
}

static bool has_answer(enum ibv_wr_opcode opcode)
{
	return opcode >= IBV_WR_RDMA_READ && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* What q sends to. Return: whether there is such a thing. */
static bool set_target(const struct queue *q, struct ibv_send_wr *wr)
{
	const struct queue *peer = &queue[q->peer];
	struct ibv_ah *ah = q->side->ah[random_below(N(q->side->ah))];
	unsigned int to = random_below(MAX);
	uint64_t addr;

	if (q->qp->qp_type == IBV_QPT_UD) {
		wr->opcode = IBV_WR_SEND;
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = queue[to].qp ? queue[to].qp->qp_num : 1;
		wr->wr.ud.remote_qkey = seldom() ? 1 : QKEY;
		printf(" to q%u%s", to, wr->wr.ud.remote_qkey == QKEY ? "" : " with another key");
		return ah; /* a NULL pointer is no argument */
	}
	if (q->qp->qp_type == IBV_QPT_UC && has_answer(wr->opcode))
		return false;
	/* Packets of connections do not have the sender's number, so another one's may be taken. */
	if (!peer->qp || &queue[peer->peer] != q || peer->qp->qp_type != q->qp->qp_type)
		return false;
	if (wr->opcode == IBV_WR_SEND_WITH_INV)
		return set_window(peer->side, wr);
	if (wr->opcode == IBV_WR_LOCAL_INV)
		return set_window(q->side, wr);
	if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	    wr->opcode == IBV_WR_RDMA_READ) {
		wr->wr.rdma.rkey = some_place(peer->side, 1, 8, true, &addr);
		wr->wr.rdma.remote_addr = addr;
	} else if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP &&
		   wr->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.rkey = some_place(peer->side, 1, 8, true, &addr);
		wr->wr.atomic.remote_addr = addr & ~7ull;
		wr->wr.atomic.compare_add = 1;
	}
	return true;
}

static void post_send(unsigned int i, unsigned int number)
{
	/* Of enum ibv_wr_opcode: sends, writes, reads, atomics, invalidations. */
	static const uint8_t opcodes[] = { 2, 2, 3, 0, 0, 1, 4, 4, 5, 6, 9, 7 };
	struct queue *q = &queue[i];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_sge sge[4];
	struct ibv_send_wr *bad, wr = {
		.wr_id = 2u * 3u * number,
		.sg_list = sge,
		.opcode = (enum ibv_wr_opcode)PICK(opcodes),
		.send_flags = (random_below(4) ? IBV_SEND_SIGNALED : 0u) |
			      (seldom() ? IBV_SEND_FENCE : 0u) |
			      (seldom() ? IBV_SEND_SOLICITED : 0u) |
			      (random_below(8) ? 0u : IBV_SEND_INLINE),
		.imm_data = 7,
	};
	bool is_silent, is_ready;

	printf("q%u: post %u, opcode %d, flags %x,", i, 3 * number, wr.opcode, wr.send_flags);
	wr.num_sge = some_elements(q->side, 0, sge);
	is_ready = set_target(q, &wr);
	if (has_answer(wr.opcode))
		wr.send_flags &= ~(unsigned int)IBV_SEND_INLINE;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.num_sge = 1;
		sge[0].length = 8;
	}
	if (!is_ready || ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init)) {
		printf(" not made\n");
		return;
	}
	is_silent = !init.sq_sig_all && !(wr.send_flags & IBV_SEND_SIGNALED);
	if (!print_result(ibv_post_send(q->qp, &wr, &bad)))
		return;
	if (!is_silent)
		q->sent[q->n_sent++] = 3 * number;
	if (is_silent || wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_RDMA_WRITE)
		post_again(q, &wr, is_silent);
}

static void bind_mw(unsigned int i, unsigned int number)
{
	static const unsigned int accesses[] = { 14, 14, 14, 2, 4, 0 };
	struct queue *q = &queue[i];
	unsigned int k = MAX / 2 + random_below(MAX / 2), m = some_mr(q->side, 1);
	struct ibv_mw *mw = q->side->mw[k];
	struct ibv_mr *mr = q->side->mr[m];
	struct ibv_mw_bind bind = { .wr_id = 2u * 3u * number, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad, wr = { .wr_id = bind.wr_id,
					.opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };

	if (!mw || !mr)
		return;
	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)mr->addr, PAGE, PICK(accesses) };
	if (seldom())
		bind.bind_info.addr += mr->length;
	printf("q%u: bind %u, mw%u to mr%u%s, access %x", i, 3 * number, k, m,
	       bind.bind_info.addr == (uintptr_t)mr->addr ? "" : " beyond its end",
	       bind.bind_info.mw_access_flags);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	if (!print_result(mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(q->qp, mw, &bind)
						    : ibv_post_send(q->qp, &wr, &bad)))
		return;
	q->sent[q->n_sent++] = 3 * number;
	q->window = k;
	q->side->is_bound[k] = false;
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = wr.bind_mw.rkey;
}

static void post_receive(unsigned int i, unsigned int number)
{
	struct ibv_sge sge[4];
	struct ibv_recv_wr *bad, wr = { .wr_id = 2u * number + 1, .sg_list = sge };
	struct ibv_srq *srq = queue[i].qp->srq;

	/* Not flushed by rxe: device.md. */
	if (state_of(i) == IBV_QPS_ERR)
		return;
	printf("q%u: receive %u into", i, number);
	wr.num_sge = some_elements(queue[i].side, 1, sge);
	if (!print_result(srq ? ibv_post_srq_recv(srq, &wr, &bad)
			      : ibv_post_recv(queue[i].qp, &wr, &bad)))
		return;
	queue[i].n_receives += !srq;
}

/* --- sequences ------------------------------------------------------------------ */

static void call_for_qp(unsigned int i, unsigned int number)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS,   IBV_QPS_SQD,	 IBV_QPS_ERR };
	unsigned int other = seldom() ? random_below(MAX) : i ^ 1, what = random_below(32);

	if (!queue[i].qp)
		create_qp(i);
	else if (state_of(i) != IBV_QPS_RTS && what > 7 && queue[other].qp)
		connect_qps(i, other);
	else if (what == 0 && printf("q%u: destroy", i))
		queue[i].qp = print_result(ibv_destroy_qp(queue[i].qp)) ? NULL : queue[i].qp;
	else if (what < 4)
		modify_qp(i, other, PICK(states), true);
	else if (what == 4)
		query_qp(i);
	else if (what == 5)
		use_group(i);
	else if (what < 16)
		post_receive(i, number);
	else if (what < 18)
		bind_mw(i, number);
	else
		post_send(i, number);
}

static void call_something(unsigned int number)
{
	static void (*const uses[])(struct side * s) = { use_pd, use_cq, use_cq,  use_mr,
							 use_mr, use_mw, use_srq, use_ah };
	void (*use)(struct side * s);

	if (random_below(4)) {
		call_for_qp(random_below(MAX), number);
		return;
	}
	use = PICK(uses);
	use(&sides[random_below(n_sides)]);
}

static void find_gid(struct ibv_context *verbs)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	union ibv_gid gid;

	while (ibv_query_gid(verbs, 1, gid_index, &gid) || memcmp(gid.raw, ipv4, sizeof(ipv4)) != 0)
		gid_index++;
}

static void open_side(struct side *s, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned int i;

	for (i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			s->verbs = ibv_open_device(list[i]);
	if (!s->verbs)
		exit(2);
	find_gid(s->verbs);
	s->channel = ibv_create_comp_channel(s->verbs);
	fcntl(s->channel->fd, F_SETFL, O_NONBLOCK);
	fcntl(s->verbs->async_fd, F_SETFL, O_NONBLOCK);
	s->arena = mmap(NULL, (size_t)2 * HALF * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 2 * HALF * PAGE; i++)
		s->arena[i] = (char)(i * 31 >> 3);
	s->pd[0] = ibv_alloc_pd(s->verbs);
	s->cq[0] = ibv_create_cq(s->verbs, 127, NULL, NULL, 0);
}

static void begin(const char *device, unsigned int seed)
{
	unsigned int i;

	begin_choices(seed, CALLS);
	n_sides = 1 + seed % 2;
	for (i = 0; i < n_sides; i++)
		open_side(&sides[i], device);
	for (i = 0; i < n_sides * 2 * MAX; i++)
		use_mr(&sides[i % n_sides]);
	for (i = 0; i < MAX; i++)
		create_qp(i);
	for (i = 0; i < MAX; i += 2)
		if (queue[i].qp && queue[i + 1].qp)
			connect_qps(i, i + 1);
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 3 ? (unsigned int)atoi(argv[2]) : 0, i;

	if (argc < 4)
		return 2;
	quiet_ms = (uint64_t)atoi(argv[3]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("== %u\n", seed);
	begin(argv[1], seed);
	for (i = 0; i < CALLS; i++) {
		begin_choices(seed, i);
		call_something(i);
		show_consequences();
	}
	return 0;
}
