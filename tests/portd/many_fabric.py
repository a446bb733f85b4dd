#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many processes of a host on one cmportd, on a soft fabric: crowds and storms, programs that die
together with it, and the next one that has the same queue pairs.

Prints what was measured, a line a failure, and last "N passed, N failed, N skipped". Exit status: 1
if a test failed, 77 if there can be no fabric here.
"""
import argparse
import json
import os
from pathlib import Path
import re
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("fabric", "siege", "")]

from hosts import SkipOne, run_on_fabric, run_tests  # noqa: E402
from siege import NOBODY, open_to_all  # noqa: E402

LONG = bool(os.environ.get("PURECM_TEST_LONG"))
LIMIT_S = 100
PORT = 7700
CLIENT, SERVER = "10.77.0.1", "10.77.0.2"
STORM, STORM_EACH = 64, 32
PAIRS = 50 if LONG else 16
JOB = 1000 if LONG else 200  # each leases 256 ports, and 96 times that is all that a user may have
LIVES = 10
TRIES, TRY_S = 6000, 0.02
SAME_QPN = 4660
CLIENTS, MANY = 20, 4000  # who cost cmportd something, and connections of one of them
NO_GROUP = "no control group (v2) can be made here"


class Hosts:
    """Commands for two hosts, a and b, on which the programs of a build are played."""

    def __init__(self, build):
        self.build = build
        self.hold = f"{build}/tools/certify/hold"
        # Beside the programs of this folder there is another cmportd, for tests/loop.
        self.cmportd = f"{build}/tools/cmportd/cmportd --confine=kill --detach"

    def server(self):
        return (f"b&:echo $$ >$PURECM_FABRIC/server; exec {self.hold} server {SERVER} {PORT} "
                ">$PURECM_FABRIC/served")

    def play(self, name, *words):
        """Return a command that does one of PLAYS on host a."""
        return f"a:exec {sys.executable} {__file__} --build {self.build} --play {name} " + \
            " ".join(map(str, words))

    def await_count(self, line):
        """Return a command that waits for the server to say how many it has."""
        return (f"b:for i in $(seq 100); do kill -USR1 $(cat $PURECM_FABRIC/server); sleep 0.1; "
                f"grep -q '{line}' $PURECM_FABRIC/served && exit 0; done; "
                "tail -1 $PURECM_FABRIC/served; exit 1")

    def run(self, *commands, first=None):
        """Run commands on the hosts. Return: what they printed."""
        first = [f"a:{self.cmportd}"] if first is None else first
        done = run_on_fabric(self.build, LIMIT_S, "--gap", "0.3", *first, *commands,
                             stderr=subprocess.STDOUT)
        if done.returncode:
            raise AssertionError(f"status {done.returncode}: {done.stdout[-1000:]}")
        return done.stdout


# --- what is played on a host -----------------------------------------------


def begin_holding(hosts, count, **env):
    return subprocess.Popen([hosts.hold, "client", SERVER, str(PORT), str(count), "0"],
                            stdout=subprocess.PIPE, text=True, env={**os.environ, **env})


def await_held(*clients):
    """Wait until all of a client's connections are there."""
    for client in clients:
        line = client.stdout.readline()
        if not line.startswith("held"):
            raise AssertionError(f"a client says {line!r}")


def kill(*clients):
    for client in clients:
        client.kill()
    for client in clients:
        client.wait()


def play_storm(hosts):
    """Connect from many processes at once."""
    begin = time.monotonic()
    clients = [begin_holding(hosts, STORM_EACH) for _ in range(STORM)]
    await_held(*clients)
    print(f"stormed in {time.monotonic() - begin:.2f} s")
    kill(*clients)


def play_users_job(hosts):
    """Connect from many processes of another user than root, which begin at once."""
    open_to_all()
    go = os.environ["PURECM_FABRIC"] + "/go"
    os.mkfifo(go, 0o666)
    os.chmod(go, 0o666)
    words = [*NOBODY, "sh", "-c", 'read -r _ <"$0"; exec "$@"', go, hosts.hold, "client", SERVER,
             str(PORT), "1", "0"]
    clients = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "HOLD_QPN": str(SAME_QPN + i)})
               for i in range(JOB)]
    begin = time.monotonic()
    with open(go, "w", encoding="ascii") as file:  # waits until one reads
        file.write(JOB * "\n")
        file.flush()
        await_held(*clients)
    print(f"began in {time.monotonic() - begin:.2f} s")
    kill(*clients)


def await_server(counts):
    """Wait until the server says that it has so many."""
    other = Path(os.environ["PURECM_FABRIC"]).parent / "b"
    for _ in range(TRIES):
        os.kill(int((other / "server").read_text()), signal.SIGUSR1)
        time.sleep(TRY_S)
        if f" {counts}" in (other / "served").read_text():
            return
    raise AssertionError(f"the server never had {counts}")


def await_rtus(count):
    """What a client has sent last is on its way: cmportd has to have passed it on."""
    await_server(f"{count} established")


def play_lives(hosts):
    """Kill a program time and again, and start it with the same queue pairs."""
    for life in range(LIVES):
        client = begin_holding(hosts, 20, HOLD_QPN=str(SAME_QPN))
        await_held(client)
        await_rtus(20 * (life + 1))
        kill(client)
        # A queue pair is its peer's until then.
        await_server(f"{20 * (life + 1)} disconnected")


def play_end(hosts):
    """End cmportd, and a moment later its client, which cannot look for another meanwhile."""
    client = begin_holding(hosts, 100)
    await_held(client)
    client.send_signal(signal.SIGSTOP)
    os.kill(pid_of_cmportd(), signal.SIGTERM)
    time.sleep(0.05)
    kill(client)


def kill_both(hosts):
    """Kill a client with 100 connections and cmportd at once."""
    client = begin_holding(hosts, 100)
    await_held(client)
    await_rtus(100)
    client.send_signal(signal.SIGSTOP)
    os.kill(pid_of_cmportd(), signal.SIGKILL)
    kill(client)


def play_both(hosts):
    """Kill a client and cmportd at once; the next program is one with a connection of its own."""
    kill_both(hosts)
    following = begin_holding(hosts, 1)
    await_held(following)
    kill(following)


def play_renamed(hosts):
    """Kill a client and cmportd at once; rename their device, and start the next cmportd."""
    kill_both(hosts)
    fabric = Path(os.environ["PURECM_FABRIC"]).parent.parent
    subprocess.run([f"{hosts.build}/tools/purecm", "fabric", "rename", "--dir", fabric, "a",
                    "roce7"], check=True)
    await_nobody()
    subprocess.run(hosts.cmportd.split(), check=True)


def serves_b():
    """Return the file that says which process serves host b; each host has a folder."""
    return Path(os.environ["PURECM_FABRIC"]).parent / "serves-b"


def play_told(_hosts):
    """Say which process serves this host, b."""
    new = serves_b().with_suffix(".new")
    new.write_text(str(pid_of_cmportd()), encoding="utf-8")
    new.rename(serves_b())


def play_unheard(hosts):
    """Kill a client, and cmportd when it has said DREQ in vain; the next one comes by itself."""
    while not serves_b().exists():
        time.sleep(TRY_S)
    peer = int(serves_b().read_text(encoding="utf-8"))
    client = begin_holding(hosts, 100)
    await_held(client)
    await_rtus(100)
    os.kill(peer, signal.SIGSTOP)
    kill(client)
    time.sleep(0.5)
    os.kill(pid_of_cmportd(), signal.SIGKILL)
    os.kill(peer, signal.SIGKILL)
    await_nobody()
    subprocess.run(hosts.cmportd.split(), check=True)


def play_one_of_two(hosts):
    """Kill cmportd and one of its two clients: the other comes back, and lives on."""
    clients = [begin_holding(hosts, 50) for _ in range(2)]
    await_held(*clients)
    await_rtus(100)
    clients[0].send_signal(signal.SIGSTOP)
    os.kill(pid_of_cmportd(), signal.SIGKILL)
    kill(clients[0])
    time.sleep(2)
    assert clients[1].poll() is None
    kill(clients[1])


def play_container(hosts):
    """Be the first process of a container, cmportd in it, and exit."""
    own = os.environ["PURECM_FABRIC"] + "/container.sock"
    done = subprocess.run(["unshare", "--pid", "--fork", hosts.hold, "client", SERVER, str(PORT),
                           "100", "leave"], env={**os.environ, "PURECM_SOCKET": own}, check=False)
    assert done.returncode == 0, done


def play_other_container(hosts):
    """Be the container beside that of cmportd, and get killed."""
    client = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", hosts.hold, "client",
                               SERVER, str(PORT), "100", "0"], stdout=subprocess.PIPE, text=True)
    await_held(client)
    await_rtus(100)
    kill(client)


def play_costs(hosts):
    """Say what a client and a connection cost cmportd: descriptors, and bytes of its file."""
    # The first client opens the port, for good.
    clients = [begin_holding(hosts, 1)]
    await_held(*clients)
    own = Path(f"/proc/{pid_of_cmportd()}/fd")
    before = len(list(own.iterdir()))
    clients += [begin_holding(hosts, 1) for _ in range(CLIENTS)]
    await_held(*clients[1:])
    print(f"descriptors {len(list(own.iterdir())) - before}")
    state = Path(os.environ["PURECM_SOCKET"] + ".state")
    before = state.stat().st_blocks
    clients += [begin_holding(hosts, MANY)]
    await_held(clients[-1])
    print(f"bytes {(state.stat().st_blocks - before) * 512}")
    kill(*clients)


def play_pinned(hosts):
    """Connect in a program with one CPU and another policy, which starts cmportd."""
    os.sched_setaffinity(0, range(os.cpu_count()))  # the kernel leaves out what is not for us
    n_cpus = len(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    client = begin_holding(hosts, 1)
    await_held(client)
    tasks = Path(f"/proc/{client.pid}/task").iterdir()
    ours = [int(task.name) for task in tasks if (task / "comm").read_text() == "purecm\n"]
    assert len(ours) == 1, ours
    for pid in (*ours, pid_of_cmportd()):
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER, (pid, ours)
        assert n_cpus == 1 or len(os.sched_getaffinity(pid)) > 1, (pid, ours)
    assert os.sched_getscheduler(client.pid) == os.SCHED_BATCH
    kill(client)


def make_group():
    """Return a new control group (v2) beneath this process's, as a job of a batch system has it."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [Path(words[1]) for words in mounts if words[2] == "cgroup2"]
    own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines()
           if line.startswith("0::")]
    if not roots or not own:
        return None
    group = roots[0] / own[0].strip("/") / f"purecm-job-{os.getpid()}"
    try:
        group.mkdir()
        enter_group(group)
        enter_group(group.parent)
    except OSError:
        return None
    return group


def enter_group(group):
    (group / "cgroup.procs").write_text(str(os.getpid()))


def end_group(group):
    """Kill all of a job at once. (cgroup.procs no longer lists what is still exiting.)"""
    (group / "cgroup.kill").write_text("1")
    for _ in range(TRIES):
        if "populated 0" in (group / "cgroup.events").read_text():
            break
        time.sleep(TRY_S)
    group.rmdir()


def play_job(hosts):
    """End the job whose program has started cmportd, while a program outside of it is connected."""
    group = make_group()
    if not group:
        print(NO_GROUP)
        return
    try:
        enter_group(group)
        client = begin_holding(hosts, 100)
        enter_group(group.parent)
        await_held(client)
        assert str(pid_of_cmportd()) in (group / "cgroup.procs").read_text().split()
        other = begin_holding(hosts, 50)
        await_held(other)
        await_rtus(150)
    finally:
        end_group(group)
    client.wait()
    await_server("150 established 100 disconnected")
    assert other.poll() is None
    following = begin_holding(hosts, 1)
    await_held(following)
    kill(other, following)


def pid_of_cmportd():
    """Return who listens at the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(os.environ["PURECM_SOCKET"])
        return struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def await_nobody():
    """Wait until who was killed has closed the socket."""
    for _ in range(100):
        try:
            pid_of_cmportd()
        except ConnectionRefusedError:
            return
        time.sleep(0.05)
    raise AssertionError("somebody listens still")


def play_pairs(hosts):
    """Have pairs of rping talk at once, all on this host."""
    words = [["-a", CLIENT, "-p", str(PORT + i), "-C", "3"] for i in range(PAIRS)]
    servers = [subprocess.Popen(["rping", "-s", *each]) for each in words]
    while count_listeners(hosts) < PAIRS:
        time.sleep(0.1)
    clients = [subprocess.Popen(["rping", "-c", *each]) for each in words]
    statuses = [each.wait(60) for each in servers + clients]
    assert not any(statuses), statuses


def count_listeners(hosts):
    done = subprocess.run([f"{hosts.build}/tools/purecm", "stat", "--json"], check=False,
                          capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return sum(row.get("id_state") == "LISTEN" for row in rows)


PLAYS = {"storm": play_storm, "users-job": play_users_job, "lives": play_lives, "end": play_end,
         "pairs": play_pairs, "container": play_container, "both": play_both,
         "told": play_told, "unheard": play_unheard, "one-of-two": play_one_of_two,
         "job": play_job, "pinned": play_pinned, "renamed": play_renamed,
         "other-container": play_other_container, "costs": play_costs}


# --- tests ------------------------------------------------------------------


def a_storm_of_2000_connects_from_64_processes_has_no_failure(hosts):
    # Each connect has succeeded when "storm" ends and kills its clients. A slow server may hear of
    # that, by DREQs, before it has heard all RTUs: such connections have no ESTABLISHED there.
    said = hosts.run(hosts.server(), hosts.play("storm"),
                     hosts.await_count(f"{STORM * STORM_EACH} disconnected"))
    print(f"{STORM} processes with {STORM_EACH} connects each: {said.strip().splitlines()[0]}")


def all_processes_of_a_users_job_connect_at_once(hosts):
    said = hosts.run(hosts.server(), hosts.play("users-job"),
                     first=[f"a:PURECM_IDLE_S=600 {hosts.cmportd}"])
    print(f"{JOB} processes of a user: {said.strip().splitlines()[0]}")


def processes_of_a_host_talk_through_its_own_gid(hosts):
    hosts.run(hosts.play("pairs"))


def the_dead_are_in_nobodys_way_although_the_next_has_their_queue_pairs(hosts):
    hosts.run(hosts.server(), hosts.play("lives"),
              hosts.await_count(f"{20 * LIVES} established {20 * LIVES} disconnected"))


def who_is_ended_together_with_cmportd_is_disconnected(hosts):
    hosts.run(hosts.server(), hosts.play("end"),
              hosts.await_count("100 established 100 disconnected"))


def who_is_killed_together_with_cmportd_is_disconnected_by_the_next(hosts):
    hosts.run(hosts.server(), hosts.play("both"),
              hosts.await_count("101 established 101 disconnected"))


def who_is_killed_with_cmportd_before_its_device_is_renamed_is_disconnected(hosts):
    hosts.run(hosts.server(), hosts.play("renamed"),
              hosts.await_count("100 established 100 disconnected"))


def whom_a_cmportd_was_disconnecting_the_next_disconnects(hosts):
    hosts.run(f"b:{hosts.cmportd}", hosts.play("told").replace("a:", "b:", 1), hosts.server(),
              hosts.play("unheard"), hosts.await_count("100 established 100 disconnected"))


def who_lives_when_another_is_killed_together_with_cmportd_lives_on(hosts):
    hosts.run(hosts.server(), hosts.play("one-of-two"),
              hosts.await_count("100 established 100 disconnected"))


def who_is_a_container_of_its_own_is_disconnected(hosts):
    hosts.run(hosts.server(), hosts.play("container"),
              hosts.await_count("100 established 100 disconnected"), first=())


def who_is_in_a_container_that_is_killed_is_disconnected_by_a_cmportd_beside_it(hosts):
    hosts.run(hosts.server(), hosts.play("other-container"),
              hosts.await_count("100 established 100 disconnected"))


def a_client_costs_the_descriptors_and_a_connection_the_bytes_that_the_page_says(hosts):
    page = " ".join((HERE.parents[1] / "docs/deployment.md").read_text(encoding="utf-8").split())
    each, = re.findall(r"\| (\w+) per client, ", page)
    most, = re.findall(r"(\d+) bytes per connection in `/run`", page)
    said = hosts.run(hosts.server(), hosts.play("costs"))
    descriptors, size = map(int, re.search(r"descriptors (\d+)\nbytes (\d+)\n", said).groups())
    assert (each, descriptors // CLIENTS) == ("two", 2), said
    assert 0 < size <= int(most) * MANY, said


def who_is_outside_lives_on_when_a_jobs_control_group_is_killed_with_cmportd(hosts):
    said = hosts.run(hosts.server(), hosts.play("job"), first=())
    if NO_GROUP in said:
        raise SkipOne(NO_GROUP)


def neither_our_thread_nor_cmportd_is_scheduled_as_the_program(hosts):
    hosts.run(hosts.server(), hosts.play("pinned"), first=())


TESTS = (a_storm_of_2000_connects_from_64_processes_has_no_failure,
         all_processes_of_a_users_job_connect_at_once,
         processes_of_a_host_talk_through_its_own_gid,
         the_dead_are_in_nobodys_way_although_the_next_has_their_queue_pairs,
         who_is_ended_together_with_cmportd_is_disconnected,
         who_is_killed_together_with_cmportd_is_disconnected_by_the_next,
         who_is_killed_with_cmportd_before_its_device_is_renamed_is_disconnected,
         whom_a_cmportd_was_disconnecting_the_next_disconnects,
         who_lives_when_another_is_killed_together_with_cmportd_lives_on,
         who_is_a_container_of_its_own_is_disconnected,
         who_is_in_a_container_that_is_killed_is_disconnected_by_a_cmportd_beside_it,
         a_client_costs_the_descriptors_and_a_connection_the_bytes_that_the_page_says,
         who_is_outside_lives_on_when_a_jobs_control_group_is_killed_with_cmportd,
         neither_our_thread_nor_cmportd_is_scheduled_as_the_program)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--only", default="", help="tests whose name has this")
    parser.add_argument("--play", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    hosts = Hosts(args.build.resolve())
    if args.play:
        PLAYS[args.play[0]](hosts, *args.play[1:])
        return 0
    return run_tests([test for test in TESTS if args.only in test.__name__], hosts)


if __name__ == "__main__":
    sys.exit(main())
