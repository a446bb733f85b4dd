#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""purecm timeline: what is in the page, and that a browser shows it.

Ends with a line "N passed, N failed, N skipped".
"""
from pathlib import Path
import re
import tempfile
import unittest
import xml.etree.ElementTree as xml

import browser
import mads
from running import capture, main, purecm, text_of

SVG = "{http://www.w3.org/2000/svg}"
SHOWN = Path(__file__).resolve().parents[2] / "docs/timeline.png"
SHOWN_BYTES_MAX = 200000

# What is drawn in which colour; a thin slanted line has few pixels that are not blended.
MESSAGE, REPEATED, REFUSED, WAIT = "#2456a6", "#e07b00", "#b00020", "#fff3cd"
PIXELS_MIN = 20


def page_of(*args, **more):
    return text_of("timeline", "-r", *args, **more)


def picture(page):
    """Return the SVG of a page as an element: it has to be well-formed by itself."""
    return xml.fromstring(page[page.index("<svg"):page.index("</svg>") + len("</svg>")])


def arrows(page, kind="message"):
    return [group for group in picture(page).iter(SVG + "g")
            if kind in group.get("class").split()]


class Page(unittest.TestCase):
    def test_every_message_is_an_arrow_and_every_connection_a_lane(self):
        page = page_of(capture("connect"))
        self.assertEqual(len(arrows(page)), 10)
        self.assertEqual(page.count('class="label"'), 2)

    def test_details_come_with_the_pointer(self):
        tip = arrows(page_of(capture("connect")))[0].find(SVG + "title").text
        self.assertIn("REQ at 0.000000 s, connection #1", tip)
        self.assertIn("path_mtu=3 (1024 bytes)", tip)

    def test_repetitions_refusals_and_strays_have_their_colours(self):
        page = page_of(capture("silent"))
        self.assertEqual([len(arrows(page, kind)) for kind in ("repeated", "refused", "ignored")],
                         [1, 2, 2])

    def test_a_wait_is_shaded_and_its_length_is_told(self):
        gaps = [text.text for text in picture(page_of(capture("silent"))).iter(SVG + "text")
                if text.get("class") == "gaptext"]
        self.assertEqual(gaps, ["6.2 s", "1.2 s"])

    def test_what_was_lost_ends_with_a_cross(self):
        page = page_of("-", stdin=mads.story((0, ">", mads.req()), (1, ">", mads.req()),
                                             (1.1, "<", mads.rep()), (1.2, ">", mads.ids("RTU"))))
        lost, = arrows(page, "lost")
        self.assertEqual(lost.find(SVG + "path").get("class"), "cross")
        self.assertIn("REQ at 0.000000 s", lost.find(SVG + "title").text)
        self.assertIn("lost, or its answer", lost.find(SVG + "title").text)

    def test_what_nothing_answers_ends_with_a_circle(self):
        unanswered = arrows(page_of(capture("silent")), "lost")
        self.assertEqual([group.find(SVG + "circle") is not None for group in unanswered],
                         [True, True])

    def test_an_answer_that_is_not_drawn_is_an_answer(self):
        page = page_of(capture("connect"), "-m", "REQ")
        self.assertEqual([len(arrows(page, kind)) for kind in ("message", "lost")], [2, 0])

    def test_each_connection_is_explained(self):
        page = page_of(capture("silent"))
        self.assertEqual(page.count("<article"), 2)
        self.assertIn("<b>Remedy:</b> Start the server", page)
        self.assertIn('<a href="#c2">', page)
        self.assertIn("<b>Time:</b> Connected in", page_of(capture("connect")))

    def test_filters_choose_what_is_drawn(self):
        self.assertEqual(len(arrows(page_of(capture("silent"), "--outcome", "rejected"))), 2)

    def test_arrows_point_from_the_sender_to_the_receiver(self):
        request, answer = [group.find(SVG + "line") for group in
                           arrows(page_of(capture("nobody")))]
        self.assertLess(int(request.get("y1")), int(request.get("y2")))
        self.assertGreater(int(answer.get("y1")), int(answer.get("y2")))

    def test_the_page_needs_nothing_else(self):
        page = page_of(capture("connect"))
        self.assertEqual(re.findall(r"https?://[^\"]+", page), ["http://www.w3.org/2000/svg"])
        self.assertNotIn("<script", page)

    def test_what_peers_say_is_no_markup(self):
        rejected = mads.rej(28, data=b"<script>alert(1)</script>")
        page = page_of("-", stdin=mads.story((0, ">", mads.req()), (0.1, "<", rejected)))
        self.assertIn("&lt;script&gt;", page)
        self.assertNotIn("<script", page)

    def test_too_many_messages_are_told(self):
        told = [(n / 1000, ">", mads.req(comm_id=n + 1)) for n in range(5010)]
        done = purecm("timeline", "-r", "-", stdin=mads.story(*told))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"only the first 5000 messages", done.stderr)

    def test_messages_of_other_outcomes_are_none_too_many(self):
        told = [(n / 1000, ">", mads.req(comm_id=n + 1)) for n in range(5001)]
        page = page_of("-", "--outcome", "rejected",
                       stdin=mads.story(*told, (6, "<", mads.rej(28, remote=5001))))
        self.assertEqual(len(arrows(page)), 2)

    def test_an_output_that_cannot_be_written_is_an_error(self):
        done = purecm("timeline", "-r", capture("connect"), "--output=/nowhere/x.html")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/nowhere/x.html cannot be written", done.stderr)


class Shown(unittest.TestCase):
    def test_the_picture_in_the_readme_is_a_small_one(self):
        self.assertLess(SHOWN.stat().st_size, SHOWN_BYTES_MAX)
        self.assertIn("](docs/timeline.png)", (SHOWN.parents[1] / "README.md").read_text())


@unittest.skipUnless(browser.PROGRAM, "chromium is missing: apt-get install chromium")
class InABrowser(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.folder = Path(self.kept.name)
        self.page = self.folder / "page.html"
        named = self.folder / ("long" * 30)
        named.symlink_to(capture("silent"))
        self.assertEqual(purecm("timeline", "-r", named, "-o", self.page).returncode, 0)

    def tearDown(self):
        self.kept.cleanup()

    def test_it_is_parsed_as_it_was_written(self):
        shown = browser.browse(self.page, "--dump-dom")
        self.assertEqual(shown.count('<g class="message'), 7)
        self.assertEqual(shown.count("<title>"), 8)

    def test_every_connection_is_in_it(self):
        shown = browser.browse(self.page, "--dump-dom")
        told = text_of("trace", "-r", capture("silent"), "--json")
        numbers = set(re.findall(r'"connection": ?(\d+)', told))
        self.assertEqual(set(re.findall(r"<b><a href=.#c(\d+)", shown)), numbers)
        self.assertGreater(len(numbers), 1)

    def test_it_is_painted_in_its_colours(self):
        painted = self.folder / "page.png"
        browser.browse(self.page, "--window-size=1200,500", f"--screenshot={painted}")
        png = painted.read_bytes()
        self.assertEqual(browser.size(png), (1200, 500))
        found = browser.colours(png)
        for colour in (MESSAGE, REPEATED, REFUSED, WAIT):
            self.assertGreater(found[colour], PIXELS_MIN, colour)

    def test_no_width_needs_the_page_to_be_moved(self):
        for width in (400, 800, 1200):
            self.page.write_text(self.page.read_text(encoding="utf-8").replace(
                "<body>", "<body onload='document.title = document.body.scrollWidth'>").replace(
                "default-src 'none'", "script-src 'unsafe-inline'"), encoding="utf-8")
            shown = browser.browse(self.page, f"--window-size={width},900", "--dump-dom")
            wide = int(re.search(r"<title>(\d+)</title>", shown)[1])
            self.assertLessEqual(wide, max(width, 500), width)  # Chromium's windows are not smaller

    def test_it_asks_nobody_for_anything(self):
        self.assertEqual(browser.requests(self.page, self.folder / "log"), set())

    def test_a_page_that_did_would_be_noticed(self):
        self.page.write_text('<img src="http://192.0.2.1:9/x.png">', encoding="utf-8")
        self.assertEqual(browser.requests(self.page, self.folder / "log"),
                         {"http://192.0.2.1:9/x.png"})


if __name__ == "__main__":
    main(__doc__)
