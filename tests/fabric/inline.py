#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs with PURECM_PORTD=inline: each has a cmportd of its own.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no
fabric here.
"""
import sys

from hosts import main, run_on_fabric

LIMIT_S = 120
ADDR = "10.77.0.1"
INLINE = "PURECM_PORTD=inline PURECM_LOG=warn"
SERVE = ("channel", "id l", f"bind l {ADDR} 7301", "listen l", "event 20000 s", "qp s", "accept s",
         "event 5000", "event 5000")
DIAL = ("channel", "id c", f"resolve c {ADDR} 7301 2000", "event 5000", "route c", "event 5000",
        "qp c", "connect c", "event 9000")
LEAVES = ["ESTABLISHED s 0", "DISCONNECTED s 0"]
KILL_CMPORTD = "shell pkill -9 --ns $PPID --nslist net -f [c]mportd.--client"


def agent(build, *commands, env=""):
    """Return the words that have an agent obey commands."""
    lines = "\\n".join(commands)
    return f"printf '{lines}\\n' | env {env} {build}/tests/luck/agent"


def run(build, *words):
    return run_on_fabric(build, LIMIT_S, "--gap", "1", *words)


def said_by(done, host):
    """Return the answers of a host's agent, without their numbers."""
    lines = [line.split("| ", 1)[-1] for line in done.stdout.splitlines()
             if line.startswith(host) or "| " not in line]
    return [line.split(" ", 1)[1] for line in lines if line.startswith("=")]


def play(build, name):
    done = run(build, f"a:PURECM_PORTD=inline {build}/tests/luck/family {name} {ADDR}")
    assert done.returncode == 0 and not done.stdout.strip(), done.stdout + done.stderr


def a_program_that_exits_takes_leave_of_its_peers(build):
    done = run(build, "a:" + agent(build, *SERVE),
               "b:" + agent(build, *DIAL, "exit", env=INLINE) + " >/dev/null")
    assert said_by(done, "a")[-2:] == LEAVES, done.stdout


def a_program_that_is_killed_takes_leave_of_its_peers(build):
    done = run(build, "a:" + agent(build, *SERVE),
               "b:" + agent(build, *DIAL, "die", env=INLINE) + " >/dev/null; true")
    assert said_by(done, "a")[-2:] == LEAVES, done.stdout


def a_cmportd_that_is_killed_is_replaced_and_no_connection_ends(build):
    done = run(build, "a:" + agent(build, *SERVE),
               "b:" + agent(build, *DIAL, KILL_CMPORTD, "pending 1000", "id d",
                            f"resolve d {ADDR} 7301 2000", "event 5000", "disconnect c",
                            "event 5000", env=INLINE))
    said = said_by(done, "b")
    assert {"none", "ADDR_RESOLVED d 0", "DISCONNECTED c 0", LEAVES[1]} <= set(said), done.stdout


def a_cmportd_that_logs_serves(build):
    done = run(build, "a:" + agent(build, *SERVE[:4], env="PURECM_PORTD=inline PURECM_LOG=debug"))
    assert said_by(done, "a") == ["ok"] * 4, done.stdout + done.stderr


def a_second_process_is_told_who_has_the_port(build):
    second = agent(build, "channel", "id l", f"bind l {ADDR} 7302", "listen l", env=INLINE)
    done = run(build, "a&:" + agent(build, *SERVE, env=INLINE), f"a:{second} 2>&1")
    assert "Address already in use" in done.stdout, done.stdout + done.stderr


def nobody_can_look_in(build):
    done = run(build, "a&:" + agent(build, *SERVE, env=INLINE),
               f"a:{build}/tools/purecm stat 2>&1; ls $(dirname $PURECM_SOCKET) | grep cmportd")
    assert "no cmportd" in done.stdout and "cmportd.sock" not in done.stdout, done.stdout


def a_child_is_refused_the_port_and_hurts_nobody(build):
    play(build, "fork-after-use")


def a_child_has_the_port_once_its_parent_is_gone(build):
    play(build, "fork-and-inherit")


def a_child_that_exits_leaves_its_parents_ids_alone(build):
    play(build, "fork-with-open-ids")


def a_program_that_another_executes_inherits_nothing(build):
    play(build, "exec")


TESTS = (a_program_that_exits_takes_leave_of_its_peers,
         a_program_that_is_killed_takes_leave_of_its_peers,
         a_cmportd_that_is_killed_is_replaced_and_no_connection_ends,
         a_cmportd_that_logs_serves, a_second_process_is_told_who_has_the_port, nobody_can_look_in,
         a_child_is_refused_the_port_and_hurts_nobody,
         a_child_has_the_port_once_its_parent_is_gone,
         a_child_that_exits_leaves_its_parents_ids_alone,
         a_program_that_another_executes_inherits_nothing)


if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
