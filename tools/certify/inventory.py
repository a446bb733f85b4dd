# SPDX-License-Identifier: BSD-2-Clause
"""What a host has: its kernel, its RDMA devices with their ports and limits, the interfaces that
they belong to, and who else uses them. Most of it is in /sys; what cannot be read is left out."""
import collections
import json
import os
from pathlib import Path
import platform
import re
import resource
import subprocess

RDMA = Path("/sys/class/infiniband")
NET = Path("/sys/class/net")
NODES = "/dev/infiniband/"
ADMINISTRATOR = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
# Other users of the kernel's connection manager, and related modules.
MODULE = re.compile(r"(ib_\w+|rdma\w*|iw_cm|mlx\w+|bnxt_re|irdma|hns_roce\w*|qedr|efa|siw|mana_ib|"
                    r"nvme\w*rdma|nvmet?|rpcrdma|svcrdma|xprtrdma|smbdirect|cifs|ksmbd|smc|rds\w*|"
                    r"bonding|8021q)\Z")
RESOURCES = ("cm_id", "qp", "cq", "mr", "pd")  # of rdma(8)


def text_of(path):
    """The text of a file; empty if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def entries(folder):
    """The entries of a folder, sorted; none if it cannot be read."""
    try:
        return sorted(Path(folder).iterdir())
    except OSError:
        return []


def output_of(*command):
    """What an administrator's program prints; empty if there is none or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env=ADMINISTRATOR, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def json_of(*command):
    """Likewise, as the value of that JSON; an empty list without."""
    try:
        return json.loads(output_of(*command) or "[]")
    except json.JSONDecodeError:
        return []


def addresses(interface):
    """IP addresses of an interface but link-local ones, with their prefixes."""
    lines = output_of("ip", "-o", "addr", "show", "dev", interface).splitlines()
    return [line.split()[3] for line in lines if "scope link" not in line]


# --- devices -------------------------------------------------------------------------------------

def gids_of(port):
    """The GIDs of a port in /sys that are set."""
    found = []
    for gid in sorted(entries(port / "gids"), key=lambda gid: int(gid.name)):
        text = text_of(gid)
        if text.replace(":", "").strip("0"):
            found.append({"index": int(gid.name), "gid": text,
                          "type": text_of(port / "gid_attrs/types" / gid.name),
                          "interface": text_of(port / "gid_attrs/ndevs" / gid.name)})
    return found


def pkeys_of(port):
    """The P_Keys of a port in /sys that are set, by their index."""
    found = {path.name: text_of(path) for path in sorted(entries(port / "pkeys"),
                                                         key=lambda path: int(path.name))}
    return {index: pkey for index, pkey in found.items() if pkey not in ("", "0x0000")}


def port_of(path, said):
    """A port, from /sys and from what libibverbs said."""
    return {"number": int(path.name), "state": text_of(path / "state"),
            "link_state": text_of(path / "phys_state"), "link": text_of(path / "link_layer"),
            "rate": text_of(path / "rate"), "lid": text_of(path / "lid"),
            "sm_lid": text_of(path / "sm_lid"), "pkeys": pkeys_of(path), "gids": gids_of(path),
            **{name: said[name] for name in ("mtu", "max_mtu", "lmc", "max_msg", "gid_entries",
                                             "pkey_entries", "grh_required", "cap_mask")
               if name in said}}


def driver_of(path, said):
    """The driver: of the kernel, or of libibverbs where the device is none of a bus."""
    driver = path / "device/driver"
    provider = re.sub(r"^lib|-rdmav\d+|\.so.*", "", said.get("provider", ""))
    if driver.exists():
        return driver.resolve().name
    return f"{provider} (software)" if provider not in ("", "ibverbs") else ""


def version_of(driver):
    """The version of a kernel module that is not of its kernel, such as a vendor's."""
    return text_of(f"/sys/module/{driver}/version")


def device_of(path, said):
    """A device, from /sys and from what libibverbs said."""
    ports = {port["number"]: port for port in said.get("ports", ())}
    driver = driver_of(path, said)
    nets = [net.name for net in entries(path / "device/net")]
    device = {"name": path.name, "driver": driver, "driver_version": version_of(driver),
              "pci": f"{text_of(path / 'device/vendor')} {text_of(path / 'device/device')}".strip(),
              "firmware": text_of(path / "fw_ver") or said.get("firmware", ""),
              "board": text_of(path / "board_id"), "guid": text_of(path / "node_guid"),
              "interfaces": nets, "parent": text_of(path / "parent"),
              "addresses": [address.split("/")[0] for net in nets for address in addresses(net)],
              "ports": [port_of(port, ports.get(int(port.name), {}))
                        for port in entries(path / "ports")]}
    for name in ("provider", "transport", "vendor", "part", "revision", "atomics", "capabilities",
                 "limits", "inline_rc", "inline_ud", "privileged_qkey", "error"):
        if name in said:
            device[name] = said[name]
    device["lag"] = lag_of(device)
    return device


def lag_of(device):
    """What its interface is made of if GIDs belong to a bond: one device for both ports."""
    names = {gid["interface"] for port in device["ports"] for gid in port["gids"]}
    return {name: slaves for name in sorted(names - {""})
            if len(slaves := lower_of(name)) > 1}


def devices(said):
    """said: the lines of JSON of the program attributes."""
    known = {one["name"]: one for one in said}
    return [device_of(path, known.get(path.name, {})) for path in entries(RDMA)]


# --- interfaces ----------------------------------------------------------------------------------

def lower_of(interface):
    """The interfaces that another one is made of."""
    return [path.name[len("lower_"):] for path in entries(NET / interface)
            if path.name.startswith("lower_")]


def vlans():
    """{interface: {id, of, egress}}; the file needs root, iproute2 does not."""
    found = {}
    for line in text_of("/proc/net/vlan/config").splitlines()[2:]:
        name, number, below = (word.strip() for word in line.split("|"))
        found[name] = {"id": int(number), "of": below}
    for link in json_of("ip", "-j", "-d", "link", "show", "type", "vlan"):
        if "ifname" not in link:  # iproute2 prints {} for those of other types
            continue
        data = link.get("linkinfo", {}).get("info_data", {})
        found[link["ifname"]] = {"id": data.get("id"), "of": link.get("link", ""),
                                 **({"egress": data["egress_qos"]} if data.get("egress_qos")
                                    else {})}
    return found


def bonds():
    """{interface: its mode, slaves, and the active one}."""
    return {path.parent.name: {"mode": text_of(path / "mode"),
                               "slaves": text_of(path / "slaves").split(),
                               "active": text_of(path / "active_slave")}
            for path in sorted(NET.glob("*/bonding"))}


def interfaces(those):
    """The interfaces of these devices: those with GIDs, and what they are made of."""
    names = {gid["interface"] for device in those for port in device["ports"]
             for gid in port["gids"]} | {name for device in those for name in device["interfaces"]}
    names |= {below for name in names if name for below in lower_of(name)}
    found = {}
    for name in sorted(names):
        if mtu := text_of(NET / name / "mtu"):
            lower = lower_of(name)
            found[name] = {"mtu": int(mtu), "state": text_of(NET / name / "operstate"),
                           **({"of": lower} if lower else {})}
    return found


# --- other users ---------------------------------------------------------------------------------

def modules():
    """{module of the kernel: how many hold it, and which modules}."""
    found = {}
    for line in text_of("/proc/modules").splitlines():
        name, _, count, users, *_ = line.split()
        if MODULE.match(name):
            found[name] = {"held": int(count), "by": [user for user in users.split(",")
                                                      if user not in ("", "-")]}
    return found


def holders():
    """{device node: names of the programs that have it open}, of those that this user may see."""
    found = collections.defaultdict(set)
    for process in Path("/proc").glob("[0-9]*"):
        for fd in entries(process / "fd"):
            try:
                target = os.readlink(fd)
            except OSError:
                continue
            if target.startswith(NODES):
                found[target].add(text_of(process / "comm"))
    return {node: sorted(names) for node, names in sorted(found.items())}


def kernel_resources():
    """{user in the kernel: {kind: number}} of what it has of all devices, as rdma(8) counts it."""
    found = collections.defaultdict(collections.Counter)
    for kind in RESOURCES:
        for one in json_of("rdma", "-j", "resource", "show", kind):
            if "pid" not in one:
                found[str(one.get("comm", "?")).strip("[]")][kind] += 1
    return {user: dict(counts) for user, counts in sorted(found.items())}


def privileged_qkey():
    """What `rdma system` says: kernels before 6.7 have no setting of Q_Keys."""
    return output_of("rdma", "system").strip()


# --- all of it -----------------------------------------------------------------------------------

def process_limits():
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return {"memlock": soft, "memlock_max": hard,
            "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}


def capabilities():
    """Which of those that matter this process has: CAP_NET_ADMIN (12), CAP_NET_RAW (13), ..."""
    status = dict(line.split(":\t", 1) for line in text_of("/proc/self/status").splitlines()
                  if ":\t" in line)
    mask = int(status.get("CapEff", "0"), 16)
    return [name for bit, name in ((12, "NET_ADMIN"), (13, "NET_RAW"), (14, "IPC_LOCK"),
                                   (21, "SYS_ADMIN")) if mask >> bit & 1]


def take(said):
    """Return all properties of this host; said: as for devices()."""
    found = devices(said)
    return {"name": platform.node(), "kernel": platform.release(), "build": platform.version(),
            "machine": platform.machine(), "uid": os.geteuid(), "capabilities": capabilities(),
            "distribution": platform.freedesktop_os_release().get("PRETTY_NAME", "")
            if hasattr(platform, "freedesktop_os_release") else "",
            "cpus": os.cpu_count(), "limits": process_limits(),
            "rdma_system": privileged_qkey(), "devices": found, "interfaces": interfaces(found),
            "vlans": vlans(), "bonds": bonds(), "modules": modules(), "holders": holders(),
            "kernel_resources": kernel_resources()}
