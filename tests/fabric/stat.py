#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm stat on a soft fabric: what it says of a connection while it lives, of one whose peer is
silent, of a process that is stopped; purecm top in a terminal; and what purecm run's times do to
the second.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no
fabric here.
"""
import fcntl
import json
import os
from pathlib import Path
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

from hosts import FABRIC, main, PATIENCE, run_on_fabric, SkipOne

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = Path(__file__).resolve().parents[2] / "docs/json-schema.json"
LIMIT_S = 60
SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [0-9]+$')

# They talk until the fabric ends them.
SERVER = "b&:exec rping -s -C 1000000 >/dev/null"
CLIENT = "a&:exec {run} rping -c -a 10.77.0.2 -C 1000000 >/dev/null"
# What a host is told once there is something to tell.
UNTIL = "for i in $(seq 100); do {stat} --json | grep -q {word} && break; sleep 0.1; done; {then}"


# The process that has the connection: hosts share their process ids.
PID = """P=$({stat} --json | sed -n '/"type":"id"/s/.*"pid":\\([0-9]*\\).*/\\1/p'); """


class Hosts:
    """Two hosts, a client on a, a server on b."""

    def __init__(self, build):
        self.stat = f"{build}/tools/purecm stat"
        self.run = f"{build}/tools/purecm run --library {build}/lib/librdmacm.so.1"
        self.build = build

    def says(self, *commands, options=()):
        done = run_on_fabric(self.build, LIMIT_S, *options, *commands, stderr=subprocess.STDOUT)
        if done.returncode:
            raise AssertionError(f"status {done.returncode}: {done.stdout}")
        return done

    def of_connection(self, host, then="{stat}"):
        """Return what a command says on a host once rping is connected there."""
        then = UNTIL.format(stat=self.stat, word="ESTABLISHED", then=then.format(stat=self.stat))
        return self.says(SERVER, CLIENT.format(run=""), f"{host}:{then}")

    def of_silence(self, run, then):
        """Return what a command says on a, where a client waits for an answer that never comes."""
        then = UNTIL.format(stat=self.stat, word="REQ_SENT", then=then)
        return self.says(SERVER, CLIENT.format(run=run), f"a:{then}",
                         options=("--faults", "mads:loss=1"))


def objects(done, kind):
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for one in found if jsonschema else ():
        jsonschema.validate(one, {**json.loads(SCHEMA.read_text(encoding="utf-8")),
                                  "$ref": "#/$defs/stat"})
    return [one for one in found if one["type"] == kind]


def what_it_prints_is_held_against_the_schema(_hosts):
    if not jsonschema:
        raise SkipOne("jsonschema is missing: apt-get install python3-jsonschema")


def ids(done):
    return objects(done, "id")


def count(done, kind, message, what):
    return [one["value"] for one in objects(done, kind)
            if (one["message"], one["what"]) == (message, what)]


def both_ends_tell_of_the_same_connection(hosts):
    done = hosts.of_connection("b", "{stat} --json")
    server = next(one for one in ids(done) if one["connection_state"] == "ESTABLISHED")
    assert (server["local"], server["active"]) == ("10.77.0.2:7174", False), server
    assert server["peer"].startswith("10.77.0.1:") and server["device"] == "fab0/1", server
    assert server["local_comm_id"] and server["remote_comm_id"], server
    assert server["local_qpn"] and server["remote_qpn"] and server["retries"] == 0, server
    assert server["age_ms"] < LIMIT_S * 1000, server


def quotas_are_shown(hosts):
    done = hosts.of_connection("b", "{stat} --quotas --json; {stat} --quotas")
    of_user = {one["quota"]: one for one in objects(done, "quota") if "uid" in one}
    assert of_user["user-conns"]["has"] >= 1, done.stdout
    assert of_user["user-clients"]["limit"] == 1024, done.stdout
    assert re.search("^each +host-rate +- +20000$", done.stdout, re.MULTILINE), done.stdout


# A server, with sockets of ours or the kernel's, that never ends a connection.
GREET = """import socket; s = socket.create_server(('10.77.0.2', {port}))
while True: c = s.accept()[0]; c.send(b'hello'); globals().setdefault('all', []).append(c)"""
GREETED = """import socket, sys
all = [socket.create_connection(('10.77.0.2', port)) for port in (8000, 8001)]
sys.exit([c.recv(5) for c in all] == [b'hello'] * 2 and os.system({stat!r}))"""


def sockets_are_shown_with_their_way_their_bytes_and_the_reason_for_tcp(hosts):
    run = f"{hosts.run} --sockets --"
    stat = f"{hosts.stat} --sockets"
    # The server counts its greeting only after it has posted it, which the client may see before.
    greeted = GREETED.format(stat=f"unset LD_PRELOAD; until {stat} --json | grep -q sent.:5; "
                                  f"do sleep 0.1; done; {stat} --json; {stat}")
    greeted = greeted.replace("import ", "import os, ", 1)
    done = hosts.says(f'b&:{run} python3 -c "{GREET.format(port=8000)}"',
                      f'b&:python3 -c "{GREET.format(port=8001)}"',
                      f'a:{run} python3 -c "{greeted}"')
    # Sockets of all processes of the machine are shown, of other tests, too.
    ours = [one for one in objects(done, "socket")
            if {"8000", "8001"} & {one[end].split(":")[-1] for end in ("local", "peer")}]
    found = {(one["by"], one["local"].split(":")[0]): one for one in ours}
    own = found["RDMA", "10.77.0.1"]
    assert (own["peer"], own["sent"], own["received"]) == ("10.77.0.2:8000", 0, 5), own
    assert found["RDMA", "10.77.0.2"]["sent"] == 5, found
    assert found["TCP", "10.77.0.1"]["peer"] == "10.77.0.2:8001", found
    assert found["TCP", "10.77.0.1"]["why"] == "Connection refused", found
    pids = {one["pid"] for one in ours}
    made = {(one["rdma"], one["tcp"]) for one in objects(done, "sockets") if one["pid"] in pids}
    assert made == {(1, 1), (1, 0)}, made
    assert re.search(r"TCP  10.77.0.1:\d+ > 10.77.0.2:8001: Connection refused$", done.stdout,
                     re.MULTILINE), done.stdout


def a_listener_is_shown_beside_its_connection(hosts):
    done = hosts.of_connection("b", "{stat} --json")
    assert sorted(one["id_state"] for one in ids(done)) == ["CONNECT", "LISTEN"], done.stdout


def messages_are_counted_by_port_and_by_process(hosts):
    done = hosts.of_connection("a", "{stat} --json")
    for kind in ("count", "port_count"):
        assert count(done, kind, "REQ", "sent") == [1], done.stdout
        assert count(done, kind, "REP", "received") == [1], done.stdout


def a_table_is_as_wide_as_it_needs_and_a_narrow_terminal_gets_paragraphs(hosts):
    done = hosts.of_connection("a", "{stat}; echo ----; COLUMNS=50 {stat}")
    wide, narrow = done.stdout.split("----\n")
    assert wide.startswith("PROCESS ") and "ESTABLISHED" in wide, wide
    assert "ESTABLISHED" in narrow and max(map(len, narrow.splitlines())) <= 50, narrow


def a_process_cannot_have_its_name_write_to_the_terminal_of_root(hosts):
    name = "\\033]0;\\303\\177x"  # for printf
    start = (f"a&:ln -s $(command -v rping) $PURECM_FABRIC/\"$(printf '{name}')\"; "
             f"exec $PURECM_FABRIC/\"$(printf '{name}')\" -c -a 10.77.0.2 -C 1000000 >/dev/null")
    then = UNTIL.format(stat=hosts.stat, word="ESTABLISHED",
                        then=f"{hosts.stat}; {hosts.stat} --json; {hosts.stat} --prometheus")
    done = hosts.says(SERVER, start, f"a:{then}")
    assert done.stdout.count("?]0;??x") >= 3, done.stdout
    assert all(sign == "\n" or " " <= sign <= "~" for sign in done.stdout), done.stdout


def a_pipe_that_closes_ends_it(hosts):
    done = hosts.of_connection("a", "{stat} --watch=0.1 | head -n 3; echo over")
    assert done.stdout.rstrip().endswith("over") and "purecm:" not in done.stdout, done


def prometheus_gets_lines_that_it_can_read(hosts):
    done = hosts.of_connection("a", "{stat} --prometheus")
    samples = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.match(line) for line in samples), samples
    assert "purecm_up 1" in samples, samples
    assert sum('message="REQ",what="sent"} 1' in line for line in samples) == 2, samples


def one_process_can_be_asked_for(hosts):
    done = hosts.of_connection("a", PID + "{stat} --json --pid $P; {stat} --pid 1; echo status $?")
    assert [one["program"] for one in objects(done, "process")] == ["rping"], done.stdout
    assert "status 1" in done.stdout and "process id 1" in done.stdout, done


def ids_are_chosen_by_state_port_and_peer(hosts):
    done = hosts.of_connection("b", "{stat} --json --state established,listen --port 7174; echo -; "
                               "{stat} --json --peer 10.77.0.1; echo -; {stat} --state no; true")
    both, one, _ = done.stdout.split("-\n")
    states = [json.loads(line).get("id_state") for line in both.splitlines() if '"id"' in line]
    assert sorted(states) == ["CONNECT", "LISTEN"], done.stdout
    assert one.count('"type":"id"') == 1 and '"CONNECT"' in one, done.stdout
    assert '_count"' not in both and "there is no state no" in done.stdout, done.stdout


def a_process_that_is_stopped_is_named_and_holds_nobody_up(hosts):
    stop = "kill -STOP $P; while grep -q State:.[^T] /proc/$P/task/*/status; do sleep 0.01; done; "
    done = hosts.of_connection("a", PID + stop + "{stat} --wait 0.3; kill -CONT $P")
    assert "does not answer" in done.stdout, done.stdout
    assert "cmportd knows of 1 connection" in done.stdout, done.stdout


def repetitions_of_a_request_are_counted(hosts):
    done = hosts.of_silence(f"{hosts.run} --retry-waits=100,100 --deadline 20",
                            f"until {hosts.stat} --json >$PURECM_FABRIC/said && "
                            "grep -q 'retries\":[0-9]*[3-9],' $PURECM_FABRIC/said; do sleep 0.1; "
                            "done; cat $PURECM_FABRIC/said")
    client = ids(done)[0]
    assert 3 <= client["retries"] <= 30, client
    assert count(done, "count", "REQ", "repeated")[0] >= 3, done.stdout
    assert count(done, "count", "REQ", "sent") == [1], done.stdout


def what_processes_drop_is_told_of_their_port_as_well(hosts):
    done = hosts.says(SERVER, CLIENT.format(run=""),
                      "b:" + UNTIL.format(stat=hosts.stat, word="duplicate",
                                          then=f"{hosts.stat} --json"),
                      options=("--faults", "mads:duplicate=1"))
    of_process = count(done, "count", "REQ", "duplicate")
    assert of_process and of_process[0] >= 1, done.stdout
    assert count(done, "port_count", "REQ", "duplicate") == of_process, done.stdout


def retries_end_a_request(hosts):
    done = hosts.says(
        SERVER,
        f"a:{hosts.run} --trace --retry-waits=50,50 --retries 3 rping -c -a 10.77.0.2 -C 1; true",
        options=("--faults", "mads:loss=1"))
    assert done.stdout.count(": REQ ") == 4, done.stdout


def top_prints_a_table_once_without_a_terminal(hosts):
    done = hosts.of_connection("a", f"{hosts.build}/tools/purecm top")
    title, row = done.stdout.splitlines()
    assert title.startswith("PROCESS "), done.stdout
    assert re.match(r"rping\[\d+\] +TCP CONNECT +ESTABLISHED +10\.77\.0\.2:7174 +\d+\.\d s +0 ",
                    row), row


class Terminal:
    """A program in a terminal of 24 lines with 100 columns."""

    def __init__(self, *command):
        self.fd, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        self.running = subprocess.Popen(command, stdin=its, stdout=its, stderr=its,
                                        env={**os.environ, "TERM": "vt100"})
        os.close(its)
        self.seen = b""

    def wait_for(self, text, limit_s=LIMIT_S):
        """Read until the program has written a text since the last one was waited for."""
        until = time.monotonic() + limit_s
        while text not in self.seen:
            left = until - time.monotonic()
            assert left > 0 and select.select([self.fd], [], [], left)[0], (text, self.seen)
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:
                raise AssertionError(f"it has ended before {text}: {self.seen}") from None
        self.seen = self.seen[self.seen.index(text) + len(text):]

    def type(self, keys):
        os.write(self.fd, keys)

    def close(self):
        self.running.kill()
        self.running.wait()
        os.close(self.fd)


def top_shows_a_connection_in_a_terminal_until_q(hosts):
    with tempfile.TemporaryDirectory() as folder:
        over = Path(folder) / "over"
        fabric = subprocess.Popen(
            [FABRIC, "run", "--build", hosts.build, "--dir", f"{folder}/fabric", "--timeout",
             str(PATIENCE * LIMIT_S), SERVER, CLIENT.format(run=""),
             f"a:until test -e {over}; do sleep 0.1; done"], stdout=subprocess.DEVNULL)
        until = UNTIL.format(stat=hosts.stat, word="ESTABLISHED",
                             then=f"TERM=vt100 exec {hosts.build}/tools/purecm top -d 0.2")
        on_a = [FABRIC, "exec", "--dir", f"{folder}/fabric", "a"]
        while fabric.poll() is None and subprocess.run([*on_a, "true"], capture_output=True,
                                                       check=False).returncode:
            time.sleep(0.1)
        terminal = Terminal(*on_a, until)
        try:
            terminal.wait_for(b"1 over purecm")
            terminal.wait_for(b"by PROCESS")
            terminal.wait_for(b"ESTABLISHED")
            terminal.type(b"<")
            terminal.wait_for(b"COMM IDS")
            terminal.type(b"r")
            terminal.wait_for(b"reversed")
            terminal.type(b"q")
            assert terminal.running.wait(LIMIT_S) == 0, terminal.seen
        finally:
            over.touch()
            terminal.close()
            fabric.wait()


TESTS = (what_it_prints_is_held_against_the_schema, both_ends_tell_of_the_same_connection,
         quotas_are_shown,
         sockets_are_shown_with_their_way_their_bytes_and_the_reason_for_tcp,
         a_listener_is_shown_beside_its_connection, messages_are_counted_by_port_and_by_process,
         a_table_is_as_wide_as_it_needs_and_a_narrow_terminal_gets_paragraphs,
         a_process_cannot_have_its_name_write_to_the_terminal_of_root,
         a_pipe_that_closes_ends_it, prometheus_gets_lines_that_it_can_read,
         one_process_can_be_asked_for, ids_are_chosen_by_state_port_and_peer,
         a_process_that_is_stopped_is_named_and_holds_nobody_up,
         repetitions_of_a_request_are_counted, what_processes_drop_is_told_of_their_port_as_well,
         retries_end_a_request, top_prints_a_table_once_without_a_terminal,
         top_shows_a_connection_in_a_terminal_until_q)


if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS, Hosts))
