/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking and leaving a socket directory: the directory, the state file (state_file.h), the socket.
 *
 * Operations of root go through a descriptor of the directory, never follow a symbolic link in it,
 * and are refused where other users could replace our files.
 */
#include "lib/portd/server/files/socket_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/portd/proto/socket_path.h"
#include "lib/portd/server/files/own_file.h"
#include "lib/portd/server/files/state_file.h"

#define LOOK_AGAIN_NS	10000000
#define LOOK_MOST_NS	160000000 /* many may look, on a slow host */
#define LOOKS		200	  /* 30 s, half of the clients' timeout: a slow host exits slowly */
#define ACTIVATED_FD	3	  /* the first descriptor from systemd, sd_listen_fds(3) */
#define STATE_BYTES	(SOCKET_PATH_BYTES + sizeof(STATE_FILE_SUFFIX))
#define SOCKET_MASK	0111 /* 0777 becomes 0666 */
#define WRITABLE_OTHERS (S_IWGRP | S_IWOTH)

struct socket_dir {
	char path[SOCKET_PATH_BYTES];
	const char *name; /* last component of path */
	int folder_fd;
	int fd;
	bool is_activated;
	dev_t dev; /* of the socket that we created */
	ino_t ino;
	struct state_file *state_file;
};

/* --- the folder ---------------------------------------------------------- */

static void folder_of(const struct socket_dir *dir, char ret[SOCKET_PATH_BYTES])
{
	size_t n = (size_t)(dir->name - dir->path);

	if (n == 0) {
		strcpy(ret, ".");
		return;
	}
	n = n > 1 ? n - 1 : 1; /* without the slash, except for the root directory */
	memcpy(ret, dir->path, n);
	ret[n] = '\0';
}

static int refuse_dir(int err, const char *path, const char *why)
{
	log_warn("%s %s; choose another socket with --socket or PURECM_SOCKET", path, why);
	return err;
}

static int look_at_folder(const struct socket_dir *dir, const char *folder)
{
	struct stat stat, link;
	bool is_trusted;

	if (fstat(dir->folder_fd, &stat) || lstat(folder, &link))
		return -errno;
	/* In a sticky directory others can create files, but neither rename nor remove ours. */
	is_trusted = (stat.st_uid == 0 || stat.st_uid == geteuid()) &&
		     (!(stat.st_mode & WRITABLE_OTHERS) || stat.st_mode & S_ISVTX);
	if (geteuid() == 0 && !is_trusted)
		return refuse_dir(-EPERM, folder, "can be written to by others than root");
	if (S_ISLNK(link.st_mode) && link.st_uid != 0 && link.st_uid != geteuid())
		return refuse_dir(-EPERM, folder, "is somebody else's link");
	return 0;
}

static int open_folder(struct socket_dir *dir)
{
	char folder[SOCKET_PATH_BYTES];
	bool made;
	int err;

	folder_of(dir, folder);
	made = mkdir(folder, 0755) == 0;
	if (!made && errno != EEXIST) {
		err = -errno;
		log_warn("the folder %s cannot be made: %s; be root, or choose another "
			 "socket with --socket or PURECM_SOCKET",
			 folder, strerror(-err));
		return err;
	}
	dir->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir->folder_fd < 0) {
		err = -errno;
		return refuse_dir(err, folder, strerror(-err));
	}
	/* Clients need access, whatever the umask. */
	if (made && fchmod(dir->folder_fd, 0755))
		return -errno;
	return look_at_folder(dir, folder);
}

/* --- a socket of our own ------------------------------------------------- */

/* A later chmod() could change a file that has replaced the socket. */
static int bind_with_mode(const struct socket_dir *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t before = umask(SOCKET_MASK);
	int err = 0;

	strcpy(addr.sun_path, dir->path);
	if (bind(dir->fd, (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	umask(before);
	return err;
}

/* Clients are refused until listen(), as when there is no cmportd. */
static int make_socket(struct socket_dir *dir)
{
	struct stat stat;
	int err;

	/* We hold the lock, so an existing socket is stale. */
	if (fstatat(dir->folder_fd, dir->name, &stat, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISSOCK(stat.st_mode))
			return refuse_dir(-EEXIST, dir->path, "is there and is no socket");
		if (unlinkat(dir->folder_fd, dir->name, 0))
			return -errno;
	} else if (errno != ENOENT) {
		return -errno;
	}
	dir->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (dir->fd < 0)
		return -errno;
	err = bind_with_mode(dir);
	if (err)
		return refuse_dir(err, dir->path, strerror(-err));
	if (fstatat(dir->folder_fd, dir->name, &stat, AT_SYMLINK_NOFOLLOW))
		return -errno;
	dir->dev = stat.st_dev;
	dir->ino = stat.st_ino;
	return listen(dir->fd, WAITING_CONNECTS) ? -errno : 0;
}

/* --- systemd's ----------------------------------------------------------- */

bool socket_dir_is_handed_over(void)
{
	const char *pid = secure_getenv("LISTEN_PID");
	const char *fds = secure_getenv("LISTEN_FDS");

	return pid && fds && strtol(pid, NULL, 10) == getpid() && strtol(fds, NULL, 10) > 0;
}

static int refuse_socket(const char *why)
{
	log_warn("the socket from systemd %s; see cmportd.socket", why);
	return -EINVAL;
}

static int use_activated_socket(struct socket_dir *dir, bool is_one)
{
	struct sockaddr_un addr = { .sun_family = AF_UNSPEC };
	socklen_t bytes = sizeof(addr);
	int fd = ACTIVATED_FD;

	if (!is_one)
		return refuse_socket("is not the only one");
	if (!fd_option_is(fd, SO_DOMAIN, AF_UNIX) || !fd_option_is(fd, SO_TYPE, SOCK_SEQPACKET) ||
	    !fd_option_is(fd, SO_ACCEPTCONN, 1))
		return refuse_socket("is no ListenSequentialPacket= with a path");
	if (getsockname(fd, (struct sockaddr *)&addr, &bytes) ||
	    strncmp(addr.sun_path, dir->path, sizeof(addr.sun_path)) != 0)
		return refuse_socket("has another path than --socket or PURECM_SOCKET");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK))
		return -errno;
	dir->fd = fd;
	/* Clients see who has called this last as the process at the other end. */
	return listen(fd, WAITING_CONNECTS) ? -errno : 0;
}

/* Programs that we start must not inherit them. */
static int take_listening_socket(struct socket_dir *dir)
{
	const char *fds = secure_getenv("LISTEN_FDS");
	bool is_one = fds && strtol(fds, NULL, 10) == 1;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return dir->is_activated ? use_activated_socket(dir, is_one) : make_socket(dir);
}

/* --- taking and leaving -------------------------------------------------- */

/*
 * The holder of the lock that does not serve is starting or exiting. If we gave up while it exits,
 * the client that started us would wait in vain.
 */
static int open_state_file(struct socket_dir *dir)
{
	struct timespec wait = { .tv_nsec = LOOK_AGAIN_NS };
	char state[STATE_BYTES];
	unsigned int looks;
	int err;

	snprintf(state, sizeof(state), "%s" STATE_FILE_SUFFIX, dir->path);
	err = state_file_open(dir->folder_fd, state, &dir->state_file);
	for (looks = 0; err == -EADDRINUSE && looks < LOOKS; looks++) {
		if (socket_path_is_served(dir->path))
			break;
		nanosleep(&wait, NULL);
		if (wait.tv_nsec < LOOK_MOST_NS)
			wait.tv_nsec *= 2;
		err = state_file_open(dir->folder_fd, state, &dir->state_file);
	}
	if (err == -EADDRINUSE)
		log_warn("%s is in use, by process %d", dir->path,
			 (int)state_file_holder(dir->folder_fd, state));
	return err;
}

static int take_path(struct socket_dir *dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	int err;

	if (strlen(path) >= SOCKET_PATH_BYTES)
		return -ENAMETOOLONG;
	if (!*path || (slash && !slash[1]))
		return -EINVAL;
	strcpy(dir->path, path);
	dir->name = slash ? dir->path + (slash - path) + 1 : dir->path;
	dir->is_activated = socket_dir_is_handed_over();
	err = open_folder(dir);
	if (!err)
		err = open_state_file(dir);
	return err ? err : take_listening_socket(dir);
}

int socket_dir_take(const char *path, struct socket_dir **ret)
{
	struct socket_dir *dir = calloc(1, sizeof(*dir));
	int err;

	if (!dir)
		return -ENOMEM;
	dir->folder_fd = -1;
	dir->fd = -1;
	err = path ? take_path(dir, path) : open_state_file(dir);
	if (err) {
		socket_dir_leave(dir);
		return err;
	}
	*ret = dir;
	return 0;
}

int socket_dir_listen_fd(const struct socket_dir *dir)
{
	return dir->fd;
}

struct state_file *socket_dir_state_file(const struct socket_dir *dir)
{
	return dir->state_file;
}

int socket_dir_open(const struct socket_dir *dir, const char *suffix, int *ret_fd)
{
	char path[PATH_MAX];
	int fd = -1, err;

	snprintf(path, sizeof(path), "%s%s", dir->path, suffix);
	err = own_file_open(dir->folder_fd, path, &fd);
	if (err)
		fd_close(&fd);
	else
		*ret_fd = fd;
	return err;
}

/* The lock is released last: until then no other cmportd uses the path. */
void socket_dir_leave(struct socket_dir *dir)
{
	struct stat stat;

	if (!dir)
		return;
	/* The path may have another socket by now, for example systemd's. */
	if (dir->ino && !fstatat(dir->folder_fd, dir->name, &stat, AT_SYMLINK_NOFOLLOW) &&
	    stat.st_dev == dir->dev && stat.st_ino == dir->ino)
		unlinkat(dir->folder_fd, dir->name, 0);
	fd_close(&dir->fd);
	state_file_close(dir->state_file);
	fd_close(&dir->folder_fd);
	free(dir);
}
