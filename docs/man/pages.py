#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the manual pages of all functions: of the contract comments of the public headers, which
have the prototype, the arguments and what is returned, and of functions/*.txt, which add the rest.

pages.py --list          print the names of the pages
pages.py --into FOLDER   write them; called by meson
pages.py --depends       print what they are made of

In functions/*.txt a line "= NAME" begins a function, a line in capitals a section, and lines before
the first section add to the description. An item is "TERM: text", blank lines part paragraphs, and
lines that are indented by four blanks are printed as they are. ARGUMENTS and RETURN VALUE stand in
place of what the header says. `code`, @argument and function() are set in the right type.
"""
import argparse
import pathlib
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import contract  # pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADERS = ("rdma/rdma_cma.h", "rdma/rdma_verbs.h", "rdma/rsocket.h", "purecm/purecm.h")
EXPORTS = "lib/librdmacm.map"
SECTIONS = ("DESCRIPTION", "ARGUMENTS", "EVENTS", "RETURN VALUE", "ERRORS", "NOTES", "EXAMPLE",
            "SEE ALSO")
COLUMNS = 79
CODE_INDENT = "    "

ITEM = re.compile(r"([A-Z0-9][A-Z0-9_]+(?:, [A-Z0-9_]+)*|[a-z_]+): +(.*)", re.DOTALL)
LIST_OF_CODES = re.compile(r": (?=E[A-Z]{3})")
MARKS = re.compile(r"`(?P<code>[^`]+)`|@(?P<argument>\w+)(?:->(?P<member>\w+))?"
                   r"|(?P<function>\b\w+)\((?P<section>[1-8]?)\)"
                   r"|(?P<constant>\b(?:[A-Z][A-Z0-9]*_[A-Z0-9_]*|E[A-Z]{3,}[A-Z0-9]*|NULL)\b)")


def read_headers():
    found = {}
    for header in HEADERS:
        text = (ROOT / "include" / header).read_text(encoding="utf-8")
        found.update(contract.functions_of(text, header))
    return found


def read_release():
    """Return date and name of the release as rdma_cm(7) has them, in quotes."""
    text = (HERE / "rdma_cm.7").read_text(encoding="utf-8")
    return re.search(r'^\.TH RDMA_CM 7 (".*?" ".*?")', text, re.MULTILINE)[1]


def read_versions():
    """Return the symbol version of each exported function."""
    found, version = {}, ""
    for line in (ROOT / EXPORTS).read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) == 2 and words[1] == "{":
            version = words[0]
        elif len(words) == 1 and words[0].endswith(";"):
            found[words[0].rstrip(";")] = version
    return found


def add_line(sections, name, line):
    if line in SECTIONS:
        sections[line] = []
        return line
    sections.setdefault(name, []).append(line)
    return name


def read_texts():
    """Return the sections of each function of functions/*.txt, as lists of lines."""
    found = {}
    for path in sorted((HERE / "functions").glob("*.txt")):
        name, sections = "", {}
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("= "):
                name, sections = "DESCRIPTION", found.setdefault(line[2:], {})
            elif name:
                name = add_line(sections, name, line)
    return found


# --- man(7) -----------------------------------------------------------------------------------


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def marked(match, known):
    if match["code"]:
        return rf"\fB{match['code']}\fR"
    if match["argument"]:
        member = f"->{match['member']}" if match["member"] else ""
        return rf"\%\fI{match['argument']}\fR{member}"
    if match["constant"]:
        return rf"\%\fB{match['constant']}\fR"
    section = match["section"] or ("3" if match["function"] in known else "")
    return rf"\%\fB{match['function']}\fR({section})"


def prose(text, known):
    """Return a paragraph as lines of man(7)."""
    text = MARKS.sub(lambda match: marked(match, known), text.replace("\\", "\\e"))
    lines = textwrap.wrap(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
    return [r"\&" + line if line[0] in ".'" else line for line in lines]


def code(lines):
    return [".RS 4", ".nf", *(escape(line) or r"\&" for line in lines), ".fi", ".RE"]


def item(term, text, known):
    return [".TP", rf"\fB{term}\fR", *prose(text, known)]


def items_of(lines):
    """Yield (term, text) of a section of items."""
    groups = []
    for line in lines:
        if ITEM.match(line) or not groups:
            groups.append([])
        groups[-1].append(line)
    for group in groups:
        found = ITEM.fullmatch(contract.unwrap(group))
        if not found and any(group):
            raise SystemExit(f"no item: {group[0]}")
        if found:
            yield found.groups()


def paragraphs_of(lines):
    """Yield (lines of a paragraph or of a piece of code, whether it is code)."""
    group, is_code = [], False
    for line in [*lines, ""]:
        indented = line.startswith(CODE_INDENT)
        if group and (not line and not is_code or line and indented != is_code):
            yield group, is_code
            group = []
        if line or group:
            is_code = indented if line else is_code
            group.append(line)
    if group:
        yield group, is_code


def items(lines, known):
    """Return a section of items as lines of man(7)."""
    return [line for term, text in items_of(lines) for line in item(term, text, known)]


def prose_and_code(lines, known):
    """Return any other section as lines of man(7)."""
    ret = []
    for group, is_code in paragraphs_of(lines):
        if is_code:
            ret += code(textwrap.dedent("\n".join(group)).strip("\n").split("\n"))
        else:
            ret += ([".PP"] if ret else []) + prose(contract.unwrap(group), known)
    return ret


# --- pages ------------------------------------------------------------------------------------


def synopsis(function):
    head, arguments = function.prototype.split("(", 1)
    indent = " " * 8
    lines = textwrap.wrap(f"{head}({arguments};", 72, subsequent_indent=indent)
    return [".nf", rf"\fB#include <{function.header}>\fR", ".PP",
            *(rf"\fB{line}\fR" for line in lines), ".fi", ".PP", r"Link with \fI\-lrdmacm\fR."]


def arguments_of(function, text, known):
    told = dict(function.arguments)
    told.update(items_of(text.get("ARGUMENTS", [])))
    ret = []
    for name, meaning in told.items():
        ret += [".TP", rf"\fI{name}\fR", *prose(sentence(meaning[0].upper() + meaning[1:]), known)]
    return ret


def sentence(text):
    return text if text.endswith(".") else text + "."


def returns_of(function, text):
    """Return what is returned, without the codes if there is a list of them."""
    if "RETURN VALUE" in text or not function.returns:
        return text.get("RETURN VALUE", [])
    told = function.returns
    return [sentence(LIST_OF_CODES.split(told)[0] if "ERRORS" in text else told)]


def versions_of(function, versions):
    if function.is_inline:
        return ["Compiled into the program."]
    version = versions[function.name]
    ret = f"Exported as {function.name}@{version}."
    if version.startswith("PURECM"):
        return [ret, "The stock library does not have it; a program for both looks it up with",
                r"\fBdlsym\fR(3)."]
    return [ret]


def see_also(text, own_name, known):
    names = [name for name in " ".join(text.get("SEE ALSO", [])).split() if name != own_name]
    names = [name if "(" in name else f"{name}(3)" for name in names]
    wide = sorted(set(names) | {"rdma_cm(7)"}, key=lambda name: (name[-2], name))
    for name in names:
        if name.endswith("(3)") and not name.startswith("ibv_") and name[:-3] not in known:
            raise SystemExit(f"{own_name}: there is no page {name}")
    return [rf".BR \%{name[:-3]} {name[-3:]}{',' if name != wide[-1] else ''}"
            for name in wide]


def page(function, text, versions, known):
    """Return the page of a function as man(7)."""
    name = function.name
    description = []
    for paragraph in function.paragraphs:
        description += [paragraph, ""]
    description += text.get("DESCRIPTION", [])
    summary = function.summary.replace("-", "\\-")
    ret = [r'.\" SPDX-License-Identifier: BSD-2-Clause',
           rf'.\" Made by docs/man/pages.py of include/{function.header} and docs/man/functions.',
           f'.TH {name.upper()} 3 {read_release()} "Library Functions"',
           ".SH NAME", rf"{name} \- {summary}", ".SH SYNOPSIS", *synopsis(function)]
    for title, lines in (
            ("DESCRIPTION", prose_and_code(description, known)),
            ("ARGUMENTS", arguments_of(function, text, known)),
            ("EVENTS", items(text.get("EVENTS", []), known)),
            ("RETURN VALUE", prose_and_code(returns_of(function, text), known)),
            ("ERRORS", items(text.get("ERRORS", []), known)),
            ("NOTES", prose_and_code(text.get("NOTES", []), known)),
            ("EXAMPLE", prose_and_code(text.get("EXAMPLE", []), known)),
            ("VERSIONS", versions_of(function, versions)),
            ("SEE ALSO", see_also(text, name, known))):
        if lines:
            ret += [f".SH {title}", *lines]
    return "\n".join(ret) + "\n"


def sources():
    own = [HERE / "pages.py", HERE / "contract.py", HERE / "rdma_cm.7", ROOT / EXPORTS]
    return own + [ROOT / "include" / header for header in HEADERS] + sorted(
        (HERE / "functions").glob("*.txt"))


def write_pages(folder):
    functions, texts, versions = read_headers(), read_texts(), read_versions()
    unknown = set(texts) ^ set(functions)
    if unknown:
        raise SystemExit(f"in the headers or in functions/*.txt only: {', '.join(sorted(unknown))}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, function in functions.items():
        text = page(function, texts[name], versions, functions)
        (folder / f"{name}.3").write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the names of the pages")
    parser.add_argument("--depends", action="store_true", help="print what they are made of")
    parser.add_argument("--into", type=pathlib.Path, help="write them into this folder")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{name}.3" for name in read_headers()))
    if args.depends:
        print("\n".join(map(str, sources())))
    if args.into:
        write_pages(args.into)


if __name__ == "__main__":
    main()
