/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announcements of the kernel (lib/net/watch.c, lib/net/netlink.c), forks and threads: each test
 * makes its own network.
 */
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "lib/net/netlink.h"
#include "tests/unit/net/nets.h"
#include "tests/unit/test.h"

static void remember_last(const struct net_event *event, void *arg)
{
	*(struct net_event *)arg = *event;
}

NEEDS(netns_allowed);
FIXTURE(two_nets, NULL);

TEST(quiet_network_leaves_the_descriptor_unreadable)
{
	net_watch_drain(NULL, NULL);
	ck_assert(!readable(0));
}

static void remember_addr(const struct net_event *event, void *arg)
{
	if (event->change == NET_CHANGE_ADDR)
		remember_last(event, arg);
}

TEST(new_address_is_reported)
{
	struct net_event event = { .change = NET_CHANGE_LOST };

	net_watch_drain(NULL, NULL);
	run("ip addr add 10.0.5.1/32 dev d1");
	ck_assert(readable(20000));
	net_watch_drain(remember_addr, &event);

	ck_assert_int_eq(event.change, NET_CHANGE_ADDR);
	ck_assert_ip(event.addr, "10.0.5.1");
	ck_assert_dev(event.ifindex, "d1");
	ck_assert(!readable(0));
}

TEST(lookup_does_not_swallow_an_announcement)
{
	struct net_event event = { 0 };

	net_watch_drain(NULL, NULL);
	run("ip link set d1 mtu 1400");
	route_to("10.0.0.9");
	ck_assert(readable(0));
	net_watch_drain(remember_last, &event);

	ck_assert_int_eq(event.change, NET_CHANGE_LINK);
	ck_assert_dev(event.ifindex, "d1");
	ck_assert(!readable(0));
}

TEST(too_many_changes_are_reported_as_lost)
{
	struct net_event event = { 0 };

	ck_assert_ip(route_to("10.0.0.9").next_hop, "10.0.0.9");
	run("for i in $(seq 0 9999); do"
	    " echo route add 10.5.$((i/256)).$((i%%256)) via 10.0.0.254; done | ip -b -");
	net_watch_drain(remember_last, &event);
	ck_assert_int_eq(event.change, NET_CHANGE_LOST);
	ck_assert_ip(route_to("10.5.0.1").next_hop, "10.0.0.254");
}

TEST(lookup_after_a_new_address_counts_a_change)
{
	unsigned int before;

	route_to("10.0.0.9");
	before = net_changes();
	run("ip addr add 10.0.5.1/32 dev d1");
	route_to("10.0.0.9");
	ck_assert_uint_ne(net_changes(), before);
}

/* A batch begins with the announcements so far, and reads no more. */
TEST(lookups_of_a_batch_read_announcements_once)
{
	unsigned int before;

	route_to("10.0.0.9");
	before = net_changes();
	run("ip addr add 10.0.5.1/32 dev d1");
	net_batch_begin();
	route_to("10.0.0.9");
	ck_assert_uint_ne(net_changes(), before);
	before = net_changes();
	run("ip addr add 10.0.5.2/32 dev d1");
	route_to("10.0.0.9");
	ck_assert_uint_eq(net_changes(), before);
	net_batch_end();
	route_to("10.0.0.9");
	ck_assert_uint_ne(net_changes(), before);
}

TEST(lookup_after_a_changed_link_counts_a_change)
{
	unsigned int before;

	route_to("10.0.0.9");
	before = net_changes();
	run("ip link set d1 mtu 1400");
	route_to("10.0.0.9");
	ck_assert_uint_ne(net_changes(), before);
}

TEST(lookup_after_a_new_route_counts_no_change)
{
	unsigned int before;

	route_to("10.0.0.9");
	before = net_changes();
	run("ip route add 10.6.0.0/16 via 10.0.0.254");
	route_to("10.0.0.9");
	ck_assert_uint_eq(net_changes(), before);
}

TEST(lookup_after_lost_announcements_counts_a_change)
{
	unsigned int before;

	route_to("10.0.0.9");
	before = net_changes();
	run("for i in $(seq 0 9999); do"
	    " echo route add 10.5.$((i/256)).$((i%%256)) via 10.0.0.254; done | ip -b -");
	route_to("10.0.0.9");
	ck_assert_uint_ne(net_changes(), before);
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*d %ld", &pages), 1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE) / 1024;
}

/* The caches have room for thousands, and most processes use a few entries. */
TEST(lost_announcements_cost_a_process_little_memory)
{
	long before;

	route_to("10.0.0.9");
	run("ip addr add 10.0.5.1/32 dev d1");
	route_to("10.0.0.9");
	before = resident_kib();
	run("for i in $(seq 0 9999); do"
	    " echo route add 10.5.$((i/256)).$((i%%256)) via 10.0.0.254; done | ip -b -");
	route_to("10.0.0.9");
	ck_assert_int_le(resident_kib() - before, 100);
}

TEST(unread_reports_end_as_one_lost)
{
	int n_events = 0;

	net_watch_drain(NULL, NULL);
	for (int i = 0; i < 4; i++) {
		run("for i in $(seq 1 100); do"
		    " echo link set d0 mtu 1400; echo link set d1 mtu 1400;"
		    " echo link set d0 mtu 1500; echo link set d1 mtu 1500; done | ip -b -");
		route_to("10.0.0.9");
	}
	net_watch_drain(count, &n_events);
	ck_assert_int_eq(n_events, 1);
}

/* --- a watch of what this process uses ---------------------------------------- */

static void watch_own(void)
{
	net_watch_close();
	ck_assert_int_eq(net_watch_open(NET_WATCH_OWN), 0);
	route_to("10.0.0.9");
	net_watch_drain(NULL, NULL);
	ck_assert(!readable(0));
}

TEST(route_wakes_no_process_and_affects_its_next_lookup)
{
	watch_own();
	run("ip route add 10.6.0.0/16 via 10.0.0.254");
	ck_assert(!readable(0));
	ck_assert_ip(route_to("10.6.0.1").next_hop, "10.0.0.254");
	run("ip route replace 10.6.0.0/16 via 10.0.1.254");
	ck_assert_ip(route_to("10.6.0.1").next_hop, "10.0.1.254");
	run("ip rule add to 10.6.0.0/16 unreachable");
	ck_assert_int_eq(lookup("10.6.0.1", NULL, NULL, &(struct net_route){ 0 }), -ENETUNREACH);
	ck_assert(!readable(0));
}

/* More than the socket buffer holds, as no thread reads it. */
TEST(many_routes_wake_no_process_and_affect_its_next_lookup)
{
	int i;

	watch_own();
	for (i = 0; i < 2; i++) {
		run("for i in $(seq 0 999); do echo route replace 10.5.$((i/256)).$((i%%256))"
		    " via 10.0.%d.254; done | ip -b -",
		    i);
		ck_assert(!readable(0));
		ck_assert(strcmp(ip_text(route_to("10.5.3.231").next_hop), "10.0.0.254") == 0 ||
			  i == 1);
	}
	ck_assert_ip(route_to("10.5.3.231").next_hop, "10.0.1.254");
}

TEST(interface_wakes_a_process_that_has_looked_it_up)
{
	struct net_event event = { .change = NET_CHANGE_LOST };
	struct net_iface iface;

	watch_own();
	ck_assert_int_eq(net_iface_get(if_nametoindex("d0"), &iface), 0);
	run("ip link set d1 mtu 1400");
	ck_assert(!readable(0));
	ck_assert_int_eq(net_iface_get(if_nametoindex("d1"), &iface), 0);
	ck_assert_uint_eq(iface.mtu, 1400);
	run("ip link set d1 mtu 1300");
	ck_assert(readable(0));
	net_watch_drain(remember_last, &event);
	ck_assert_int_eq(event.change, NET_CHANGE_LINK);
	ck_assert_dev(event.ifindex, "d1");
}

/* More than the filter compares. */
TEST(interface_wakes_a_process_that_has_looked_many_up)
{
	struct net_iface iface;
	unsigned int i;

	watch_own();
	for (i = 1000; i < 1040; i++)
		net_iface_get(i, &iface);
	run("ip link set d1 mtu 1400");
	ck_assert(readable(0));
}

TEST(address_wakes_a_process_that_listens_on_all)
{
	struct net_event event = { .change = NET_CHANGE_LOST };
	unsigned int before = net_changes();

	watch_own();
	run("ip addr add 10.0.5.1/32 dev d1");
	ck_assert(!readable(0));
	net_catch_up();
	ck_assert_uint_ne(net_changes(), before);
	net_watch_interfaces();
	run("ip addr add 10.0.5.2/32 dev d1");
	ck_assert(readable(0));
	net_watch_drain(remember_last, &event);
	ck_assert_int_eq(event.change, NET_CHANGE_ADDR);
	ck_assert_ip(event.addr, "10.0.5.2");
	run("ip link set d1 mtu 1400");
	ck_assert(readable(0));
}

/* A change that is in both sockets. */
TEST(each_kind_of_watch_reports_a_change_once)
{
	int n_own = 0, n_all = 0;

	watch_own();
	net_watch_interfaces();
	run("ip addr add 10.0.5.1/32 dev d1; ip route add 10.6.0.0/16 via 10.0.0.254");
	route_to("10.0.0.9");
	net_watch_drain(count, &n_own);
	ck_assert_int_eq(n_own, 1); /* the address */
	net_watch_close();
	ck_assert_int_eq(net_watch_open(NET_WATCH_ALL), 0);
	run("ip addr add 10.0.5.2/32 dev d1; ip route add 10.7.0.0/16 via 10.0.0.254");
	route_to("10.0.0.9");
	net_watch_drain(count, &n_all);
	ck_assert_int_eq(n_all, 2); /* plus routes, which are reported once in a row */
}

/* --- threads and forks -------------------------------------------------------- */

static void *ask_often(void *arg)
{
	union addr dst = ip("10.0.1.9");
	struct net_route route;
	struct net_iface iface;

	for (int i = 0; i < 2000; i++) {
		if (net_route_lookup(&dst, NULL, 0, &route) ||
		    net_neigh_state(&route) == NET_NEIGH_KNOWN ||
		    net_iface_of_addr(&route.src, &iface) || iface.ifindex != route.ifindex)
			++*(int *)arg;
	}
	return NULL;
}

TEST(threads_may_look_up_while_the_network_changes)
{
	pthread_t thread[4];
	int n_wrong[4] = { 0 };

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, ask_often, &n_wrong[i]), 0);
	for (int i = 0; i < 5; i++) {
		run("ip link set d0 mtu %d", 1400 + i);
		net_watch_drain(NULL, NULL);
	}
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		ck_assert_int_eq(n_wrong[i], 0);
	}
}

TEST(forked_child_has_descriptors_of_its_own)
{
	int status;
	pid_t pid;

	route_to("10.0.0.9");
	pid = fork();
	if (!pid) {
		struct net_route route;

		net_after_fork();
		_exit(lookup("10.0.1.9", NULL, NULL, &route) ||
		      route.ifindex != if_nametoindex("d1"));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_dev(route_to("10.0.0.9").ifindex, "d0");
}

/* --- a fork while another thread changes a cache ----------------------------- */

#define PAGE_BYTES 65536

void __real_hash_insert(struct hash *table, struct hash_node *node, uint64_t hash);
void __wrap_hash_insert(struct hash *table, struct hash_node *node, uint64_t hash);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static int (*look_up_again)(void); /* in the child; NULL: nobody forks */
static int child_status = -1;

static void fork_here(void)
{
	int (*const again)(void) = look_up_again;
	pid_t child;

	look_up_again = NULL;
	child = fork();
	if (!child) {
		alarm(20);
		net_after_fork();
		_exit(again());
	}
	ck_assert_int_eq(waitpid(child, &child_status, 0), child);
}

void __wrap_hash_insert(struct hash *table, struct hash_node *node, uint64_t hash)
{
	__real_hash_insert(table, node, hash);
	if (look_up_again)
		fork_here();
}

/* What was moved cannot be used any more. */
void *__wrap_realloc(void *old, size_t bytes)
{
	void *moved;

	if (!look_up_again)
		return __real_realloc(old, bytes);
	moved = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!old)
		return moved;
	memcpy(moved, old, bytes / 2);
	munmap(old, PAGE_BYTES);
	fork_here();
	return moved;
}

static int look_up_neighbour(void)
{
	struct net_route route;

	return lookup("10.0.0.9", NULL, NULL, &route) || net_neigh_state(&route) != NET_NEIGH_NONE;
}

TEST(child_does_not_inherit_half_a_neighbour)
{
	struct net_route route = route_to("10.0.0.9");

	look_up_again = look_up_neighbour;
	ck_assert_int_eq(net_neigh_state(&route), NET_NEIGH_NONE);
	ck_assert_int_eq(child_status, 0);
}

static int look_up_address(void)
{
	union addr own = ip("10.0.0.1");
	struct net_iface iface;

	return net_iface_of_addr(&own, &iface);
}

TEST(child_does_not_inherit_addresses_that_are_being_moved)
{
	run("for i in $(seq 1 20); do echo addr add 10.9.0.$i/32 dev d1; done | ip -b -");
	look_up_again = look_up_address;
	ck_assert_int_eq(look_up_address(), 0);
	ck_assert_int_eq(child_status, 0);
}
