/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device of this process's host, if $PURECM_FABRIC is set; otherwise there is none. A process
 * that opens it twice has two independent contexts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/forks.h"
#include "tools/fabric/verbs/ack.h"
#include "tools/fabric/verbs/carrier.h"
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/engine.h"
#include "tools/fabric/wire/quirks.h"

#undef ibv_get_device_list

static bool has_network(const struct fab_folder *folder, const char *host, uint64_t network)
{
	struct fab_folder other = *folder;
	const struct fab_page *page;
	char path[FAB_PATH_BYTES];
	bool has;

	if (host[0] == '.' || strlen(host) >= sizeof(other.host))
		return false;
	strcpy(other.host, host);
	fab_folder_page(&other, path);
	if (fab_page_open(path, &page))
		return false;
	has = page->network == network;
	fab_page_close(page);
	return has;
}

/*
 * A process with the environment of one host in the network of another has the device of the one
 * and the addresses of the other. Other namespaces are a host's own: its pods.
 */
static void warn_of_mixed_hosts(const struct fab_device *device)
{
	uint64_t network = fab_page_own_network();
	char path[FAB_PATH_BYTES];
	struct dirent *entry;
	DIR *hosts;

	if (!network || network == device->page->network)
		return;
	snprintf(path, sizeof(path), "%s/hosts", device->folder.dir);
	hosts = opendir(path);
	while (hosts && (entry = readdir(hosts)))
		if (has_network(&device->folder, entry->d_name, network))
			fprintf(stderr,
				"fabric: " FAB_ENV " says host %s, but this process is in the "
				"network of host %s; \"purecm fabric exec %s COMMAND\" runs a "
				"command on host %s\n",
				device->folder.host, entry->d_name, device->folder.host,
				device->folder.host);
	if (hosts)
		closedir(hosts);
}

static int device_new(struct fab_device **ret)
{
	struct fab_device *device = calloc(1, sizeof(*device));
	char path[FAB_PATH_BYTES];
	bool has_cm;
	int err;

	if (!device)
		return -ENOMEM;
	err = fab_folder_find(&device->folder);
	if (!err) {
		fab_folder_page(&device->folder, path);
		err = fab_page_open(path, &device->page);
		fab_folder_report_denied(err);
	}
	if (!err) {
		device->page_fd = open(path, O_RDONLY | O_CLOEXEC);
		err = device->page_fd < 0 ? -errno : 0;
	}
	if (err) {
		fab_page_close(device->page);
		free(device);
		return err;
	}
	device->refs = 1;
	warn_of_mixed_hosts(device);
	/* As efa, whose driver sets neither. */
	has_cm = !fab_has_quirk(device->page, FAB_QUIRK_NO_CM);
	device->ibv.node_type = has_cm ? IBV_NODE_CA : IBV_NODE_UNSPECIFIED;
	device->ibv.transport_type = has_cm ? IBV_TRANSPORT_IB : IBV_TRANSPORT_UNSPECIFIED;
	fab_page_device(device->page, device->ibv.name);
	strcpy(device->ibv.dev_name, "uverbs0");
	strcpy(device->ibv.dev_path, "/sys/class/infiniband_verbs/uverbs0");
	snprintf(device->ibv.ibdev_path, sizeof(device->ibv.ibdev_path), "/sys/class/infiniband/%s",
		 device->ibv.name);
	*ret = device;
	return 0;
}

/* All lists have the same struct as long as one is in use, because programs compare pointers. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_device *known;

static void device_put(struct fab_device *device)
{
	bool last;

	pthread_mutex_lock(&known_lock);
	last = --device->refs == 0;
	if (last && known == device)
		known = NULL;
	pthread_mutex_unlock(&known_lock);
	if (!last)
		return;
	fab_page_close(device->page);
	close(device->page_fd);
	free(device);
}

/* A renamed device gets another struct: contexts that are open know it by its old name. */
static bool is_as_known(void)
{
	char name[FAB_NAME_BYTES];

	if (!known || known->page->is_removed)
		return false;
	fab_page_device(known->page, name);
	return !strcmp(name, known->ibv.name);
}

static int device_get(struct fab_device **ret)
{
	int err = 0;

	pthread_mutex_lock(&known_lock);
	if (is_as_known()) {
		known->refs++;
		*ret = known;
	} else {
		err = device_new(ret);
		if (!err && !(*ret)->page->is_removed)
			known = *ret;
	}
	pthread_mutex_unlock(&known_lock);
	return err;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(2, sizeof(*list));
	struct fab_device *device;
	int err;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return NULL;
	err = device_get(&device);
	if (err == -ENOMEM) {
		free(list);
		errno = ENOMEM;
		return NULL;
	}
	if (err)
		return list;
	if (device->page->is_removed) {
		device_put(device);
		return list;
	}
	list[0] = &device->ibv;
	if (num_devices)
		*num_devices = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	if (list[0])
		device_put(to_device(list[0]));
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return to_device(device)->page->node_guid;
}

int ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return 0;
}

/* --- contexts ------------------------------------------------------------ */

/* Those that this process has open, for import; under known_lock. */
static struct list open_contexts = { &open_contexts, &open_contexts };

/*
 * Used only for import: programs duplicate it and pass it on. It takes no commands: ioctl() fails
 * with ENOTTY, and write() with EPERM. Return: -1, with errno.
 */
static int open_cmd_fd(void)
{
	const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	int fd = memfd_create("fabric", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && fcntl(fd, F_ADD_SEALS, seals)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int context_init(struct fab_context *context, struct fab_device *device)
{
	int fd = open_cmd_fd();
	int err = fd < 0 ? -errno : event_queue_init(&context->async);

	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	pthread_mutex_init(&context->lock, NULL);
	list_init(&context->active);
	list_init(&context->unacked);
	list_init(&context->deferred);
	list_init(&context->attached);
	list_init(&context->xrcds);
	list_init(&context->xrc_srqs);
	list_init(&context->pds);
	list_init(&context->dms);
	fab_peers_clear(&context->peers);
	udp_out_clear(&context->out);
	context->fd = -1;
	context->loop.fd = -1;
	context->wake_fd = -1;
	context->timer_fd = -1;
	context->udp_fd = -1;
	context->udp_conn = -1;
	context->device = device;
	context->carrier = device->page->wire == FAB_WIRE_ROCE ? &carrier_roce : &carrier_unix;
	context->verbs.sz = sizeof(context->verbs);
	context->verbs.context.device = &device->ibv;
	context->verbs.context.cmd_fd = fd;
	context->verbs.context.async_fd = context->async.fd;
	context->verbs.context.num_comp_vectors = 1;
	context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&context->verbs.context.mutex, NULL);
	context_set_ops(&context->verbs);
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct fab_context *context;
	int err;

	if (to_device(device)->page->is_removed) {
		errno = ENODEV;
		return NULL;
	}
	context = calloc(1, sizeof(*context));
	if (!context)
		return NULL;
	err = context_init(context, to_device(device));
	if (err) {
		free(context);
		errno = -err;
		return NULL;
	}
	pthread_mutex_lock(&known_lock);
	to_device(device)->refs++;
	context->users = 1;
	list_append(&open_contexts, &context->open);
	pthread_mutex_unlock(&known_lock);
	/*
	 * The thread delivers events. If it cannot start, creating a queue pair retries that and
	 * fails.
	 */
	pthread_mutex_lock(&context->lock);
	context_start(context);
	pthread_mutex_unlock(&context->lock);
	return &context->verbs.context;
}

/* The peers of a program that just exits have their ACKs, as they would from a device. */
__attribute__((destructor)) static void send_deferred_at_exit(void)
{
	struct fab_context *context;

	list_for_each_entry (context, &open_contexts, open) {
		if (!context->has_thread || pthread_mutex_trylock(&context->lock))
			continue;
		ack_send_deferred(context);
		context_unlock(context);
	}
}

static bool is_context_of(const struct fab_context *context, const struct stat *file)
{
	struct stat own;

	return !fstat(context->verbs.context.cmd_fd, &own) && own.st_dev == file->st_dev &&
	       own.st_ino == file->st_ino;
}

/* A context of another process is not supported: its memory and queues are that process's. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct fab_context *context, *found = NULL;
	struct stat file;

	if (fstat(cmd_fd, &file))
		return NULL;
	pthread_mutex_lock(&known_lock);
	list_for_each_entry (context, &open_contexts, open)
		if (is_context_of(context, &file))
			found = context;
	if (found)
		found->users++;
	pthread_mutex_unlock(&known_lock);
	if (!found) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (cmd_fd != found->verbs.context.cmd_fd)
		close(cmd_fd); /* this function owns it */
	return &found->verbs.context;
}

static bool is_last_user(struct fab_context *context)
{
	bool is_last;

	pthread_mutex_lock(&known_lock);
	is_last = --context->users == 0;
	if (is_last)
		list_remove(&context->open);
	pthread_mutex_unlock(&known_lock);
	return is_last;
}

int ibv_close_device(struct ibv_context *verbs)
{
	struct fab_context *context = to_context(verbs);
	struct fab_device *device = context->device;

	if (!is_last_user(context))
		return 0;
	context_stop(context);
	/*
	 * Objects that the program has not destroyed still point to the context, so it is leaked.
	 */
	if (context->n_objects)
		return 0;
	event_queue_fini(&context->async);
	close(verbs->cmd_fd);
	free(context->keys.mr);
	free(context->keys.tag);
	free(context);
	device_put(device);
	return 0;
}

/* --- forks ---------------------------------------------------------------- */

/* A child has none of the threads that may hold a lock. */
static void lock_all(void)
{
	struct fab_context *context;

	pthread_mutex_lock(&known_lock);
	list_for_each_entry (context, &open_contexts, open) {
		pthread_mutex_lock(&context->lock);
		pthread_mutex_lock(&context->async.lock);
	}
}

static void unlock_all(void)
{
	struct fab_context *context;

	list_for_each_entry (context, &open_contexts, open) {
		pthread_mutex_unlock(&context->async.lock);
		pthread_mutex_unlock(&context->lock);
	}
	pthread_mutex_unlock(&known_lock);
}

static void begin_child(void)
{
	struct fab_context *context;

	list_for_each_entry (context, &open_contexts, open)
		context_leave_to_parent(context);
	unlock_all();
}

/*
 * Handlers run in reverse order before a fork. This one is registered after the allocator's, and
 * before those of other libraries, which may use the device: that needs the locks.
 */
__attribute__((constructor)) static void watch_forks(void)
{
	forks_watch(lock_all, unlock_all, begin_child);
}
