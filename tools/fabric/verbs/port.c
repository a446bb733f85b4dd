/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of the device, its ports and their tables, from the host's page. */
#include "tools/fabric/verbs/context.h"
#include "tools/fabric/verbs/port.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/fabric/verbs/objects.h"
#include "tools/fabric/wire/device.h"
#include "tools/fabric/wire/quirks.h"

#undef ibv_query_port

/* Since Linux 6.2; not defined by Debian 12's headers. */
#define CAP_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define CAP_ATOMIC_WRITE (UINT64_C(1) << 40)
#ifdef FAB_HAS_FLUSH
#define NEWER_CAPS (CAP_ATOMIC_WRITE | CAP_FLUSH_GLOBAL)
#else
#define NEWER_CAPS CAP_ATOMIC_WRITE
#endif

#define ACK_DELAY  15
#define ODP_OF_UD  (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
#define ODP_OF_UC  (ODP_OF_UD | IBV_ODP_SUPPORT_WRITE)
#define ODP_OF_RC  (ODP_OF_UC | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC)
#define FD_UNKNOWN (-2)
#define CLOCK_KHZ  1000000 /* it counts nanoseconds */
#define PAGE_SIZES 0xfffff000u

/*
 * For tests: if the host's folder has a file "queries", each query of a port's tables leaves a line
 * in it, with the process that made it.
 */
static void note_query(struct ibv_context *verbs, const char *what)
{
	static int fd = FD_UNKNOWN; /* atomic */
	const struct fab_folder *folder = &to_context(verbs)->device->folder;
	char text[FAB_PATH_BYTES];
	int is = __atomic_load_n(&fd, __ATOMIC_ACQUIRE);
	int bytes;

	if (is == FD_UNKNOWN) {
		snprintf(text, sizeof(text), "%s/hosts/%s/queries", folder->dir, folder->host);
		is = open(text, O_WRONLY | O_APPEND | O_CLOEXEC);
		__atomic_store_n(&fd, is, __ATOMIC_RELEASE);
	}
	bytes = snprintf(text, sizeof(text), "%s %s\n", what, program_invocation_short_name);
	if (is >= 0 && write(is, text, (size_t)bytes) != bytes)
		abort();
}

static unsigned int windows_of_type_2(const struct fab_page *page)
{
	return fab_has_quirk(page, FAB_QUIRK_WINDOWS_2A) ? IBV_DEVICE_MEM_WINDOW_TYPE_2A
							 : IBV_DEVICE_MEM_WINDOW_TYPE_2B;
}

int ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *ret)
{
	const struct fab_page *page = to_context(verbs)->device->page;

	if (page->is_removed)
		return command_return(EIO);
	*ret = (struct ibv_device_attr){
		.fw_ver = FAB_FW_VER,
		.node_guid = page->node_guid,
		.sys_image_guid = page->node_guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = PAGE_SIZES,
		.vendor_id = FAB_VENDOR_ID,
		.vendor_part_id = 1,
		.hw_ver = 1,
		.max_qp = FAB_SLOT_QPS,
		.max_qp_wr = (int)page->limit[FAB_LIMIT_WR],
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW |
				    windows_of_type_2(page) | IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = FAB_SGE_MAX,
		.max_sge_rd = FAB_SGE_MAX,
		.max_cq = 65536,
		.max_cqe = FAB_CQE_MAX,
		.max_mr = FAB_MRS_MAX,
		.max_mw = FAB_MRS_MAX,
		.max_pd = 65536,
		.max_qp_rd_atom = FAB_RD_MAX,
		.max_res_rd_atom = FAB_RD_MAX * FAB_SLOT_QPS,
		.max_qp_init_rd_atom = FAB_RD_MAX,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mcast_grp = 8192,
		.max_mcast_qp_attach = FAB_MCAST_ATTACH,
		.max_total_mcast_qp_attach = 8192 * FAB_MCAST_ATTACH,
		.max_ah = 65536,
		.max_srq = 65536,
		.max_srq_wr = FAB_WR_MAX,
		.max_srq_sge = FAB_SGE_MAX,
		.max_pkeys = FAB_PKEYS,
		.local_ca_ack_delay = ACK_DELAY,
		.phys_port_cnt = (uint8_t)page->n_ports,
	};
	return 0;
}

int device_query_ex(struct ibv_context *verbs, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *ret, size_t bytes)
{
	struct ibv_device_attr_ex attr = { .phys_port_cnt_ex = 0 };
	int err = ibv_query_device(verbs, &attr.orig_attr);

	(void)input;
	if (err)
		return err;
	attr.device_cap_flags_ex = attr.orig_attr.device_cap_flags | NEWER_CAPS;
	attr.phys_port_cnt_ex = attr.orig_attr.phys_port_cnt;
	attr.odp_caps = (struct ibv_odp_caps){
		.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
		.per_transport_caps = { .rc_odp_caps = ODP_OF_RC,
					.uc_odp_caps = ODP_OF_UC,
					.ud_odp_caps = ODP_OF_UD },
	};
	attr.xrc_odp_caps = ODP_OF_RC;
	attr.max_dm_size = FAB_DM_MAX;
	attr.completion_timestamp_mask = UINT64_MAX;
	attr.hca_core_clock = CLOCK_KHZ;
	memset(ret, 0, bytes);
	memcpy(ret, &attr, bytes < sizeof(attr) ? bytes : sizeof(attr));
	return 0;
}

int device_query_clock(struct ibv_context *verbs, struct ibv_values_ex *ret)
{
	(void)verbs;
	if (ret->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return command_return(EOPNOTSUPP);
	/* In cycles, as in mlx5, for comparison with timestamps. */
	if (ret->comp_mask)
		ret->raw_clock = (struct timespec){ .tv_nsec = (long)clock_ns() };
	return 0;
}

static struct ibv_port_attr attr_of(const struct fab_port *port)
{
	return (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = port->mtu,
		.gid_tbl_len = FAB_GIDS,
		.port_cap_flags = fab_port_cap_flags(port),
		.max_msg_sz = FAB_MSG_MAX,
		.pkey_tbl_len = (uint16_t)fab_port_pkeys(port),
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.lmc = port->lmc,
		.max_vl_num = 1,
		.active_width = FAB_WIDTH_4X,
		.active_speed = FAB_SPEED_QDR,
		.phys_state = fab_port_phys_state(port),
		.link_layer = port->link_layer,
	};
}

int port_query(struct ibv_context *verbs, uint8_t port_num, struct ibv_port_attr *ret, size_t bytes)
{
	const struct fab_page *page = to_context(verbs)->device->page;
	struct ibv_port_attr attr;

	note_query(verbs, "port");
	context_command(verbs);
	if (page->is_removed)
		return command_return(EIO);
	if (port_num == 0 || port_num > page->n_ports)
		return command_return(EINVAL);
	attr = attr_of(&page->port[port_num - 1]);
	if (fab_has_quirk(page, FAB_QUIRK_GRH_REQUIRED))
		attr.flags |= IBV_QPF_GRH_REQUIRED;
	memset(ret, 0, bytes);
	memcpy(ret, &attr, bytes < sizeof(attr) ? bytes : sizeof(attr));
	return 0;
}

/* For programs built before the table had it; their struct ends with the flags. */
int ibv_query_port(struct ibv_context *verbs, uint8_t port_num, struct _compat_ibv_port_attr *ret)
{
	return port_query(verbs, port_num, (struct ibv_port_attr *)ret,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(struct ibv_context *verbs, uint8_t port_num, int index, union ibv_gid *ret)
{
	const struct fab_page *page = to_context(verbs)->device->page;
	struct fab_gid entry;

	note_query(verbs, "gid");
	if (page->is_removed || port_num == 0 || port_num > page->n_ports || index < 0 ||
	    index >= FAB_GIDS) {
		errno = EINVAL;
		return -1;
	}
	memset(ret, 0, sizeof(*ret));
	if (fab_page_gid(page, port_num, (uint32_t)index, &entry))
		*ret = entry.gid;
	return 0;
}

static struct ibv_gid_entry entry_of(uint32_t port_num, uint32_t index, const struct fab_gid *gid)
{
	return (struct ibv_gid_entry){
		.gid = gid->gid,
		.gid_index = index,
		.port_num = port_num,
		.gid_type = gid->type,
		.ndev_ifindex = gid->ifindex,
	};
}

static int read_gid(struct ibv_context *verbs, uint32_t port_num, uint32_t gid_index,
		    struct ibv_gid_entry *ret, uint32_t flags, size_t entry_size)
{
	const struct fab_page *page = to_context(verbs)->device->page;
	struct ibv_gid_entry entry;
	struct fab_gid gid;

	if (flags || port_num == 0 || port_num > page->n_ports || gid_index >= FAB_GIDS)
		return command_return(EINVAL);
	if (!fab_page_gid(page, (uint8_t)port_num, gid_index, &gid))
		return command_return(ENODATA);
	entry = entry_of(port_num, gid_index, &gid);
	memcpy(ret, &entry, entry_size < sizeof(entry) ? entry_size : sizeof(entry));
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *verbs, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *ret, uint32_t flags, size_t entry_size)
{
	note_query(verbs, "gid");
	return read_gid(verbs, port_num, gid_index, ret, flags, entry_size);
}

ssize_t _ibv_query_gid_table(struct ibv_context *verbs, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct fab_page *page = to_context(verbs)->device->page;
	uint32_t port_num, i;
	size_t n = 0;

	note_query(verbs, "gids");
	if (flags)
		return -EINVAL;
	if (page->is_removed)
		return -EIO;
	for (port_num = 1; port_num <= page->n_ports; port_num++)
		for (i = 0; i < FAB_GIDS; i++) {
			struct ibv_gid_entry entry;
			int err = read_gid(verbs, port_num, i, &entry, 0, sizeof(entry));

			if (err)
				continue;
			if (n == max_entries)
				return -EINVAL;
			memcpy((char *)entries + n++ * entry_size, &entry,
			       entry_size < sizeof(entry) ? entry_size : sizeof(entry));
		}
	return (ssize_t)n;
}

int ibv_query_gid_type(struct ibv_context *verbs, uint8_t port_num, unsigned int index,
		       enum fab_gid_type_sysfs *type)
{
	struct ibv_gid_entry entry;

	if (_ibv_query_gid_ex(verbs, port_num, index, &entry, 0, sizeof(entry))) {
		errno = EINVAL;
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? FAB_GID_TYPE_SYSFS_ROCE_V2
						       : FAB_GID_TYPE_SYSFS_IB_ROCE_V1;
	return 0;
}

int ibv_query_pkey(struct ibv_context *verbs, uint8_t port_num, int index, __be16 *ret)
{
	const struct fab_page *page = to_context(verbs)->device->page;

	note_query(verbs, "pkey");
	context_command(verbs);
	if (page->is_removed || port_num == 0 || port_num > page->n_ports || index < 0 ||
	    index >= FAB_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*ret = htobe16(page->port[port_num - 1].pkey[index]);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *verbs, uint8_t port_num, __be16 pkey)
{
	__be16 entry;
	int i;

	for (i = 0; !ibv_query_pkey(verbs, port_num, i, &entry); i++)
		if (entry == pkey)
			return i;
	return -1;
}
