/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of a host: see page.h. Protected by a sequence count: the writer makes it odd, writes,
 * and makes it even; a reader that sees a change reads again.
 */
#include "tools/fabric/wire/page.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int fab_page_create(const char *path, struct fab_page **ret)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct fab_page *page;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*page)))
		err = -errno;
	page = err ? MAP_FAILED
		   : mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!err && page == MAP_FAILED)
		err = -errno;
	close(fd);
	if (err)
		return err;
	page->magic = FAB_PAGE_MAGIC;
	*ret = page;
	return 0;
}

int fab_page_open(const char *path, const struct fab_page **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct fab_page *page;
	struct stat file;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &file) || file.st_size != sizeof(*page)) {
		close(fd);
		return -EPROTO;
	}
	page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return -errno;
	if (page->magic != FAB_PAGE_MAGIC) {
		munmap(page, sizeof(*page));
		return -EPROTO;
	}
	*ret = page;
	return 0;
}

/* A byte range lock for each entry; the content of the file does not matter. */
static struct flock lock_of_gid(short type, uint8_t port_num, uint32_t index)
{
	return (struct flock){ .l_type = type,
			       .l_whence = SEEK_SET,
			       .l_start = port_num * FAB_GIDS + index,
			       .l_len = 1 };
}

void fab_page_hold_gid(int fd, uint8_t port_num, uint32_t index, bool hold)
{
	struct flock lock = lock_of_gid(hold ? F_RDLCK : F_UNLCK, port_num, index);

	fcntl(fd, F_OFD_SETLK, &lock);
}

bool fab_page_gid_is_held(int fd, uint8_t port_num, uint32_t index)
{
	struct flock lock = lock_of_gid(F_WRLCK, port_num, index);

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

void fab_page_close(const struct fab_page *page)
{
	if (page)
		munmap((void *)(uintptr_t)page, sizeof(*page));
}

uint64_t fab_page_own_network(void)
{
	struct stat network;

	return stat("/proc/self/ns/net", &network) ? 0 : network.st_ino;
}

void fab_page_set_limits(struct fab_page *page, const uint32_t limit[FAB_N_LIMITS])
{
	static const uint32_t without[] = {
#define X(name, word, value) value,
		FAB_LIMITS(X)
#undef X
	};

	for (unsigned int i = 0; i < FAB_N_LIMITS; i++)
		page->limit[i] = limit[i] ? limit[i] : without[i];
}

void fab_page_write_begin(struct fab_page *page)
{
	__atomic_store_n(&page->turn, page->turn + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void fab_page_write_end(struct fab_page *page)
{
	__atomic_store_n(&page->turn, page->turn + 1, __ATOMIC_RELEASE);
}

/* Copies @bytes of the page atomically. */
static void read_part(const struct fab_page *page, const void *from, void *to, size_t bytes)
{
	uint32_t before, after;

	do {
		before = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE);
		memcpy(to, from, bytes);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = __atomic_load_n(&page->turn, __ATOMIC_RELAXED);
		if (before & 1)
			sched_yield();
	} while (before != after || before & 1);
}

void fab_page_read(const struct fab_page *page, struct fab_page *ret)
{
	read_part(page, page, ret, sizeof(*ret));
}

void fab_page_device(const struct fab_page *page, char ret[FAB_NAME_BYTES])
{
	read_part(page, page->device, ret, FAB_NAME_BYTES);
}

bool fab_page_gid(const struct fab_page *page, uint8_t port_num, uint32_t index,
		  struct fab_gid *ret)
{
	static const union ibv_gid none;

	if (port_num == 0 || port_num > FAB_PORTS || index >= FAB_GIDS)
		return false;
	read_part(page, &page->port[port_num - 1].gid[index], ret, sizeof(*ret));
	return memcmp(&ret->gid, &none, sizeof(none)) != 0;
}

int fab_page_find_gid(const struct fab_page *page, uint8_t port_num, const union ibv_gid *gid)
{
	struct fab_gid entry;
	int i;

	for (i = 0; i < FAB_GIDS; i++)
		if (fab_page_gid(page, port_num, (uint32_t)i, &entry) &&
		    memcmp(&entry.gid, gid, sizeof(*gid)) == 0)
			return i;
	return -1;
}

uint32_t fab_page_interface(const struct fab_page *page, uint8_t port_num)
{
	struct fab_gid entry;
	uint32_t i;

	for (i = 0; i < FAB_GIDS; i++)
		if (fab_page_gid(page, port_num, i, &entry) && entry.ifindex)
			return entry.ifindex;
	return 0;
}
