/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/portd/server/ports/ports.c and lease.c: the holder of a port when two clients request it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/portd/proto/lease.h"
#include "tests/unit/portd/ports_rig.h"

#define N_PORTS	 (LAST - FIRST + 1)
#define N_ROUNDS 20000

static struct lease_page *page_of(uint16_t client, int *ret_fd)
{
	int fd = ports_page_new(ports, client);
	struct lease_page *page;

	ck_assert_int_ge(fd, 0);
	page = mmap(NULL, LEASE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	if (ret_fd)
		*ret_fd = fd;
	else
		close(fd);
	return page;
}

/* --- claims -------------------------------------------------------------- */

FIXTURE(set_up, tear_down);
TEST(a_port_of_another_client_is_in_use)
{
	ck_assert_int_eq(bind_on(1, 1, HOST, PORT), 0);
	ck_assert_int_eq(bind_on(2, 1, HOST, PORT), -EADDRINUSE);
}

TEST(a_wildcard_of_another_client_conflicts)
{
	ck_assert_int_eq(bind_on(1, 1, ANY, PORT), 0);
	ck_assert_int_eq(bind_on(2, 1, HOST, PORT), -EADDRNOTAVAIL);
}

TEST(two_addresses_share_a_port)
{
	ck_assert_int_eq(bind_on(1, 1, HOST, PORT), 0);
	ck_assert_int_eq(bind_on(2, 1, OTHER, PORT), 0);
}

TEST(a_port_is_free_when_it_was_released)
{
	bind_on(1, 1, HOST, PORT);
	ports_release(ports, 1, 1);
	ck_assert_int_eq(bind_on(2, 1, HOST, PORT), 0);
}

TEST(client_cannot_release_the_claim_of_another)
{
	bind_on(1, 1, HOST, PORT);
	ports_release(ports, 2, 1);
	ck_assert_int_eq(bind_on(2, 1, HOST, PORT), -EADDRINUSE);
}

TEST(a_port_is_free_after_its_client)
{
	bind_on(1, 1, HOST, PORT);
	ports_client_gone(ports, 1);
	ck_assert_int_eq(bind_on(2, 1, HOST, PORT), 0);
}

TEST(a_claim_id_is_used_once)
{
	bind_on(1, 1, HOST, PORT);
	ck_assert_int_eq(bind_on(1, 1, HOST, PORT + 1), -EINVAL);
}

TEST(the_same_claim_again_is_the_same_port_again)
{
	struct portd_claim claim = claim_on(1, HOST, 0);
	uint16_t first, second = 0;

	ck_assert_int_eq(ports_bind(ports, 1, &claim, &first), 0);
	ck_assert_int_eq(ports_bind(ports, 1, &claim, &second), 0);
	ck_assert_uint_eq(second, first);
	ck_assert_int_eq(bind_on(1, 1, "10.0.0.2", first), -EINVAL);
}

TEST(a_low_port_needs_the_capability)
{
	ck_assert_int_eq(bind_on(1, 1, HOST, 500), -EACCES);
	ports_limits(ports)->may_bind_low = true;
	ck_assert_int_eq(bind_on(1, 1, HOST, 500), 0);
}

TEST(a_family_that_does_not_exist_is_refused)
{
	struct portd_claim claim = claim_on(1, HOST, PORT);
	uint16_t got;

	claim.local_family = 5;
	ck_assert_int_eq(ports_bind(ports, 1, &claim, &got), -EINVAL);
}

TEST(an_update_cannot_move_a_claim_to_another_port)
{
	struct portd_claim claim = claim_on(1, HOST, PORT + 1);

	bind_on(1, 1, HOST, PORT);
	ports_update(ports, 1, &claim);
	ck_assert_int_eq(bind_on(2, 1, HOST, PORT + 1), 0);
}

/* --- listeners ----------------------------------------------------------- */

TEST(a_request_is_for_the_listener_of_its_address)
{
	struct cm_req req = req_to(OTHER);

	bind_on(1, 1, HOST, PORT);
	bind_on(2, 1, OTHER, PORT);
	ck_assert_int_eq(listen_on(1, 1, HOST), 0);
	ck_assert_int_eq(listen_on(2, 1, OTHER), 0);
	ck_assert_uint_eq(listener_of(&req), 2);
}

TEST(a_holder_without_a_listener_gets_no_requests)
{
	struct cm_req req = req_to(HOST);

	bind_on(1, 1, HOST, PORT);
	ck_assert_uint_eq(listener_of(&req), PORTS_NOBODY);
}

TEST(a_request_for_another_address_is_not_for_a_listener)
{
	struct cm_req req = req_to(OTHER);

	bind_on(1, 1, HOST, PORT);
	ck_assert_int_eq(listen_on(1, 1, HOST), 0);
	ck_assert_uint_eq(listener_of(&req), PORTS_NOT_FOR_THEM);
}

/* heard_at, and the receiver of a request to the other port of the device. */
static const struct {
	uint8_t heard_at;
	uint16_t to;
} hearing[] = {
	{ 0, 1 },	     /* any */
	{ 1, PORTS_NOBODY }, /* another device's */
	{ 2, 1 },
	{ 3, 1 },
	{ 4, PORTS_NOBODY },
	{ 64, PORTS_NOBODY },
	{ UINT8_MAX, PORTS_NOBODY }, /* none */
};

TEST_LOOP(a_listener_gets_requests_to_its_device, 0, sizeof(hearing) / sizeof(hearing[0]))
{
	struct portd_claim claim = claim_on(1, HOST, PORT);
	struct cm_req req = req_to(HOST);

	bind_on(1, 1, HOST, PORT);
	claim.heard_at = hearing[_i].heard_at;
	ck_assert_int_eq(ports_listen(ports, 1, &claim), 0);
	ck_assert_uint_eq(listener_of(&req), hearing[_i].to);
}

TEST(an_invalid_header_matches_no_listener)
{
	struct cm_req req = req_to(HOST);

	bind_on(1, 1, HOST, PORT);
	listen_on(1, 1, HOST);
	req.private_data[1] = 0x50; /* IP version 5 */
	ck_assert_uint_eq(listener_of(&req), PORTS_NOT_FOR_THEM);
}

TEST(client_cannot_listen_on_the_claim_of_another)
{
	bind_on(1, 1, HOST, PORT);
	ck_assert_int_eq(listen_on(2, 1, HOST), -ENOENT);
}

/* --- leases -------------------------------------------------------------- */

TEST(a_leased_port_is_used_and_returned_without_a_record)
{
	struct lease_page *page = page_of(1, NULL);
	uint16_t port;

	ck_assert_int_eq(ports_lease(ports, 1, RDMA_PS_TCP, 1, NULL), 1);
	port = lease_take(page, RDMA_PS_TCP);
	ck_assert(port >= FIRST && port <= LAST);
	ck_assert_uint_eq(lease_take(page, RDMA_PS_TCP), 0);
	ck_assert(lease_give_back(page, RDMA_PS_TCP, port));
	ck_assert_uint_eq(lease_take(page, RDMA_PS_TCP), port);
}

TEST(a_lease_belongs_to_one_port_space)
{
	struct lease_page *page = page_of(1, NULL);

	ports_lease(ports, 1, RDMA_PS_UDP, 4, NULL);
	ck_assert_uint_eq(lease_take(page, RDMA_PS_TCP), 0);
}

TEST(a_leased_port_that_is_free_gives_way_to_a_bind)
{
	struct lease_page *page = page_of(1, NULL);
	uint16_t port;

	ck_assert_int_eq(ports_lease(ports, 1, RDMA_PS_TCP, N_PORTS, NULL), N_PORTS);
	for (port = FIRST; port <= LAST; port++)
		ck_assert_int_eq(bind_on(2, port, HOST, port), 0);
	ck_assert_uint_eq(lease_take(page, RDMA_PS_TCP), 0);
}

TEST(a_leased_port_in_use_does_not_give_way)
{
	struct lease_page *page = page_of(1, NULL);
	uint16_t port;

	ports_lease(ports, 1, RDMA_PS_TCP, 1, NULL);
	port = lease_take(page, RDMA_PS_TCP);
	ck_assert_int_eq(bind_on(2, 1, HOST, port), -EADDRNOTAVAIL);
}

TEST(a_leased_port_becomes_its_clients_claim)
{
	struct lease_page *page = page_of(1, NULL);
	uint16_t port;

	ports_lease(ports, 1, RDMA_PS_TCP, 1, NULL);
	port = lease_take(page, RDMA_PS_TCP);
	ck_assert_int_eq(bind_on(1, 1, HOST, port), 0);
	ck_assert(!lease_give_back(page, RDMA_PS_TCP, port));
}

TEST(unused_leases_are_revoked_before_a_bind_is_refused)
{
	page_of(1, NULL);
	ports_lease(ports, 1, RDMA_PS_TCP, N_PORTS, NULL);
	ck_assert_int_eq(bind_on(2, 1, HOST, 0), 0);
}

TEST(leases_end_with_their_client)
{
	struct lease_page *page = page_of(1, NULL);

	ports_lease(ports, 1, RDMA_PS_TCP, N_PORTS, NULL);
	while (lease_take(page, RDMA_PS_TCP))
		continue;
	ports_client_gone(ports, 1);
	page_of(2, NULL);
	ck_assert_int_eq(ports_lease(ports, 2, RDMA_PS_TCP, N_PORTS, NULL), N_PORTS);
}

TEST(a_corrupt_page_affects_no_other_client)
{
	struct lease_page *page = page_of(1, NULL);
	unsigned int i;

	ports_lease(ports, 1, RDMA_PS_TCP, 10, NULL);
	for (i = 0; i < LEASE_WORDS; i++)
		page->word[i] = (uint32_t)i * 2654435761u;
	for (i = FIRST; i <= LAST; i++)
		bind_on(2, i, HOST, (uint16_t)i);
	ports_client_gone(ports, 1);
	for (i = FIRST; i <= LAST; i++)
		ports_release(ports, 2, i);
	page_of(3, NULL);
	ck_assert_int_eq(ports_lease(ports, 3, RDMA_PS_TCP, N_PORTS, NULL), N_PORTS);
}

TEST(two_clients_of_one_range_have_different_ports)
{
	struct lease_page *one = page_of(1, NULL);
	struct lease_page *two = page_of(2, NULL);
	bool has[N_PORTS] = { false };
	uint16_t port;
	int i;

	ports_lease(ports, 1, RDMA_PS_TCP, N_PORTS / 2, NULL);
	ports_lease(ports, 2, RDMA_PS_TCP, N_PORTS, NULL);
	for (i = 0; i < N_PORTS; i++) {
		port = lease_take(i < N_PORTS / 2 ? one : two, RDMA_PS_TCP);
		ck_assert(port >= FIRST && port <= LAST && !has[port - FIRST]);
		has[port - FIRST] = true;
	}
}

TEST(a_port_is_leased_in_each_port_space)
{
	page_of(1, NULL);
	ck_assert_int_eq(ports_lease(ports, 1, RDMA_PS_TCP, N_PORTS, NULL), N_PORTS);
	ck_assert_int_eq(ports_lease(ports, 1, RDMA_PS_UDP, N_PORTS, NULL), N_PORTS);
	ports_client_gone(ports, 1);
	page_of(2, NULL);
	ck_assert_int_eq(ports_lease(ports, 2, RDMA_PS_UDP, N_PORTS, NULL), N_PORTS);
}

/*
 * Page entries that name each other's ports: each is of a lease, but at the place of another port.
 */
TEST(a_page_with_swapped_entries_keeps_its_ports)
{
	struct lease_page *page = page_of(1, NULL);
	uint32_t first = 0, *at = NULL;
	unsigned int i;

	ports_lease(ports, 1, RDMA_PS_TCP, 2, NULL);
	for (i = 0; i < LEASE_WORDS; i++) {
		if (page->word[i] && !at) {
			at = &page->word[i];
			first = *at;
		} else if (page->word[i]) {
			*at = page->word[i];
			page->word[i] = first;
		}
	}
	ck_assert_int_eq(bind_on(2, 1, HOST, (uint16_t)(first >> 16)), -EADDRNOTAVAIL);
	ports_client_gone(ports, 1);
	ck_assert_int_eq(bind_on(2, 2, HOST, (uint16_t)(first >> 16)), 0);
}

/* --- the next cmportd ---------------------------------------------------- */

TEST(a_resumed_page_keeps_ports_in_use)
{
	struct lease_page *page;
	uint16_t port;
	int fd;

	page = page_of(1, &fd);
	ports_lease(ports, 1, RDMA_PS_TCP, 2, NULL);
	port = lease_take(page, RDMA_PS_TCP);
	ports_free(ports);
	set_up();
	ck_assert_int_eq(ports_page_resume(ports, 1, fd), 0);
	ports_resume_leases(ports, 1, UINT32_MAX);
	ck_assert_int_eq(bind_on(2, 1, HOST, port), -EADDRNOTAVAIL);
}

TEST(a_page_cannot_claim_ports_of_others)
{
	struct lease_page *page;
	uint16_t port;
	int fd;

	page = page_of(1, &fd);
	ports_lease(ports, 1, RDMA_PS_TCP, 1, NULL);
	port = lease_take(page, RDMA_PS_TCP);
	ports_free(ports);
	set_up();
	bind_on(2, 1, HOST, port);
	ck_assert_int_eq(ports_page_resume(ports, 1, fd), 0);
	ports_resume_leases(ports, 1, UINT32_MAX);
	ck_assert(!lease_give_back(page, RDMA_PS_TCP, port));
}

TEST(a_file_that_could_be_truncated_is_refused)
{
	int fd = memfd_create("forged", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, LEASE_PAGE_BYTES), 0);
	ck_assert_int_eq(ports_page_resume(ports, 1, fd), -EINVAL);
}

/* On a file system without seals, which are then -1, unless the folder is in memory. */
TEST(an_ordinary_file_is_refused_as_a_page)
{
	char name[] = "page-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	unlink(name);
	ck_assert_int_eq(ftruncate(fd, LEASE_PAGE_BYTES), 0);
	ck_assert_int_eq(ports_page_resume(ports, 1, fd), -EINVAL);
}

TEST(a_file_of_another_size_is_refused_as_a_page)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_eq(ftruncate(fd, 100), 0);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	ck_assert_int_eq(ports_page_resume(ports, 1, fd), -EINVAL);
}

TEST(a_descriptor_of_another_kind_is_refused_as_a_page)
{
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(ports_page_resume(ports, 1, ends[0]), -EINVAL);
	close(ends[1]);
}

/* --- two cmportds at once ------------------------------------------------ */

static struct lease_page *shared;

static void *take_and_give(void *arg)
{
	unsigned int *n_taken = arg;
	uint16_t port;
	int i;

	for (i = 0; i < N_ROUNDS; i++) {
		port = lease_take(shared, RDMA_PS_TCP);
		if (!port)
			continue;
		++*n_taken;
		ck_assert(lease_give_back(shared, RDMA_PS_TCP, port));
	}
	return NULL;
}

TEST(a_port_never_has_two_owners_while_it_is_revoked_and_leased)
{
	unsigned int n_taken = 0;
	pthread_t thread;
	int i;

	shared = page_of(1, NULL);
	pthread_create(&thread, NULL, take_and_give, &n_taken);
	for (i = 0; i < N_ROUNDS; i++) {
		ports_lease(ports, 1, RDMA_PS_TCP, 1, NULL);
		if (bind_on(2, 1, HOST, (uint16_t)(FIRST + i % N_PORTS)) == 0)
			ports_release(ports, 2, 1);
	}
	pthread_join(thread, NULL);
	ck_assert_uint_gt(n_taken, 0);
}
