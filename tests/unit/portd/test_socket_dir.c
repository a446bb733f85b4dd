/* SPDX-License-Identifier: BSD-2-Clause */
/* The place of cmportd: folder, socket, and descriptors from systemd. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/portd/proto/socket_path.h"
#include "lib/portd/server/files/socket_dir.h"
#include "tests/unit/portd/folder.h"
#include "tests/unit/test.h"

#define NOBODY_ID 65534

static struct socket_dir *dir;

static void setup(void)
{
	folder_make();
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	dir = NULL;
}

static void teardown(void)
{
	socket_dir_leave(dir);
}

static mode_t mode_of(const char *path)
{
	struct stat stat;

	ck_assert_int_eq(lstat(path, &stat), 0);
	return stat.st_mode & 07777;
}

static bool is_there(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) == 0;
}

static int bound_socket(int type, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	strcpy(addr.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* --- the path ------------------------------------------------------------ */

FIXTURE(setup, teardown);

TEST(a_path_that_no_socket_can_have_is_refused)
{
	char wanted[SOCKET_PATH_BYTES + 1];

	memset(wanted, 'x', sizeof(wanted));
	wanted[0] = '/';
	wanted[SOCKET_PATH_BYTES] = '\0';
	ck_assert_int_eq(socket_dir_take(wanted, &dir), -ENAMETOOLONG);
}

TEST(the_longest_path_is_accepted)
{
	char wanted[SOCKET_PATH_BYTES];
	size_t n = (size_t)snprintf(wanted, sizeof(wanted), "%s/", folder);

	memset(wanted + n, 'x', sizeof(wanted) - n - 1);
	wanted[SOCKET_PATH_BYTES - 1] = '\0';
	ck_assert_int_eq(socket_dir_take(wanted, &dir), 0);
	ck_assert(socket_path_is_served(wanted));
}

/* --- the folder ---------------------------------------------------------- */

TEST(a_missing_folder_is_made_for_everybody)
{
	char path[SOCKET_PATH_BYTES], made[SOCKET_PATH_BYTES];

	snprintf(made, sizeof(made), "%s/run", folder);
	snprintf(path, sizeof(path), "%s/run/s", folder);
	umask(077);
	ck_assert_int_eq(socket_dir_take(path, &dir), 0);
	ck_assert_uint_eq(mode_of(made), 0755);
	socket_dir_leave(dir);
	dir = NULL;
	unlink(strcat(path, ".state"));
}

TEST(root_refuses_a_folder_that_others_can_write_to)
{
	if (!is_root())
		return;
	ck_assert_int_eq(chmod(folder, 0777), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
	ck_assert_int_eq(chmod(folder, 0775), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
	ck_assert(!is_there(state_path));
}

TEST(root_accepts_a_sticky_folder)
{
	ck_assert_int_eq(chmod(folder, 01777), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
}

TEST(root_refuses_a_folder_of_another_user)
{
	if (!is_root())
		return;
	ck_assert_int_eq(chown(folder, NOBODY_ID, NOBODY_ID), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
}

TEST(a_link_of_another_user_to_a_folder_is_not_followed)
{
	char link[SOCKET_PATH_BYTES], path[SOCKET_PATH_BYTES];

	if (!is_root())
		return;
	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(path, sizeof(path), "%s/link/s", folder);
	ck_assert_int_eq(symlink(folder, link), 0);
	ck_assert_int_eq(lchown(link, NOBODY_ID, NOBODY_ID), 0);
	ck_assert_int_eq(socket_dir_take(path, &dir), -EPERM);
	ck_assert(!is_there(state_path));
}

/* --- the lock ------------------------------------------------------------ */

TEST(a_directory_is_taken_once)
{
	struct socket_dir *other;

	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &other), -EADDRINUSE);
	ck_assert(socket_path_is_served(socket_path));
}

static int lock_fd = -1; /* closed instead of sleeping for the last time */
static int64_t held_ns;	 /* for that long, in the time of nanosleep() */

int __real_nanosleep(const struct timespec *wait, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wait, struct timespec *left);

int __wrap_nanosleep(const struct timespec *wait, struct timespec *left)
{
	if (lock_fd < 0)
		return __real_nanosleep(wait, left);
	held_ns -= wait->tv_nsec;
	if (held_ns <= 0)
		fd_close(&lock_fd);
	return 0;
}

static void take_after(unsigned int ms)
{
	held_ns = ms * INT64_C(1000000);
	lock_fd = open(state_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(flock(lock_fd, LOCK_EX), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	ck_assert_int_eq(lock_fd, -1);
}

TEST(the_lock_of_an_ending_cmportd_is_waited_for)
{
	take_after(1);
}

TEST(a_cmportd_that_ends_in_twenty_seconds_is_waited_for)
{
	take_after(20000);
}

static int take_and_stop(void)
{
	return socket_dir_take(socket_path, &dir) ? 1 : 0;
}

TEST(the_directory_of_a_dead_cmportd_is_free)
{
	ck_assert_int_eq(in_child(take_and_stop), 0);
	ck_assert(is_there(socket_path));
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	ck_assert(socket_path_is_served(socket_path));
}

/* --- files of other users ------------------------------------------------ */

TEST(a_file_in_the_sockets_place_is_left_alone)
{
	write_file(socket_path, "precious");
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EEXIST);
	ck_assert(is_there(socket_path));
}

TEST(a_link_in_the_sockets_place_is_left_alone)
{
	ck_assert_int_eq(symlink("elsewhere", socket_path), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EEXIST);
}

TEST(a_link_in_the_states_place_is_not_followed)
{
	char target[128];
	struct stat stat_buf;

	snprintf(target, sizeof(target), "%s/precious", folder);
	write_file(target, "precious");
	ck_assert_int_eq(symlink(target, state_path), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
	ck_assert_int_eq(stat(target, &stat_buf), 0);
	ck_assert_int_eq(stat_buf.st_size, 8);
}

TEST(a_hard_link_in_the_states_place_is_not_written_to)
{
	char target[128];

	snprintf(target, sizeof(target), "%s/precious", folder);
	write_file(target, "precious");
	ck_assert_int_eq(link(target, state_path), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
}

TEST(the_state_of_another_user_is_refused)
{
	if (!is_root())
		return;
	write_file(state_path, "");
	ck_assert_int_eq(chown(state_path, NOBODY_ID, NOBODY_ID), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
}

TEST(a_fifo_in_the_states_place_is_refused)
{
	ck_assert_int_eq(mkfifo(state_path, 0600), 0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), -EPERM);
}

/* --- the socket ---------------------------------------------------------- */

TEST(every_user_may_connect_whatever_the_umask)
{
	umask(077);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	ck_assert_uint_eq(mode_of(socket_path), 0666);
	ck_assert_uint_eq(umask(022), 077);
}

TEST(the_state_is_readable_by_its_owner_only)
{
	umask(0);
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	ck_assert_uint_eq(mode_of(state_path), 0600);
}

TEST(the_socket_does_not_block_and_is_not_inherited)
{
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	ck_assert_int_eq(accept(socket_dir_listen_fd(dir), NULL, NULL), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert(fcntl(socket_dir_listen_fd(dir), F_GETFD) & FD_CLOEXEC);
}

TEST(no_socket_is_left_behind)
{
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	socket_dir_leave(dir);
	dir = NULL;
	ck_assert(!is_there(socket_path));
	ck_assert(is_there(state_path));
}

TEST(a_socket_of_another_cmportd_is_not_removed)
{
	ck_assert_int_eq(socket_dir_take(socket_path, &dir), 0);
	unlink(socket_path);
	close(bound_socket(SOCK_SEQPACKET, socket_path));
	socket_dir_leave(dir);
	dir = NULL;
	ck_assert(is_there(socket_path));
}

/* --- systemd ------------------------------------------------------------- */

static void hand_over(int fd)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", "x", 1);
	if (fd != 3) {
		ck_assert_int_eq(dup2(fd, 3), 3);
		close(fd);
	}
}

static void hand_over_good(void)
{
	int fd = bound_socket(SOCK_SEQPACKET, socket_path);

	listen(fd, 1);
	hand_over(fd);
}

static int take_handed_over(void)
{
	hand_over_good();
	if (!socket_dir_is_handed_over() || socket_dir_take(socket_path, &dir))
		return 1;
	if (socket_dir_listen_fd(dir) != 3)
		return 2;
	if (fcntl(3, F_GETFD) != FD_CLOEXEC || !(fcntl(3, F_GETFL) & O_NONBLOCK))
		return 3;
	if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
		return 4;
	socket_dir_leave(dir);
	return is_there(socket_path) ? 0 : 5;
}

TEST(a_socket_from_systemd_is_used_and_stays)
{
	ck_assert_int_eq(in_child(take_handed_over), 0);
}

static int take_of_another_type(void)
{
	int fd = bound_socket(SOCK_STREAM, socket_path);

	listen(fd, 1);
	hand_over(fd);
	return -socket_dir_take(socket_path, &dir);
}

TEST(a_socket_of_another_type_is_refused)
{
	ck_assert_int_eq(in_child(take_of_another_type), EINVAL);
}

static int take_of_another_path(void)
{
	char other[128];

	snprintf(other, sizeof(other), "%s2", socket_path);
	hand_over_good();
	return -socket_dir_take(other, &dir);
}

TEST(a_socket_of_another_path_is_refused)
{
	ck_assert_int_eq(in_child(take_of_another_path), EINVAL);
}

static int take_two(void)
{
	hand_over_good();
	setenv("LISTEN_FDS", "2", 1);
	return -socket_dir_take(socket_path, &dir);
}

TEST(two_sockets_are_refused)
{
	ck_assert_int_eq(in_child(take_two), EINVAL);
}

static int take_message_for_another(void)
{
	hand_over_good();
	setenv("LISTEN_PID", "1", 1);
	return socket_dir_take(socket_path, &dir) || socket_dir_listen_fd(dir) == 3;
}

TEST(a_socket_for_another_process_is_not_used)
{
	ck_assert_int_eq(in_child(take_message_for_another), 0);
}
