# SPDX-License-Identifier: BSD-2-Clause
"""Scripts of this folder against both libraries on a kernel's device; tests/lab/together.py runs
them. A plain run has every third."""
from run import AGENT_PORT, HERE, SECRET, drill, failures, results
from together import LONG, LabTest

LIMIT_S = 600
STEP = 1 if LONG else 3
STOCK = "/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib"


class Drills(LabTest):
    def against(self, mode, library):
        """Assert that all scripts pass, by an agent on host b."""
        scripts = sorted(HERE.glob("*.drill"))[::STEP]
        self.a.mode("purecm", kill=True)  # a drill wants the CM class, which a cmportd may have
        secret = {SECRET: "of-the-test"}
        agent = self.b.start([str(self.build / "tools/purecm-agent"), AGENT_PORT, "::"],
                             env={"LD_LIBRARY_PATH": library, **secret}, timeout=LIMIT_S)
        self.addCleanup(agent.stop)
        agent.wait_for_output("^ready", timeout=20)
        done = self.a.run(drill(self.build, self.b.addr4, scripts, "--timeout=10"),
                          timeout=LIMIT_S, env=secret)
        told = results(done.stdout)
        self.assertEqual(len(told), len(scripts), done.output)
        self.assertLessEqual({each["peer"] for each in told}, {"", mode})
        self.assertEqual(failures(told), [])

    def test_against_stock(self):
        self.against("stock", STOCK)

    def test_against_purecm(self):
        self.b.mode("purecm", kill=True)
        self.addCleanup(self.b.mode, "stock", kill=True)
        self.against("purecm", self.build / "lib")
