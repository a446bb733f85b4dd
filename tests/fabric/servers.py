#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Servers of `fabric run`: when the next command begins, and what becomes of one that fails."""
import sys

from hosts import main, run_on_fabric

LIMIT_S = 20


def client_begins_when_a_server_listens(build):
    done = run_on_fabric(build, LIMIT_S, "a&:sleep 1; rping -s -C 1",
                         "b:rping -c -a 10.77.0.1 -C 1")
    assert (done.returncode, done.stderr) == (0, ""), done


def so_it_does_with_tcp(build):
    done = run_on_fabric(build, LIMIT_S, "a&:sleep 1; ib_send_bw -n 10",
                         "b:ib_send_bw -n 10 10.77.0.1")
    assert done.returncode == 0, done


def client_in_the_background_holds_nobody_up(build):
    done = run_on_fabric(build, LIMIT_S, "a&:rping -s -P >/dev/null",
                         "b&:rping -c -a 10.77.0.1 -C 1000000 >/dev/null", "b:true")
    assert (done.returncode, done.stderr) == (0, ""), done


def it_begins_when_a_server_is_idle(build):
    done = run_on_fabric(build, LIMIT_S, "a&:sleep 100", "b:echo here")
    assert done.returncode == 0 and done.stdout == "here\n", done
    assert "'a&:sleep 100' does not listen, and is idle; 'b:echo here' starts" in done.stderr, done


def server_that_works_before_it_listens_is_waited_for(build):
    """It works longer than one may be idle."""
    work = "timeout 8 sh -c 'while :; do :; done'"
    done = run_on_fabric(build, LIMIT_S, f"a&:{work}; rping -s -C 1",
                         "b:rping -c -a 10.77.0.1 -C 1")
    assert done.returncode == 0, done


def server_that_has_failed_is_named_and_counts(build):
    done = run_on_fabric(build, LIMIT_S, "a&:exit 3", "b:true")
    assert done.returncode == 3, done
    assert "'a&:exit 3' has ended with status 3" in done.stderr, done


def server_that_is_killed_is_named_and_counts(build):
    done = run_on_fabric(build, LIMIT_S, "a&:kill -9 $$", "b:true")
    assert done.returncode == 247 and "has ended with signal 9" in done.stderr, done


def status_of_a_client_comes_first(build):
    done = run_on_fabric(build, LIMIT_S, "a&:exit 3", "b:exit 4")
    assert done.returncode == 4, done


def server_that_is_ended_has_not_failed(build):
    done = run_on_fabric(build, LIMIT_S, "--gap", "0", "a&:sleep 100", "b:true")
    assert (done.returncode, done.stderr) == (0, ""), done


def what_is_waited_for_is_said(build):
    done = run_on_fabric(build, LIMIT_S, "a:mkfifo $PURECM_FABRIC/end; cat $PURECM_FABRIC/end",
                         "b:exit 3", "b:: >$PURECM_FABRIC/../a/end")
    assert done.returncode == 3, done
    assert "'b:exit 3' has ended with status 3; waiting for 'a:mkfifo" in done.stderr, done


def command_can_be_interrupted(build):
    """Though a shell has started the fabric in the background."""
    done = run_on_fabric(build, LIMIT_S, "a:sh -c 'kill -INT $$; echo alive'",
                         prefix=("sh", "-c", "trap '' INT; exec \"$@\"", "sh"))
    assert "alive" not in done.stdout and done.returncode, done


if __name__ == "__main__":
    sys.exit(main(__doc__, [client_begins_when_a_server_listens, command_can_be_interrupted,
                            so_it_does_with_tcp,
                            client_in_the_background_holds_nobody_up,
                            it_begins_when_a_server_is_idle,
                            server_that_works_before_it_listens_is_waited_for,
                            server_that_has_failed_is_named_and_counts,
                            server_that_is_killed_is_named_and_counts,
                            status_of_a_client_comes_first, server_that_is_ended_has_not_failed,
                            what_is_waited_for_is_said]))
