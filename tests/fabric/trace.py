#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm trace, live and recorded: what passes a host's cmportd is shown, all of it or a part.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no
fabric here.
"""
import json
import sys

from hosts import main, run_on_fabric

LIMIT_S = 120
# That of this host: others on the machine may have theirs.
KILL_CMPORTD = """for p in $(pidof cmportd); do tr '\\0' '\\n' </proc/$p/environ |
    grep -qx PURECM_SOCKET=$PURECM_SOCKET && kill -9 $p; done 2>/dev/null"""
ALL = ["REQ", "REP", "RTU", "DREQ", "DREP"]


def begin(build, options, file):
    """A command that traces into a file of the host's, from the host's first message on."""
    return (f"cd $PURECM_FABRIC; {build}/tools/purecm trace --json {options} >{file} 2>{file}.said "
            f"& until grep -sq 'waiting for it' {file}.said; do sleep 0.1; done; ")


def trace(build, options=""):
    """Return the messages that a server's host shows of one rping."""
    # What is seen is shown when there is a lull, not when the fabric ends the tracer.
    awaited = "all" if options else "chosen"
    done = run_on_fabric(build, LIMIT_S, "b&:" + begin(build, "", "all") +
                         begin(build, options, "chosen") + "rping -s -C 2 >/dev/null",
                         "a:rping -c -a 10.77.0.2 -C 2 >/dev/null; cd $PURECM_FABRIC/../b; "
                         f"until grep -q DREP {awaited}; do sleep 0.1; done; cat chosen")
    if done.returncode:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def every_message_of_a_connection_is_shown_in_order(build):
    seen = [message["message"] for message in trace(build)]
    first = [name for at, name in enumerate(seen) if name not in seen[:at]]
    assert first == ALL, seen


def nothing_of_other_processes_is_shown(build):
    assert not trace(build, "--pid 1")


def the_next_cmportd_is_traced_too(build):
    """RTUs are hardly ever repeated."""
    connect = "rping -c -a 10.77.0.2 -C 1 >/dev/null"
    done = run_on_fabric(build, LIMIT_S, "b&:exec rping -s -P >/dev/null",
                         f"a:{begin(build, '-m RTU -c 2', 'seen')}{connect}; "
                         f"until grep -q RTU seen; do sleep 0.1; done; {KILL_CMPORTD}; {connect}; "
                         "wait $!; cat seen")
    seen = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["message"] for one in seen] == ["RTU", "RTU"], done.stdout + done.stderr


def what_was_recorded_is_explained_after_cmportd_was_killed(build):
    ask = f"{build}/tools/purecm explain --recorded --json"
    done = run_on_fabric(build, LIMIT_S, "b:rping -s -C 1 >/dev/null",
                         "a:rping -c -a 10.77.0.2 -p 9 -C 1 >/dev/null 2>&1; "
                         "rping -c -a 10.77.0.2 -C 1 >/dev/null; "
                         f"until {ask} | grep -q closed; do sleep 0.1; done; "
                         f"{KILL_CMPORTD}; {ask}")
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["outcome"] for one in told] == ["rejected", "closed"], done.stdout + done.stderr
    assert told[0]["reason"] == 8, told


TESTS = (every_message_of_a_connection_is_shown_in_order, nothing_of_other_processes_is_shown,
         the_next_cmportd_is_traced_too,
         what_was_recorded_is_explained_after_cmportd_was_killed)


if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
