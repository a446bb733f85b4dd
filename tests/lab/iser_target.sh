#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Serves a disk of 16 MiB by iSER until a signal ends it: the kernel's target (LIO).
# Usage: iser_target.sh ADDRESS IQN
set -e
modprobe -a configfs crc32c_generic target_core_mod iscsi_target_mod ib_isert
[ -d /sys/kernel/config/target ] || mount -t configfs none /sys/kernel/config
disk=/sys/kernel/config/target/core/rd_mcp_0/disk
iqn=/sys/kernel/config/target/iscsi/$2
group=$iqn/tpgt_1

# configfs has no rm -r.
end() {
	echo 0 >"$group/enable"
	rm "$group/lun/lun_0/disk"
	rmdir "$group"/np/* "$group/lun/lun_0" "$group" "$iqn" "$disk"
	modprobe -r ib_isert
}

mkdir -p "$disk" "$group/np/$1:3260" "$group/lun/lun_0"
echo rd_pages=4096 >"$disk/control"
echo 1 >"$disk/enable"
ln -s "$disk" "$group/lun/lun_0/disk"
echo 1 >"$group/np/$1:3260/iser"
for setting in authentication:0 generate_node_acls:1 cache_dynamic_acls:1 demo_mode_write_protect:0
do
	echo "${setting#*:}" >"$group/attrib/${setting%:*}"
done
echo 1 >"$group/enable"
trap 'end; exit 0' TERM INT
sleep infinity &
wait
