/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of states of queue pairs, compared with IBTA vol. 1, 11.2.5.2 in transposed form: one
 * row per attribute, with the transitions that require or allow it.
 */
#include <stdlib.h>

#include "tools/fabric/verbs/qp_state.h"
#include "tests/unit/test.h"

enum change {
	RESET_INIT,
	INIT_INIT,
	INIT_RTR,
	RTR_RTS,
	RTS_RTS,
	RTS_SQD,
	SQD_SQD,
	SQD_RTS,
	SQE_RTS
};

#define N_CHANGES (SQE_RTS + 1)

static const enum ibv_qp_state from[N_CHANGES] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
	IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_SQD,  IBV_QPS_SQE,
};

static const enum ibv_qp_state to[N_CHANGES] = {
	IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_RTS,
	IBV_QPS_SQD,  IBV_QPS_SQD,  IBV_QPS_RTS, IBV_QPS_RTS,
};

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					  IBV_QPT_XRC_RECV };

#define N_TYPES 5

/* One letter per transition, in the order above: r required, o optional, - neither. */
static const struct {
	unsigned int attr;
	const char *of[N_TYPES];
} rows[] = {
	{ IBV_QP_CUR_STATE, { "---oo--o-", "---oo--oo", "---oo--oo", "---oo--o-", "---oo--o-" } },
	{ IBV_QP_EN_SQD_ASYNC_NOTIFY,
	  { "-----o---", "-----o---", "-----o---", "-----o---", "-----o---" } },
	{ IBV_QP_ACCESS_FLAGS,
	  { "roooo-oo-", "roooo-ooo", "---------", "roooo-oo-", "roooo-oo-" } },
	{ IBV_QP_PKEY_INDEX, { "roo---o--", "roo---o--", "roo---o--", "roo---o--", "roo---o--" } },
	{ IBV_QP_PORT, { "ro----o--", "ro-------", "ro-------", "ro----o--", "ro----o--" } },
	{ IBV_QP_QKEY, { "---------", "---------", "roooo-ooo", "---------", "---------" } },
	{ IBV_QP_AV, { "--r---o--", "--r---o--", "---------", "--r---o--", "--r---o--" } },
	{ IBV_QP_PATH_MTU, { "--r------", "--r------", "---------", "--r------", "--r------" } },
	{ IBV_QP_TIMEOUT, { "---r--o--", "---------", "---------", "---r--o--", "---r--o--" } },
	{ IBV_QP_RETRY_CNT, { "---r--o--", "---------", "---------", "---r--o--", "---o-----" } },
	{ IBV_QP_RNR_RETRY, { "---r--o--", "---------", "---------", "---r--o--", "---o-----" } },
	{ IBV_QP_RQ_PSN, { "--r------", "--r------", "---------", "--r------", "--r------" } },
	{ IBV_QP_MAX_QP_RD_ATOMIC,
	  { "---r--o--", "---------", "---------", "---r--o--", "---o-----" } },
	{ IBV_QP_ALT_PATH, { "--ooo-oo-", "--ooo-oo-", "---------", "--ooo-oo-", "--ooo-oo-" } },
	{ IBV_QP_MIN_RNR_TIMER,
	  { "--roo-oo-", "---------", "---------", "--o------", "--roo-oo-" } },
	{ IBV_QP_SQ_PSN, { "---r-----", "---r-----", "---r-----", "---r-----", "---r-----" } },
	{ IBV_QP_MAX_DEST_RD_ATOMIC,
	  { "--r---o--", "---------", "---------", "--o------", "--r---o--" } },
	{ IBV_QP_PATH_MIG_STATE,
	  { "---oo-oo-", "---oo-oo-", "---------", "---oo-oo-", "---oo-oo-" } },
	{ IBV_QP_CAP, { "---------", "---------", "---------", "---------", "---------" } },
	{ IBV_QP_DEST_QPN, { "--r------", "--r------", "---------", "--r------", "--r------" } },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static char letter(size_t row, unsigned int type, unsigned int change)
{
	return rows[row].of[type][change];
}

static unsigned int required(unsigned int type, unsigned int change)
{
	unsigned int mask = 0;
	size_t row;

	for (row = 0; row < N_ROWS; row++)
		if (letter(row, type, change) == 'r')
			mask |= rows[row].attr;
	return mask;
}

/* Reliable queue pairs have no state SQE. */
static bool exists(unsigned int type, unsigned int change)
{
	return types[type] == IBV_QPT_UC || types[type] == IBV_QPT_UD || change != SQE_RTS;
}

TEST_LOOP(required_attributes_suffice, 0, N_TYPES *N_CHANGES)
{
	unsigned int type = _i % N_TYPES, change = _i / N_TYPES;

	ck_assert_int_eq(qp_state_allows(types[type], from[change], to[change],
					 required(type, change) | IBV_QP_STATE),
			 exists(type, change));
}

TEST_LOOP(each_attribute_has_the_transitions_of_the_specification, 0, N_TYPES *N_CHANGES)
{
	unsigned int type = _i % N_TYPES, change = _i / N_TYPES, mask = required(type, change);
	size_t row;

	for (row = 0; exists(type, change) && row < N_ROWS; row++) {
		bool with = qp_state_allows(types[type], from[change], to[change],
					    mask | rows[row].attr);
		bool without = qp_state_allows(types[type], from[change], to[change],
					       mask & ~rows[row].attr);

		ck_assert_int_eq(with, letter(row, type, change) != '-');
		ck_assert_int_eq(without, letter(row, type, change) != 'r');
	}
}

static bool is_a_change(enum ibv_qp_state a, enum ibv_qp_state b)
{
	unsigned int i;

	for (i = 0; i < N_CHANGES; i++)
		if (from[i] == a && to[i] == b)
			return true;
	return b == IBV_QPS_RESET || b == IBV_QPS_ERR;
}

TEST_LOOP(no_other_transition_is_allowed, 0, 49)
{
	enum ibv_qp_state a = _i / 7, b = _i % 7;
	unsigned int type, mask;
	bool any;

	for (type = 0; type < N_TYPES; type++) {
		any = false;
		for (mask = 0; mask < N_CHANGES; mask++)
			any |= qp_state_allows(types[type], a, b, required(type, mask));
		any |= qp_state_allows(types[type], a, b, 0);
		ck_assert(!any || is_a_change(a, b));
	}
}

TEST_LOOP(transitions_to_error_and_reset_need_no_attributes, 0, IBV_QPS_ERR + 1)
{
	enum ibv_qp_state a = _i;

	ck_assert(qp_state_allows(IBV_QPT_RC, a, IBV_QPS_ERR, IBV_QP_STATE));
	ck_assert(qp_state_allows(IBV_QPT_RC, a, IBV_QPS_RESET, IBV_QP_STATE));
	ck_assert(!qp_state_allows(IBV_QPT_RC, a, IBV_QPS_ERR, IBV_QP_ACCESS_FLAGS));
}

TEST(raw_packets_have_no_states)
{
	ck_assert(!qp_state_allows(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PORT));
}
