/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin of QEMU that runs the CPUs of two emulated hosts in step: neither executes more than
 * STEP instructions that the other has not, unless the other waits for an interrupt. A packet takes
 * no time: the host that has sent one stands still until the other's QEMU has surely delivered it,
 * and so the other does. With -icount, which makes a host's clock count its instructions, a program
 * that polls then measures the instructions of both hosts, however busy the machine is.
 *
 * tests/lab/lablib/lockstep.py starts it; QEMU installs no header for the functions declared here.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STEP	     500
#define SPINS	     50
#define YIELDS	     2000
#define NAP_US	     50
#define HLT	     0xf4
#define BLOCKS_AFTER 10 /* from vp_notify()'s first block until it has notified the device */
#define EXPORT	     __attribute__((visibility("default")))

/* --- QEMU's side ----------------------------------------------------------- */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

typedef void translated_fn(uint64_t id, struct qemu_plugin_tb *block);
typedef void executed_fn(unsigned int cpu, void *arg);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_fn *translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed_fn *executed,
					  int flags, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv);

/* --- the shared memory: lockstep.py has the same layout -------------------- */

struct host {
	uint64_t clock; /* instructions while in step, or the other's when this one woke up */
	uint64_t is_idle;
};

struct shared {
	uint64_t is_on;
	uint64_t delivery_us;
	uint64_t notify; /* the address of vp_notify() in both hosts */
	struct host host[2];
};

struct block {
	uint64_t addr;
	uint64_t n;
	bool halts;
};

static struct shared *shared;
static struct host *own, *other;
static uint64_t checked; /* own->clock at the latest comparison */
static unsigned int blocks_left;

static uint64_t read_of_other(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

static void sleep_us(uint64_t us)
{
	struct timespec time = { .tv_nsec = (long)(us * 1000) };

	nanosleep(&time, NULL);
}

static void wait_for_other(void)
{
	unsigned int i;

	for (i = 0; read_of_other(&shared->is_on) && !read_of_other(&other->is_idle) &&
		    read_of_other(&other->clock) + STEP < own->clock;
	     i++) {
		if (i > YIELDS)
			sleep_us(NAP_US);
		else if (i > SPINS)
			sched_yield();
	}
}

static void wake(void)
{
	uint64_t clock = read_of_other(&other->clock);

	if (clock > own->clock)
		__atomic_store_n(&own->clock, clock, __ATOMIC_SEQ_CST);
	__atomic_store_n(&own->is_idle, 0, __ATOMIC_SEQ_CST);
}

static void executes(unsigned int cpu, void *arg)
{
	const struct block *block = arg;

	(void)cpu;
	if (own->is_idle)
		wake();
	if (block->halts)
		__atomic_store_n(&own->is_idle, 1, __ATOMIC_SEQ_CST);
	if (!read_of_other(&shared->is_on))
		return;
	__atomic_store_n(&own->clock, own->clock + block->n, __ATOMIC_RELEASE);
	if (block->addr == shared->notify)
		blocks_left = BLOCKS_AFTER;
	else if (blocks_left && !--blocks_left)
		sleep_us(shared->delivery_us);
	if (own->clock - checked >= STEP) {
		checked = own->clock;
		wait_for_other();
	}
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	struct block *block = malloc(sizeof(*block)); /* lives as long as QEMU */
	const struct qemu_plugin_insn *last;

	(void)id;
	if (!block)
		abort();
	block->addr = qemu_plugin_tb_vaddr(tb);
	block->n = qemu_plugin_tb_n_insns(tb);
	last = qemu_plugin_tb_get_insn(tb, block->n - 1);
	block->halts = qemu_plugin_insn_size(last) == 1 &&
		       *(const uint8_t *)qemu_plugin_insn_data(last) == HLT;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executes, 0, block);
}

/* Arguments: shared=FILE number=0 or 1 */
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_info *info, int argc, char **argv)
{
	int fd, number;

	(void)info;
	if (argc != 2 || strncmp(argv[0], "shared=", 7) != 0 || strncmp(argv[1], "number=", 7) != 0)
		return -1;
	fd = open(argv[0] + 7, O_RDWR);
	shared = fd < 0 ? MAP_FAILED
			: mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return -1;
	number = argv[1][7] == '1';
	own = &shared->host[number];
	other = &shared->host[!number];
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
