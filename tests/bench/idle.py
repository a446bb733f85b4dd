#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What idle processes cost a host: many with a connection each, on a host with many RDMA devices.

On an emulated host with rxe devices: memory of a process, the devices that it has open, and how
often the kernel wakes its threads, in a second in which nothing happens and for each change of the
network that is none of its business. Prints purecm's figures; --stock stock's. Exit status: 1 if a
process opens devices that it does not use, 2 if the lab did not run.
"""
import argparse
from pathlib import Path
import subprocess
import sys
import time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
PORT = "7700"
CHANGES = 100
QUIET_S = 20
SETTLE_S = 3
STORMS = {
    "a neighbour of another": ("neigh replace 10.77.0.{0} lladdr 02:00:00:00:00:{1:02x} dev {dev} "
                               "nud reachable"),
    "a route of another": "route replace 10.99.{0}.0/24 via 10.77.0.{0} dev {dev}",
    "a link of another": "link set dev dummy1 mtu {0}",
    "an address of another": "addr add 10.97.{0}.1/32 dev dummy1",
    "a new interface": "link add new{0} type dummy",
}


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build",
                        help="build folder (default: build)")
    parser.add_argument("--processes", type=int, default=500, help="default: 500")
    parser.add_argument("--devices", type=int, default=16, help="default: 16")
    parser.add_argument("--starts", type=int, default=20,
                        help="processes that start at once (default: 20)")
    parser.add_argument("--stock", action="store_true", help="measure stock")
    parser.add_argument("--inside", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--dev", default="eth0", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


# --- on the host ---------------------------------------------------------------


def wakes_of(pids):
    """Return how often all threads of processes have slept and were woken."""
    total = 0
    for pid in pids:
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            total += int(lines["voluntary_ctxt_switches"])
    return total


def wakes_during(pids, act):
    before = wakes_of(pids)
    act()
    time.sleep(SETTLE_S)
    return wakes_of(pids) - before


def change_network(form, dev):
    for number in range(1, CHANGES + 1):
        subprocess.run(["ip", *form.format(100 + number, number, dev=dev).split()], check=True)


def pss_kib(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def devices_open(pid):
    links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir()]
    return len({name for name in links if name.startswith("uverbs")})


def is_cmportd(process):
    """Whether it is one of this host, which may be a network namespace."""
    try:
        return (process / "comm").read_text() == "cmportd\n" and \
            (process / "ns/net").readlink() == Path("/proc/self/ns/net").readlink()
    except OSError:
        return False  # it has ended meanwhile


def cmportds():
    return [process.name for process in Path("/proc").glob("[0-9]*") if is_cmportd(process)]


def begin(args, count):
    clients = [subprocess.Popen([args.build / "tools/certify/hold", "client", args.inside, PORT,
                                 "1", "0"], stdout=subprocess.PIPE, text=True)
               for _ in range(count)]
    for client in clients:
        line = client.stdout.readline()
        if not line.startswith("held"):
            sys.exit(f"a client says {line!r}")
    return clients


def begin_processes(args):
    """The first starts cmportd; the others follow a few at a time: this is not about a storm."""
    clients = begin(args, 1)
    while len(clients) < args.processes:
        clients += begin(args, min(args.starts, args.processes - len(clients)))
    return clients


def measure_inside(args):
    clients = begin_processes(args)
    pids = [client.pid for client in clients]
    portd = cmportds()
    time.sleep(SETTLE_S)
    print(f"KiB of memory (PSS) a process: {sum(map(pss_kib, pids)) / len(pids):.0f}")
    n_open = max(map(devices_open, pids))
    print(f"devices open in a process, at most: {n_open}")
    quiet = wakes_during(pids, lambda: time.sleep(QUIET_S - SETTLE_S))
    print(f"wake-ups of a process in a quiet second: {quiet / len(pids) / QUIET_S:.3f}")
    for pid in portd:
        quiet = wakes_during([pid], lambda: time.sleep(QUIET_S - SETTLE_S))
        print(f"of cmportd: {quiet / QUIET_S:.1f}; it has {pss_kib(pid)} KiB")
    for name, form in STORMS.items():
        if "dummy1" in form and not Path("/sys/class/net/dummy1").exists():
            continue
        woken = wakes_during(pids, lambda form=form: change_network(form, args.dev))
        print(f"wake-ups of a process for {name}: {woken / len(pids) / CHANGES:.3f}", flush=True)
    for client in clients:
        client.kill()
    return n_open > 1


# --- outside --------------------------------------------------------------------


def add_devices(host, count):
    host.run(["modprobe", "dummy"], check=True)
    for number in range(1, count):
        host.run(f"ip link add dummy{number} type dummy && ip addr add 10.78.{number}.1/24 dev "
                 f"dummy{number} && ip link set dummy{number} up && "
                 f"rdma link add rxe{number} type rxe netdev dummy{number}", check=True)


def measure(args):
    from benchlib import Lab, environment  # noqa: E402 not on an emulated host

    mode = "stock" if args.stock else "purecm"
    with Lab({"a": mode, "b": mode}, memory_mib=4096) as lab:
        add_devices(lab.a, args.devices)
        env = environment(mode, args.build)
        server = lab.b.start([args.build / "tools/certify/hold", "server", lab.b.addr4, PORT],
                             env=env, timeout=900)
        lab.b.wait_for(f"sleep 2; kill -0 {server.pid}", timeout=30)
        done = lab.a.run([sys.executable, __file__, "--inside", lab.b.addr4, "--build", args.build,
                          "--processes", str(args.processes), "--starts", str(args.starts)],
                         env=env, timeout=900)
        server.stop()
    print(f"{args.processes} processes, {args.devices} devices, {mode}")
    print(done.output, end="")
    return done.status


def main():
    args = parse_args()
    if args.inside:
        return measure_inside(args)
    from benchlib import LabError  # noqa: E402

    try:
        return measure(args)
    except LabError as error:
        print(f"idle.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
