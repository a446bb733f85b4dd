#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm trace --kernel live, on a tracefs that is made up (fake_tracefs.c): kernels that lack
events, or more, and what is left behind.

Ends with a line "N passed, N failed, N skipped".
"""
from contextlib import contextmanager
import os
from pathlib import Path
import signal
import subprocess
import tempfile
import time
import unittest

from running import HERE, main
from test_kernel import ENDS, EVENT, REQ

LIMIT_S = 60
CMA = [f"rdma_cma/cm_{name}" for name in
       ("event_handler", "send_req", "send_rep", "send_rtu", "send_rej", "send_sidr_req",
        "send_sidr_rep", "sent_dreq", "sent_drep", "disconnect", "id_destroy")]
MADS = ["ib_mad/ib_mad_ib_send_mad", "ib_mad/ib_mad_recv_done_handler"]
REASONS = [f"ib_cma/icm_{name}" for name in
           ("send_rej", "issue_rej", "no_listener_err", "staleconn_err")]
ALL = CMA + MADS + REASONS
PAIR = REQ.format(*ENDS) + EVENT.format(*ENDS, 10, "REJECTED (8/8)")


class Tracefs:
    """A made-up one, and the program that reads it."""

    def __init__(self, folder, events):
        self.instances, self.events = Path(folder, "instances"), events
        self.option = Path(folder, "options/record-cmd")
        os.mkfifo(Path(folder, "pipe"))
        self.pipe = os.open(Path(folder, "pipe"), os.O_RDWR)
        self.env = {**os.environ, "LD_PRELOAD": HERE["fake"], "FAKE_TRACEFS": folder,
                    "FAKE_EVENTS": " ".join(events),
                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") +
                                    ":verify_asan_link_order=0"}

    def start(self, *words, stdout=subprocess.PIPE):
        # The suites may run under nohup, which has their programs ignore SIGHUP.
        return subprocess.Popen([HERE["purecm"], *words, "--kernel"], env=self.env, text=True,
                                stdout=stdout, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def wait_for(self, condition):
        end = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("nothing came of it")
            time.sleep(0.01)

    def read(self, name):
        """Return a file of the instance; empty while there is none."""
        found = list(self.instances.glob(f"*/{name}"))
        return found[0].read_text() if found else ""

    def played(self, *words, lines=""):
        """Return what a command prints that ends after these lines, on both outputs, and status."""
        process = self.start(*words)
        self.wait_for(lambda: self.read(f"events/{self.events[-1]}/enable") == "1")
        os.write(self.pipe, lines.encode())
        process.send_signal(signal.SIGINT)
        return (*process.communicate(timeout=LIMIT_S), process.returncode)


@contextmanager
def tracefs(events=tuple(ALL)):
    with tempfile.TemporaryDirectory() as folder:
        for part in ("instances", "options"):
            Path(folder, part).mkdir()
        Path(folder, "options/record-cmd").write_text("1\n")
        made = Tracefs(folder, list(events))
        try:
            yield made
        finally:
            os.close(made.pipe)


def without(*names):
    return [event for event in ALL if event not in names]


class Live(unittest.TestCase):
    def test_what_is_traced_is_told_and_nothing_is_left_behind(self):
        with tracefs() as made:
            said, _, status = made.played("explain", lines=PAIR)
            self.assertEqual((status, list(made.instances.iterdir())), (0, []))
        self.assertIn("nobody listens at TCP port 2", said)

    def test_nothing_is_left_behind_when_the_terminal_or_the_reader_has_gone(self):
        with tracefs() as made:
            process = made.start("trace")
            made.wait_for(lambda: made.read(f"events/{ALL[-1]}/enable") == "1")
            process.send_signal(signal.SIGHUP)
            process.communicate(timeout=LIMIT_S)
            self.assertEqual((process.returncode, list(made.instances.iterdir())), (0, []))
        for options in ((), ("--json", "-m", "REJ")):
            with tracefs() as made:
                process = made.start("trace", *options)
                made.wait_for(lambda tracefs=made: tracefs.read(f"events/{ALL[-1]}/enable") == "1")
                process.stdout.close()
                os.write(made.pipe, PAIR.encode())
                said = process.stderr.read()
                self.assertEqual((process.wait(LIMIT_S), list(made.instances.iterdir())),
                                 (-signal.SIGPIPE, []))
                self.assertNotIn("cannot write", said)
                process.stderr.close()

    def test_only_mads_of_its_class_are_traced(self):
        with tracefs() as made:
            process = made.start("trace")
            made.wait_for(lambda: made.read(f"events/{ALL[-1]}/enable") == "1")
            self.assertEqual([made.read(f"events/{event}/filter") for event in MADS],
                             2 * ["mgmt_class == 7"])
            self.assertEqual(made.read("trace_clock"), "mono")
            process.terminate()
            self.assertEqual(process.wait(LIMIT_S), 0)
            process.communicate()

    def test_the_kernel_is_not_made_to_note_the_names_of_tasks(self):
        """It would at each switch between two, for an instance that is made while it does."""
        for had in "1", "0":
            with tracefs() as made:
                made.option.write_text(had)
                process = made.start("trace")
                made.wait_for(lambda tracefs=made: tracefs.read(f"events/{ALL[-1]}/enable") == "1")
                self.assertEqual((made.read("record-cmd"), made.option.read_text()), ("0", had))
                process.terminate()
                process.communicate(timeout=LIMIT_S)

    def test_many_lines_are_all_read(self):
        with tracefs() as made, tempfile.TemporaryFile() as file:
            process = made.start("trace", "--json", stdout=file)
            made.wait_for(lambda: made.read(f"events/{ALL[-1]}/enable") == "1")
            for _ in range(200):
                os.write(made.pipe, 10 * PAIR.encode())
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=LIMIT_S)
            file.seek(0)
            said = file.read().decode()
        self.assertEqual(said.count('"REQ"'), 2000)
        self.assertEqual(said.count('"REJ"'), 2000)


class Missing(unittest.TestCase):
    """Events that a kernel does not have."""

    def test_what_is_not_seen_for_want_of_an_event_is_said_and_the_rest_shown(self):
        for events, words in (((MADS[0],), "repetitions are not seen"),
                              ((MADS[1],), "repetitions by peers and their MRAs are not seen"),
                              (("rdma_cma/cm_send_rej",), "refusals by programs of this host")):
            with tracefs(without(*events)) as made:
                said, note, status = made.played("trace", "--json", lines=PAIR)
            self.assertEqual((status, said.count("\n")), (0, 2), note)
            self.assertIn(f"{events[0]} cannot be traced (No such file or directory): ", note)
            self.assertIn(words, note)

    def test_several_events_for_one_purpose_are_one_complaint(self):
        """Linux 5.10 has none of them."""
        with tracefs(without(*REASONS)) as made:
            said, note, status = made.played("trace", "--json", lines=PAIR)
        self.assertEqual((status, said.count("\n")), (0, 2), note)
        self.assertEqual(note.count("why this host refuses by itself is not seen"), 1, note)

    def test_without_the_connection_managers_events_nothing_can_be_told(self):
        for events in (without("rdma_cma/cm_send_req"), MADS):
            with tracefs(events) as made:
                process = made.start("trace")
                _, note = process.communicate(timeout=LIMIT_S)
                self.assertEqual((process.returncode, list(made.instances.iterdir())), (1, []))
            self.assertIn("modprobe rdma_cm", note)

    def test_where_no_instance_can_be_made_it_is_named(self):
        with tracefs() as made:
            made.instances.rmdir()
            made.instances.touch()
            process = made.start("trace")
            _, note = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn("/sys/kernel/tracing/instances: Not a directory", note)


if __name__ == "__main__":
    main(__doc__, fake=str)
