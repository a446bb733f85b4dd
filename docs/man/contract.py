# SPDX-License-Identifier: BSD-2-Clause
"""What the public headers say of each function: its contract comment and its prototype.

Used by pages.py, which makes the manual pages of it.
"""
import dataclasses
import re

COMMENT = re.compile(r"/\*\*?\s(?P<body>(?:[^*]|\*(?!/))*?)\s*\*/\n(?P<code>[a-z_][^;{]*\))\s*[;{]")
TITLE = re.compile(r"(\w+)\(\) - (.*)", re.DOTALL)
ARGUMENT = re.compile(r"@(\w+): +(.*)", re.DOTALL)
KEYWORDS = ("static", "inline", "__inline__")


@dataclasses.dataclass
class Function:
    """A function of a public header, as its contract comment has it."""
    name: str
    summary: str
    header: str
    prototype: str
    is_inline: bool
    arguments: dict = dataclasses.field(default_factory=dict)
    paragraphs: list = dataclasses.field(default_factory=list)
    returns: str = ""


def unwrap(lines):
    return " ".join(line.strip() for line in lines).strip()


def comment_lines(body):
    """Return the lines of a comment without the stars in front."""
    return [re.sub(r"^ ?\* ?", "", line) for line in body.splitlines()]


def blocks(lines):
    """Yield groups of lines: an argument each, and what blank lines part."""
    group = []
    for line in lines:
        if group and (not line.strip() or line.startswith("@")):
            yield group
            group = []
        if line.strip():
            group.append(line)
    if group:
        yield group


def bare_prototype(code):
    """Return a prototype on one line, without what only matters to the compiler."""
    words = [word for word in code.split() if word not in KEYWORDS]
    return re.sub(r"/\*.*?\*/ ?", "", " ".join(words)).strip().replace(" )", ")")


def function_of(body, code, header):
    """Return the function that a comment is about, or None if it is about something else."""
    first, *rest = blocks(comment_lines(body))
    title = TITLE.match(unwrap(first))
    if not title or not re.search(rf"\b{title[1]}\(", code):
        return None
    summary, _, more = title[2].partition(". ")
    ret = Function(title[1], summary.rstrip("."), header, bare_prototype(code),
                   code.startswith("static"), paragraphs=[more] if more else [])
    for group in rest:
        text = unwrap(group)
        argument = ARGUMENT.match(text)
        if argument:
            ret.arguments[argument[1]] = argument[2]
        elif text.startswith("Return: "):
            ret.returns = text.removeprefix("Return: ")
        else:
            ret.paragraphs.append(text)
    return ret


def functions_of(text, header):
    """Return the functions of a header's text, by name."""
    found = (function_of(match["body"], match["code"], header) for match in COMMENT.finditer(text))
    return {function.name: function for function in found if function}
