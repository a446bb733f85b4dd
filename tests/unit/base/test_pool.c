/* SPDX-License-Identifier: BSD-2-Clause */
/* base/pool.c: zeroed objects, and a forked child that starts empty. */
#include "base/pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"

struct object {
	uint64_t word[8];
};

static struct pool pool;

static void set_up(void)
{
	pool = (struct pool)POOL_OF(sizeof(struct object));
}

FIXTURE(set_up, NULL);

TEST(reused_object_is_zeroed)
{
	static const struct object zeros;
	struct object *object = pool_take(&pool);

	object->word[0] = object->word[7] = 1;
	pool_give(&pool, object);
	object = pool_take(&pool);
	ck_assert_mem_eq(object, &zeros, sizeof(zeros));
	pool_give(&pool, object);
}

TEST(freeing_null_is_allowed)
{
	pool_give(&pool, NULL);
}

/* Another thread of the parent may hold the lock when it forks. */
TEST(child_can_use_a_pool_that_was_locked_during_fork)
{
	int status;
	pid_t child;

	pool_take(&pool);
	pthread_mutex_lock(&pool.lock);
	child = fork();
	if (!child) {
		pool_after_fork(&pool);
		_exit(pool_take(&pool) ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	pthread_mutex_unlock(&pool.lock);
}
