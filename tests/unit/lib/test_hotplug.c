/* SPDX-License-Identifier: BSD-2-Clause */
/* Announcements of devices by the kernel: lib/conn/hotplug.c, with announcements of the test. */
#include "lib/conn/hotplug.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/engine/engine.h"
#include "lib/engine/cmportd.h"
#include "tests/unit/lib/rig.h"
#include "tests/unit/test.h"

/* As the kernel writes it: consecutive strings. */
#define UEVENT(action, subsystem, node) \
	action "@/devices/it\0ACTION=" action "\0SUBSYSTEM=" subsystem "\0DEVNAME=" node

static struct announcement {
	const char *text;
	size_t bytes;
	uint32_t sender; /* 0: the kernel */
	int err;	 /* instead of an announcement: a positive errno */
} next;

static struct watch *uevents;
static void (*uevents_ready)(struct watch *watch);

int __real_engine_watch(struct watch *watch, int fd, void (*ready)(struct watch *watch));
int __wrap_engine_watch(struct watch *watch, int fd, void (*ready)(struct watch *watch));
ssize_t __real_recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes);
ssize_t __wrap_recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes);

int __wrap_engine_watch(struct watch *watch, int fd, void (*ready)(struct watch *watch))
{
	uevents = watch;
	uevents_ready = ready;
	return __real_engine_watch(watch, fd, ready);
}

ssize_t __wrap_recvfrom(int fd, void *buf, size_t bytes, int flags, struct sockaddr *from,
			socklen_t *from_bytes)
{
	struct announcement now = next;

	if (!uevents || fd != uevents->fd)
		return __real_recvfrom(fd, buf, bytes, flags, from, from_bytes);
	next = (struct announcement){ .err = EAGAIN };
	errno = now.err;
	if (now.err)
		return -1;
	((struct sockaddr_nl *)from)->nl_pid = now.sender;
	memcpy(buf, now.text, now.bytes);
	return (ssize_t)now.bytes;
}

static void set_up(void)
{
	uevents = NULL;
	rig_begin_with(&rig_reporting);
	ck_assert_int_eq(hotplug_start(), 0);
}

FIXTURE(set_up, hotplug_stop);

static void announce(struct announcement announcement)
{
	next = announcement;
	uevents_ready(uevents);
}

#define announce_text(text) announce((struct announcement){ text, sizeof(text), 0, 0 })

/* Another device is added; a listener on all devices would use it. */
static void plug_in(void)
{
	static struct ibv_device come = { .name = "fake1", .dev_name = "uverbs1" };
	struct id *listener = rig_id(RDMA_PS_TCP, ID_IDLE);

	ck_assert_int_eq(rdma_listen(&listener->pub, 1), 0);
	fake.listed = &come;
	fake.n_listed = 1;
}

TEST(added_device_is_listened_on)
{
	plug_in();
	announce_text(UEVENT("add", "infiniband", "infiniband/uverbs1"));
	ck_assert_ptr_nonnull(device_of_node("uverbs1"));
}

TEST(devices_are_scanned_after_lost_announcements)
{
	plug_in();
	announce((struct announcement){ .err = ENOBUFS });
	ck_assert_ptr_nonnull(device_of_node("uverbs1"));
}

TEST(added_interface_is_no_device)
{
	plug_in();
	announce_text(UEVENT("add", "net", "net/eth0"));
	ck_assert_ptr_null(device_of_node("uverbs1"));
}

TEST(removed_device_is_reported_to_its_ids)
{
	rig_routed(RDMA_PS_TCP);
	announce_text(UEVENT("remove", "infiniband_verbs", "infiniband/uverbs0"));
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

TEST(node_may_be_announced_without_its_folder)
{
	rig_routed(RDMA_PS_TCP);
	announce_text(UEVENT("remove", "infiniband_verbs", "uverbs0"));
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

TEST(removal_of_another_device_is_not_reported)
{
	rig_routed(RDMA_PS_TCP);
	announce_text(UEVENT("remove", "infiniband_verbs", "infiniband/uverbs1"));
	rig_expect_nothing();
}

TEST(node_of_another_subsystem_is_ignored)
{
	rig_routed(RDMA_PS_TCP);
	announce_text(UEVENT("remove", "net", "infiniband/uverbs0"));
	announce_text(UEVENT("remove", "infiniband_mad", "infiniband/uverbs0"));
	rig_expect_nothing();
}

TEST(changed_device_is_not_removed)
{
	rig_routed(RDMA_PS_TCP);
	announce_text(UEVENT("change", "infiniband_verbs", "infiniband/uverbs0"));
	rig_expect_nothing();
}

/* Any process of the host can send to the group; only the kernel's sender is 0. */
TEST(announcement_of_a_program_is_ignored)
{
	static const char text[] = UEVENT("remove", "infiniband_verbs", "infiniband/uverbs0");

	rig_routed(RDMA_PS_TCP);
	announce((struct announcement){ text, sizeof(text), 4711, 0 });
	rig_expect_nothing();
}

TEST(announcement_without_a_node_is_ignored)
{
	static const char text[] = "remove@/devices/it\0ACTION=remove\0SUBSYSTEM=infiniband_verbs";

	rig_routed(RDMA_PS_TCP);
	announce((struct announcement){ text, sizeof(text), 0, 0 });
	rig_expect_nothing();
}

/* --- scans for devices -------------------------------------------------------- */

static void wait_a_second(void)
{
	rig.now_ns += 1000 * CM_NS_PER_MS;
	hotplug_look();
}

/* A device may be added some time before its port can be opened. */
TEST(port_of_a_bound_id_is_opened_later_if_its_device_is_being_added)
{
	unsigned int n_opened = cmportd.n_handles;
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(0);

	device_take_port(rig.device);
	cmportd.open_err = -ENXIO;
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	wait_a_second();
	cmportd.open_err = 0;
	ck_assert_uint_eq(cmportd.n_handles, n_opened);
	wait_a_second();
	ck_assert_uint_eq(cmportd.n_handles, n_opened + 1);
	ck_assert(hotplug_deadline().ns == CM_TIME_NEVER.ns);
}

TEST(device_removed_before_its_port_was_opened_is_reported)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(0);

	device_take_port(rig.device);
	cmportd.open_err = -ENXIO;
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	fake.gone_errno = EIO;
	fake.n_listed = 0;
	wait_a_second();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

static void reset_device(void)
{
	fake.gone_errno = EIO;
	fake.n_listed = 0;
}

static void expect_news_of_reset_while_opening(int open_err)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(0);

	device_take_port(rig.device);
	cmportd.opening = reset_device;
	cmportd.open_err = open_err;
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	wait_a_second();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* cmportd, which identifies devices by name, has opened the port of the next one. */
TEST(device_reset_while_its_port_is_opened_is_reported)
{
	expect_news_of_reset_while_opening(0);
}

TEST(device_reset_while_cmportd_opens_it_is_reported)
{
	expect_news_of_reset_while_opening(-EIO);
}

TEST(other_failures_to_open_a_port_are_final)
{
	struct id *id = rig_id(RDMA_PS_TCP, ID_IDLE);
	union addr own = rig_own(0);

	device_take_port(rig.device);
	cmportd.open_err = -EACCES;
	ck_assert_int_eq(rdma_bind_addr(&id->pub, &own.sa), 0);
	ck_assert(hotplug_deadline().ns == CM_TIME_NEVER.ns);
}

/* --- records of cmportd ----------------------------------------------------------- */

static void keep_nothing(struct portd_client *to)
{
	(void)to;
}

static void do_nothing(void)
{
}

/* Replaces cmportd by one that opens the port of the device, or fails to. */
static void replace_cmportd(int open_err)
{
	static const struct cmportd_upcalls upcalls = {
		.resend = keep_nothing,
		.before_sleep = keep_nothing,
		.deadline = hotplug_deadline,
		.forget = do_nothing,
		.resumed = hotplug_check,
	};

	cmportd_set_upcalls(&upcalls);
	cmportd.has_ended = true;
	fake_cmportd_send(&(struct portd_record){ .type = PORTD_STAT_QUOTA });
	engine_turn(0);
	cmportd.open_err = open_err;
	cmportd_before_sleep();
}

TEST(device_reset_while_cmportd_is_replaced_is_reported)
{
	rig_routed(RDMA_PS_TCP);
	reset_device();
	replace_cmportd(0);
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

TEST(device_missing_for_the_next_cmportd_is_checked_again)
{
	rig_routed(RDMA_PS_TCP);
	replace_cmportd(-ENODEV);
	rig_expect_nothing();
	reset_device();
	wait_a_second();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

TEST(port_that_the_next_cmportd_cannot_open_is_opened_when_next_needed)
{
	struct port *port;

	replace_cmportd(-EMFILE);
	ck_assert_int_lt(rig.port->handle, 0);
	ck_assert_int_eq(device_port_open(rig.device, 1, &port), -EMFILE);
	cmportd.open_err = 0;
	ck_assert_int_eq(device_port_open(rig.device, 1, &port), 0);
	ck_assert_ptr_eq(port, rig.port);
	ck_assert_int_ge(port->handle, 0);
	port_put(port);
}

TEST(removed_port_removes_its_device)
{
	rig_routed(RDMA_PS_TCP);
	reset_device();
	hotplug_port_gone(rig.port);
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* The handle was that of an earlier device. */
TEST(responding_device_is_not_removed)
{
	rig_routed(RDMA_PS_TCP);
	hotplug_port_gone(rig.port);
	wait_a_second();
	rig_expect_nothing();
	ck_assert_int_ge(rig.port->handle, 0);
	ck_assert(hotplug_deadline().ns == CM_TIME_NEVER.ns);
}

TEST(device_that_responds_once_more_is_checked_again)
{
	rig_routed(RDMA_PS_TCP);
	hotplug_port_gone(rig.port);
	reset_device();
	wait_a_second();
	rig_expect(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
}

/* The listening program makes no call. */
TEST(device_of_a_wildcard_listener_is_closed_when_the_next_one_is_added)
{
	plug_in();
	port_put(rig.port);
	fake.gone_errno = EIO;
	announce_text(UEVENT("add", "infiniband", "infiniband/uverbs1"));
	ck_assert_int_eq(fake.n_closed, 1);
}

/* --- filter of the socket ------------------------------------------------------ */

/* Sends an announcement through the filter of the socket. Return: true if it arrives. */
static bool arrives(const char *text)
{
	struct sock_filter steps[16];
	struct sock_fprog filter = { 0, steps };
	socklen_t n = sizeof(steps) / sizeof(steps[0]);
	bool has_arrived;
	char byte;
	int fd[2];

	ck_assert_int_eq(getsockopt(uevents->fd, SOL_SOCKET, SO_GET_FILTER, steps, &n), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), 0);
	filter.len = (unsigned short)n;
	if (n)
		ck_assert_int_eq(
			setsockopt(fd[1], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)),
			0);
	send(fd[0], text, strlen(text) + 1, MSG_DONTWAIT); /* fails if the filter drops it */
	has_arrived = recv(fd[1], &byte, 1, MSG_DONTWAIT) == 1;
	close(fd[0]);
	close(fd[1]);
	return has_arrived;
}

TEST(additions_wake_a_process_only_if_it_listens_on_all_addresses)
{
	ck_assert(arrives("remove@/devices/it"));
	ck_assert(!arrives("add@/devices/it"));
	ck_assert(!arrives("change@/devices/it"));
	plug_in();
	ck_assert(arrives("remove@/devices/it"));
	ck_assert(arrives("add@/devices/it"));
}
