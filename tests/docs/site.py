#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The documentation as a site (tools/site): no link of it is dead, nothing comes from elsewhere, it
is searched in a browser, and its pages are looked at there.

site.py BUILD [--pictures FOLDER]: pictures of the pages that were looked at are left there.
Ends with a line "N passed, N failed, N skipped". Exit status: 77 without PURECM_TEST_LONG, mkdocs
or Chromium.
"""
import argparse
import functools
from html.parser import HTMLParser
import http.server
import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/tools")]

import browser  # noqa: E402
from counted import summary  # noqa: E402

SKIPPED = 77
LOOKED_AT = ("index.html", "docs/architecture.html", "docs/testing.html", "man/purecm.1.html",
             "man/rdma_connect.3.html", "CHANGELOG.html")
# Words, and a page that has to be among what a search for them finds.
SEARCHES = {"backlog": "man/rdma_listen.3.html", "rdma_resolve_route": "man/rdma_resolve_route.3",
            "EPROTONOSUPPORT": "docs/portd-protocol.html"}
HERE = {}  # the site, and where pictures are to be left


class Page(HTMLParser):
    """What a page refers to, and which places it has; of what it loads by itself, all."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.ids = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        if attrs.get("href"):
            (self.links if tag == "a" else self.loads).add(attrs["href"])
        if attrs.get("src"):
            self.loads.add(attrs["src"])


class Site(unittest.TestCase):
    pages = {}

    @classmethod
    def setUpClass(cls):
        cls.pages = {path.resolve(): Page(path) for path in HERE["site"].rglob("*.html")
                     if path.name != "404.html"}  # its links have no folder

    def test_there_is_a_page_for_each_page_and_manual_page(self):
        names = {path.name for path in self.pages}
        wanted = [f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")]
        wanted += [f"{path.name}.html" for path in (HERE["build"] / "docs").glob("*.3")]
        self.assertGreater(len(wanted), 100)
        self.assertEqual([name for name in wanted if name not in names], [])

    def test_no_link_is_dead(self):
        dead = []
        for path, page in self.pages.items():
            for link in page.links | page.loads:
                address, place = urldefrag(link)
                if urlsplit(address).scheme:
                    continue
                target = (path.parent / unquote(urlsplit(address).path)).resolve() if address \
                    else path
                target = target / "index.html" if target.is_dir() else target
                if not target.exists() or (place and target in self.pages and
                                           place not in self.pages[target].ids):
                    dead.append(f"{path.name}: {link}")
        self.assertEqual(dead, [])

    def test_nothing_comes_from_elsewhere(self):
        loads = {load for page in self.pages.values() for load in page.loads}
        self.assertEqual([load for load in loads if urlsplit(load).netloc], [])


class Browser(unittest.TestCase):
    """The site as a server serves it, at an address of this machine only."""

    def setUp(self):
        handler = functools.partial(Quiet, directory=HERE["site"])
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.address = f"http://127.0.0.1:{server.server_address[1]}/"

    def test_a_search_finds(self):
        results = "document.querySelectorAll('#mkdocs-search-results a')"
        with browser.tab() as tab:
            for words, page in SEARCHES.items():
                with self.subTest(words):
                    tab.open(f"{self.address}search.html?q={words}", f"{results}.length > 0")
                    found = tab.value(f"Array.from({results}).map(a => a.href).join(' ')")
                    self.assertIn(page, found)

    def test_pages_are_as_wide_as_the_window_and_have_their_pictures(self):
        with browser.tab("--window-size=1200,900") as tab:
            for page in LOOKED_AT:
                with self.subTest(page):
                    tab.open(self.address + page)
                    picture = tab.picture()
                    if HERE["pictures"]:
                        name = page.replace("/", "-").replace(".html", ".png")
                        (HERE["pictures"] / name).write_bytes(picture)
                    wide = "document.documentElement.scrollWidth <= window.innerWidth"
                    self.assertTrue(tab.value(wide))
                    self.assertEqual(tab.value("Array.from(document.images).filter("
                                               "i => !i.naturalWidth).length"), 0)
                    self.assertGreater(len(browser.colours(picture)), 50)
                    self.assertNotEqual(tab.value("document.querySelector('h1').innerText"), "")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


def why_not():
    if not os.environ.get("PURECM_TEST_LONG"):
        return "half a minute; PURECM_TEST_LONG=1 or tools/check --long runs it"
    if not shutil.which("mkdocs"):
        return "mkdocs is missing: apt-get install mkdocs"
    if not browser.PROGRAM:
        return "Chromium is missing: apt-get install chromium"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    if why_not():
        print(f"skipped: {why_not()}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="purecm-site-") as folder:
        subprocess.run([ROOT / "tools/site", "--build", args.build, "--into", folder], check=True,
                       stdout=subprocess.DEVNULL)
        HERE.update(site=Path(folder), build=args.build, pictures=args.pictures)
        result = unittest.main(argv=sys.argv[:1], exit=False).result
    return summary(result)


if __name__ == "__main__":
    sys.exit(main())
