# SPDX-License-Identifier: BSD-2-Clause
"""A certificate as one self-contained HTML page, and as text."""
import html
import json

from trials import FAILS, SLOWER, UNTRIED, WORKS

COLOURS = {WORKS: "#d8f0d8", SLOWER: "#fff0c0", FAILS: "#f8d0d0", UNTRIED: "#e8e8e8"}
STYLE = """body{font:15px/1.4 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%;margin:1em 0}
td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left;vertical-align:top}
pre{background:#f4f4f4;padding:1em;overflow:auto;max-height:30em}"""
MAD_COLUMNS = ("kind", "direction", "from", "to", "sent", "answered", "min_us", "median_us",
               "max_us", "arrived_at", "source_qpn", "grh", "sl", "pkey_index", "hop_limit",
               "error")


def cell(value, name="td", colour=None):
    style = f' style="background:{colour}"' if colour else ""
    return f"<{name}{style}>{html.escape(str(value))}</{name}>"


def table(head, rows):
    """The cells in the rows are HTML already."""
    return "<table><tr>" + "".join(cell(each, "th") for each in head) + "</tr>\n" + \
        "\n".join("<tr>" + "".join(row) + "</tr>" for row in rows) + "</table>\n"


def verdicts(rows):
    return table(("feature", "verdict", "why", "what to do"),
                 [[cell(row["feature"]), cell(row["verdict"], colour=COLOURS[row["verdict"]]),
                   cell(row["why"]), cell(row["remedy"])] for row in rows])


def words_of(facts):
    """A dictionary as words."""
    return ", ".join(f"{name} {value if isinstance(value, (str, int)) else json.dumps(value)}"
                     for name, value in facts.items())


def devices(stock):
    """Yield the rows of a host's devices."""
    for device in stock["devices"]:
        inline = ", ".join(f"{device[key]} with {key[-2:].upper()}"
                           for key in ("inline_rc", "inline_ud") if device.get(key, -1) >= 0)
        about = {key: device[key] for key in ("pci", "vendor", "part", "revision", "board",
                                              "provider", "transport", "atomics", "capabilities",
                                              "error") if device.get(key)}
        yield [cell(text) for text in (
            device["name"], f"{device['driver']} {device['driver_version']}", device["firmware"],
            words_of(about), inline, device.get("privileged_qkey", "unknown"),
            words_of(device["lag"]) or "no", words_of(device.get("limits", {})))]


def ports(stock):
    """Yield the rows of a host's ports."""
    for device in stock["devices"]:
        for port in device["ports"]:
            gids = "; ".join(f"{gid['index']}: {gid['gid']} {gid['type']} {gid['interface']}"
                             for gid in port["gids"])
            about = {key: port[key] for key in port
                     if key not in ("number", "state", "link", "rate", "pkeys", "gids")
                     and port[key] not in ("", 0)}
            yield [cell(text) for text in (
                f"{device['name']}/{port['number']}", port["state"], port["link"], port["rate"],
                words_of(about), words_of(port["pkeys"]), gids)]


def host(name, stock):
    facts = [(key, value if isinstance(value, (str, int)) else json.dumps(value))
             for key, value in stock.items() if key != "devices" and value not in ("", [], {})]
    return f"<h2>Host {name}: {html.escape(stock['name'])}</h2>" + \
        table(("device", "driver", "firmware", "kind", "bytes inline", "Q_Key of QP1", "LAG",
               "limits"), devices(stock)) + \
        table(("port", "state", "link", "rate", "more", "P_Keys", "GIDs"), ports(stock)) + \
        table(("fact", "value"), [[cell(key), cell(value)] for key, value in facts])


def render(certificate):
    """Return the page."""
    hosts = "".join(host(name, stock) for name, stock in certificate["hosts"].items())
    mads = table(MAD_COLUMNS, [[cell(mad.get(column, "")) for column in MAD_COLUMNS]
                               for mad in certificate["mads"]])
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>purecm certify: {certificate["date"]}</title>
<style>{STYLE}</style></head><body>
<h1>purecm {html.escape(certificate["version"])} between two hosts</h1>
<p>{certificate["date"]}, {certificate["seconds"]:.0f} s: {html.escape(summary(certificate))}</p>
<p>Seconds: {", ".join(f"{name} {took:.0f}" for name, took in certificate["took"].items())}.</p>
{verdicts(certificate["rows"])}{hosts}
<h2>Ways of a MAD</h2>{mads}
<h2>All of it</h2><details><summary>JSON</summary>
<pre>{html.escape(json.dumps(certificate, indent=1))}</pre></details></body></html>
"""


def summary(certificate):
    count = {verdict: sum(row["verdict"] == verdict for row in certificate["rows"])
             for verdict in COLOURS}
    return ", ".join(f"{n} {verdict}" for verdict, n in count.items() if n)


def printable(text):
    """The text without what may control a terminal: the other host has chosen it."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def line(row):
    """A verdict as a line of text."""
    text = f"{row['verdict']:14} {row['feature']}: {row['why']}"
    if row["remedy"] and row["verdict"] != WORKS:
        text += f"\n{'':14} => {row['remedy']}"
    return printable(text)
