/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of a client's leases: see ports.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/portd/server/ports/ports_own.h"

static int map_page(struct tenant *tenant, int fd)
{
	void *page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	tenant->page = page;
	return 0;
}

int ports_page_new(struct ports *ports, uint16_t client)
{
	struct tenant *tenant = ports_tenant(ports, client);
	int err = 0;
	int fd;

	if (!tenant || tenant->page)
		return tenant ? -EEXIST : -ENOMEM;
	fd = memfd_create("purecm ports", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, LEASE_PAGE_BYTES) || fcntl(fd, F_ADD_SEALS, LEASE_SEALS))
		err = -errno;
	if (!err)
		err = map_page(tenant, fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

void ports_count_event(struct ports *ports, uint16_t client, unsigned int handle)
{
	const struct tenant *tenant = ports->tenant[client];

	if (tenant && tenant->page)
		lease_count_event(tenant->page, handle);
}

int ports_page_resume(struct ports *ports, uint16_t client, int fd)
{
	struct tenant *tenant = ports_tenant(ports, client);
	int err = tenant ? 0 : -ENOMEM;

	if (!err && (tenant->page || !lease_is_page(fd)))
		err = -EINVAL;
	if (!err)
		err = map_page(tenant, fd);
	close(fd);
	return err;
}
