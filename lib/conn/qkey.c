/* SPDX-License-Identifier: BSD-2-Clause */
/* The Q_Key of an id in RDMA_PS_IPOIB: see qkey.h. */
#include "lib/conn/qkey.h"

#include <errno.h>
#include <semaphore.h>

#include "base/clock.h"
#include "lib/engine/engine.h"
#include "lib/path/partition.h"

#define TIMEOUT_MS 3000
#define WAIT_MS	   (TIMEOUT_MS + 500)

bool qkey_question(const struct id *id, struct sa_msg *ret)
{
	const struct gid_entry *gid = &id->path.gid;
	struct partition part;

	if (id->claim.ps != RDMA_PS_IPOIB || id->qkey || !gid->verbs ||
	    gid->type != IBV_GID_TYPE_IB || partition_of(&id->claim.local, gid->ifindex, &part))
		return false;
	sa_msg_init(ret, SA_METHOD_GET, SA_ATTR_MCMEMBER_RECORD, SA_MEMBER_MGID, 0);
	ret->member.mgid = part.broadcast;
	return true;
}

struct waiting {
	struct subnet_ask ask;
	sem_t ended;
	uint32_t qkey; /* 0: unknown */
};

static bool wake_asker(struct subnet_ask *ask, int err, const struct sa_msg *answer)
{
	struct waiting *waiting = container_of(ask, struct waiting, ask);

	if (!err)
		waiting->qkey = answer->member.qkey;
	sem_post(&waiting->ended);
	return false;
}

void qkey_learn(struct id *id)
{
	struct waiting waiting = { .ask = { .timeout_ms = TIMEOUT_MS, .done = wake_asker } };
	const struct timespec end = clock_after_ms(WAIT_MS);
	struct portd_record question = { .type = PORTD_NONE }, drop = { .type = PORTD_NONE };
	struct engine *engine = engine_lock();
	bool asks = qkey_question(id, &waiting.ask.msg);

	sem_init(&waiting.ended, 0, 0);
	if (asks)
		subnet_ask(engine, &waiting.ask, id->path.port, &question);
	engine_unlock();
	if (!asks)
		return;
	subnet_send(&question);
	while (sem_clockwait(&waiting.ended, CLOCK_MONOTONIC, &end) && errno == EINTR)
		;
	/* The engine's thread uses the request until it gives the lock back. */
	engine_lock();
	subnet_drop(&waiting.ask, &drop);
	if (waiting.qkey)
		id->qkey = waiting.qkey;
	engine_unlock();
	subnet_send(&drop);
	sem_destroy(&waiting.ended);
}
