#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lets OpenSM answer our client of the subnet administrator, on a fabric that ibsim simulates.

Three hosts and a switch: OpenSM runs on one, our client on another, saquery on the third says what
OpenSM believes. Needs no RDMA support in the kernel and no privileges.
"""
import argparse
import contextlib
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import time

FABRIC = """
Switch 4 "S1"
[1] "H1"[1]
[2] "H2"[1]
[3] "SM"[1]

Hca 1 "H1"
[1] "S1"[1]

Hca 1 "H2"
[1] "S1"[2]

Hca 1 "SM"
[1] "S1"[3]
"""
OUR_GID, PEER_GID = "fe80::10:1", "fe80::10:3"
GROUP, OTHER_GROUP = "ff15:a01b:ffff::7", "ff15:a01b:ffff::8"
BROADCAST = "ff12:401b:ffff::ffff:ffff"
PROGRAMS = ("ibsim", "opensm", "saquery")
PRELOADS = "/usr/lib/*/umad2sim/libumad2sim.so"
LIMIT_S = 400


class Wrong(Exception):
    pass


class Fabric:
    def __init__(self, folder, preload, stack):
        self.folder, self.stack = Path(folder), stack
        self.environ = os.environ | {
            "IBSIM_SOCKNAME": str(self.folder / "socket"), "LD_PRELOAD": preload,
            "OSM_TMP_DIR": folder, "OSM_CACHE_DIR": folder,
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        (self.folder / "fabric").write_text(FABRIC, encoding="ascii")

    def start(self, *command, host=None, output="output", **more):
        environ = self.environ | ({"SIM_HOST": host} if host else {"LD_PRELOAD": ""})
        with open(self.folder / output, "a", encoding="ascii") as log:
            more = {"stdin": subprocess.PIPE, "stdout": log, "stderr": log, "text": True} | more
            process = subprocess.Popen(command, cwd=self.folder, env=environ, **more)
        self.stack.callback(stop, process)
        return process

    def ask(self, *command):
        return subprocess.run(command, cwd=self.folder, env=self.environ | {"SIM_HOST": "H2"},
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              timeout=LIMIT_S, check=False).stdout

    def members(self):
        """Return {group: [GIDs of members]} as OpenSM has it."""
        found = {}
        for mgid, gid in re.findall(r"MGID\.+(\S+).*?PortGid\.+(\S+)",
                                    self.ask("saquery", "--smkey", "1", "-m"), re.DOTALL):
            found.setdefault(mgid, []).append(gid)
        return found

    def administrator(self):
        """Start OpenSM; return it when it has brought the subnet up."""
        process = self.start("opensm", "-f", "opensm.log", "-F", "/dev/null", host="SM")
        wait_for(lambda: "Mlid" in self.ask("saquery", "-g"), "OpenSM brings the subnet up")
        return process


class Client:
    def __init__(self, fabric, program):
        self.process = fabric.start(program, host="H1", stdout=subprocess.PIPE)

    def ask(self, command):
        """Return (status, {field: value}) of an answer."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if not line:
            raise Wrong(f"{command}: the client has ended")
        return int(line[0]), dict(field.split("=", 1) for field in line[1:])


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise Wrong(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.1)


def expect(what, value, wanted):
    if value != wanted:
        raise Wrong(f"{what}: {value!r}, not {wanted!r}")
    print(f"ok   {what}")


def judge_paths(client):
    status, path = client.ask(f"path {PEER_GID}")
    expect("OpenSM answers a PathRecord query", status, 0)
    expect("with what was asked", [path[name] for name in ("dgid", "sgid", "pkey", "reversible")],
           [PEER_GID, OUR_GID, "0xffff", "1"])
    expect("LIDs", int(path["dlid"], 0) > 0 and int(path["slid"], 0) > 0, True)
    expect("MTU and rate", [path[name] for name in ("mtu_selector", "mtu", "rate")],
           ["2", "4", "3"])
    before = client.ask("stats")[1]
    expect("the same path comes from memory", client.ask(f"path {PEER_GID}"), (0, path))
    expect("and nothing is sent", client.ask("stats")[1]["sent"], before["sent"])
    expect("a port that is not there has no path", client.ask("path fe80::dead")[0], -22)


def judge_groups(client, fabric):
    status, group = client.ask(f"member {BROADCAST}")
    expect("the broadcast group's record", (status, group["qkey"], group["mlid"]),
           (0, "0xb1b", "0xc000"))
    status, member = client.ask(f"join {GROUP} full")
    expect("a group is joined", (status, member["mgid"], member["port_gid"]), (0, GROUP, OUR_GID))
    expect("and OpenSM knows", fabric.members().get(GROUP), [OUR_GID])
    sent = client.ask("stats")[1]["sent"]
    expect("again, with the same answer", client.ask(f"join {GROUP} full"), (0, member))
    expect("without asking", client.ask("stats")[1]["sent"], sent)
    expect("one of two leaves", client.ask(f"leave {GROUP}")[0], 0)
    expect("which OpenSM does not hear of", fabric.members().get(GROUP), [OUR_GID])
    expect("the other leaves", client.ask(f"leave {GROUP}")[0], 0)
    wait_for(lambda: GROUP not in fabric.members(), "OpenSM forgets the group")
    expect("and the group is gone", client.ask("stats")[1]["groups"], "0")
    expect("a group of another Q_Key is refused", client.ask(f"join {BROADCAST} full")[0], -22)


def judge_services(client, fabric):
    expect("a service that nobody offers", client.ask("find news")[0], -2)
    expect("OpenSM takes a ServiceRecord", client.ask("offer news 0x7001")[0], 0)
    status, service = client.ask("find news")
    expect("and lists it by its name", [status] + [
        service.get(name) for name in ("service_id", "gid", "pkey", "n")],
        [0, "0x7001", OUR_GID, "0xffff", "1"])
    expect("which saquery sees", "0x0000000000007001" in fabric.ask("saquery", "SR"), True)


def judge_restart(client, fabric, administrator):
    expect("another group is joined", client.ask(f"join {OTHER_GROUP} full")[0], 0)
    stop(administrator)
    fabric.administrator()
    expect("another OpenSM knows nobody", OTHER_GROUP in fabric.members(), False)
    expect("it asks who is where", client.ask("reset")[0], 0)
    wait_for(lambda: fabric.members().get(OTHER_GROUP) == [OUR_GID], "the group is joined anew")
    print("ok   and knows again")
    before = int(client.ask("stats")[1]["sent"])
    expect("a path is asked for anew", client.ask(f"path {PEER_GID}")[0], 0)
    expect("with one question", int(client.ask("stats")[1]["sent"]), before + 1)


def judge(program, preload):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        fabric = Fabric(folder, preload, stack)
        fabric.start("ibsim", "-s", "fabric", output="ibsim")
        wait_for(lambda: "simulator ready" in (fabric.folder / "ibsim").read_text(), "ibsim")
        administrator = fabric.administrator()
        client = Client(fabric, program)
        judge_paths(client)
        judge_groups(client, fabric)
        judge_services(client, fabric)
        judge_restart(client, fabric, administrator)


def find_preload():
    """Return the simulator's stand-in for the kernel, or None with a word on what is missing."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    found = sorted(Path("/").glob(PRELOADS.lstrip("/")))
    if missing or not found:
        print("skipped: not installed: %s; apt-get install opensm ibsim-utils infiniband-diags "
              "libumad2sim0" % ", ".join(missing or ["libumad2sim"]))
        return None
    return str(found[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", type=os.path.abspath, help="the sa_client program")
    args = parser.parse_args()
    preload = find_preload()
    if not preload:
        sys.exit(77)
    try:
        judge(args.client, preload)
    except Wrong as wrong:
        sys.exit(f"FAILED: {wrong}")


if __name__ == "__main__":
    main()
