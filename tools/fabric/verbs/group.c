/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups: each member has a file in the group's folder, named by its host and QPN. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/fabric/verbs/carrier.h"

#define MEMBER_BYTES (FAB_PATH_BYTES + FAB_NAME_BYTES + 16)

static void member_path(const struct fab_qp *qp, const union ibv_gid *mgid, char ret[MEMBER_BYTES])
{
	const struct fab_folder *folder = &context_of(qp)->device->folder;
	char group[FAB_PATH_BYTES];

	fab_folder_group(folder, mgid, group);
	snprintf(ret, MEMBER_BYTES, "%s/%s.%u", group, folder->host, qp->ex.qp_base.qp_num);
}

static int create_member(const struct fab_qp *qp, const union ibv_gid *mgid)
{
	char path[MEMBER_BYTES], group[FAB_PATH_BYTES];
	int fd;

	fab_folder_group(&context_of(qp)->device->folder, mgid, group);
	if (mkdir(group, 0700) && errno != EEXIST)
		return errno;
	member_path(qp, mgid, path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int find_mgid(const struct fab_qp *qp, const union ibv_gid *mgid)
{
	unsigned int i;

	for (i = 0; i < qp->n_mgids; i++)
		if (memcmp(&qp->mgid[i], mgid, sizeof(*mgid)) == 0)
			return (int)i;
	return -1;
}

int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);
	int err = 0;

	(void)lid; /* a group is identified by its GID here */
	if (ibv->qp_type != IBV_QPT_UD || !fab_gid_is_group(gid))
		return command_return(EINVAL);
	pthread_mutex_lock(&context->lock);
	if (find_mgid(qp, gid) < 0) {
		err = qp->n_mgids == FAB_MCAST_ATTACH ? ENOMEM : create_member(qp, gid);
		if (!err && context->carrier->join)
			err = context->carrier->join(qp, gid);
		if (!err)
			qp->mgid[qp->n_mgids++] = *gid;
	}
	pthread_mutex_unlock(&context->lock);
	return command_return(err);
}

int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct fab_context *context = to_context(ibv->context);
	struct fab_qp *qp = to_qp(ibv);
	char path[MEMBER_BYTES];
	int i, err = EINVAL;

	(void)lid;
	pthread_mutex_lock(&context->lock);
	i = find_mgid(qp, gid);
	if (i >= 0) {
		member_path(qp, gid, path);
		unlink(path);
		if (context->carrier->leave)
			context->carrier->leave(qp, (unsigned int)i);
		qp->mgid[i] = qp->mgid[--qp->n_mgids];
		err = 0;
	}
	pthread_mutex_unlock(&context->lock);
	return command_return(err);
}
