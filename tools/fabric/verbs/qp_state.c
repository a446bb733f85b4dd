/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of IBTA vol. 1, 11.2.5.2, for the three types of queue pairs that there are here.
 */
#include "tools/fabric/verbs/qp_state.h"

#define N_STATES (IBV_QPS_ERR + 1)
#define N_TYPES	 3

struct change {
	bool valid;
	unsigned int required[N_TYPES]; /* RC, UC, UD */
	unsigned int optional[N_TYPES];
};

enum {
	PKEY = IBV_QP_PKEY_INDEX,
	PORT = IBV_QP_PORT,
	QKEY = IBV_QP_QKEY,
	ACCESS = IBV_QP_ACCESS_FLAGS,
	AV = IBV_QP_AV,
	ALT = IBV_QP_ALT_PATH,
	MIG = IBV_QP_PATH_MIG_STATE,
	RNR_TIMER = IBV_QP_MIN_RNR_TIMER,
	CUR = IBV_QP_CUR_STATE,
	RD = IBV_QP_MAX_QP_RD_ATOMIC,
	DEST_RD = IBV_QP_MAX_DEST_RD_ATOMIC,
	PATH = AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	RETRY = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
	LIVE_RC = CUR | ACCESS | ALT | RNR_TIMER | MIG,
	LIVE_UC = CUR | ACCESS | ALT | MIG,
	LIVE_UD = CUR | QKEY,
};

/* What is valid for each type without an attribute has no row here: to RESET and to ERR. */
static const struct change changes[N_STATES][N_STATES] = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_INIT] = { true, { PKEY | PORT | ACCESS, PKEY | PORT | ACCESS,
			PKEY | PORT | QKEY }, { 0, 0, 0 } },
	},
	[IBV_QPS_INIT] = {
		[IBV_QPS_INIT] = { true, { 0, 0, 0 }, { PKEY | PORT | ACCESS, PKEY | PORT | ACCESS,
			PKEY | PORT | QKEY } },
		[IBV_QPS_RTR] = { true, { PATH | DEST_RD | RNR_TIMER, PATH, 0 },
			{ ALT | ACCESS | PKEY, ALT | ACCESS | PKEY, PKEY | QKEY } },
	},
	[IBV_QPS_RTR] = {
		[IBV_QPS_RTS] = { true, { RETRY | RD | IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
			{ LIVE_RC, LIVE_UC, LIVE_UD } },
	},
	[IBV_QPS_RTS] = {
		[IBV_QPS_RTS] = { true, { 0, 0, 0 }, { LIVE_RC, LIVE_UC, LIVE_UD } },
		[IBV_QPS_SQD] = { true, { 0, 0, 0 }, { IBV_QP_EN_SQD_ASYNC_NOTIFY,
			IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY } },
	},
	[IBV_QPS_SQD] = {
		[IBV_QPS_SQD] = { true, { 0, 0, 0 }, {
			PORT | AV | RETRY | RD | DEST_RD | ALT | PKEY | ACCESS | RNR_TIMER | MIG,
			AV | ALT | PKEY | ACCESS | MIG, PKEY | QKEY } },
		[IBV_QPS_RTS] = { true, { 0, 0, 0 }, { LIVE_RC, LIVE_UC, LIVE_UD } },
	},
	[IBV_QPS_SQE] = {
		[IBV_QPS_RTS] = { true, { 0, 0, 0 }, { 0, CUR | ACCESS, LIVE_UD } },
	},
};

static int type_index(enum ibv_qp_type type)
{
	if (type == IBV_QPT_RC)
		return 0;
	if (type == IBV_QPT_UC)
		return 1;
	return type == IBV_QPT_UD ? 2 : -1;
}

bool qp_state_allows(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		     unsigned int mask)
{
	const struct change *change;
	int i = type_index(type);

	if (i < 0 || from >= N_STATES || to >= N_STATES)
		return false;
	mask &= ~(unsigned int)IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask == 0;
	change = &changes[from][to];
	/* A reliable queue pair has no state of send error. */
	if (!change->valid || (from == IBV_QPS_SQE && i == 0))
		return false;
	return (mask & change->required[i]) == change->required[i] &&
	       !(mask & ~(change->required[i] | change->optional[i]));
}
