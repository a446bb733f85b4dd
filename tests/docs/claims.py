#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What docs/moving.md, docs/deployment.md and docs/security.md state of figures, options, units,
files, packages and limits, against the tree; and how long pages are.

Ends with a line "N passed, N failed, N skipped".
"""
import argparse
from pathlib import Path
import re
import subprocess
import sys
import unittest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from counted import summary  # noqa: E402

HERE = {}  # what main() was told


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def flat(name):
    """Return a page without its line breaks."""
    return " ".join(text(name).split())


def defined(name, path):
    """Return the number that a macro stands for."""
    return int(re.search(rf"^#define {name}\s+(\d+)u?\b", text(path), re.MULTILINE)[1])


class Moving(unittest.TestCase):
    page = flat("docs/moving.md")

    def test_the_number_of_scenarios(self):
        listed = subprocess.run([HERE["parity"], "list"], check=True, capture_output=True,
                                text=True).stdout.splitlines()
        self.assertIn(f" {len(listed)} scenarios run with stock ", self.page)

    def test_all_options_of_stock_are_named(self):
        section = self.page.split("## Options")[1].split("##")[0]
        options = set(re.findall(r"^\t(RDMA_OPTION_I[DB]_\w+) = ", text("include/rdma/rdma_cma.h"),
                                 re.MULTILINE))
        self.assertGreater(len(options), 4)
        self.assertEqual(set(re.findall(r"RDMA_OPTION_I[DB]_\w+", section)), options)

    def test_limits_and_defaults_of_retransmissions(self):
        most = defined("DEFAULTS_RETRIES_MAX", "lib/diag/defaults.h")
        usual = defined("CM_TRANSMISSIONS_MAX", "cm/retry.h") - 1
        self.assertIn(f"0 to {most}; default {usual} |", self.page)


class Deployment(unittest.TestCase):
    page = flat("docs/deployment.md")
    service = text("tools/cmportd/cmportd.service.in")
    socket = text("tools/cmportd/cmportd.socket")

    def test_limits_of_the_service(self):
        rows = re.findall(r"\| ((?:Limit|Memory)\w+=\w+) \|", self.page)
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertIn(f"\n{row}\n", self.service)

    def test_what_the_service_may_do(self):
        self.assertIn("single capability CAP_NET_RAW", self.page)
        self.assertIn("\nCapabilityBoundingSet=CAP_NET_RAW\n", self.service)
        self.assertIn("`/dev/infiniband/umad*` and `uverbs*` and no other device", self.page)
        self.assertEqual(re.findall("^DeviceAllow=char-(.*) rw$", self.service, re.MULTILINE),
                         ["infiniband_mad", "infiniband_verbs"])
        restarts = re.search(r"`(Restart=\S+)`, (\S+) ms after the death", self.page)
        self.assertIn(f"\n{restarts[1]}\nRestartSec={restarts[2]}ms\n", self.service)

    def test_path_and_mode_of_the_socket(self):
        path, mode = re.search(r"opens `(\S+)` \(mode (\d+)", self.page).groups()
        self.assertIn(f"\nListenSequentialPacket={path}\n", self.socket)
        self.assertIn(f"\nSocketMode={mode}\n", self.socket)

    def test_how_many_connections_the_state_file_has(self):
        chunks = defined("TRACKED_CHUNKS_MAX", "lib/portd/server/files/tracked_file.h")
        size = defined("TRACKED_CHUNK", "lib/portd/server/files/tracked_file.h")
        self.assertIn(f"connections beyond {chunks * size:,} per host", self.page)
        clients = defined("CLIENTS_MAX", "lib/portd/server/limits.h")
        self.assertIn(f"| {clients} clients, ", self.page)

    def test_packages(self):
        section = text("docs/deployment.md").split("## Versions")[0]
        named = re.findall(r"^\| `([\w-]+)` \| ", section, re.MULTILINE)
        built = re.findall("^Package: (.*)$", text("tools/packaging/debian/control"), re.MULTILINE)
        self.assertEqual(sorted(named), sorted(built))

    def test_the_commands_write_the_files_of_the_package_of_modules(self):
        for name in ("modprobe.d", "modules-load.d"):
            command, = re.findall(rf"^    (printf .*) > /etc/{name}/purecm.conf$",
                                  text("docs/deployment.md"), re.MULTILINE)
            written = subprocess.run(["sh", "-c", command], check=True, capture_output=True,
                                     text=True).stdout
            kept = re.sub("^#.*\n", "", text(f"tools/packaging/modules/{name}/purecm.conf"),
                          flags=re.MULTILINE)
            self.assertEqual(written, kept)


class Security(unittest.TestCase):
    page = flat("docs/security.md").replace(" | | | ", " ")  # a row of two lines
    server = "lib/portd/server/"
    limits = (  # as the page says it, the macro, its file
        ("{} next hops at once", "STRANGERS_HOPS", server + "limits.h"),
        ("reads {} messages of a user", "USER_TURN", server + "limits.h"),
        ("{} a second, 2,000 at once", "CONNECTS_S", server + "limits.h"),
        ("{} of a user;", "ASKS_MAX", server + "limits.h"),
        ("client; {}, and 4 a connection", "SAID_FEW", server + "limits.h"),
        ("512, and {} a connection", "SAID_EACH", server + "limits.h"),
        ("{} unsent of a client", "REQUESTS_MAX", server + "limits.h"),
        ("Root has {} places", "ROOT_CLIENTS", server + "limits.h"),
        ("share {} unsent requests", "NOBODYS_MAX", server + "limits.h"),
        ("{} of one key", "TRACKED_ALIKE_MAX", server + "limits.h"),
        ("{} groups", "SA_GROUPS_MAX", "mad/sa/agent.h"),
        ("{} of a port's", "SA_TURN_OUT_MAX", "mad/sa/flight.h"),
        ("{} of a host; 256, the oldest", "PENDING_OF_HOST", "lib/rsocket/stream_listen.c"),
        ("of a host; {}, the oldest", "PENDING_MAX", "lib/rsocket/stream_listen.c"),
        ("{} senders are located", "RESOLVING_MAX", "lib/rsocket/dgram_dest.c"),
        ("{} peers", "DESTS_MAX", "lib/rsocket/dgram_dest.c"),
        ("{} connections, 5 s", "CONNECTIONS_MAX", "tools/monitoring/export.c"),
        ("{} ids", "IDS_MAX", "tools/drill/drill_agent.c"),
    )

    def test_limits(self):
        for said, name, path in self.limits:
            self.assertIn(said.format(f"{defined(name, path):,}"), self.page)

    def test_quotas(self):
        quotas = set(re.findall(r'^\tX\(\w+, "([\w-]+)"', text(self.server + "limits.h"),
                                re.MULTILINE))
        named = set(re.findall(r"`((?:user|host)-[\w-]+)`", self.page))
        self.assertGreaterEqual(len(named), 3)
        self.assertLessEqual(named, quotas)


class Lengths(unittest.TestCase):
    """Pages are for readers: what they once were is in commits and in the changelog."""

    def test_each(self):
        for name, words in (("testing", 2000), ("scale", 2000), ("security", 1800)):
            with self.subTest(name):
                self.assertLessEqual(len(text(f"docs/{name}.md").split()), words)

    def test_all_together(self):
        pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
        self.assertLessEqual(sum(len(page.read_text(encoding="utf-8").split())
                                 for page in pages), 25000)



def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("parity", type=Path)
    HERE.update(vars(parser.parse_args()))
    return summary(unittest.main(argv=sys.argv[:1], exit=False).result)


if __name__ == "__main__":
    sys.exit(main())
