/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of IBTA vol. 1, 11.2.5.2, for the supported types of queue pairs, and that of annex A14
 * for XRC.
 */
#include "tools/fabric/verbs/qp_state.h"

#define N_STATES (IBV_QPS_ERR + 1)
#define N_TYPES	 5

struct change {
	bool valid;
	unsigned int required[N_TYPES]; /* RC, UC, UD, XRC initiator, XRC target */
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
	BEGIN = PKEY | PORT | ACCESS,
	DRAINED = IBV_QP_EN_SQD_ASYNC_NOTIFY,
};

#define LIVE                                                \
	{                                                   \
		LIVE_RC, LIVE_UC, LIVE_UD, LIVE_UC, LIVE_RC \
	}

/*
 * perftest passes the attributes of RC to both ends of XRC, although each uses half of them: the
 * others are accepted and ignored. Transitions to RESET and ERR, valid for all types without
 * attributes, have no row.
 */
static const struct change changes[N_STATES][N_STATES] = {
	[IBV_QPS_RESET] = {
		[IBV_QPS_INIT] = { true, { BEGIN, BEGIN, PKEY | PORT | QKEY, BEGIN, BEGIN },
			{ 0, 0, 0, 0, 0 } },
	},
	[IBV_QPS_INIT] = {
		[IBV_QPS_INIT] = { true, { 0, 0, 0, 0, 0 },
			{ BEGIN, BEGIN, PKEY | PORT | QKEY, BEGIN, BEGIN } },
		[IBV_QPS_RTR] = { true,
			{ PATH | DEST_RD | RNR_TIMER, PATH, 0, PATH, PATH | DEST_RD | RNR_TIMER },
			{ ALT | ACCESS | PKEY, ALT | ACCESS | PKEY, PKEY | QKEY,
			  ALT | ACCESS | PKEY | DEST_RD | RNR_TIMER, ALT | ACCESS | PKEY } },
	},
	[IBV_QPS_RTR] = {
		[IBV_QPS_RTS] = { true, { RETRY | RD | IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN,
				RETRY | RD | IBV_QP_SQ_PSN, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN },
			{ LIVE_RC, LIVE_UC, LIVE_UD, LIVE_UC, LIVE_RC | RETRY | RD } },
	},
	[IBV_QPS_RTS] = {
		[IBV_QPS_RTS] = { true, { 0, 0, 0, 0, 0 }, LIVE },
		[IBV_QPS_SQD] = { true, { 0, 0, 0, 0, 0 }, { DRAINED, DRAINED, DRAINED, DRAINED,
			DRAINED } },
	},
	[IBV_QPS_SQD] = {
		[IBV_QPS_SQD] = { true, { 0, 0, 0, 0, 0 }, {
			PORT | AV | RETRY | RD | DEST_RD | ALT | PKEY | ACCESS | RNR_TIMER | MIG,
			AV | ALT | PKEY | ACCESS | MIG, PKEY | QKEY,
			PORT | AV | RETRY | RD | ALT | PKEY | ACCESS | MIG,
			PORT | AV | IBV_QP_TIMEOUT | DEST_RD | ALT | PKEY | ACCESS | RNR_TIMER |
				MIG } },
		[IBV_QPS_RTS] = { true, { 0, 0, 0, 0, 0 }, LIVE },
	},
	[IBV_QPS_SQE] = {
		[IBV_QPS_RTS] = { true, { 0, 0, 0, 0, 0 }, { 0, CUR | ACCESS, LIVE_UD, 0, 0 } },
	},
};

/* In the order of columns. */
static const enum ibv_qp_type types[N_TYPES] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						 IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };

static int type_index(enum ibv_qp_type type)
{
	int i;

	for (i = 0; i < N_TYPES; i++)
		if (types[i] == type)
			return i;
	return -1;
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
	/* A reliable queue pair has no send error state. */
	if (!change->valid || (from == IBV_QPS_SQE && type != IBV_QPT_UC && type != IBV_QPT_UD))
		return false;
	return (mask & change->required[i]) == change->required[i] &&
	       !(mask & ~(change->required[i] | change->optional[i]));
}
