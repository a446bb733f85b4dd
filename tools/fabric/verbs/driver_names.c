/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that the soft fabric's device does not support, and symbols that drivers link with.
 * perftest loads libraries of drivers, which need them; a driver then registers itself, but matches
 * no device here. No function looks at its arguments.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

#define REFUSED(name)               \
	int name(void);             \
	int name(void)              \
	{                           \
		errno = EOPNOTSUPP; \
		return EOPNOTSUPP;  \
	}

#define ZERO(name)        \
	int name(void);   \
	int name(void)    \
	{                 \
		return 0; \
	}

/* The name in the private interface of this release. */
#define REGISTER_DRIVER(number) verbs_register_driver_##number
#define EXPAND(number)		REGISTER_DRIVER(number)
#define FAB_REGISTER_DRIVER	EXPAND(FAB_PRIVATE)

#define NOTHING(name)               \
	void *name(void);           \
	void *name(void)            \
	{                           \
		errno = EOPNOTSUPP; \
		return NULL;        \
	}

/* clang-format off */
REFUSED(__ioctl_final_num_attrs)
NOTHING(__verbs_log)
NOTHING(_verbs_init_and_alloc_context)
REFUSED(execute_ioctl)
REFUSED(ibv_cmd_advise_mr)
REFUSED(ibv_cmd_alloc_dm)
REFUSED(ibv_cmd_alloc_dmah)
REFUSED(ibv_cmd_alloc_mw)
REFUSED(ibv_cmd_alloc_pd)
REFUSED(ibv_cmd_attach_mcast)
REFUSED(ibv_cmd_close_xrcd)
REFUSED(ibv_cmd_create_ah)
REFUSED(ibv_cmd_create_comp_cntr)
REFUSED(ibv_cmd_create_counters)
REFUSED(ibv_cmd_create_cq)
REFUSED(ibv_cmd_create_cq_ex)
REFUSED(ibv_cmd_create_cq_ex2)
REFUSED(ibv_cmd_create_flow)
REFUSED(ibv_cmd_create_flow_action_esp)
REFUSED(ibv_cmd_create_qp)
REFUSED(ibv_cmd_create_qp_ex)
REFUSED(ibv_cmd_create_qp_ex2)
REFUSED(ibv_cmd_create_rwq_ind_table)
REFUSED(ibv_cmd_create_srq)
REFUSED(ibv_cmd_create_srq_ex)
REFUSED(ibv_cmd_create_wq)
REFUSED(ibv_cmd_dealloc_mw)
REFUSED(ibv_cmd_dealloc_pd)
REFUSED(ibv_cmd_dereg_mr)
REFUSED(ibv_cmd_destroy_ah)
REFUSED(ibv_cmd_destroy_comp_cntr)
REFUSED(ibv_cmd_destroy_counters)
REFUSED(ibv_cmd_destroy_cq)
REFUSED(ibv_cmd_destroy_flow)
REFUSED(ibv_cmd_destroy_flow_action)
REFUSED(ibv_cmd_destroy_qp)
REFUSED(ibv_cmd_destroy_rwq_ind_table)
REFUSED(ibv_cmd_destroy_srq)
REFUSED(ibv_cmd_destroy_wq)
REFUSED(ibv_cmd_detach_mcast)
REFUSED(ibv_cmd_export_dmabuf_fd)
REFUSED(ibv_cmd_free_dm)
REFUSED(ibv_cmd_free_dmah)
REFUSED(ibv_cmd_get_context)
REFUSED(ibv_cmd_inc_comp_cntr)
REFUSED(ibv_cmd_inc_err_comp_cntr)
REFUSED(ibv_cmd_modify_cq)
REFUSED(ibv_cmd_modify_flow_action_esp)
REFUSED(ibv_cmd_modify_qp)
REFUSED(ibv_cmd_modify_qp_ex)
REFUSED(ibv_cmd_modify_srq)
REFUSED(ibv_cmd_modify_wq)
REFUSED(ibv_cmd_open_qp)
REFUSED(ibv_cmd_open_xrcd)
REFUSED(ibv_cmd_poll_cq)
REFUSED(ibv_cmd_post_recv)
REFUSED(ibv_cmd_post_send)
REFUSED(ibv_cmd_post_srq_recv)
REFUSED(ibv_cmd_qp_attach_comp_cntr)
REFUSED(ibv_cmd_query_comp_cntr_caps)
REFUSED(ibv_cmd_query_context)
REFUSED(ibv_cmd_query_device_any)
REFUSED(ibv_cmd_query_mr)
REFUSED(ibv_cmd_query_port)
REFUSED(ibv_cmd_query_port_speed)
REFUSED(ibv_cmd_query_qp)
REFUSED(ibv_cmd_query_srq)
REFUSED(ibv_cmd_read_comp_cntr)
REFUSED(ibv_cmd_read_counters)
REFUSED(ibv_cmd_read_err_comp_cntr)
REFUSED(ibv_cmd_reg_dm_mr)
REFUSED(ibv_cmd_reg_dmabuf_mr)
REFUSED(ibv_cmd_reg_mr)
REFUSED(ibv_cmd_reg_mr_ex)
REFUSED(ibv_cmd_req_notify_cq)
REFUSED(ibv_cmd_rereg_mr)
REFUSED(ibv_cmd_resize_cq)
REFUSED(ibv_cmd_set_comp_cntr)
REFUSED(ibv_cmd_set_err_comp_cntr)
REFUSED(ibv_dmabuf_heap_alloc)
REFUSED(ibv_dmabuf_heap_cc_shared_init)
REFUSED(ibv_dmabuf_heap_destroy)
REFUSED(ibv_dmabuf_heap_free)
REFUSED(ibv_read_ibdev_sysfs_file)
NOTHING(ibv_wr_opcode_str)
NOTHING(verbs_init_cq)
NOTHING(verbs_open_device)
NOTHING(verbs_set_ops)
NOTHING(verbs_uninit_context)
NOTHING(FAB_REGISTER_DRIVER)

/* Verbs of rdma-core 57 and later, which older headers do not declare. */
REFUSED(_ibv_query_comp_cntr_caps)
NOTHING(ibv_alloc_dmah)
NOTHING(ibv_create_comp_cntr)
REFUSED(ibv_dealloc_dmah)
REFUSED(ibv_destroy_comp_cntr)
REFUSED(ibv_dm_export_dmabuf_fd)
REFUSED(ibv_inc_comp_cntr)
REFUSED(ibv_inc_err_comp_cntr)
REFUSED(ibv_qp_attach_comp_cntr)
REFUSED(ibv_query_port_speed)
REFUSED(ibv_read_comp_cntr)
REFUSED(ibv_read_err_comp_cntr)
REFUSED(ibv_set_comp_cntr)
REFUSED(ibv_set_err_comp_cntr)

/* Stock librdmacm calls them after it has opened the kernel's rdma_cm. */
REFUSED(ibv_copy_ah_attr_from_kern)
REFUSED(ibv_copy_path_rec_from_kern)
REFUSED(ibv_copy_path_rec_to_kern)
REFUSED(ibv_copy_qp_attr_from_kern)

/* They concern memory of other devices, link addresses and whether data arrives in order. */
NOTHING(ibv_reg_dmabuf_mr)
REFUSED(ibv_resolve_eth_l2_from_gid)
ZERO(ibv_query_qp_data_in_order)

/* fork() needs no preparation: see memory.c. */
ZERO(ibv_dofork_range)
ZERO(ibv_dontfork_range)
ZERO(ibv_fork_init)
/* clang-format on */

const char *ibv_get_sysfs_path(void);
const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

int ibv_read_sysfs_file(void);
int ibv_read_sysfs_file(void)
{
	errno = ENOENT;
	return -1;
}
