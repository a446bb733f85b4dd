/* SPDX-License-Identifier: BSD-2-Clause */
/* A libibumad made of sockets: umad_fake.h. The functions umad_* replace the real ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>

#include "mad/umad_owner.h"
#include "umad_fake.h"
#include "tests/unit/test.h"

struct fake_umad fake;
char root[64];

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

/* The real one blocks and is not close-on-exec; and it prints missing ports to stderr. */
int umad_open_port(const char *ca_name, int portnum)
{
	fake.n_asked++;
	return fake.is_stand_in && !strcmp(ca_name, "fab0") && portnum == 1 ? open_pair(0)
									    : -EINVAL;
}

/* The other end of a closed descriptor reads as ended. */
int n_closed(void)
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

void put_file(const char *text, const char *format, ...)
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

void set_up_fake_umad(void)
{
	static char sys[80], proc[80], dev[80];

	memset(&fake, 0, sizeof(fake));
	ck_assert_ptr_nonnull(mkdtemp(name_temporary(root)));
	snprintf(sys, sizeof(sys), "%s/sys", root);
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(dev, sizeof(dev), "%s/dev", root);
	umad_dirs = (struct umad_dirs){ .sys = sys, .proc = proc, .dev = dev, .open = fake_open };
	put_file("5\n", "sys/class/infiniband_mad/abi_version");
	put_file("mlx5_0\n", "sys/class/infiniband_mad/umad0/ibdev");
	put_file("1\n", "sys/class/infiniband_mad/umad0/port");
	put_file("rxe0\n", "sys/class/infiniband_mad/umad7/ibdev");
	put_file("1\n", "sys/class/infiniband_mad/umad7/port");
	put_file("1:3\n", "sys/class/infiniband_mad/umad7/dev"); /* that of /dev/null */
	put_file("rxe0\n", "sys/class/infiniband_mad/issm7/ibdev");
	put_file("", "sys/class/infiniband/rxe0/subsystem"); /* a link in the real kernel */
	put_file("0\n", "sys/class/infiniband/rxe0/ports/1/lid");
	put_file("", "dev/umad7");
	put_file("init\n", "proc/1/comm");
}

void tear_down_fake_umad(void)
{
	char command[100];

	for (int i = 0; i < fake.n_opened; i++)
		if (fake.peer[i] >= 0)
			close(fake.peer[i]);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

struct mad_port *open_rxe0(void)
{
	struct umad_owner who;
	struct mad_port *port;

	ck_assert_int_eq(umad_port_open("rxe0", 1, &port, &who), 0);
	return port;
}
