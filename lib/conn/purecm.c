/* SPDX-License-Identifier: BSD-2-Clause */
/* Extensions over stock librdmacm that only read: texts and counters. See <purecm/purecm.h>. */
#include <purecm/purecm.h>

#include <errno.h>
#include <string.h>

#include "lib/api.h"
#include "lib/engine/engine.h"
#include "mad/cm_msg.h"

const char *purecm_reject_str(int reason)
{
	return cm_rej_reason_str(reason >= 0 && reason <= UINT16_MAX ? (uint16_t)reason : 0);
}

const char *purecm_sidr_str(int status)
{
	return cm_sidr_status_str(status >= 0 && status <= UINT8_MAX ? (uint8_t)status : UINT8_MAX);
}

_Static_assert(CM_ATTR_REQ + PURECM_APR == CM_ATTR_APR, "the messages are in order");

static void read_core(const struct cm_core *core, struct purecm_counters *ret)
{
	unsigned int i;

	for (i = 0; i < PURECM_N_MESSAGES; i++) {
		ret->sent[i] = core->sent[CM_ATTR_REQ + i];
		ret->received[i] = core->received[CM_ATTR_REQ + i];
	}
	ret->repeated = core->count[CM_COUNT_RETRIED];
	ret->duplicate = core->count[CM_COUNT_DUPLICATE];
	ret->malformed = core->count[CM_COUNT_MALFORMED];
	ret->unknown = core->count[CM_COUNT_UNKNOWN];
	ret->alien = core->count[CM_COUNT_ALIEN];
	ret->unexpected = core->count[CM_COUNT_UNEXPECTED];
	ret->no_memory = core->count[CM_COUNT_NO_MEMORY];
	ret->unsupported = core->count[CM_COUNT_UNSUPPORTED];
}

static int get_counters(struct purecm_counters *counters, size_t bytes)
{
	struct purecm_counters all = { 0 };

	if (!counters)
		return -EINVAL;
	read_core(&engine_lock()->core, &all);
	engine_unlock();
	memset(counters, 0, bytes);
	memcpy(counters, &all, bytes < sizeof(all) ? bytes : sizeof(all));
	return 0;
}

int purecm_get_counters(struct purecm_counters *counters, size_t bytes)
{
	return api_return(get_counters(counters, bytes));
}
