# SPDX-License-Identifier: BSD-2-Clause
"""What stock does not have: alone.c with this library against a stock host; tests/lab/together.py
runs it."""
from together import LabTest

PORT = 7999
SILENT = "10.77.0.99"

EXPECTED = f"""\
name: event 16 status 0 arg 0
address: event 0 status 0 arg 0
route: event 2 status 0 arg 0
first: event 18 status -5 arg 41
second: event 16 status 0 arg 0
third: event 18 status 6 arg 43
connect: event 8 status 8 arg 0
reason: invalid service id: nobody listens there
sent 0x10
received 0x12
counted: sent 1, received 1
failure: local address 192.0.2.1:1: no interface of this host has this address
silence: event 1 status -110 arg 0
failure: destination {SILENT}:1: the link address of host {SILENT}:0 on eth0 was not \
resolved in time
"""


def without_repeats(lines):
    """Return the lines without those that repeat a message: a slow peer has it sent again, and
    answers twice."""
    return [line for before, line in zip([""] + lines, lines)
            if line != before or not line.startswith(("sent ", "received "))]


class Alone(LabTest):
    maxDiff = None

    def test_what_stock_does_not_have(self):
        done = self.a.run([str(self.build / "tests/parity/alone"), "b", str(PORT), SILENT],
                          timeout=120, env={"LD_LIBRARY_PATH": self.build / "lib"})
        self.assertEqual(without_repeats(done.output.splitlines()), EXPECTED.splitlines())
