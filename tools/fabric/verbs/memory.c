/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions, with the checks that hardware makes for every access. */
#include "tools/fabric/verbs/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/grant.h"
#include "tools/fabric/verbs/guard.h"
#include "tools/fabric/verbs/pinned.h"
#include "tools/fabric/verbs/xrc.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define KEY_TAG_BITS   8
#define FIRST_KEYS     64
#define PAGE_BYTES_MIN 4096
#ifdef FAB_HAS_FLUSH
#define FLUSH_ACCESS FAB_ACCESS_FLUSH_GLOBAL
#else
#define FLUSH_ACCESS 0u
#endif
#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND | IBV_ACCESS_OPTIONAL_RANGE | FLUSH_ACCESS)

/* Since Linux 5.14; not defined by the C library of Debian 11. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* --- keys ---------------------------------------------------------------- */

static int grow_keys(struct fab_keys *keys)
{
	uint32_t n = keys->n ? 2 * keys->n : FIRST_KEYS;
	struct fab_mr **mr = realloc(keys->mr, n * sizeof(struct fab_mr *));
	uint8_t *tag;

	if (!mr)
		return -ENOMEM;
	keys->mr = mr;
	tag = realloc(keys->tag, n);
	if (!tag)
		return -ENOMEM;
	keys->tag = tag;
	memset(mr + keys->n, 0, (n - keys->n) * sizeof(struct fab_mr *));
	memset(tag + keys->n, 1, n - keys->n);
	keys->n = n;
	return 0;
}

/* Index 0 is not used: a key of zero is a program error. */
int memory_take_key(struct fab_context *context, struct fab_mr *mr)
{
	struct fab_keys *keys = &context->keys;
	uint32_t i, index;
	int err;

	for (i = 0; i < keys->n; i++) {
		index = (keys->last + 1 + i) % keys->n;
		if (index == 0 || keys->mr[index])
			continue;
		keys->mr[index] = mr;
		keys->last = index;
		mr->ibv.lkey = index << KEY_TAG_BITS | keys->tag[index]++;
		mr->ibv.rkey = mr->ibv.lkey;
		return 0;
	}
	if (keys->n >= FAB_MRS_MAX)
		return -ENOMEM;
	err = grow_keys(keys);
	return err ? err : memory_take_key(context, mr);
}

void memory_drop_key(struct fab_context *context, const struct fab_mr *mr)
{
	uint32_t index = mr->ibv.lkey >> KEY_TAG_BITS;

	context->keys.mr[index] = NULL;
	context->keys.tag[index] = (uint8_t)(mr->ibv.lkey + 1);
}

struct fab_mr *memory_of_key(const struct fab_context *context, uint32_t key)
{
	uint32_t index = key >> KEY_TAG_BITS;

	return index < context->keys.n ? context->keys.mr[index] : NULL;
}

static struct fab_mr *key_find(const struct fab_context *context, uint32_t key)
{
	struct fab_mr *mr = memory_of_key(context, key);

	return mr && mr->ibv.lkey == key ? mr : NULL;
}

static struct fab_mr *region_find(const struct fab_context *context, uint32_t lkey)
{
	struct fab_mr *mr = key_find(context, lkey);

	return mr && !mr->is_window ? mr : NULL;
}

/* --- regions ------------------------------------------------------------- */

static bool is_range(const void *addr, size_t bytes)
{
	return (uintptr_t)addr + bytes >= (uintptr_t)addr;
}

/* Unmapped memory cannot be pinned. */
static bool is_mapped(const void *addr, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = (uintptr_t)addr + bytes;
	unsigned char present[512];
	uintptr_t part;

	if (!is_range(addr, bytes))
		return false;
	for (; first < end; first += part) {
		part = end - first < page * sizeof(present) ? end - first : page * sizeof(present);
		if (mincore((void *)first, part, present))
			return false;
	}
	return true;
}

static bool populate_pages(uintptr_t at, uint64_t bytes, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = at & ~(page - 1);

	return !madvise((void *)first, at + bytes - first, advice);
}

/* Return: false for memory that is unmapped, or whose protection forbids the access. */
static bool fault_in(const void *addr, uint64_t bytes, bool is_write)
{
	if (populate_pages((uintptr_t)addr, bytes,
			   is_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return true;
	/* An older kernel refuses that for any memory, including ours. */
	return !populate_pages((uintptr_t)&bytes, sizeof(bytes), MADV_POPULATE_READ) &&
	       is_mapped(addr, bytes);
}

/*
 * As Linux, which wants memory that windows are bound to writable. Looks at the first and the last
 * page only: others of a large region may never be used.
 */
static bool may_register(const char *addr, size_t bytes, unsigned int access)
{
	bool is_write = access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);

	if (access & IBV_ACCESS_ON_DEMAND)
		return is_range(addr, bytes);
	return is_mapped(addr, bytes) &&
	       (!bytes || (fault_in(addr, 1, is_write) && fault_in(addr + bytes - 1, 1, is_write)));
}

/* IBTA vol. 1, 10.6.3.1: remote write requires local write. */
static int check_access(unsigned int access)
{
	if (access & ~(unsigned int)KNOWN_ACCESS)
		return EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

static struct fab_mr *mr_new(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
			     unsigned int access)
{
	struct fab_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = bytes;
	mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->access = access;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct fab_context *context = to_context(pd->context);
	struct fab_mr *mr;
	int err = check_access(access);

	if (!err && !may_register(addr, length, access))
		err = EFAULT;
	if (err) {
		errno = err;
		return NULL;
	}
	mr = mr_new(pd, addr, length, iova, access);
	if (!mr)
		return NULL;
	if (!(access & IBV_ACCESS_ON_DEMAND))
		err = -pinned_take(context->device->page, addr, length, &mr->n_pinned);
	pthread_mutex_lock(&context->lock);
	if (!err)
		err = memory_take_key(context, mr);
	if (!err) {
		mr->ibv.handle = context_handle(context);
		to_pd(pd)->refs++;
	}
	pthread_mutex_unlock(&context->lock);
	if (!err)
		return &mr->ibv;
	pinned_drop(mr->n_pinned);
	free(mr);
	errno = -err;
	return NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

static int check_rereg(int flags, const void *addr, size_t length, int access)
{
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && !is_mapped(addr, length))
		return EFAULT;
	return flags & IBV_REREG_MR_CHANGE_ACCESS ? check_access((unsigned int)access) : 0;
}

static void change_mr(struct fab_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		      int access)
{
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = (unsigned int)access;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		to_pd(mr->ibv.pd)->refs--;
		mr->ibv.pd = pd;
		to_pd(pd)->refs++;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->ibv.addr = addr;
		mr->ibv.length = length;
		mr->iova = mr->access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	}
}

/* The old pages are released after the new ones are pinned. */
static int repin(struct fab_mr *mr, const void *addr, size_t bytes)
{
	uint64_t before = mr->n_pinned;
	int err =
		pinned_take(to_context(mr->ibv.context)->device->page, addr, bytes, &mr->n_pinned);

	if (!err)
		pinned_drop(before);
	return err;
}

/* The keys do not change. */
int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct fab_mr *mr = container_of(ibv, struct fab_mr, ibv);
	struct fab_context *context = to_context(ibv->context);
	int err = check_rereg(flags, addr, length, access);

	pthread_mutex_lock(&context->lock);
	if (!err && mr->is_import)
		err = EOPNOTSUPP;
	if (!err && flags & IBV_REREG_MR_CHANGE_PD && IS_FOREIGN(pd, ibv->context))
		err = ENOENT;
	if (!err && mr->n_windows)
		err = EBUSY;
	if (!err && flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		err = repin(mr, addr, length);
	if (!err)
		grant_end_region(context, mr);
	if (!err)
		change_mr(mr, flags, pd, addr, length, access);
	pthread_mutex_unlock(&context->lock);
	if (!err)
		return 0;
	errno = err;
	return IBV_REREG_MR_ERR_INPUT;
}

void memory_use(struct ibv_mr *ibv, unsigned int *users)
{
	struct fab_context *context = to_context(ibv->context);

	pthread_mutex_lock(&context->lock);
	container_of(ibv, struct fab_mr, ibv)->users = users;
	++*users;
	pthread_mutex_unlock(&context->lock);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct fab_mr *mr = container_of(ibv, struct fab_mr, ibv);
	struct fab_context *context = to_context(ibv->context);

	pthread_mutex_lock(&context->lock);
	if (mr->n_windows) {
		pthread_mutex_unlock(&context->lock);
		return command_return(EBUSY);
	}
	if (!mr->is_import) {
		grant_end_region(context, mr);
		memory_drop_key(context, mr);
	}
	to_pd(ibv->pd)->refs--;
	if (mr->users)
		--*mr->users;
	context->n_objects--;
	pthread_mutex_unlock(&context->lock);
	pinned_drop(mr->n_pinned);
	free(mr);
	return 0;
}

/* fork() does not affect registered memory: only this process accesses it, not hardware. */
enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

bool memory_contains(const struct fab_mr *mr, uint64_t addr, uint64_t bytes)
{
	return addr >= mr->iova && bytes <= mr->ibv.length &&
	       addr - mr->iova <= mr->ibv.length - bytes;
}

static bool may_access(const struct fab_mr *mr, struct ibv_pd *pd, uint64_t addr, uint64_t bytes,
		       unsigned int access)
{
	return is_same_domain(mr->ibv.pd, pd) && (mr->access & access) == access &&
	       memory_contains(mr, addr, bytes);
}

struct fab_mr *memory_find(const struct fab_context *context, struct ibv_pd *pd, uint32_t key,
			   uint64_t addr, uint64_t bytes, unsigned int access)
{
	struct fab_mr *mr = region_find(context, key);

	return mr && may_access(mr, pd, addr, bytes, access) ? mr : NULL;
}

struct fab_mr *memory_find_remote(const struct fab_qp *qp, uint32_t srqn, uint32_t rkey,
				  uint64_t addr, uint64_t bytes, unsigned int access)
{
	struct ibv_pd *pd = xrc_pd(qp, srqn);
	struct fab_mr *mr = key_find(context_of(qp), rkey);

	if (!mr || !pd || (mr->qpn && mr->qpn != qp->ex.qp_base.qp_num))
		return NULL;
	return may_access(mr, pd, addr, bytes, access) ? mr : NULL;
}

void *memory_at(const struct fab_mr *mr, uint64_t addr)
{
	/* Not by pointer arithmetic: the whole address space is registered at NULL. */
	return (void *)((uintptr_t)mr->ibv.addr + (addr - mr->iova));
}

/* Return: 0 or an errno. */
static int prefetch_range(struct fab_context *context, struct ibv_pd *pd, const struct ibv_sge *sge,
			  enum ibv_advise_mr_advice advice)
{
	bool is_write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct fab_mr *mr = region_find(context, sge->lkey);

	if (!mr || !is_same_domain(mr->ibv.pd, pd))
		return ENOENT;
	if (!(mr->access & IBV_ACCESS_ON_DEMAND))
		return EINVAL;
	if (is_write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return EPERM;
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return 0;
	return memory_contains(mr, sge->addr, sge->length) &&
			       (!sge->length ||
				fault_in(memory_at(mr, sge->addr), sge->length, is_write))
		       ? 0
		       : EFAULT;
}

int memory_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sge, uint32_t n_sge)
{
	struct fab_context *context = to_context(pd->context);
	int err = 0;
	uint32_t i;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
	    flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return command_return(EOPNOTSUPP);
	pthread_mutex_lock(&context->lock);
	for (i = 0; i < n_sge && !err; i++)
		err = prefetch_range(context, pd, &sge[i], advice);
	pthread_mutex_unlock(&context->lock);
	/* A caller that does not wait for the end gets no error for missing pages. */
	return command_return(err == EFAULT && !(flags & IBV_ADVISE_MR_FLAG_FLUSH) ? 0 : err);
}

/* --- loads and stores ---------------------------------------------------- */

#define STORE(type, to, from)                                            \
	do {                                                             \
		type value;                                              \
		memcpy(&value, from, sizeof(value));                     \
		__atomic_store_n((type *)(to), value, __ATOMIC_RELEASE); \
	} while (0)

/* Stores part of a word, as the alignment allows. Return: number of bytes. */
static size_t store_part(char *to, const char *from, size_t bytes)
{
	if (bytes >= sizeof(uint32_t) && (uintptr_t)to % sizeof(uint32_t) == 0) {
		STORE(uint32_t, to, from);
		return sizeof(uint32_t);
	}
	if (bytes >= sizeof(uint16_t) && (uintptr_t)to % sizeof(uint16_t) == 0) {
		STORE(uint16_t, to, from);
		return sizeof(uint16_t);
	}
	STORE(uint8_t, to, from);
	return sizeof(uint8_t);
}

static size_t store_by_words(char *to, const char *from, size_t bytes)
{
	size_t n;

	for (n = 0; n + sizeof(uint64_t) <= bytes; n += sizeof(uint64_t))
		STORE(uint64_t, to + n, from + n);
	return n;
}

/* Not memcpy(), which stores overlapping parts twice, and in any order. */
void memory_store_at(void *at, const void *from, size_t bytes)
{
	size_t n, done = 0;

	while (done < bytes) {
		char *to = (char *)at + done;
		const char *data = (const char *)from + done;

		n = 0;
		if ((uintptr_t)to % sizeof(uint64_t) == 0)
			n = store_by_words(to, data, bytes - done);
		done += n ? n : store_part(to, data, bytes - done);
	}
}

struct copy {
	void *to;
	const void *from;
	size_t bytes;
};

static void load_all(void *arg)
{
	const struct copy *copy = arg;

	memcpy(copy->to, copy->from, copy->bytes);
}

bool memory_load(const struct fab_mr *mr, uint64_t addr, void *to, size_t bytes)
{
	return guard_run(load_all, &(struct copy){ to, memory_at(mr, addr), bytes });
}

static void store_all(void *arg)
{
	const struct copy *copy = arg;

	memory_store_at(copy->to, copy->from, copy->bytes);
}

/* A device still has pages that were pinned, and whose data nobody can see any more. */
bool memory_store(const struct fab_mr *mr, uint64_t addr, const void *from, size_t bytes)
{
	struct copy copy = { .to = memory_at(mr, addr), .from = from };

	for (; bytes; bytes -= copy.bytes) {
		copy.bytes = PAGE_BYTES_MIN - (uintptr_t)copy.to % PAGE_BYTES_MIN;
		if (copy.bytes > bytes)
			copy.bytes = bytes;
		if (!guard_run(store_all, &copy) && mr->access & IBV_ACCESS_ON_DEMAND)
			return false;
		copy.to = (char *)copy.to + copy.bytes;
		copy.from = (const char *)copy.from + copy.bytes;
	}
	return true;
}

struct atomic {
	uint64_t *at, before;
	const struct fab_packet *packet;
};

static void perform_atomic(void *arg)
{
	struct atomic *atomic = arg;
	const struct fab_packet *packet = atomic->packet;

	atomic->before = packet->compare_add;
	if (packet->op == FAB_OP_FETCH_ADD)
		atomic->before =
			__atomic_fetch_add(atomic->at, packet->compare_add, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(atomic->at, &atomic->before, packet->swap, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool memory_atomic(const struct fab_mr *mr, const struct fab_packet *packet, uint64_t *ret)
{
	struct atomic atomic = { .at = memory_at(mr, packet->remote_addr), .packet = packet };

	if (!guard_run(perform_atomic, &atomic))
		return false;
	*ret = atomic.before;
	return true;
}
