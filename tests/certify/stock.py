#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What purecm certify notes of a host: on each device of the soft fabric, whose limits and quirks
are known, and from files as a host with VLANs, bonds and other users of its devices has them.

Prints a line a failure, and last "N passed, N failed, N skipped". Exit status: 1 if a test failed,
77 if there can be no fabric here.
"""
import json
from pathlib import Path
import re
import sys
import tempfile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fabric"))
from certify import part  # noqa: E402
from hosts import DEVICES, main, run_on_fabric  # noqa: E402

LIMIT_S = 60
TAKE = """python3 -c 'import sys, json
sys.path.insert(0, "{folder}")
import host
here = host.Host()
print(json.dumps(here.stock()))
here.close()'"""
LIMITS = {"max_qp", "max_cq", "max_mr", "max_sge", "max_qp_wr", "max_cqe", "max_srq", "max_ah",
          "max_qp_rd_atom", "max_qp_init_rd_atom", "max_mcast_grp", "max_pd", "max_mr_size"}
PORT = {"number", "state", "link", "rate", "mtu", "pkeys", "gids", "lid", "grh_required",
        "gid_entries", "pkey_entries"}


def stock_on(build, *options):
    """What is noted of a host of a fabric with these options."""
    done = run_on_fabric(build, LIMIT_S, "--hosts", "1", *options,
                         "a:" + TAKE.format(folder=f"{build}/tools/certify"))
    assert not done.returncode, done.stdout + done.stderr
    return json.loads(done.stdout)


def wanted_of(quirks):
    """{limit: its value} of a device with these quirks and limits."""
    found = dict(word.split("=") for word in quirks if "=" in word)
    return {name: int(found[quirk]) for name, quirk in (
        ("inline_rc", "inline"), ("inline_ud", "ud-inline"), ("max_qp_wr", "wr")) if quirk in found}


def each_devices_limits_ports_and_quirks_are_noted(build):
    for name, (quirks, _) in DEVICES.items():
        taken = stock_on(build, "--device", name)
        device, = taken["devices"]
        assert LIMITS <= set(device["limits"]), (name, device["limits"])
        limits = device["limits"] | device
        wanted = wanted_of(quirks)
        assert wanted == {limit: limits[limit] for limit in wanted}, (name, wanted, limits)
        assert device["firmware"] == "1.0" and device["provider"], device
        assert device["privileged_qkey"] == "permitted", (name, device["privileged_qkey"])
        assert bool(device["lag"]) == ("lag" in quirks), (name, device["lag"])
        if "lag" in quirks:
            assert device["lag"] == {"fab0": ["fab0s1", "fab0s2"]}, device["lag"]
        states = [port["state"] for port in device["ports"]]
        assert states == (["1: DOWN"] if "second-port" in quirks else []) + ["4: ACTIVE"], states
        port = device["ports"][-1]
        assert PORT <= set(port) and port["pkeys"] == {"0": "0xffff"}, port
        if "no-cm" not in quirks:
            types = {(gid["type"], gid["interface"]) for gid in port["gids"]}
            assert types == {("RoCE v2", "fab0")}, (name, port["gids"])
            assert taken["interfaces"]["fab0"]["mtu"] == 4500, (name, taken["interfaces"])
        else:
            assert device["transport"] == "other" and device["inline_rc"] == -1, device
        assert taken["kernel"] and taken["library"] == "purecm", taken


def partitions_and_lids_of_infiniband_are_noted(build):
    port = stock_on(build, "--link", "ib", "--pkeys", "0x8001,0x0002")["devices"][0]["ports"][0]
    assert port["pkeys"] == {"0": "0xffff", "1": "0x8001", "2": "0x0002"}, port["pkeys"]
    assert port["link"] == "InfiniBand" and int(port["lid"], 0) and int(port["sm_lid"], 0), port


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def bonds_and_what_they_are_made_of_are_noted(build):
    inventory = part(build, "inventory")
    with tempfile.TemporaryDirectory(prefix="stock-") as folder:
        known, inventory.NET = inventory.NET, Path(folder)
        try:
            for name, text in (("mode", "active-backup 1"), ("slaves", "eth0 eth1"),
                               ("active_slave", "eth1")):
                write(Path(folder, "bond0/bonding", name), text)
            write(Path(folder, "bond0/mtu"), "9000")
            write(Path(folder, "bond0/operstate"), "up")
            for slave in ("eth0", "eth1"):
                Path(folder, "bond0", f"lower_{slave}").mkdir()
            assert inventory.bonds() == {"bond0": {
                "mode": "active-backup 1", "slaves": ["eth0", "eth1"], "active": "eth1"}}
            device = {"interfaces": ["eth0"], "ports": [{"gids": [{"interface": "bond0"}]}]}
            assert inventory.lag_of(device) == {"bond0": ["eth0", "eth1"]}
            assert inventory.interfaces([device]) == {
                "bond0": {"mtu": 9000, "state": "up", "of": ["eth0", "eth1"]}}
        finally:
            inventory.NET = known


def faked(inventory, **functions):
    """Replace functions of the module. Return: those that were there."""
    known = {name: getattr(inventory, name) for name in functions}
    for name, function in functions.items():
        setattr(inventory, name, function)
    return known


def vlans_are_noted_with_and_without_root(build):
    """Without, the file of 8021q cannot be read, and iproute2 knows of its egress map, too."""
    inventory = part(build, "inventory")
    config = ("VLAN Dev name | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n"
              "eth0.5         | 5  | eth0")
    said = [{}, {"ifname": "eth0.5", "link": "eth0", "linkinfo": {
        "info_kind": "vlan", "info_data": {"id": 5, "egress_qos": [{"from": 4, "to": 3}]}}}]
    for text, links, more in ((config, [], {}), ("", said, {"egress": [{"from": 4, "to": 3}]}),
                              (config, said, {"egress": [{"from": 4, "to": 3}]})):
        known = faked(inventory, text_of=lambda _, text=text: text,
                      json_of=lambda *_, links=links: links)
        try:
            found = inventory.vlans()
        finally:
            faked(inventory, **known)
        assert found == {"eth0.5": {"id": 5, "of": "eth0", **more}}, found


def other_users_of_the_devices_are_noted(build):
    inventory = part(build, "inventory")
    lines = ("rdma_ucm 32768 0 - Live 0x0000000000000000\n"
             "nvme_rdma 45056 4 - Live 0x0000000000000000\n"
             "rdma_cm 118784 3 nvme_rdma,rdma_ucm, Live 0x0000000000000000 (OE)\n"
             "ext4 12345 1 - Live 0x0000000000000000")
    rows = [{"ifname": "mlx5_0", "comm": "ib_core"}, {"ifname": "mlx5_0", "comm": "[nvme_rdma]"},
            {"ifname": "mlx5_0", "comm": "rping", "pid": 77}]
    known = faked(inventory, text_of=lambda _: lines, json_of=lambda *_: rows)
    try:
        assert inventory.modules() == {
            "rdma_ucm": {"held": 0, "by": []}, "nvme_rdma": {"held": 4, "by": []},
            "rdma_cm": {"held": 3, "by": ["nvme_rdma", "rdma_ucm"]}}, inventory.modules()
        found = inventory.kernel_resources()
        assert set(found) == {"ib_core", "nvme_rdma"} and found["ib_core"]["qp"] == 1, found
    finally:
        faked(inventory, **known)


def what_cannot_be_read_is_left_out(build):
    """Nothing of it ends the certificate."""
    inventory = part(build, "inventory")
    known = faked(inventory, text_of=lambda _: "", json_of=lambda *_: [],
                  output_of=lambda *_: "", entries=lambda _: [])
    try:
        taken = inventory.take([])
    finally:
        faked(inventory, **known)
    assert taken["devices"] == [] and taken["modules"] == {} and taken["kernel"], taken


def all_of_it_is_on_the_page(build):
    page = part(build, "page")
    taken = stock_on(build, "--device", "mlx5-lag")
    text = page.host("a", taken)
    device = taken["devices"][0]
    for word in ("max_qp 16384", "max_qp_rd_atom 128", "800 with RC, 800 with UD", "permitted",
                 "fab0s2", device["firmware"], "0xffff", "RoCE v2", taken["kernel"]):
        assert word in text, f"{word} is not on the page"
    assert not re.search(r"\bNone\b", text), text


def roce_v1_which_purecm_has_not_is_named(build):
    """Where a port has it: not by the type of an InfiniBand port's GIDs, which is the same."""
    trials = part(build, "trials")
    for link, kind, wanted in (("Ethernet", "IB/RoCE v1", True), ("Ethernet", "RoCE v2", False),
                               ("InfiniBand", "IB/RoCE v1", False)):
        port = {"link": link, "gids": [{"type": "RoCE v2"}, {"type": kind}]}
        assert trials.has_roce_v1({"devices": [{"ports": [port]}]}) == wanted, (link, kind)


def no_path_of_the_own_files_gets_into_a_certificate(build):
    row = part(build, "pair").Row
    for text, wanted in (
            ("programs use another purecm's library, /scratch/me/build/lib/librdmacm.so.1, than "
             "this one's, /usr/lib/x86_64-linux-gnu/purecm/librdmacm.so.1",
             "programs use another purecm's library, .../librdmacm.so.1, than this one's, "
             "/usr/lib/x86_64-linux-gnu/purecm/librdmacm.so.1"),
            ("cmportd does not start: /tmp/certify-x1/cmportd.sock: refused",
             "cmportd does not start: .../cmportd.sock: refused"),
            ("/dev/infiniband/umad0; 10.77.0.1/24; fab0/1; fd77::1/64",
             "/dev/infiniband/umad0; 10.77.0.1/24; fab0/1; fd77::1/64")):
        found = row("", "", text, text).public()
        assert (found.why, found.remedy) == (wanted, wanted), found


TESTS = (
    each_devices_limits_ports_and_quirks_are_noted,
    partitions_and_lids_of_infiniband_are_noted,
    bonds_and_what_they_are_made_of_are_noted,
    vlans_are_noted_with_and_without_root,
    other_users_of_the_devices_are_noted,
    what_cannot_be_read_is_left_out,
    all_of_it_is_on_the_page,
    roce_v1_which_purecm_has_not_is_named,
    no_path_of_the_own_files_gets_into_a_certificate,
)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
