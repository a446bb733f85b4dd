/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking and leaving a place: the folder, the file beside the socket (notes.h), the socket.
 *
 * What is done as root in a folder is done through a descriptor of it, never follows a link in
 * it, and is not done at all where others could exchange what we have made.
 */
#include "lib/portd/server/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/portd/proto/socket_path.h"
#include "lib/portd/server/log.h"
#include "lib/portd/server/notes.h"
#include "lib/portd/server/own_file.h"

#define BACKLOG		4096
#define LOOK_AGAIN_NS	10000000
#define LOOKS		300 /* 3 s: longer than a cmportd takes to leave */
#define ACTIVATED_FD	3   /* the first that systemd hands over, sd_listen_fds(3) */
#define STATE_SUFFIX	".state"
#define STATE_BYTES	(SOCKET_PATH_BYTES + SUFFIX_BYTES)
#define SUFFIX_BYTES	16
#define SOCKET_MASK	0111 /* leaves 0666 of the 0777 that a socket is made with */
#define WRITABLE_OTHERS (S_IWGRP | S_IWOTH)

struct place {
	char path[SOCKET_PATH_BYTES];
	const char *name; /* its last part */
	int folder_fd;
	int fd;
	bool is_activated;
	dev_t dev; /* of the socket that we made */
	ino_t ino;
	struct notes *notes;
};

/* --- the folder ---------------------------------------------------------- */

static void folder_of(const struct place *place, char ret[SOCKET_PATH_BYTES])
{
	size_t n = (size_t)(place->name - place->path);

	if (n == 0) {
		strcpy(ret, ".");
		return;
	}
	n = n > 1 ? n - 1 : 1; /* without its slash, unless it is the root */
	memcpy(ret, place->path, n);
	ret[n] = '\0';
}

static int refuse(int err, const char *path, const char *why)
{
	portd_log_warn("%s %s; choose another socket with --socket or PURECM_SOCKET", path, why);
	return err;
}

/* In a sticky folder others can add, but neither rename nor remove what is ours. */
static bool is_trusted(const struct stat *folder)
{
	if (folder->st_uid != 0 && folder->st_uid != geteuid())
		return false;
	return !(folder->st_mode & WRITABLE_OTHERS) || (folder->st_mode & S_ISVTX);
}

static int look_at_folder(const struct place *place, const char *folder)
{
	struct stat stat, link;

	if (fstat(place->folder_fd, &stat) || lstat(folder, &link))
		return -errno;
	if (geteuid() == 0 && !is_trusted(&stat))
		return refuse(-EPERM, folder, "can be written to by others than root");
	if (S_ISLNK(link.st_mode) && link.st_uid != 0 && link.st_uid != geteuid())
		return refuse(-EPERM, folder, "is somebody else's link");
	return 0;
}

static int open_folder(struct place *place)
{
	char folder[SOCKET_PATH_BYTES];
	bool made;
	int err;

	folder_of(place, folder);
	made = mkdir(folder, 0755) == 0;
	if (!made && errno != EEXIST) {
		err = -errno;
		portd_log_warn("the folder %s cannot be made: %s; be root, or choose another "
			       "socket with --socket or PURECM_SOCKET",
			       folder, strerror(-err));
		return err;
	}
	place->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->folder_fd < 0) {
		err = -errno;
		return refuse(err, folder, strerror(-err));
	}
	/* Whatever the umask: clients must get in. */
	if (made && fchmod(place->folder_fd, 0755))
		return -errno;
	return look_at_folder(place, folder);
}

/* --- a socket of our own ------------------------------------------------- */

/* The lock is ours, so nobody listens on a socket that is left here. */
static int remove_old(const struct place *place)
{
	struct stat stat;

	if (fstatat(place->folder_fd, place->name, &stat, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(stat.st_mode))
		return refuse(-EEXIST, place->path, "is there and is no socket");
	return unlinkat(place->folder_fd, place->name, 0) ? -errno : 0;
}

/* A mode that is set afterwards would be set on whatever is there by then. */
static int bind_with_mode(const struct place *place)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t before = umask(SOCKET_MASK);
	int err = 0;

	strcpy(addr.sun_path, place->path);
	if (bind(place->fd, (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	umask(before);
	return err;
}

/* Until listen() a client that comes is refused, as it is when nobody is there. */
static int make_socket(struct place *place)
{
	struct stat stat;
	int err = remove_old(place);

	if (err)
		return err;
	place->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (place->fd < 0)
		return -errno;
	err = bind_with_mode(place);
	if (err)
		return refuse(err, place->path, strerror(-err));
	if (fstatat(place->folder_fd, place->name, &stat, AT_SYMLINK_NOFOLLOW))
		return -errno;
	place->dev = stat.st_dev;
	place->ino = stat.st_ino;
	return listen(place->fd, BACKLOG) ? -errno : 0;
}

/* Not that of another who has taken the path meanwhile, systemd for one. */
static void remove_socket(const struct place *place)
{
	struct stat stat;

	if (place->ino && !fstatat(place->folder_fd, place->name, &stat, AT_SYMLINK_NOFOLLOW) &&
	    stat.st_dev == place->dev && stat.st_ino == place->ino)
		unlinkat(place->folder_fd, place->name, 0);
}

/* --- systemd's ----------------------------------------------------------- */

bool place_is_handed_over(void)
{
	const char *pid = secure_getenv("LISTEN_PID");
	const char *fds = secure_getenv("LISTEN_FDS");

	return pid && fds && strtol(pid, NULL, 10) == getpid() && strtol(fds, NULL, 10) > 0;
}

static bool has_option(int fd, int option, int wanted)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 && value == wanted;
}

static bool is_bound_to(int fd, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNSPEC };
	socklen_t bytes = sizeof(addr);

	return getsockname(fd, (struct sockaddr *)&addr, &bytes) == 0 &&
	       strncmp(addr.sun_path, path, sizeof(addr.sun_path)) == 0;
}

static int refuse_socket(const char *why)
{
	portd_log_warn("the socket from systemd %s; see cmportd.socket", why);
	return -EINVAL;
}

static int use_socket(struct place *place, bool is_one)
{
	int fd = ACTIVATED_FD;

	if (!is_one)
		return refuse_socket("is not the only one");
	if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_SEQPACKET) ||
	    !has_option(fd, SO_ACCEPTCONN, 1))
		return refuse_socket("is no ListenSequentialPacket= with a path");
	if (!is_bound_to(fd, place->path))
		return refuse_socket("has another path than --socket or PURECM_SOCKET");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK))
		return -errno;
	place->fd = fd;
	return 0;
}

/* None of it is meant for programs that we might start. */
static int take_over(struct place *place)
{
	const char *fds = secure_getenv("LISTEN_FDS");
	bool is_one = fds && strtol(fds, NULL, 10) == 1;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return place->is_activated ? use_socket(place, is_one) : make_socket(place);
}

/* --- taking and leaving -------------------------------------------------- */

/* Whoever holds the lock and does not serve is about to begin, or to leave: were we to go, a
 * client that started us because of the latter would wait in vain. */
static int open_notes(struct place *place)
{
	const struct timespec wait = { .tv_nsec = LOOK_AGAIN_NS };
	char state[STATE_BYTES];
	unsigned int looks;
	int err;

	snprintf(state, sizeof(state), "%s" STATE_SUFFIX, place->path);
	err = notes_open(place->folder_fd, state, &place->notes);
	for (looks = 0; err == -EADDRINUSE && looks < LOOKS; looks++) {
		if (socket_path_is_served(place->path))
			break;
		nanosleep(&wait, NULL);
		err = notes_open(place->folder_fd, state, &place->notes);
	}
	if (err == -EADDRINUSE)
		portd_log_warn("%s is in use, by process %d", place->path,
			       (int)notes_holder(place->folder_fd, state));
	return err;
}

static int take(struct place *place)
{
	int err = open_folder(place);

	if (!err)
		err = open_notes(place);
	return err ? err : take_over(place);
}

int place_take(const char *path, struct place **ret)
{
	const char *slash = strrchr(path, '/');
	struct place *place;
	int err;

	if (strlen(path) >= SOCKET_PATH_BYTES)
		return -ENAMETOOLONG;
	if (!*path || (slash && !slash[1]))
		return -EINVAL;
	place = calloc(1, sizeof(*place));
	if (!place)
		return -ENOMEM;
	strcpy(place->path, path);
	place->name = slash ? place->path + (slash - path) + 1 : place->path;
	place->folder_fd = -1;
	place->fd = -1;
	place->is_activated = place_is_handed_over();
	err = take(place);
	if (err) {
		place_leave(place);
		return err;
	}
	*ret = place;
	return 0;
}

int place_fd(const struct place *place)
{
	return place->fd;
}

bool place_is_activated(const struct place *place)
{
	return place->is_activated;
}

/* --- other files beside the socket --------------------------------------- */

int place_open_beside(const struct place *place, const char *suffix, int *ret_fd)
{
	char path[STATE_BYTES];
	int fd = -1;
	int err;

	snprintf(path, sizeof(path), "%s%s", place->path, suffix);
	err = own_file_open(place->folder_fd, path, &fd);
	if (err && fd >= 0)
		close(fd);
	if (!err)
		*ret_fd = fd;
	return err;
}

void place_remove_beside(const struct place *place, const char *suffix)
{
	char name[STATE_BYTES];

	snprintf(name, sizeof(name), "%s%s", place->name, suffix);
	unlinkat(place->folder_fd, name, 0);
}

/* The lock goes last: up to then nobody else touches the path. */
void place_leave(struct place *place)
{
	if (!place)
		return;
	remove_socket(place);
	if (place->fd >= 0)
		close(place->fd);
	notes_close(place->notes);
	if (place->folder_fd >= 0)
		close(place->folder_fd);
	free(place);
}

/* --- of the notes -------------------------------------------------------- */

uint16_t place_id_block(struct place *place)
{
	return notes_id_block(place->notes);
}

uint32_t place_add_client(struct place *place, pid_t pid)
{
	return notes_add_client(place->notes, pid);
}

void place_remove_client(struct place *place, pid_t pid)
{
	notes_remove_client(place->notes, pid);
}

unsigned int place_missing(struct place *place)
{
	return notes_missing(place->notes);
}

void place_returned(struct place *place, pid_t pid)
{
	notes_returned(place->notes, pid);
}
