/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Import of a context, domains and memory by their handles: for parts of a program that exchange
 * descriptors.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"
#include "tests/unit/test.h"

#define BYTES	 64
#define DM_BYTES 4096

static const struct rig_config rc = { .type = IBV_QPT_RC };

static struct ibv_context *import_context(const struct rig *rig)
{
	struct ibv_context *verbs = ibv_import_device(dup(rig->verbs->cmd_fd));

	ck_assert_ptr_nonnull(verbs);
	return verbs;
}

static void write_to(struct rig *rig, uint32_t rkey, uint64_t addr, enum ibv_wc_status status)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = rig_wr(rig, IBV_WR_RDMA_WRITE, &sge, BYTES);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	rig_post(&rig->a, &wr);
	rig_wait(rig->a.cq, status);
}

TEST(imported_region_has_the_keys_of_the_original_and_no_address)
{
	struct ibv_context *verbs;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct rig rig;

	rig_open(&rig, &rc);
	verbs = import_context(&rig);
	pd = ibv_import_pd(verbs, rig.pd->handle);
	ck_assert_ptr_nonnull(pd);
	ck_assert_uint_eq(pd->handle, rig.pd->handle);
	mr = ibv_import_mr(pd, rig.b.mr->handle);
	ck_assert_ptr_nonnull(mr);
	ck_assert_ptr_null(mr->addr);
	ck_assert_uint_eq(mr->length, rig.b.mr->length);
	ck_assert_uint_eq(mr->lkey, rig.b.mr->lkey);
	strcpy(rig.a.memory, "by an imported key");
	write_to(&rig, mr->rkey, (uintptr_t)rig.b.memory, IBV_WC_SUCCESS);
	ck_assert_str_eq(rig.b.memory, "by an imported key");
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	ck_assert_int_eq(ibv_close_device(verbs), 0);
	/* The first context stays open. */
	strcpy(rig.a.memory, "again");
	write_to(&rig, rig.b.mr->rkey, (uintptr_t)rig.b.memory, IBV_WC_SUCCESS);
	ck_assert_str_eq(rig.b.memory, "again");
	rig_close(&rig);
}

TEST(region_of_an_imported_domain_belongs_to_the_original_domain)
{
	static char memory[BYTES];
	struct ibv_context *verbs;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct rig rig;

	rig_open(&rig, &rc);
	verbs = import_context(&rig);
	pd = ibv_import_pd(verbs, rig.pd->handle);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), RIG_ALL_ACCESS);
	ck_assert_ptr_nonnull(mr);
	strcpy(rig.a.memory, "into new memory");
	write_to(&rig, mr->rkey, (uintptr_t)memory, IBV_WC_SUCCESS);
	ck_assert_str_eq(memory, "into new memory");
	/* The owner of a domain can free it when it has no users. */
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ibv_unimport_pd(pd);
	ck_assert_int_eq(ibv_close_device(verbs), 0);
	rig_close(&rig);
}

TEST(imported_key_ends_with_the_region)
{
	static char memory[BYTES];
	struct ibv_mr *first, *mr;
	struct rig rig;

	rig_open(&rig, &rc);
	first = ibv_reg_mr(rig.pd, memory, sizeof(memory), RIG_ALL_ACCESS);
	mr = ibv_import_mr(rig.pd, first->handle);
	ck_assert_ptr_nonnull(mr);
	ck_assert_int_eq(ibv_dereg_mr(first), 0);
	write_to(&rig, mr->rkey, (uintptr_t)memory, IBV_WC_REM_ACCESS_ERR);
	ibv_unimport_mr(mr);
	rig_close(&rig);
}

TEST(imported_device_memory_is_the_same_memory)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_BYTES };
	struct ibv_dm *dm, *imported;
	char text[8] = "", in[8] = "so long";
	struct ibv_mr *mr;
	struct rig rig;

	rig_open(&rig, &rc);
	dm = ibv_alloc_dm(rig.verbs, &attr);
	ck_assert_ptr_nonnull(dm);
	imported = ibv_import_dm(rig.verbs, dm->handle);
	ck_assert_ptr_nonnull(imported);
	ck_assert_int_eq(ibv_memcpy_to_dm(imported, 16, in, sizeof(in)), 0);
	ck_assert_int_eq(ibv_memcpy_from_dm(text, dm, 16, sizeof(text)), 0);
	ck_assert_str_eq(text, in);
	mr = ibv_reg_dm_mr(rig.pd, imported, 0, DM_BYTES, RIG_ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	ck_assert_ptr_nonnull(mr);
	ibv_unimport_dm(imported);
	ck_assert_int_eq(ibv_free_dm(dm), EBUSY);
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(ibv_free_dm(dm), 0);
	rig_close(&rig);
}

TEST(unknown_handle_is_not_imported)
{
	int other = open("/dev/null", O_RDONLY);
	struct rig rig;

	rig_open(&rig, &rc);
	ck_assert_ptr_null(ibv_import_device(other));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	ck_assert_ptr_null(ibv_import_device(-1));
	ck_assert_int_eq(errno, EBADF);
	ck_assert_ptr_null(ibv_import_pd(rig.verbs, rig.b.mr->handle));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_import_mr(rig.pd, rig.pd->handle));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_null(ibv_import_dm(rig.verbs, rig.pd->handle));
	ck_assert_int_eq(errno, EINVAL);
	close(other);
	rig_close(&rig);
}

TEST(region_of_another_domain_is_not_imported)
{
	struct ibv_pd *other;
	struct rig rig;

	rig_open(&rig, &rc);
	other = ibv_alloc_pd(rig.verbs);
	ck_assert_ptr_null(ibv_import_mr(other, rig.b.mr->handle));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(ibv_dealloc_pd(other), 0);
	rig_close(&rig);
}

/* The context stays open for its other users. */
TEST(context_is_closed_by_its_last_user)
{
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct rig rig;

	rig_open(&rig, &rc);
	verbs = import_context(&rig);
	rig_close(&rig);
	pd = ibv_alloc_pd(verbs);
	ck_assert_ptr_nonnull(pd);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(verbs), 0);
}

/* --- another process -------------------------------------------------------- */

/* Passes the descriptor, as programs that share a device do. */
static void send_fd(int to, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(to, &msg, 0), 1);
}

static int receive_fd(int from)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(from, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Return: errno of the import, or 0; the descriptor stays open after a failure. */
static int import_received(int from)
{
	int fd = receive_fd(from);
	struct ibv_context *verbs = ibv_import_device(fd);
	int err = verbs ? 0 : errno;

	return fcntl(fd, F_GETFD) < 0 ? EBADF : err;
}

/* A process that existed before the context, and has only the descriptor. */
TEST(context_of_another_process_is_refused)
{
	struct rig rig;
	int ends[2], status;
	pid_t child;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		_exit(import_received(ends[1]));
	rig_open(&rig, &rc);
	send_fd(ends[0], rig.verbs->cmd_fd);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), EOPNOTSUPP);
	/* The owner's context is unchanged. */
	strcpy(rig.a.memory, "still there");
	write_to(&rig, rig.b.mr->rkey, (uintptr_t)rig.b.memory, IBV_WC_SUCCESS);
	ck_assert_str_eq(rig.b.memory, "still there");
	rig_close(&rig);
}

/* The descriptor is for import only. Drivers send commands by ioctl(), older ones by write(). */
TEST(command_descriptor_refuses_commands)
{
	struct rig rig;
	char command[24] = { 0 };

	rig_open(&rig, &rc);
	ck_assert_int_ge(rig.verbs->cmd_fd, 0);
	ck_assert_int_eq(ioctl(rig.verbs->cmd_fd, RDMA_VERBS_IOCTL, command), -1);
	ck_assert_int_eq(errno, ENOTTY);
	ck_assert_int_eq(write(rig.verbs->cmd_fd, command, sizeof(command)), -1);
	ck_assert_int_eq(errno, EPERM);
	rig_close(&rig);
}

TEST(memory_of_a_dma_buffer_is_refused)
{
	struct rig rig;

	rig_open(&rig, &rc);
	errno = 0;
	ck_assert_ptr_null(
		ibv_reg_dmabuf_mr(rig.pd, 0, BYTES, 0, rig.verbs->cmd_fd, RIG_ALL_ACCESS));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	rig_close(&rig);
}
