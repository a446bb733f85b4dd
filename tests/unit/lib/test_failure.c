/* SPDX-License-Identifier: BSD-2-Clause */
/* Reasons of failures (lib/diag/failure.c), on a host without RDMA device. */
#include <errno.h>
#include <net/if.h>
#include <purecm/purecm.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conn/upcalls.h"
#include "lib/diag/failure.h"
#include "lib/engine/engine.h"
#include "tests/unit/test.h"

static struct channel *channel;
static struct id *id;
static union addr addr;
static char text[256];

static void setup(void)
{
	struct engine *engine;

	ck_assert_int_eq(upcalls_start(), 0);
	ck_assert_int_eq(channel_new(&channel), 0);
	ck_assert_int_eq(id_new(channel, RDMA_PS_TCP, &id), 0);
	engine = engine_lock();
	list_append(&engine->ids, &id->link);
	engine_unlock();
	addr_set_any(&addr, AF_INET);
	addr.in4.sin_addr.s_addr = htonl(0xc0000201);
	addr_set_port(&addr, 7471);
}

static void teardown(void)
{
	rdma_destroy_id(&id->pub);
	channel_close(channel);
}

FIXTURE(setup, teardown);

static const char *last(void)
{
	ck_assert_int_eq(purecm_last_failure(&id->pub, text, sizeof(text)), 0);
	return text;
}

TEST(new_id_has_no_failure)
{
	strcpy(text, "untouched");
	ck_assert_int_eq(purecm_last_failure(&id->pub, text, sizeof(text)), -1);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_str_eq(text, "untouched");
}

TEST(address_of_no_interface_is_named)
{
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &addr.sa), -1);
	ck_assert_int_eq(errno, EADDRNOTAVAIL);
	ck_assert_str_eq(
		last(), "local address 192.0.2.1:7471: no interface of this host has this address");
}

TEST(link_local_address_without_scope_is_named)
{
	addr_set_any(&addr, AF_INET6);
	addr.in6.sin6_addr.s6_addr[0] = 0xfe;
	addr.in6.sin6_addr.s6_addr[1] = 0x80;
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &addr.sa), -1);
	ck_assert_ptr_nonnull(strstr(last(), "[fe80::]:0: it is link-local without a scope id"));
}

TEST(source_of_no_interface_is_named)
{
	union addr dst;

	addr_set_any(&dst, AF_INET);
	dst.in4.sin_addr.s_addr = htonl(0xc0000202);
	ck_assert_int_eq(rdma_resolve_addr(&id->pub, &addr.sa, &dst.sa, 1), -1);
	ck_assert_ptr_nonnull(strstr(last(), "local address 192.0.2.1:7471"));
}

TEST(program_error_is_no_failure_of_an_address)
{
	ck_assert_int_eq(rdma_resolve_route(&id->pub, 1), -1);
	ck_assert_int_eq(purecm_last_failure(&id->pub, text, sizeof(text)), -1);
	ck_assert_int_eq(errno, ENOENT);
}

TEST(port_that_is_taken_is_named)
{
	failure_of_port(id, &addr, -EADDRINUSE);
	ck_assert_str_eq(last(), "local address 192.0.2.1:7471: another id is bound to the port");
}

TEST(route_that_is_missing_names_both_ends)
{
	addr_set_any(&id->claim.local, AF_INET);
	failure_of_route(id, &addr, -ENETUNREACH);
	ck_assert_str_eq(last(), "destination 192.0.2.1:7471 from 0.0.0.0:0: the kernel has no "
				 "route to it");
}

TEST(errno_without_phrase_has_the_c_librarys_text)
{
	addr_set_any(&id->claim.local, AF_INET);
	failure_of_route(id, &addr, -ENOBUFS);
	ck_assert_ptr_nonnull(strstr(last(), strerror(ENOBUFS)));
}

TEST(unresolved_gateway_is_named_with_its_interface)
{
	id->claim.peer = addr;
	id->path.route.gateway = true;
	id->path.route.ifindex = if_nametoindex("lo");
	addr_set_any(&id->path.route.next_hop, AF_INET);
	failure_of_neighbour(id);
	ck_assert_str_eq(last(), "destination 192.0.2.1:7471: the link address of gateway "
				 "0.0.0.0:0 on lo was not resolved in time");
}

TEST(interface_without_device_is_named)
{
	struct net_route route = { .ifindex = if_nametoindex("lo") };

	addr_set_any(&route.src, AF_INET);
	failure_of_device(id, &addr, &route, -ENODEV);
	ck_assert_ptr_nonnull(
		strstr(last(), "the route from 0.0.0.0:0 leaves by lo, which has no RDMA device"));
}

TEST(loopback_address_is_named)
{
	id->claim.peer = addr;
	id->path.loopback = true;
	failure_of_path(id, -ENODEV);
	ck_assert_ptr_nonnull(strstr(last(), "loopback addresses have no RDMA device"));
	id->path.loopback = false;
}

TEST(peer_that_does_not_answer_is_named)
{
	id->claim.peer = addr;
	failure_of_answer(id);
	ck_assert_ptr_nonnull(strstr(last(), "192.0.2.1:7471: no answer"));
}

TEST(last_failure_is_returned)
{
	failure_of_port(id, &addr, -EADDRINUSE);
	failure_of_port(id, &addr, -EACCES);
	ck_assert_ptr_nonnull(strstr(last(), "CAP_NET_BIND_SERVICE"));
}

TEST(text_is_truncated_to_the_buffer)
{
	failure_of_port(id, &addr, -EADDRINUSE);
	ck_assert_int_eq(purecm_last_failure(&id->pub, text, 6), 0);
	ck_assert_str_eq(text, "local");
}

TEST(missing_buffer_is_refused)
{
	ck_assert_int_eq(purecm_last_failure(&id->pub, text, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(purecm_last_failure(&id->pub, NULL, 1), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(purecm_last_failure(NULL, text, 1), -1);
	ck_assert_int_eq(errno, EINVAL);
}
