/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/umad.c on a libibumad made of sockets: what is written and read, and which error is which.
 * The functions named umad_* at the top are the ones that the real library would have; /sys,
 * /proc and /dev are folders below a temporary one. tests/judge/umad_lab.py asks a real kernel.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "mad/umad.h"
#include "mad/umad_owner.h"

#define HEAD_BYTES   64
#define N_FDS_MAX    8
#define OWNER_METHOD 8 /* the bit of method 3, Send */

static struct {
	int peer[N_FDS_MAX]; /* the other ends of what was opened, in that order */
	int fd[N_FDS_MAX];
	long methods[N_FDS_MAX];
	int n_opened;
	int open_errno;	    /* of the next open() */
	int register_errno; /* of one that wants methods */
	int agent_errno;    /* of one that does not */
	bool is_stand_in;   /* has ports that sysfs does not know */
	int n_asked;	    /* calls of umad_open_port() */
} fake;

static char root[64];

static int open_pair(int flags)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | flags, 0, pair), 0);
	fake.fd[fake.n_opened] = pair[0];
	fake.peer[fake.n_opened++] = pair[1];
	return pair[0];
}

static int fake_open(const char *path, int flags, ...)
{
	ck_assert_ptr_nonnull(strstr(path, "/dev/umad7"));
	ck_assert_int_eq(flags, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fake.open_errno) {
		errno = fake.open_errno;
		return -1;
	}
	return open_pair(SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* The real one blocks and is not closed on exec; and it writes to stderr what it misses. */
int umad_open_port(const char *ca_name, int portnum)
{
	fake.n_asked++;
	return fake.is_stand_in && !strcmp(ca_name, "fab0") && portnum == 1 ? open_pair(0)
									    : -EINVAL;
}

/* The other end of what is closed reads as ended. */
static int n_closed(void)
{
	char byte;
	int n = 0;

	for (int i = 0; i < fake.n_opened; i++)
		n += fake.peer[i] >= 0 &&
		     recv(fake.peer[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
	return n;
}

int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	int i = fake.n_opened - 1;

	ck_assert_int_eq(port_fd, fake.fd[i]);
	ck_assert_uint_eq(attr->mgmt_class, 7);
	ck_assert_uint_eq(attr->mgmt_class_version, 2);
	ck_assert_uint_eq(attr->rmpp_version, 0);
	fake.methods[i] = attr->method_mask[0];
	*agent_id = 40 + i;
	return attr->method_mask[0] ? fake.register_errno : fake.agent_errno;
}

__attribute__((format(printf, 2, 3))) static void put_file(const char *text, const char *format,
							   ...)
{
	char path[256], command[600];
	va_list args;
	FILE *file;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s/%s')\"", root, path);
	ck_assert_int_eq(system(command), 0);
	snprintf(command, sizeof(command), "%s/%s", root, path);
	file = fopen(command, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void put_holder(const char *module, const char *holder)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/module/%s/holders/%s", module, holder);
	put_file("", "%s", path);
}

static void put_process(int pid, const char *comm, const char *opened)
{
	char path[128];

	put_file(comm, "proc/%d/comm", pid);
	put_file("", "proc/%d/fd/1", pid);
	snprintf(path, sizeof(path), "%s/proc/%d/fd/5", root, pid);
	ck_assert_int_eq(symlink(opened, path), 0);
}

static void set_up(void)
{
	static char sys[80], proc[80], dev[80];

	memset(&fake, 0, sizeof(fake));
	strcpy(root, "/tmp/test_umad.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(sys, sizeof(sys), "%s/sys", root);
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(dev, sizeof(dev), "%s/dev", root);
	umad_places =
		(struct umad_places){ .sys = sys, .proc = proc, .dev = dev, .open = fake_open };
	put_file("5\n", "sys/class/infiniband_mad/abi_version");
	put_file("mlx5_0\n", "sys/class/infiniband_mad/umad0/ibdev");
	put_file("1\n", "sys/class/infiniband_mad/umad0/port");
	put_file("rxe0\n", "sys/class/infiniband_mad/umad7/ibdev");
	put_file("1\n", "sys/class/infiniband_mad/umad7/port");
	put_file("rxe0\n", "sys/class/infiniband_mad/issm7/ibdev");
	put_file("0\n", "sys/class/infiniband/rxe0/ports/1/lid");
	put_file("", "dev/umad7");
	put_file("init\n", "proc/1/comm");
}

static void tear_down(void)
{
	char command[100];

	for (int i = 0; i < fake.n_opened; i++)
		if (fake.peer[i] >= 0)
			close(fake.peer[i]);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static struct mad_port *open_port(void)
{
	struct umad_owner who;
	struct mad_port *port;

	ck_assert_int_eq(umad_port_open("rxe0", 1, &port, &who), 0);
	return port;
}

static struct umad_owner open_fails(const char *device, int err)
{
	struct umad_owner who = { .what = "", .remedy = "" };
	struct mad_port *port = NULL;

	ck_assert_int_eq(umad_port_open(device, 1, &port, &who), err);
	ck_assert_ptr_null(port);
	ck_assert_int_eq(fake.n_opened, n_closed());
	return who;
}

/* What the kernel was given, by whichever descriptor. Return: its number. */
static int take_written(uint8_t bytes[HEAD_BYTES + MAD_BYTES])
{
	for (int i = 0; i < fake.n_opened; i++)
		if (recv(fake.peer[i], bytes, HEAD_BYTES + MAD_BYTES, MSG_DONTWAIT) ==
		    HEAD_BYTES + MAD_BYTES)
			return i;
	ck_abort_msg("nothing was written");
	return -1;
}

static const struct mad_path v6_path = {
	.pkey_index = 3,
	.dlid = 0x1234,
	.sl = 5,
	.path_bits = 2,
	.grh = true,
	.sgid_index = 9,
	.hop_limit = 64,
	.traffic_class = 0xb8,
	.flow_label = 0xabcde,
	.dgid = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } },
};

static void deliver(const struct ib_mad_addr *addr, const uint8_t *mad, size_t bytes)
{
	uint8_t buffer[HEAD_BYTES + 2048] = { 0 };
	struct ib_user_mad head = { .addr = *addr };

	memcpy(buffer, &head, sizeof(head));
	memcpy(buffer + HEAD_BYTES, mad, bytes);
	ck_assert_int_eq(send(fake.peer[0], buffer, HEAD_BYTES + bytes, 0), HEAD_BYTES + bytes);
}

START_TEST(one_descriptor_owns_the_class_and_the_others_only_send)
{
	struct mad_port *port = open_port();

	ck_assert_int_eq(port->fd, fake.fd[0]);
	ck_assert_int_eq(fake.methods[0], OWNER_METHOD);
	ck_assert_int_gt(fake.n_opened, 2);
	for (int i = 1; i < fake.n_opened; i++)
		ck_assert_int_eq(fake.methods[i], 0);
	mad_port_close(port);
}
END_TEST

START_TEST(descriptors_are_closed_on_exec)
{
	struct mad_port *port = open_port();

	for (int i = 0; i < fake.n_opened; i++)
		ck_assert(fcntl(fake.fd[i], F_GETFD) & FD_CLOEXEC);
	mad_port_close(port);
}
END_TEST

START_TEST(close_closes_all)
{
	mad_port_close(open_port());
	ck_assert_int_eq(n_closed(), fake.n_opened);
	mad_port_close(NULL);
}
END_TEST

START_TEST(send_asks_the_kernel_for_no_timeout)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_port();
	struct ib_user_mad head;
	int i;

	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	i = take_written(bytes);
	memcpy(&head, bytes, sizeof(head));
	ck_assert_int_ne(i, 0);
	ck_assert_uint_eq(head.agent_id, 40 + i);
	ck_assert_uint_eq(head.timeout_ms, 0);
	ck_assert_uint_eq(head.retries, 0);
	mad_port_close(port);
}
END_TEST

START_TEST(send_goes_to_qp1_along_the_path)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_port *port = open_port();
	struct ib_user_mad head;

	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	take_written(bytes);
	memcpy(&head, bytes, sizeof(head));
	ck_assert_uint_eq(ntohl(head.addr.qpn), 1);
	ck_assert_uint_eq(ntohl(head.addr.qkey), 0x80010000);
	ck_assert_uint_eq(ntohs(head.addr.lid), 0x1234);
	ck_assert_uint_eq(head.addr.sl, 5);
	ck_assert_uint_eq(head.addr.path_bits, 2);
	ck_assert_uint_eq(head.addr.pkey_index, 3);
	ck_assert_uint_eq(head.addr.grh_present, 1);
	ck_assert_uint_eq(head.addr.gid_index, 9);
	ck_assert_uint_eq(head.addr.hop_limit, 64);
	ck_assert_uint_eq(head.addr.traffic_class, 0xb8);
	ck_assert_uint_eq(ntohl(head.addr.flow_label), 0xabcde);
	ck_assert_mem_eq(head.addr.gid, v6_path.dgid.raw, 16);
	mad_port_close(port);
}
END_TEST

START_TEST(path_without_grh_has_none)
{
	uint8_t bytes[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES] = { 0 };
	struct mad_path path = { .dlid = 7, .hop_limit = 1 };
	struct mad_port *port = open_port();
	struct ib_user_mad head;

	ck_assert_int_eq(mad_port_send(port, &path, mad), 0);
	take_written(bytes);
	memcpy(&head, bytes, sizeof(head));
	ck_assert_uint_eq(head.addr.grh_present, 0);
	ck_assert_uint_eq(head.addr.hop_limit, 0);
	mad_port_close(port);
}
END_TEST

START_TEST(send_changes_the_low_transaction_id_only)
{
	uint8_t first[HEAD_BYTES + MAD_BYTES], second[HEAD_BYTES + MAD_BYTES], mad[MAD_BYTES];
	struct mad_port *port = open_port();

	memset(mad, 0x5a, sizeof(mad));
	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	take_written(first);
	ck_assert_int_eq(mad_port_send(port, &v6_path, mad), 0);
	take_written(second);
	ck_assert_mem_eq(first + HEAD_BYTES, mad, 12);
	ck_assert_mem_eq(first + HEAD_BYTES + 16, mad + 16, MAD_BYTES - 16);
	ck_assert_mem_ne(first + HEAD_BYTES + 12, second + HEAD_BYTES + 12, 4);
	mad_port_close(port);
}
END_TEST

START_TEST(nothing_there_is_eagain)
{
	struct mad_port *port = open_port();
	uint8_t mad[MAD_BYTES];
	struct mad_path path;

	ck_assert_int_eq(mad_port_receive(port, &path, mad), -EAGAIN);
	mad_port_close(port);
}
END_TEST

START_TEST(received_path_leads_back)
{
	const struct ib_mad_addr addr = {
		.lid = htons(0x1234),
		.sl = 5,
		.path_bits = 2,
		.grh_present = 1,
		.gid_index = 9,
		.hop_limit = 64,
		.traffic_class = 0xb8,
		.gid = {0x20, 0x01, 0x0d, 0xb8, [15] = 1},
		.flow_label = htonl(0xabcde),
		.pkey_index = 3
	};
	struct mad_port *port = open_port();
	uint8_t sent[MAD_BYTES], mad[MAD_BYTES];
	struct mad_path path;

	memset(sent, 0x5a, sizeof(sent));
	deliver(&addr, sent, sizeof(sent));
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_mem_eq(mad, sent, sizeof(mad));
	ck_assert_mem_eq(&path, &v6_path, sizeof(path));
	mad_port_close(port);
}
END_TEST

START_TEST(traffic_class_of_an_ipv4_packet_is_not_believed)
{
	const struct ib_mad_addr addr = {
		.grh_present = 1,
		.traffic_class = 0x45,
		.flow_label = htonl(0x12345),
		.gid = {[10] = 0xff, 0xff, 10, 0, 0, 2}
	};
	struct mad_port *port = open_port();
	uint8_t mad[MAD_BYTES] = { 0 };
	struct mad_path path;

	deliver(&addr, mad, sizeof(mad));
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_uint_eq(path.traffic_class, 0);
	ck_assert_uint_eq(path.flow_label, 0);
	mad_port_close(port);
}
END_TEST

START_TEST(short_mad_is_padded)
{
	const struct ib_mad_addr addr = { .lid = 0 };
	struct mad_port *port = open_port();
	uint8_t sent[100], mad[MAD_BYTES], zeros[MAD_BYTES] = { 0 };
	struct mad_path path;

	memset(sent, 0x5a, sizeof(sent));
	memset(mad, 0xff, sizeof(mad));
	deliver(&addr, sent, sizeof(sent));
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_mem_eq(mad, sent, sizeof(sent));
	ck_assert_mem_eq(mad + sizeof(sent), zeros, sizeof(mad) - sizeof(sent));
	mad_port_close(port);
}
END_TEST

START_TEST(long_mad_does_not_block_the_next)
{
	const struct ib_mad_addr addr = { .lid = 0 };
	struct mad_port *port = open_port();
	uint8_t sent[2048] = { 0 }, mad[MAD_BYTES];
	struct mad_path path;

	deliver(&addr, sent, sizeof(sent));
	sent[0] = 0x77;
	deliver(&addr, sent, MAD_BYTES);
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_int_eq(mad_port_receive(port, &path, mad), 0);
	ck_assert_uint_eq(mad[0], 0x77);
	mad_port_close(port);
}
END_TEST

START_TEST(device_without_node_is_named)
{
	put_file("0\n", "sys/class/infiniband/siw0/ports/1/lid");
	ck_assert_str_eq(open_fails("siw0", -ENXIO).what, "port 1 of siw0 has no umad device");
	ck_assert_int_eq(fake.n_asked, 0);
}
END_TEST

START_TEST(port_without_node_is_opened_by_a_stand_in_for_libibumad)
{
	struct umad_owner who;
	struct mad_port *port;

	fake.is_stand_in = true;
	ck_assert_int_eq(umad_port_open("fab0", 1, &port, &who), 0);
	ck_assert_int_eq(fake.methods[0], OWNER_METHOD);
	for (int i = 0; i < fake.n_opened; i++) {
		ck_assert(fcntl(fake.fd[i], F_GETFD) & FD_CLOEXEC);
		ck_assert(fcntl(fake.fd[i], F_GETFL) & O_NONBLOCK);
	}
	mad_port_close(port);
	ck_assert_int_eq(n_closed(), fake.n_opened);
}
END_TEST

START_TEST(unknown_device_is_named)
{
	ck_assert_str_eq(open_fails("rxe9", -ENXIO).what, "no RDMA device is called rxe9");
}
END_TEST

START_TEST(missing_node_is_named)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/dev/umad7", root);
	ck_assert_int_eq(unlink(path), 0);
	fake.open_errno = ENOENT;
	ck_assert_ptr_nonnull(strstr(open_fails("rxe0", -ENXIO).what, "umad7 does not exist"));
}
END_TEST

START_TEST(other_open_errors_pass_through)
{
	fake.open_errno = EMFILE;
	ck_assert_ptr_nonnull(strstr(open_fails("rxe0", -EMFILE).what, "Too many open files"));
}
END_TEST

START_TEST(want_of_descriptors_is_not_taken_for_want_of_a_device)
{
	struct rlimit limit, none = { .rlim_cur = 0 };

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	open_fails("rxe0", -EMFILE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}
END_TEST

START_TEST(foreign_namespace_is_explained)
{
	fake.open_errno = EPERM;
	ck_assert_ptr_nonnull(strstr(open_fails("rxe0", -EPERM).what, "network namespace"));
}
END_TEST

START_TEST(loaded_ib_cm_is_blamed_with_its_users)
{
	struct umad_owner who;

	fake.register_errno = EINVAL;
	put_file("0\n", "sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/req");
	put_holder("ib_cm", "rdma_cm");
	put_holder("rdma_cm", "rdma_ucm");
	put_process(4711, "opensm\n", "/dev/infiniband/umad7");
	who = open_fails("rxe0", -EBUSY);
	ck_assert_str_eq(who.what, "kernel module ib_cm (loaded by rdma_cm)");
	ck_assert_str_eq(who.remedy, "modprobe -r rdma_ucm rdma_cm ib_cm");
}
END_TEST

START_TEST(ib_cm_that_came_too_late_is_not_blamed)
{
	struct umad_owner who;

	fake.register_errno = EINVAL;
	put_holder("ib_cm", "rdma_cm");
	put_process(4711, "cmportd\n", "/dev/infiniband/umad7");
	who = open_fails("rxe0", -EADDRINUSE);
	ck_assert_str_eq(who.what, "process 4711 (cmportd)");
	ck_assert_str_eq(who.remedy, "kill 4711");
}
END_TEST

START_TEST(user_of_another_port_is_not_blamed)
{
	fake.register_errno = EINVAL;
	put_process(4711, "opensm\n", "/dev/infiniband/umad0");
	ck_assert_str_eq(open_fails("rxe0", -EADDRINUSE).what,
			 "a process that cannot be seen from here");
}
END_TEST

START_TEST(own_second_attempt_is_explained)
{
	fake.register_errno = EINVAL;
	put_process(getpid(), "test_umad\n", "/dev/infiniband/umad7");
	ck_assert_str_eq(open_fails("rxe0", -EADDRINUSE).what, "this process has the port already");
}
END_TEST

START_TEST(want_of_memory_is_not_taken_for_an_owner)
{
	fake.register_errno = ENOMEM;
	ck_assert_str_eq(open_fails("rxe0", -ENOMEM).what, "");
}
END_TEST

START_TEST(failure_of_a_sender_closes_all)
{
	fake.agent_errno = ENOMEM;
	open_fails("rxe0", -ENOMEM);
	ck_assert_int_eq(fake.n_opened, 2);
}
END_TEST

static TCase *traffic_tests(void)
{
	TCase *tcase = tcase_create("traffic");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, one_descriptor_owns_the_class_and_the_others_only_send);
	tcase_add_test(tcase, descriptors_are_closed_on_exec);
	tcase_add_test(tcase, close_closes_all);
	tcase_add_test(tcase, send_asks_the_kernel_for_no_timeout);
	tcase_add_test(tcase, send_goes_to_qp1_along_the_path);
	tcase_add_test(tcase, path_without_grh_has_none);
	tcase_add_test(tcase, send_changes_the_low_transaction_id_only);
	tcase_add_test(tcase, nothing_there_is_eagain);
	tcase_add_test(tcase, received_path_leads_back);
	tcase_add_test(tcase, traffic_class_of_an_ipv4_packet_is_not_believed);
	tcase_add_test(tcase, short_mad_is_padded);
	tcase_add_test(tcase, long_mad_does_not_block_the_next);
	return tcase;
}

static TCase *diagnosis_tests(void)
{
	TCase *tcase = tcase_create("diagnosis");

	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, device_without_node_is_named);
	tcase_add_test(tcase, port_without_node_is_opened_by_a_stand_in_for_libibumad);
	tcase_add_test(tcase, unknown_device_is_named);
	tcase_add_test(tcase, missing_node_is_named);
	tcase_add_test(tcase, other_open_errors_pass_through);
	tcase_add_test(tcase, want_of_descriptors_is_not_taken_for_want_of_a_device);
	tcase_add_test(tcase, foreign_namespace_is_explained);
	tcase_add_test(tcase, loaded_ib_cm_is_blamed_with_its_users);
	tcase_add_test(tcase, ib_cm_that_came_too_late_is_not_blamed);
	tcase_add_test(tcase, user_of_another_port_is_not_blamed);
	tcase_add_test(tcase, own_second_attempt_is_explained);
	tcase_add_test(tcase, want_of_memory_is_not_taken_for_an_owner);
	tcase_add_test(tcase, failure_of_a_sender_closes_all);
	return tcase;
}

int main(void)
{
	Suite *suite = suite_create("umad");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, traffic_tests());
	suite_add_tcase(suite, diagnosis_tests());
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
