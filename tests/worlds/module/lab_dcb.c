/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel module that gives an interface the operations of dcb-ets(8), which no emulated card has.
 * It configures the classes of the interface as ice, hns3 and ixgbe do, or with hw_only=1 those of
 * an imagined hardware only, as mlx5 does.
 */
#include <linux/dcbnl.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

static char *ifname = "v0";
module_param(ifname, charp, 0444);
MODULE_PARM_DESC(ifname, "the interface");

static bool hw_only;
module_param(hw_only, bool, 0644);
MODULE_PARM_DESC(hw_only, "leave the interface without classes");

static struct net_device *device;
static const struct dcbnl_rtnl_ops *ops_before;
static struct ieee_ets ets;

static int get_ets(struct net_device *dev, struct ieee_ets *ret)
{
	*ret = ets;
	ret->ets_cap = IEEE_8021QAZ_MAX_TCS;
	return 0;
}

static void spread_queues(struct net_device *dev, u8 n_classes)
{
	u16 each = dev->real_num_tx_queues / n_classes;
	u8 i;

	for (i = 0; i < n_classes; i++)
		netdev_set_tc_queue(dev, i, each, i * each);
}

static int set_ets(struct net_device *dev, struct ieee_ets *wanted)
{
	u8 i, n_classes = 1;

	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++)
		n_classes = max_t(u8, n_classes, wanted->prio_tc[i] + 1);
	if (n_classes > IEEE_8021QAZ_MAX_TCS || n_classes > dev->real_num_tx_queues)
		return -EINVAL;
	ets = *wanted;
	netdev_reset_tc(dev);
	if (hw_only || n_classes == 1)
		return 0;
	netdev_set_num_tc(dev, n_classes);
	spread_queues(dev, n_classes);
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++)
		netdev_set_prio_tc_map(dev, i, ets.prio_tc[i]);
	return 0;
}

static u8 get_dcbx(struct net_device *dev)
{
	return DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE;
}

static const struct dcbnl_rtnl_ops ops = {
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.getdcbx = get_dcbx,
};

static int __init lab_dcb_init(void)
{
	device = dev_get_by_name(&init_net, ifname);
	if (!device)
		return -ENODEV;
	rtnl_lock();
	ops_before = device->dcbnl_ops;
	device->dcbnl_ops = &ops;
	rtnl_unlock();
	return 0;
}

static void __exit lab_dcb_exit(void)
{
	rtnl_lock();
	device->dcbnl_ops = ops_before;
	netdev_reset_tc(device);
	rtnl_unlock();
	dev_put(device);
}

module_init(lab_dcb_init);
module_exit(lab_dcb_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Operations of dcb-ets(8) for an interface of the lab");
