#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Proves that the lab does what README.md says; run it after a change to the lab.

Prints one line per check and then "N passed, N failed, N skipped". Exit status: 0 if none
failed, 77 if the lab cannot run here at all.
"""
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LAB_DIR = Path(__file__).resolve().parent
sys.path.insert(0, str(LAB_DIR))

from lablib import Lab, LabError, LabTimeout, doctor, qemu  # noqa: E402
from program_cases import rping_ended  # noqa: E402

PINGS = 3
# For what must come: the machine may be slow, or busy.
PATIENCE_S = 30
LONG = bool(os.environ.get("PURECM_TEST_LONG"))
CHECKS = []


class Skip(Exception):
    """A check that cannot run here; the text says why."""


def check(function):
    """Register a check. It gets the lab and fails by raising."""
    CHECKS.append(function)
    return function


def long_check(function):
    """Register one that takes long, for `tools/check --long`."""
    return check(function) if LONG else function


def same(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r} instead of {wanted!r}")


def raises(kind, part, function, *args, **kwargs):
    """Fail unless function raises kind with part in its text."""
    try:
        function(*args, **kwargs)
    except kind as error:
        if part not in str(error):
            raise AssertionError(f"the error does not say {part!r}: {error}") from None
    else:
        raise AssertionError(f"no {kind.__name__}")


def rping(server, client, address):
    """Run rping in both hosts; fail unless all pings come through."""
    listener = server.start(["rping", "-s", "-a", address, "-C", str(PINGS), "-v"])
    server.wait_for("rdma resource show cm_id | grep -q LISTEN", PATIENCE_S, process=listener)
    ends = (client.run(["rping", "-c", "-a", address, "-C", str(PINGS), "-v"]),
            listener.wait(PATIENCE_S))
    for done in ends:
        rping_ended(done)
        same(done.stdout.count("ping data"), PINGS)


@check
def hosts_reach_each_other(lab):
    for here, there in ((lab.a, lab.b), (lab.b, lab.a)):
        here.run(f"busybox ping -c 1 -w 30 {there.addr4}", check=True)
        here.run(f"busybox ping -6 -c 1 -w 30 {there.addr6}", check=True)
        here.run(f"busybox ping -6 -c 1 -w 30 -I eth0 {there.link_local}", check=True)
        here.run(f"busybox ping -c 1 -w 30 {there.name}", check=True)


@check
def rxe_has_a_gid_for_each_address(lab):
    for guest in lab.guests.values():
        gids = guest.run("cat /sys/class/infiniband/rxe0/ports/1/gids/[0-2]").stdout.split()
        n = guest.number
        same(sorted(gids), sorted((f"fe80:0000:0000:0000:5054:00ff:fe77:{n:04x}",
                                   f"0000:0000:0000:0000:0000:ffff:0a4d:{n:04x}",
                                   f"fd00:0077:0000:0000:0000:0000:0000:{n:04x}")))


@check
def limits_and_devices_are_as_promised(lab):
    same(lab.a.run("ulimit -l; ulimit -n").stdout.split(), ["unlimited", "65536"])
    lab.a.run("cd /dev/infiniband && test -c uverbs0 -a -c umad0 -a -c rdma_cm", check=True)
    lab.a.run("test -d /sys/kernel/debug/block -a -r /proc/self/stat", check=True)


@check
def clocks_of_hosts_go_as_ours(lab):
    for guest in lab.guests.values():
        seen = []
        for pause_s in (2, 0):
            before = time.monotonic()
            uptime = float(guest.run("cat /proc/uptime").stdout.split()[0])
            seen.append((before, uptime, time.monotonic()))
            time.sleep(pause_s)
        first, last = seen
        least, took, most = last[0] - first[2], last[1] - first[1], last[2] - first[0]
        if not 0.9 * least < took < 1.1 * most:
            raise AssertionError(f"{took:.2f} s in {least:.2f} to {most:.2f} s")


@check
def stock_rping_over_ipv4(lab):
    rping(lab.a, lab.b, lab.a.addr4)


@check
def stock_rping_over_ipv6(lab):
    rping(lab.a, lab.b, lab.a.addr6)


@check
def stock_rping_over_link_local(lab):
    rping(lab.b, lab.a, lab.b.link_local + "%eth0")


@check
def output_is_binary_safe_and_streams_are_apart(lab):
    data = bytes(range(256)) * 8192
    result = lab.a.run("cat; echo warning >&2; exit 7", stdin=data)
    same((result.stdout_bytes == data, result.stderr, result.status), (True, "warning\n", 7))


@check
def files_are_written_and_read_back(lab):
    data = os.urandom(1 << 20)
    lab.a.write_file("/tmp/a file of the lab", data)
    same(lab.a.read_file("/tmp/a file of the lab") == data, True)
    same(os.path.exists("/tmp/a file of the lab"), False)


@check
def host_files_are_seen_at_their_paths(lab):
    same(lab.a.read_file(__file__), Path(__file__).read_bytes())
    same(lab.a.run("pwd").stdout.strip(), str(LAB_DIR.parent.parent))


@check
def changed_host_files_are_seen_after_refresh(lab):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text("old")
        same(lab.a.read_file(path), b"old")
        path.write_text("newer")
        lab.a.refresh()
        same(lab.a.read_file(path), b"newer")


@long_check
def a_run_costs_little(lab):
    def cost_ms(run, turns=20):
        started = time.monotonic()
        run(turns)
        return (time.monotonic() - started) / turns * 1000

    def one_by_one(turns):
        for _ in range(turns):
            lab.a.run(["true"])

    # Against what the same machine takes for it in the host, be it slow or busy.
    alone = cost_ms(lambda turns: lab.a.run(f"for i in $(seq {turns}); do env true; done"))
    cost = cost_ms(one_by_one)
    print(f"     {cost:.0f} ms per run(), {alone:.0f} ms in the host itself")
    same(cost < 2 * alone + 20, True)


@check
def environment_and_folder_reach_a_command(lab):
    result = lab.a.run("echo $LAB_TEST; pwd", env={"LAB_TEST": "a b"}, cwd="/usr")
    same(result.stdout, "a b\n/usr\n")


@check
def a_command_that_takes_too_long_is_killed(lab):
    raises(LabTimeout, "so far", lab.a.run, "echo so far; exec sleep 987", timeout=0.5)
    lab.a.wait_for("! grep -qsz 9[8]7 /proc/[0-9]*/cmdline", timeout=PATIENCE_S)


@check
def a_background_process_and_its_children_are_killed(lab):
    process = lab.a.start("sleep 654 & echo started; wait")
    process.wait_for_output("started", timeout=PATIENCE_S)
    same(process.alive, True)
    process.kill(signal.SIGTERM)
    same(process.wait(PATIENCE_S).status, -signal.SIGTERM)
    lab.a.wait_for("! grep -qsz 6[5]4 /proc/[0-9]*/cmdline", timeout=PATIENCE_S)


@check
def one_process_of_a_group_can_be_killed(lab):
    process = lab.a.start("(sleep 0.5; echo survived) & echo forked; wait")
    process.wait_for_output("forked")
    process.kill(group=False)
    same(process.wait(PATIENCE_S).status, -signal.SIGKILL)
    lab.a.wait_for("! pgrep -f 'echo surviv[e]d'", timeout=PATIENCE_S)
    same(process.output(), "forked\nsurvived\n")


@check
def a_daemon_does_not_hold_up_its_parent(lab):
    started = time.monotonic()
    lab.a.run("setsid sleep 60 & echo started", check=True, timeout=50)
    same(time.monotonic() - started < 50, True)
    lab.a.run("pkill -x sleep", check=True)


@check
def what_cannot_be_started_is_refused(lab):
    raises(LabError, "No such file", lab.a.run, ["/no/such/program"])
    raises(LabError, "No such file", lab.a.run, "true", cwd="/no/such/program")


@check
def wait_for_gives_up_with_the_last_output(lab):
    lab.a.run("(sleep 0.3; touch /tmp/there) >/dev/null 2>&1 &")
    lab.a.wait_for("test -e /tmp/there", timeout=PATIENCE_S)
    raises(LabTimeout, "almost", lab.a.wait_for, "echo almost; false", timeout=0.3)


@check
def wait_for_ends_with_the_process_it_waits_for(lab):
    dead = lab.a.start("echo last words; exit 3")
    raises(LabError, "status 3 before `false` succeeded: last words", lab.a.wait_for, "false",
           timeout=PATIENCE_S, process=dead)


def loaded(guest):
    return {line.split()[0] for line in guest.run("cat /proc/modules").stdout.splitlines()}


@check
def purecm_mode_has_no_kernel_cm_and_keeps_it_out(lab):
    lab.b.mode("purecm")
    # Asks netlink for "rdma_cm", on which a normal host loads rdma_ucm.
    result = lab.b.run(["rping", "-c", "-a", lab.a.addr4, "-C", "1"])
    same(result.ok, False)
    cm_modules = {"rdma_ucm", "rdma_cm", "ib_cm", "iw_cm"}
    same(loaded(lab.b) & (cm_modules | {"ib_umad", "ib_uverbs", "rdma_rxe"}),
         {"ib_umad", "ib_uverbs", "rdma_rxe"})
    lab.b.run("test ! -e /dev/infiniband/rdma_cm", check=True)


@check
def a_process_in_the_way_of_a_mode_is_named_and_can_be_killed(lab):
    lab.b.mode("purecm")
    holder = lab.b.start(["sh", "-c", "exec 3<>/dev/infiniband/umad0; echo open; sleep 321"])
    holder.wait_for_output("open")
    raises(LabError, "/dev/infiniband/umad0", lab.b.mode, "stock")
    same(holder.alive, True)
    lab.b.mode("stock", kill=True)
    same(holder.wait(PATIENCE_S).status, -signal.SIGKILL)


@long_check
def stock_rping_after_all_modes(lab):
    for mode in ("bare", "purecm", "stock", "bare", "stock"):
        lab.b.mode(mode)
    rping(lab.b, lab.a, lab.b.addr4)


@check
def a_capture_shows_the_whole_exchange_at_both_ends(lab):
    if not shutil.which("tshark"):
        raise Skip("tshark is missing; " + doctor.install("tshark"))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("a.pcap", "b.pcap")]
        with lab.a.capture(paths[0]), lab.b.capture(paths[1]):
            rping(lab.a, lab.b, lab.a.addr4)
        for path in paths:
            same(attributes(path), ["0x0010", "0x0013", "0x0014", "0x0015", "0x0016"])


def attributes(path):
    """Return the attribute ids of the MADs in a capture: REQ, REP, RTU, DREQ, DREP ..."""
    fields = subprocess.run(
        ["tshark", "-r", path, "-Y", "infiniband.mad", "-T", "fields", "-e",
         "infiniband.mad.attributeid"], capture_output=True, text=True, check=True).stdout
    return fields.split()


@check
def netem_loses_packets_until_it_is_cleared(lab):
    with lab.a.netem("loss 100%"):
        same(lab.a.run(f"busybox ping -c 1 -W 1 {lab.b.addr4}").ok, False)
    lab.a.run(f"busybox ping -c 1 -w 30 {lab.b.addr4}", check=True)
    lab.a.netem_clear()


def port_state(guest):
    return guest.run("cat /sys/class/infiniband/rxe0/ports/1/state").stdout.split()[1]


@check
def links_go_down_and_come_back(lab):
    for down, up in ((lab.a.link_down, lab.a.link_up), (lab.a.unplug, lab.a.plug)):
        down()
        same(port_state(lab.a), "DOWN")
        up()
        same(port_state(lab.a), "ACTIVE")
    rxe_has_a_gid_for_each_address(lab)


@check
def the_rdma_device_goes_and_comes_back(lab):
    lab.a.rxe_del()
    same(lab.a.run("rdma link").stdout, "")
    lab.a.rxe_add()
    rping(lab.a, lab.b, lab.a.addr4)


@check
def a_frozen_host_is_silent_until_it_thaws(lab):
    lab.b.freeze()
    same(lab.a.run(f"busybox ping -c 1 -W 1 {lab.b.addr4}").ok, False)
    raises(LabTimeout, "host b", lab.b.run, "true", timeout=0.5)
    lab.b.thaw()
    lab.a.run(f"busybox ping -c 1 -w 30 {lab.b.addr4}", check=True)


@long_check
def a_reboot_ends_processes_and_keeps_the_mode(lab):
    lab.b.mode("purecm")
    sleeper = lab.b.start(["sleep", "1000"])
    lab.b.reboot()
    same(sleeper.wait(PATIENCE_S).status, -signal.SIGKILL)
    same("ib_cm" in loaded(lab.b), False)
    lab.b.mode("stock")
    rping(lab.b, lab.a, lab.b.addr6)


@long_check
def a_crashed_host_says_so_and_can_be_booted_again(lab):
    lab.b.crash()
    raises(LabError, "went away", lab.b.run, "true")
    # More packets than the cable holds: they must not block host a.
    lab.a.run(f"busybox ping -c 30 -i 0.01 -W 1 {lab.b.addr4}")
    lab.b.reboot()
    rping(lab.a, lab.b, lab.a.addr4)


@check
def a_kernel_panic_is_shown(lab):
    raises(LabError, "sysrq", lab.a.run, "echo c >/proc/sysrq-trigger", timeout=PATIENCE_S)


@long_check
def nothing_is_left_whichever_way_a_lab_ends(_):
    script = ("import sys, time; sys.path.insert(0, sys.argv[1]); from lablib import Lab\n"
              "with Lab({'a': 'bare', 'b': 'bare'}, cpus=1, verbose=False) as lab:\n"
              "    print(lab.a.pid, lab.b.pid, flush=True)\n"
              "    time.sleep(float(sys.argv[2]))\n"
              "    raise SystemExit('on purpose')\n")
    ends = (None, signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    labs = [subprocess.Popen([sys.executable, "-c", script, str(LAB_DIR),
                              "60" if number else "0"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for number in ends]
    pids = []
    for lab, number in zip(labs, ends):
        pids += lab.stdout.readline().split()
        if number:
            lab.send_signal(number)
    for lab in labs:
        lab.communicate(timeout=2 * PATIENCE_S)
    same(len(pids), 2 * len(ends))
    end = time.monotonic() + PATIENCE_S
    while any(is_qemu(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.1)
    same([pid for pid in pids if is_qemu(pid)], [])


def is_qemu(pid):
    try:
        return qemu.QEMU.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def run_check(function, lab):
    """Return "PASS", "FAIL" or "SKIP" after printing a line about it."""
    started = time.monotonic()
    verdict, why = "PASS", ""
    try:
        function(lab)
    except Skip as reason:
        verdict, why = "SKIP", f": {reason}"
    except Exception as error:  # whatever it is, the other checks are worth their run
        verdict, why = "FAIL", f": {type(error).__name__}: {error}"
    seconds = time.monotonic() - started
    print(f"{verdict} {function.__name__.replace('_', ' ')} ({seconds:.1f} s){why}", flush=True)
    return verdict


def main():
    if not doctor.which(qemu.QEMU):
        print(f"SKIP {qemu.QEMU} is missing; {doctor.install('qemu-system-x86')}")
        return 77
    with Lab({"a": "stock", "b": "stock"}) as lab:
        verdicts = [run_check(function, lab) for function in CHECKS]
    failed = verdicts.count("FAIL")
    print(f"{verdicts.count('PASS')} passed, {failed} failed, {verdicts.count('SKIP')} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
