#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm export on a host of the fabric: what it serves after connections, refusals and a restart
of cmportd, whether Debian's promtool takes it, and, in the long form, Prometheus itself.

Prints "N passed, N failed, N skipped". Exit status: 1 if a test failed, 77 if there can be no
fabric here.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from hosts import main, run_on_fabric

LIMIT_S = 120
SILENT = 100
URL = "http://127.0.0.1:9749/metrics"
OPEN = "ls /proc/$e/fd | wc -l"
LONG = bool(os.environ.get("PURECM_TEST_LONG"))
# Another test's cmportd may end meanwhile, of which the shell would speak among what is served.
KILL_CMPORTD = """{ for p in $(pidof cmportd); do tr '\\0' '\\n' </proc/$p/environ |
    grep -qx PURECM_SOCKET=$PURECM_SOCKET && kill -9 $p; done; } 2>/dev/null"""
CONNECT = "rping -c -a 10.77.0.2 -C 1 >/dev/null 2>&1"
FAIL = "rping -c -a 10.77.0.2 -p 9 -C 1 >/dev/null 2>&1"
PROMETHEUS = """cd $(mktemp -d); trap 'rm -rf "$PWD"' EXIT
printf '%s' '{"scrape_configs": [{"job_name": "purecm", "scrape_interval": "200ms",
    "scrape_timeout": "200ms", "static_configs": [{"targets": ["127.0.0.1:9749"]}]}]}' >p.yml
prometheus --config.file=p.yml --web.listen-address=127.0.0.1:9090 --log.level=error & pid=$!
for n in $(seq 300); do
    curl -s http://127.0.0.1:9090/api/v1/query?query=purecm_refusals_total >answer
    grep -q '"by":"peer"' answer && break; sleep 0.1; done
echo; echo "answer $(cat answer)"
echo "target $(curl -s http://127.0.0.1:9090/api/v1/targets)"
kill $pid; wait $pid"""


def served(build, *steps):
    """Return what host a prints when those steps are over."""
    script = "; ".join([f"{build}/tools/purecm export -l 127.0.0.1:9749 >/dev/null & e=$!",
                        f"until curl -s {URL} >/dev/null; do kill -0 $e || exit 9; sleep 0.1; done",
                        *steps, "kill $e"])
    done = run_on_fabric(build, LIMIT_S, "b&:rping -s -P >/dev/null 2>&1", f"a:{script}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(*sample):
    """A command that prints the metrics when this sample, a name and a value, is among them."""
    until = " ".join(sample) or "^#"
    return (f"until curl -s -H 'Accept: text/plain' {URL} >$PURECM_FABRIC/got && "
            f"grep -q '{until}' $PURECM_FABRIC/got; do sleep 0.1; done; cat $PURECM_FABRIC/got")


def value(text, name):
    """Return the value of the sample whose name and labels begin so."""
    found = re.search(f"^{re.escape(name)}.* ([0-9.e+]+)$", text, re.MULTILINE)
    return float(found[1]) if found else None


def promtool_takes(text):
    if not shutil.which("promtool"):
        return
    done = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout


def connections_and_refusals_are_counted_over_a_restart_of_cmportd(build):
    connected = 'purecm_connect_seconds_count{side="active"}'
    refused = 'purecm_refusals_total{side="active",by="peer",reason="8"'
    text = served(build, CONNECT, FAIL, ask(refused), KILL_CMPORTD, CONNECT, ask(connected, "2"))
    first, second = re.split("(?=^# HELP purecm_up )", text, flags=re.MULTILINE)[1:]
    for text, n in ((first, 1), (second, 2)):
        promtool_takes(text)
        assert value(text, "purecm_up") == 1
        assert value(text, connected) == n, text
        assert value(text, 'purecm_connect_seconds_bucket{side="active",le="+Inf"}') == n
        assert 0 < value(text, 'purecm_connect_seconds_sum{side="active"}') < 60
        assert value(text, refused) == 1
        assert value(text, "purecm_missed_messages_total") == 0


def nothing_else_is_served(build):
    text = served(build, "curl -s http://127.0.0.1:9749/etc/passwd",
                  "curl -s -X POST http://127.0.0.1:9749/metrics",
                  "printf 'rubbish\\r\\n\\r\\n' | nc -N 127.0.0.1 9749", ask())
    assert text.count("is all that is served") == 2, text
    assert text.count("# HELP purecm_up ") == 1, text
    assert value(text, "purecm_recording") is not None


def silent_connections_keep_no_scrape_waiting(build):
    """Nor do those that begin a request and never end it: all are still open after it."""
    text = served(build, f"""python3 -c '
import select, socket, subprocess
held = [socket.create_connection(("127.0.0.1", 9749)) for _ in range({SILENT})]
for one in held[::2]:
    one.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: ")
subprocess.run(["curl", "-s", "{URL}"])
print(len(select.select(held, [], [], 0)[0]), "were closed first")'""")
    assert value(text, "purecm_recording") is not None, text
    assert "\n0 were closed first" in text, text


def a_scrape_leaves_nothing_open(build):
    """Nor is anyone a client of cmportd for longer."""
    scrape = f"{ask()} >/dev/null"
    text = served(build, CONNECT, scrape, f"n=$({OPEN})", scrape, scrape,
                  f"for i in $(seq 100); do [ $({OPEN}) -gt $n ] || break; sleep 0.1; done",
                  f"echo $(($({OPEN}) - n)) more")
    assert int(text.split()[0]) <= 0, text


def prometheus_reads_it(build):
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(PROMETHEUS)
        script.flush()
        text = served(build, CONNECT, FAIL, f"sh {script.name}")
    answers = {line.split(" ", 1)[0]: json.loads(line.split(" ", 1)[1])
               for line in text.splitlines() if line.startswith(("answer ", "target "))}
    found = answers["answer"]["data"]["result"]
    assert [one["value"][1] for one in found] == ["1"], found
    target = answers["target"]["data"]["activeTargets"][0]
    assert (target["health"], target["lastError"]) == ("up", ""), target


TESTS = [connections_and_refusals_are_counted_over_a_restart_of_cmportd,
         nothing_else_is_served, silent_connections_keep_no_scrape_waiting,
         a_scrape_leaves_nothing_open]
if LONG and shutil.which("prometheus"):
    TESTS.append(prometheus_reads_it)


if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
