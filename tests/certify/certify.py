#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm certify between two hosts: its verdicts on devices of the soft fabric, whose quirks are
known, and, with --lab, on rxe.

certify.py            a few trials, on the worst device
certify.py --each     all of them, on each device, and by Debian's sshd
certify.py --lab      all of them, on two kernels with rxe, also with stock on one, and by Debian's
                      sshd in five minutes; with --release those of another Debian

On the fabric as user 65534 where root runs it. Prints a line a failure, and last "N passed, N
failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no fabric, or no lab, here.
"""
import argparse
import contextlib
import importlib
from importlib.machinery import SourceFileLoader
import json
import os
from pathlib import Path
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import types

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/lab", "tests/fabric")]
from hosts import CONNECTING, DEVICES, Skip, SkipOne, run_on_fabric, run_tests  # noqa: E402
from lablib import Lab, userland  # noqa: E402
from lablib.release import RELEASES  # noqa: E402

NOBODY = 65534
SSHD, SSH_PORT = "/usr/sbin/sshd", 2222
NO_SSHD = "apt-get install openssh-server"
REPORTS = ROOT / "docs/certificates"
LIMIT_S = 300
SECRET, SERVE = "PURECM_SECRET=of-the-test", "--serve --listen ::"
SOON_S = 6
# What is built in the root of another release.
TARGETS = ("lib/librdmacm.so.1.5.0", "tools/cmportd/cmportd", "tools/purecm", "tools/purecm-agent",
           *(f"tools/certify/{name}" for name in (
               "attributes", "connect", "hold", "mads", "parity", "certify", "host.py",
               "inventory.py", "link.py", "network.py", "page.py", "pair.py", "scripts.py",
               "trials.py", "ways.py", "compare.py", "differences.md", "stock.txt")))
LAB_LIMIT_S = 3600
IN_SECONDS = 300  # as docs/hardware.md promises
UNHURRIED = ("--seconds", "3600")  # no verdict depends on the speed of the host
BLOCKED_US = 1e6  # by the first write to umad
SHORT = ("addresses", "mads", "killed-cmportd", "fast-path")
FAST_WAY = "MAD from a queue pair of its own to QP1"
NOT_ALLOWED = {"port down, address gone, device renamed": "not tried"}
ON_IB = ("addresses", "mads", "killed-cmportd", "fast-path")
SURE_WAY = "MAD from QP1 to QP1"
HANGS_ON_SPEED = "messages"  # a busy host answers late, and what waits for it is repeated


def part(build, name):
    """A module of purecm certify."""
    folder = f"{build}/tools/certify"
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def nobody():
    """Return the words that make a command an ordinary user's, if we are root."""
    user = str(NOBODY)
    return [] if os.geteuid() else ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]


def certificate(folder):
    """Return (verdict and why of each feature, the certificate)."""
    found = json.loads(Path(folder, "page.json").read_text(encoding="utf-8"))
    page = Path(folder, "page.html").read_text(encoding="utf-8")
    assert all(row["feature"] in page for row in found["rows"]), "a feature is not on the page"
    assert "src=" not in page and "href=" not in page, "the page needs something else"
    return {row["feature"]: row for row in found["rows"]}, found


def keep(folder, device, options):
    """Copy a whole certificate to the folder $PURECM_CERTIFICATES, if that is set."""
    kept = os.environ.get("PURECM_CERTIFICATES")
    name = "-".join([device, *(word for word in options if not word.startswith("--"))])
    for suffix in (".json", ".html") if kept else ():
        shutil.copyfile(f"{folder}/page{suffix}", f"{kept}/{name}{suffix}")


def certify_on_fabric(build, options, trials, allowed=(), rsh=None, others=(), user=None,
                      ends=("a", "b"), conduct=None):
    """Certify hosts of a fabric with these options; others: commands that run meanwhile. rsh: a
    command that starts the other side; conduct: one instead of `purecm certify`. Return (exit
    status, as certificate())."""
    address = f"10.77.0.{1 + 'abc'.index(ends[1])}"
    certify = f"{build}/tools/purecm certify"
    words = [*allowed, *([] if "--seconds" in trials else UNHURRIED),
             *(["--only", *trials] if trials else [])]
    with tempfile.TemporaryDirectory(prefix="certify-") as folder:
        os.chmod(folder, 0o777)
        if rsh:
            hosts = [f"a:{certify} --ssh b --rsh '{rsh}' "
                     f"--command '{certify} --serve' --output {folder}/page {' '.join(words)}"]
        else:
            conduct = (f"{conduct or certify} {address} --output {folder}/page "
                       f"{' '.join(words[len(allowed):])}")
            hosts = [f"{ends[1]}&:{SECRET} {certify} {SERVE} {' '.join(allowed)} 2>&1",
                     f"{ends[0]}:export {SECRET}; for i in $(seq 100); do {conduct}; s=$?; "
                     f"[ -e {folder}/page.json ] && exit $s; sleep 0.1; done; exit 9"]
        done = run_on_fabric(build, LIMIT_S, *options, *others, *hosts,
                             prefix=nobody() if user is None else user)
        if not Path(folder, "page.json").exists():
            raise AssertionError(f"status {done.returncode}: {done.stdout[-2000:]}{done.stderr}")
        assert not Path(folder, "page.html").stat().st_mode & 0o077, "others can read the page"
        if not trials:
            keep(folder, "fabric", options)
        return done.returncode, *certificate(folder)


def expect(rows, wanted, text):
    """All rows work, but those that are named."""
    for feature, row in rows.items():
        verdict = wanted.get(feature, "works")
        if feature == HANGS_ON_SPEED and row["verdict"] == "works slower":
            continue
        assert row["verdict"] == verdict, f"{text}: {feature} {row['verdict']}: {row['why']}"
    for feature in wanted:
        assert feature in rows, f"{text}: no verdict on {feature}"


def verdicts_on(device):
    """What is known to be true of it."""
    quirks = DEVICES[device][0] if device else ()
    slow = "works slower"
    return {FAST_WAY: slow, "fast path": slow} if "no-fast-path" in quirks else {}


def what_the_worst_device_cannot_do_is_said(build):
    status, rows, found = certify_on_fabric(build, ("--device", "worst"), SHORT)
    expect(rows, verdicts_on("worst"), "worst")
    assert status == 0, f"status {status}"
    assert SURE_WAY in rows and "address: link-local" in rows, list(rows)
    ways = {(mad["from"], mad["to"]): mad for mad in found["mads"] if mad["kind"] == "IPv4"}
    assert not ways["own", "qp1"]["answered"], ways
    assert ways["umad", "qp1"] | {"sent": 1000, "answered": 1000, "arrived_at": "qp1",
                                  "source_qpn": 1, "grh": True} == ways["umad", "qp1"], ways
    assert ways["umad", "qp1"]["max_us"] > BLOCKED_US, ways
    assert ways["own", "own"]["source_qpn"] > 1, ways


def where_a_cmportd_runs_already_its_ports_are_opened(build):
    """It opens a port for programs only."""
    serving = [f"{host}:{build}/tools/cmportd/cmportd --detach --idle 0" for host in "ab"]
    status, rows, _ = certify_on_fabric(build, ("--device", "worst"), (
        "addresses", "mads", "fast-path"), others=serving)
    expect(rows, {"fast path": "works slower", "ways of a MAD": "not tried"}, "served already")
    assert "address: link-local" in rows and status == 0, (status, list(rows))


def check_device(build, device):
    status, rows, _ = certify_on_fabric(build, ("--device", device) if device else (), ())
    expect(rows, verdicts_on(device) | NOT_ALLOWED, device)
    assert status == 0, f"{device}: status {status}"


def hosts_of_other_addresses_than_the_labs_are_as_stock_too(build):
    """Which are in stock.txt: 10.77.0.1 of the client, and 10.77.0.2 of the server."""
    for ends in (("c", "b"), ("b", "a")) if os.environ.get("PURECM_TEST_LONG") else (("c", "a"),):
        _, rows, _ = certify_on_fabric(build, ("--hosts", "3"), ("parity",), ends=ends)
        expect(rows, {}, f"from {ends[0]} to {ends[1]}")


def infiniband_gets_its_verdicts(build):
    """What knows RoCE only is not tried there, with --long all else is."""
    trials = () if os.environ.get("PURECM_TEST_LONG") else ON_IB
    status, rows, _ = certify_on_fabric(build, ("--link", "ib"), trials)
    untried = {feature: "not tried" for feature, row in rows.items()
               if "RoCE" in row["why"] or feature in (*NOT_ALLOWED, "ways of a MAD")}
    expect(rows, untried, "InfiniBand")
    assert "address: IPv4 over InfiniBand" in rows and "ways of a MAD" in rows, list(rows)
    assert status == 0, f"status {status}"


def what_does_not_fit_into_the_time_is_left_out_and_said(build):
    """The first trial has no time, and tries the least; the next is not tried."""
    for first, feature, cut in (("drills", "protocol, message by message (b tested)", "not played"),
                                ("parity", "as stock, event by event", "not played"),
                                ("mads", SURE_WAY, "as this host is slow")):
        status, rows, _ = certify_on_fabric(build, (), (first, "crowd", "--seconds", "0.1"))
        expect(rows, {"crowd": "not tried"}, "in no time")
        assert cut in rows[feature]["why"] and status == 0, (status, rows)


def what_does_not_end_in_time_is_ended_and_said(build):
    """On a device that takes 50 ms for each command a hundred queue pairs take a minute."""
    folder = f"{build}/tools/certify"
    conduct = (f"python3 -c 'import sys; sys.path.insert(0, \"{folder}\"); import pair; "
               f"pair.LEAST_S = {SOON_S}; sys.argv[0] = \"{folder}/certify\"; "
               "exec(open(sys.argv[0]).read())'")
    _, rows, _ = certify_on_fabric(build, ("--slow", "50000"), (
        "connections", "crowd", "--seconds", "0.1"), conduct=conduct)
    expect({"crowd": rows["crowd"], "connections": rows["connections"]}, dict.fromkeys((
        "connections", "crowd"), "not tried"), "cut")


def what_is_left_of_the_time_limits_commands(build):
    pairs = part(build, "pair")

    class Slow:
        """Commands never end."""
        asked = []

        def run(self, limit_s, *_):
            self.asked.append(limit_s)
            return ["half", None]

        expect = lambda self, number, pattern, limit_s: self.run(limit_s)

    for before_cut, limit_s, wanted in ((10, 5, 5), (3, 5, 3), (0, 5, None), (-1, 5, None)):
        host = pairs.Timed(Slow(), types.SimpleNamespace(before_cut=lambda left=before_cut: left))
        for call, text in ((lambda: host.run(limit_s, "mads"), "half"),
                           (lambda: host.expect(1, "^ready", limit_s), "half")):
            Slow.asked.clear()
            try:
                said = call()
            except pairs.OutOfTime as late:
                said = late.text
            assert said == (["half", None] if wanted == limit_s else text if wanted else ""), said
            assert Slow.asked == ([wanted] if wanted else []), (before_cut, Slow.asked)


def what_does_not_connect_does_not_keep_its_port(build):
    """Or the next trial would fail, too."""
    trials = part(build, "trials")
    ended = []
    host = types.SimpleNamespace(start=lambda *_: 7, expect=lambda *_: ["no", None],
                                 end=ended.append)
    pair = types.SimpleNamespace(a=host, b=host, main=types.SimpleNamespace(there="10.77.0.2"))
    with contextlib.suppress(trials.Trouble), trials.Holding(pair, 1, 0):
        raise AssertionError("it does not listen")
    assert ended == [7], ended


def by_ssh_both_hosts_are_certified_at_once(build):
    """`fabric exec` stands for ssh; what is disrupted is a port, and a device's name. An address
    needs root of the host's network."""
    status, rows, found = certify_on_fabric(build, ("--device", "worst"), ("disruptions",),
                                            ("--disrupt",), f"{build}/tools/purecm fabric exec")
    address = "the address goes away for a second"
    assert rows[address]["verdict"] in ("works", "not tried"), rows[address]
    expect({name: row for name, row in rows.items() if name != address}, {}, "by ssh")
    assert len(rows) == 3 and status == 0 and found["hosts"]["b"]["may_disrupt"], rows


def what_depends_on_a_device_is_not_compared(build):
    """Whether it can flush memory, for instance, as rxe of Linux 6.12 can; rights are."""
    scripts = part(build, "scripts")
    own, other, wrong = map(scripts.without_device, ("  access_flags 0xe", "  access_flags 0x30e",
                                                    "  access_flags 0x306"))
    assert own == other != wrong, (own, other, wrong)
    none, some, unset = map(scripts.without_device, (
        "vendor 0 options 0 comp_mask 0", "vendor 0x5043 options 0x7 comp_mask 0",
        "vendor 0x1 options 0x2 comp_mask 9"))
    assert none == some != unset, (none, some, unset)


def drills_that_fail_where_clocks_differ_are_not_judged(build):
    """As between emulated hosts, one of which was too busy at its boot to measure its clock."""
    pairs, scripts = part(build, "pair"), part(build, "scripts")
    for seconds, verdict in ((100, pairs.FAILS), (110, pairs.FAILS), (230, pairs.UNTRIED),
                             (22, pairs.UNTRIED)):
        pair = object.__new__(pairs.Pair)
        pair.a, pair.b = (types.SimpleNamespace(clock=lambda now=now: now)
                          for now in (1100, 2000 + seconds))
        pair.clocks = 1000, 2000
        for row in (pairs.Row("drills", pairs.FAILS, "16 of 18"), pairs.Row("", pairs.WORKS, "")):
            said = scripts.unless_clocks_differ(pair, row)
            wanted = verdict if row.verdict == pairs.FAILS else pairs.WORKS
            assert said.verdict == wanted and row.why in said.why, (seconds, said)


def the_other_host_does_not_control_the_terminal(build):
    said = part(build, "page").line({"verdict": "works", "feature": "a\x1b[2J", "why": "\x9b2J",
                                     "remedy": ""})
    assert said == "works          a?[2J: ?2J", said


def each_device_has_a_report_on_the_page(_):
    """As `certify.py --each` kept it; docs/hardware.md links to each."""
    page = Path(ROOT, "docs/hardware.md").read_text(encoding="utf-8")
    for path in sorted(REPORTS.iterdir()):
        assert f"certificates/{path.name}" in page, f"docs/hardware.md does not name {path.name}"
    for device in (None, *CONNECTING):
        name = "fabric.json" if not device else f"fabric-{device}.json"
        found = json.loads(Path(REPORTS, name).read_text(encoding="utf-8"))
        expect({row["feature"]: row for row in found["rows"]}, verdicts_on(device) | NOT_ALLOWED,
               name)


def ssh_between(folder, given):
    """Make keys in a folder; given: the environment of what is started by ssh. Return (the command
    of a host that lets this user in, ssh)."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"],
                       check=True)
    options = {"HostKey": f"{folder}/host", "AuthorizedKeysFile": f"{folder}/user.pub",
               "PidFile": "none", "StrictModes": "no", "UsePAM": "no",
               **({"SetEnv": given} if given else {})}
    words = " ".join(f'-o "{name}={value}"' for name, value in options.items())
    trusting = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    return (f"mkdir -p /run/sshd; {SSHD} -D -e -f /dev/null -p {SSH_PORT} {words}",
            f"ssh -p {SSH_PORT} -i {folder}/user -o BatchMode=yes {trusting}")


def by_debians_sshd_both_hosts_are_certified(build):
    """As whoever runs this test: an ordinary user of a container may have no shell."""
    assert Path(SSHD).exists(), NO_SSHD
    given = " ".join(f"{name}=${name}" for name in (
        "PATH", "LD_LIBRARY_PATH", "PURECM_FABRIC", "PURECM_SOCKET", "PURECM_FABRIC_KERNEL"))
    with tempfile.TemporaryDirectory(prefix="certify-ssh-") as folder:
        serve, ssh = ssh_between(folder, given)
        status, rows, _ = certify_on_fabric(build, (), (*SHORT, "disruptions"), ("--disrupt",), ssh,
                                            (f"b&:{serve} 2>&1",), ())
    address = "the address goes away for a second"
    assert rows[address]["verdict"] in ("works", "not tried"), rows[address]
    expect({name: row for name, row in rows.items() if name != address}, {}, "by sshd")
    assert status == 0, f"status {status}"


def nobody_serves_and_that_is_said(build):
    done = run_on_fabric(build, LIMIT_S, f"a:{build}/tools/purecm certify 10.77.0.2 2>&1")
    assert done.returncode == 1 and "purecm certify --serve" in done.stdout, done.stdout


@contextlib.contextmanager
def serving(build):
    """A certify that waits. Yields (its port, its secret)."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([f"{build}/tools/purecm", "certify", "--serve", f"--port={port}"],
                          stderr=subprocess.PIPE, text=True) as server:
        try:
            yield port, server.stderr.readline().split()[-1]
        finally:
            server.terminate()


def is_watched(port):
    """Whether the system looks if the other end of the server's connection is still there."""
    look = ["ss", "-tnoH", "state", "established", "sport", "=", f":{port}"]
    while "timer:(on," in (seen := subprocess.check_output(look, text=True)):
        pass  # what was sent last is not acknowledged yet
    return "timer:(keepalive," in seen


def who_does_not_know_the_secret_has_nothing_run(build):
    """Nor does it keep the one who does waiting; neither may run what no trial needs."""
    link = part(build, "link")
    with tempfile.TemporaryDirectory() as folder, serving(build) as (port, secret):
        shell = "run", 5, "purecm", "run", "--", "/bin/sh", "-c", f"touch {folder}/run"
        strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for stranger, text in zip(strangers, (
                json.dumps(shell).encode() + b"\n", bytes(32) + b"x " + json.dumps(shell).encode()
                + b"\n", b"\xff" * 5000 + b"\n")):
            stranger.sendall(text)
        with socket.create_connection(("127.0.0.1", port)) as sock:
            assert link.greet(sock, secret.encode() + b"0", link.CLIENT) is None, "any secret"
        with socket.create_connection(("127.0.0.1", port)) as sock:
            remote = link.Remote(link.greet(sock, secret.encode(), link.CLIENT), sock.close)
            assert remote.clock() > 0
            assert is_watched(port), "a host that vanishes would keep the server waiting"
            for words in (shell, ("run", 5, "hold", "server", "/x"), ("start", "cmportd"),
                          ("_start", "purecm"), ("run", 5, "purecm", "doctor", "--json", "-x")):
                try:
                    said = getattr(remote, words[0])(*words[1:])
                except link.hosts.Trouble as trouble:
                    said = str(trouble)
                assert " no " in said, said
            remote.leave()
        assert not os.listdir(folder), "a stranger ran a command"
        for stranger in strangers:
            stranger.close()


def a_host_that_has_gone_is_said(build):
    """Not even the request can be sent then."""
    link = part(build, "link")
    ours, theirs = socket.socketpair()
    theirs.close()
    remote = link.Remote(link.Link(ours.makefile("rb"), ours.makefile("wb"), None), ours.close)
    try:
        remote.clock()
    except link.hosts.Trouble as trouble:
        assert "has gone" in str(trouble), trouble
    else:
        raise AssertionError("what has gone has answered")


def what_was_found_is_written_before_the_other_host_is_left(build):
    trouble = part(build, "host").Trouble
    certify = SourceFileLoader("program", f"{build}/tools/certify/certify").load_module()
    written = []

    def leave():
        raise trouble("it has gone")
    certify.reach = lambda _: types.SimpleNamespace(leave=leave)
    certify.certify = lambda *_: {"rows": []}
    certify.write = lambda *said: written.append(said)
    with contextlib.suppress(trouble):
        certify.conduct(types.SimpleNamespace(output="page"))
    assert written == [({"rows": []}, "page")], written


def a_page_that_cannot_be_written_is_said_at_once(build):
    done = subprocess.run([f"{build}/tools/purecm", "certify", "localhost", "--output=/no/page"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "/no is no folder" in done.stderr, done


def named(test, *words):
    """A test with arguments, for run_tests()."""
    def run(subject):
        test(subject, *words)
    run.__name__ = f"{test.__name__} {words[-1]}"
    return run


# --- in the lab ----------------------------------------------------------------------------------

def conduct_in_lab(lab, certify, *options):
    """Certify from a, and print what it says. Return as certificate()."""
    conduct = lab.a.start(f"{certify} --output /tmp/page {' '.join(options)}",
                          timeout=LAB_LIMIT_S)
    try:
        conduct.wait(LAB_LIMIT_S)
    finally:
        print(conduct.output(), flush=True)
    with tempfile.TemporaryDirectory(prefix="certify-") as folder:
        for name in ("page.json", "page.html"):
            Path(folder, name).write_bytes(lab.a.read_file("/tmp/" + name))
        rows, found = certificate(folder)
        kernel = ".".join(found["hosts"]["a"]["kernel"].split(".")[:2])
        kind = [found["hosts"]["b"]["library"]] if "--ssh" not in certify else ["ssh"]
        keep(folder, f"rxe-linux-{kernel}", [word for word in kind if word != "purecm"])
        return rows, found


def certify_in_lab(lab, build, *options):
    """Return as certificate()."""
    certify = f"{build}/tools/purecm certify"
    server = lab.b.start(f"{SECRET} {certify} {SERVE} --disrupt {' '.join(options)}",
                         timeout=LAB_LIMIT_S)
    try:
        server.wait_for_output("waiting for", timeout=60)
        return conduct_in_lab(lab, f"{SECRET} {certify} {lab.b.addr4}", *UNHURRIED)
    finally:
        server.stop()


def add_vlan(guest, number):
    guest.run("set -e; modprobe 8021q; ip link add link eth0 name eth0.5 type vlan id 5; "
              f"ip addr add 10.77.5.{number}/24 dev eth0.5; ip link set eth0.5 up", check=True)


def rxe_gets_its_verdicts(lab, build):
    add_vlan(lab.a, 1)
    add_vlan(lab.b, 2)
    rows, found = certify_in_lab(lab, build)
    # Both interfaces have one link-local address: what it is for goes through umad.
    own = {feature: "works slower" for feature in rows if "a queue pair of its own" in feature}
    expect(rows, own, "rxe")
    for feature in ("address: IPv4 on a VLAN", "the device has another name for a second"):
        assert feature in rows, f"no verdict on {feature}: {list(rows)}"
    for host in found["hosts"].values():
        stock_of_rxe_is_taken(host)


def stock_of_rxe_is_taken(host):
    """As the kernel of the lab has it, and what the lab has loaded."""
    device, = host["devices"]
    assert (device["name"], device["driver"]) == ("rxe0", "rxe (software)"), device
    assert device["limits"]["max_qp"] > 100 and device["limits"]["max_sge"] > 1, device["limits"]
    assert device["inline_rc"] > 100 and device["inline_ud"] > 100, device
    assert device["privileged_qkey"] == "permitted" and not device["lag"], device
    port, = device["ports"]
    assert port["mtu"] == 1024 and port["pkeys"] == {"0": "0xffff"}, port
    assert {gid["interface"] for gid in port["gids"]} == {"eth0", "eth0.5"}, port["gids"]
    assert host["vlans"]["eth0.5"] == {"id": 5, "of": "eth0"}, host["vlans"]
    assert host["interfaces"]["eth0"] == {"mtu": 1500, "state": "up"}, host["interfaces"]
    assert set(host["modules"]["ib_core"]["by"]) >= {"rdma_rxe", "ib_umad", "ib_uverbs"}, host
    assert "netns" in host["rdma_system"] and "NET_RAW" in host["capabilities"], host


def other_users_may_not_have_the_qkey_of_qp1(lab, build):
    """Linux asks for CAP_NET_RAW, Debian's 6.1 too, and the certificate says so."""
    lab.a.run("chmod 0666 /dev/infiniband/uverbs0", check=True)
    done = lab.a.run(f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups "
                     f"{build}/tools/certify/attributes", check=True)
    assert json.loads(done.stdout)["privileged_qkey"] == "Operation not permitted", done.stdout


def by_sshd_two_kernels_are_certified_in_five_minutes(lab, build):
    """However slow they are: what there is no time for is not tried."""
    if not lab.b.run(f"test -x {SSHD}").ok:
        raise SkipOne(NO_SSHD)
    lab.b.mode("purecm", kill=True)
    with tempfile.TemporaryDirectory(prefix="certify-ssh-") as folder:
        serve, ssh = ssh_between(folder, "")
        for guest in (lab.a, lab.b):
            guest.run(f"mkdir -p -m 0700 {folder}", check=True)
            for path in Path(folder).iterdir():
                guest.write_file(str(path), path.read_bytes())
                guest.run(f"chmod 0600 {path}", check=True)
        server = lab.b.start(serve, timeout=LAB_LIMIT_S)
        try:
            server.wait_for_output("listening", timeout=60)
            certify = f"{build}/tools/purecm certify"
            begin = time.monotonic()
            rows, found = conduct_in_lab(
                lab, f"{certify} --ssh {lab.b.addr4} --rsh '{ssh}' --command '{certify} --serve'",
                "--disrupt")
            took = time.monotonic() - begin
        finally:
            server.stop()
    bad = {feature: row["why"] for feature, row in rows.items()
           if row["verdict"] == "does not work"}
    assert not bad, bad
    assert found["seconds"] < IN_SECONDS, found["seconds"]
    print(f"by sshd: {found['seconds']:.0f} s, {took:.0f} with its start and end", flush=True)


def stock_gets_its_verdicts(lab, build):
    lab.b.mode("stock")
    rows, found = certify_in_lab(lab, build, "--stock")
    assert found["hosts"]["b"]["library"] == "stock", found["hosts"]["b"]
    bad = [f"{feature}: {row['why'][:200]}" for feature, row in rows.items()
           if row["verdict"] == "does not work"]
    assert not bad, bad


def test_in_lab(build, release):
    if not shutil.which("qemu-system-x86_64"):
        raise Skip("QEMU is missing: apt-get install qemu-system-x86\n")
    if not release.is_own:
        build = userland.build_or_exit(release, TARGETS)
    with Lab({"a": "purecm", "b": "purecm"}, release=release.name) as lab:
        return run_tests([named(test, build) for test in (
            rxe_gets_its_verdicts, other_users_may_not_have_the_qkey_of_qp1,
            stock_gets_its_verdicts, by_sshd_two_kernels_are_certified_in_five_minutes)], lab)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--each", action="store_true", help="on each device of the fabric")
    parser.add_argument("--lab", action="store_true", help="between two kernels with rxe")
    parser.add_argument("--release", choices=RELEASES, default="own", help="their Debian (own)")
    args = parser.parse_args()
    build = args.build.resolve()
    if args.each:
        tests = [named(check_device, device) for device in (None, *CONNECTING)]
        return run_tests((*tests, by_debians_sshd_both_hosts_are_certified), build)
    if not args.lab:
        return run_tests((what_the_worst_device_cannot_do_is_said,
                          where_a_cmportd_runs_already_its_ports_are_opened,
                          infiniband_gets_its_verdicts,
                          hosts_of_other_addresses_than_the_labs_are_as_stock_too,
                          each_device_has_a_report_on_the_page,
                          the_other_host_does_not_control_the_terminal,
                          what_depends_on_a_device_is_not_compared,
                          drills_that_fail_where_clocks_differ_are_not_judged,
                          what_does_not_fit_into_the_time_is_left_out_and_said,
                          what_does_not_end_in_time_is_ended_and_said,
                          what_is_left_of_the_time_limits_commands,
                          what_does_not_connect_does_not_keep_its_port,
                          by_ssh_both_hosts_are_certified_at_once,
                          who_does_not_know_the_secret_has_nothing_run,
                          a_host_that_has_gone_is_said,
                          what_was_found_is_written_before_the_other_host_is_left,
                          a_page_that_cannot_be_written_is_said_at_once,
                          nobody_serves_and_that_is_said), build)
    try:
        return test_in_lab(build, RELEASES[args.release])
    except Skip as skip:
        print(f"{skip}0 passed, 0 failed, 4 skipped")
        return 77


if __name__ == "__main__":
    sys.exit(main())
