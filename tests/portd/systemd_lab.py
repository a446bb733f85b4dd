#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An installed purecm on a host that systemd runs: a guest of tests/lab, in which a systemd of its
own starts cmportd by its units, with all their restrictions.

Prints one line per check and then "N passed, N failed, N skipped". Exit status: 0 if none failed,
77 if the lab cannot run here at all.
"""
import argparse
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from lablib import Lab, LabError  # noqa: E402
from program_cases import rping_ended  # noqa: E402

SKIPPED = 77
SOCKET = "/run/purecm/cmportd.sock"
LOG = "/run/cmportd.log"
NET_RAW = f"{1 << 13:016x}"
SYSTEMD = "/lib/systemd/systemd --system"
PAGE = Path(__file__).resolve().parents[2] / "docs/deployment.md"
# As a container runtime does for a pod: the nodes of the device plugin are made with the numbers
# of the host's. The pod has the host's network, and of its /run only cmportd's folder.
POD = """
set -e
mkdir -p /tmp/purecm /tmp/dev/infiniband
mount --bind /run/purecm /tmp/purecm
mount -t tmpfs none /run
mkdir /run/purecm
mount --move /tmp/purecm /run/purecm
mount -t tmpfs -o mode=755 none /tmp/dev
mkdir /tmp/dev/infiniband
for node in null zero urandom infiniband/uverbs0 infiniband/umad0 infiniband/rdma_cm; do
    mknod -m $(stat -c %a /dev/$node) /tmp/dev/$node c \
        $((0x$(stat -c %t /dev/$node))) $((0x$(stat -c %T /dev/$node)))
done
mount --move /tmp/dev /dev
exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --no-new-privs "$@"
"""
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def long_check(function):
    """A check for `tools/check --long`."""
    return check(function) if os.environ.get("PURECM_TEST_LONG") else function


class Host:
    """The guest as systemd's processes see it; systemd is the first in a pid namespace."""

    def __init__(self, guest, root=None):
        self.guest = guest
        if root:
            guest.run(f"cp -a {root}/. / && ldconfig", timeout=120).check()
        # The guest does not boot by systemd: what every unit waits for by default would never
        # come, and is nothing here. Nor does it go down: all is stopped instead.
        self.unit("sysinit.target", "[Unit]", "DefaultDependencies=no")
        self.unit("basic.target", "[Unit]", "DefaultDependencies=no", "Requires=sysinit.target",
                  "After=sysinit.target")
        # Systemd forgets of a unit when it ended, unless another one names it.
        self.unit("nothing.target", "[Unit]", "DefaultDependencies=no", "AllowIsolate=yes",
                  "After=cmportd.service")
        guest.run("rm -rf /lib/systemd/system/*.target.wants /etc/systemd/system/*.target.wants")
        # Debian 13 mounts a file system on /tmp, below which the checkout may be.
        guest.run("ln -s /dev/null /etc/systemd/system/tmp.mount").check()
        self.drop_in("cmportd.service", "Service", "Environment=PURECM_LOG=debug",
                     f"StandardError=append:{LOG}")
        guest.run("mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup").check()
        self.systemd = guest.start("exec unshare --pid --fork --mount --mount-proc "
                                   f"env container=lab {SYSTEMD} --unit=nothing.target")
        guest.wait_for(self.inside("timeout 3 systemctl is-active nothing.target"),
                       timeout=90)

    def unit(self, name, *lines):
        self.guest.write_file(f"/etc/systemd/system/{name}", "\n".join([*lines, ""]).encode())

    def drop_in(self, unit, section, *lines):
        self.guest.run(f"mkdir -p /etc/systemd/system/{unit}.d").check()
        self.unit(f"{unit}.d/{section}.conf", f"[{section}]", *lines)

    def when_s(self, unit, what):
        """Return when something happened to a unit last."""
        said = self.run(f"systemctl show --value -p {what}TimestampMonotonic {unit}")
        return int(said) / 1e6

    def inside(self, command):
        return f"nsenter -t $(pgrep -f '^{SYSTEMD}') -m -p -r {command}"

    def run(self, command, **more):
        """Run a command as a program of that host. Return: what it printed."""
        return self.guest.run(self.inside(command), **more).check().stdout

    def is_true(self, command):
        return self.guest.run(self.inside(command)).ok

    def pid(self):
        """Return the id of cmportd, as the guest counts."""
        return self.guest.run("pgrep -x cmportd").check().stdout.strip()

    def serve(self, options=""):
        """Start a server, which is there when this returns."""
        server = self.guest.start(self.inside(
            f"env PURECM_LOG=debug rping -s -a {self.guest.addr4} -v {options}"), timeout=300)
        server.wait_for_output("listening on", timeout=60)
        return server

    def ping(self):
        """Connect as nobody to a server of root's, through whatever cmportd there is."""
        server = self.serve("-C 2")
        try:
            client = "setpriv --reuid 65534 --regid 65534 --clear-groups " \
                f"rping -c -v -a {self.guest.addr4} -C 2"
            for done in (self.guest.run(self.inside(client), timeout=120), server.wait(60)):
                rping_ended(done)
                same(done.stdout.count("ping data: "), 2)
        finally:
            server.stop()


def same(seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{seen!r} instead of {wanted!r}")


@check
def the_socket_listens_before_anybody_comes(host):
    host.run("systemctl start cmportd.socket", timeout=120)
    same(host.run(f"stat -c '%a %F' {SOCKET}").strip(), "666 socket")
    same(host.is_true("systemctl is-active cmportd.service"), False)


@check
def programs_of_root_and_of_nobody_connect_through_the_service(host):
    host.ping()
    same(host.run("systemctl is-active cmportd.service").strip(), "active")


@check
def the_service_is_what_was_installed_with_no_more_than_it_needs(host):
    status = dict(line.split(":\t", 1) for line in
                  host.guest.run(f"cat /proc/{host.pid()}/status").stdout.splitlines())
    same([status["CapEff"], status["CapBnd"], status["NoNewPrivs"], status["Seccomp"]],
         [NET_RAW, NET_RAW, "1", "2"])
    same(host.guest.run(f"readlink /proc/{host.pid()}/exe").stdout.strip(),
         "/usr/local/libexec/purecm/cmportd")


@check
def it_has_all_that_it_needs(host):
    log = host.guest.run(f"cat {LOG}").check().stdout
    for bad in ("slower", "not permitted", "denied"):
        same([line for line in log.splitlines() if bad in line], [])
    same("port 1 is open" in log, True)


def commands_of_page(opening):
    """Return the indented lines of deployment.md after the paragraph that has this."""
    paragraphs = PAGE.read_text(encoding="utf-8").split(opening, 1)[1].split("\n\n")
    return "\n".join(line.strip() for line in paragraphs[1].splitlines())


@long_check
def a_pod_of_the_device_plugin_connects_as_nobody_through_the_hosts_cmportd(host):
    host.guest.run(commands_of_page("a number for local use")).check()
    for node in ("uverbs0", "umad0", "rdma_cm"):
        same(host.run(f"stat -c %F /dev/infiniband/{node}").strip(), "character special file")
    host.guest.write_file("/pod", POD.encode())
    pod = "unshare --mount --pid --fork --ipc --uts --mount-proc sh /pod "
    opened = host.guest.run(": </dev/infiniband/rdma_cm").stderr
    same("No such device or address" in opened, True)
    for node in ("rdma_cm", "umad0"):
        opened = host.guest.run(host.inside(f"{pod} sh -c ': </dev/infiniband/{node}'")).stderr
        same("Permission denied" in opened, True)
    server = host.serve("-C 2")
    try:
        client = host.guest.run(host.inside(f"{pod} rping -c -v -a {host.guest.addr4} -C 2"),
                                timeout=120)
        for done in (client, server.wait(60)):
            rping_ended(done)
            same(done.stdout.count("ping data: "), 2)
    finally:
        server.stop()
    host.guest.run("rm /etc/tmpfiles.d/purecm-rdma_cm.conf /dev/infiniband/rdma_cm").check()


@long_check
def the_drop_in_of_the_page_excludes_users_of_other_groups(host):
    edit, section, *settings = commands_of_page("the mode of the socket in a drop-in").splitlines()
    same([edit, section], ["# systemctl edit cmportd.socket", "[Socket]"])
    host.guest.run("getent group rdma || groupadd rdma").check()
    host.drop_in("cmportd.socket", "Socket", *settings)
    host.run("systemctl daemon-reload", timeout=120)
    try:
        host.run(commands_of_page("and make the socket anew"), timeout=120)
        same(host.run(f"stat -c '%a %G' {SOCKET}").strip(), "660 rdma")
        server = host.serve("-C 1")
        client = f"--clear-groups rping -c -v -a {host.guest.addr4} -C 1"
        same(host.is_true(f"setpriv --reuid 65534 --regid 65534 {client}"), False)
        rping_ended(host.guest.run(host.inside(f"setpriv --reuid 65534 --regid rdma {client}")))
        server.wait(60)
    finally:
        host.guest.run("rm /etc/systemd/system/cmportd.socket.d/Socket.conf")
        host.run("systemctl daemon-reload", timeout=120)
        host.run("systemctl restart cmportd.socket", timeout=120)


@long_check
def a_reload_reads_the_file_of_ports_that_the_page_has(host):
    host.ping()
    before = host.pid()
    for text, tos in ((commands_of_page("the last that matches a port counts"), 26), ("", 0)):
        host.guest.run("mkdir -p /usr/local/etc/purecm").check()
        host.guest.write_file("/usr/local/etc/purecm/ports", f"{text}\n".encode())
        host.run("systemctl reload cmportd", timeout=120)
        host.guest.wait_for(host.inside("/usr/local/bin/purecm doctor") +
                            f" | grep -q 'rxe0/1 has default_roce_tos={tos},'", timeout=30)
    same(host.pid(), before)


@long_check
def with_the_option_open_the_ports_are_open_before_anybody_comes(host):
    page = (PAGE.parent / "man/cmportd.8").read_text(encoding="utf-8")
    lines = page.split("\n[Service]\n")[1].split("\n.fi\n")[0].replace("\\-", "-").splitlines()
    host.unit("cmportd.service.d/open.conf", "[Service]", *lines)
    host.run("systemctl daemon-reload", timeout=120)
    try:
        host.guest.run(f": >{LOG}").check()
        host.run("systemctl restart cmportd.service", timeout=120)
        host.guest.wait_for(f"grep -q 'port 1 is open' {LOG}", timeout=60)
    finally:
        host.guest.run("rm /etc/systemd/system/cmportd.service.d/open.conf")
        host.run("systemctl daemon-reload", timeout=120)
        host.run("systemctl restart cmportd.service", timeout=120)


@check
def a_service_that_was_killed_is_back(host):
    before = host.pid()
    host.guest.run(f"kill -9 {before}").check()
    host.guest.wait_for(f"pgrep -x cmportd | grep -vqx {before}", timeout=60)
    host.ping()


@long_check
def who_is_killed_together_with_the_service_is_disconnected_by_the_next(host):
    words = f"rping -c -a {host.guest.addr4}"
    server = host.serve()
    try:
        client = host.guest.start(host.inside(words), timeout=300)
        server.wait_for_output("ping data", timeout=60)
        host.guest.run(f"kill -9 {host.pid()} $(pgrep -xf '{words}')").check()
        client.wait(20)
        server.wait_for_output("DISCONNECT EVENT", timeout=60)
    finally:
        server.stop()


@long_check
def a_service_that_was_stopped_comes_when_it_is_needed(host):
    host.run("systemctl stop cmportd.service", timeout=120)
    same(host.is_true(f"test -S {SOCKET} -a -f {SOCKET}.state"), True)
    host.ping()


@check
def when_the_host_goes_down_it_ends_the_connections_of_services_that_do_not(host):
    address = host.guest.addr4
    host.unit("talker.service", "[Service]", f"ExecStart=/usr/bin/rping -c -a {address}",
              "KillSignal=SIGKILL")
    server = host.serve()
    try:
        host.run("systemctl start basic.target talker.service", timeout=120)
        server.wait_for_output("ping data", timeout=60)
        host.run("systemctl isolate nothing.target", timeout=120)
        server.wait_for_output("DISCONNECT EVENT", timeout=60)
        if host.when_s("talker.service", "InactiveEnter") > host.when_s("cmportd.service",
                                                                        "ActiveExit"):
            raise AssertionError("cmportd was stopped before a service that it serves")
    finally:
        server.stop()


@check
def without_the_units_a_program_starts_what_is_installed(host):
    host.run("systemctl stop cmportd.socket cmportd.service", timeout=120)
    # The server of the check before may have started one, when systemd's went down.
    host.guest.run("pkill -x cmportd")
    host.guest.wait_for(host.inside(f"test ! -e {SOCKET}"), timeout=60)
    host.ping()
    same(host.guest.run(f"readlink /proc/{host.pid()}/exe").stdout.strip(),
         "/usr/local/libexec/purecm/cmportd")


def run(function, host):
    """Run one check and print its line. Return: did it pass?"""
    began, why = time.monotonic(), ""
    try:
        function(host)
    except (AssertionError, LabError) as error:
        why = f": {error} (line {traceback.extract_tb(error.__traceback__)[1].lineno})"
    name = function.__name__.replace("_", " ")
    print(f"{'failed' if why else 'passed':8}{name} ({time.monotonic() - began:.1f} s){why}",
          flush=True)
    return not why


def why_not(build):
    """Return what the lab misses, or an empty string."""
    for program, package in (("qemu-system-x86_64", "qemu-system-x86"), ("systemctl", "systemd"),
                             ("rping", "rdmacm-utils")):
        if not shutil.which(program):
            return f"no {program}: apt-get install {package}"
    options = (build / "meson-info/intro-buildoptions.json").read_text(encoding="utf-8")
    if '"value": "/usr/local"' not in options:
        return "the build folder has another prefix than /usr/local"
    return ""


def main():
    parser = argparse.ArgumentParser(description="cmportd under systemd, in a guest of tests/lab")
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default="", help="checks whose name has this, and the first")
    args = parser.parse_args()
    build = args.build.resolve()
    if why_not(build):
        print(f"skipped: {why_not(build)}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="purecm-install-") as folder:
        root = Path(folder) / "root"  # becomes / and has to be everybody's
        root.mkdir(mode=0o755)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir",
                        root], check=True, stdin=subprocess.DEVNULL)
        with Lab({"a": "purecm"}) as lab:
            host = Host(lab.a, root)
            passed = [run(function, host) for function in CHECKS
                      if args.only in function.__name__ or function is CHECKS[0]]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed, 0 skipped")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
