# SPDX-License-Identifier: BSD-2-Clause
"""Each function of the installed C library that takes a descriptor is intercepted by
librspreload.so, or has a row in descriptors.txt: one that a newer library adds needs a row.

descriptors.py LIBRSPRELOAD ROWS COMPILER...
"""

import pathlib
import re
import subprocess
import sys

import abi

# As the headers name parameters that are descriptors or have some.
DESCRIPTOR = re.compile(r"\bint (__)?(\w*fd\w*|fp|fildes|filedes|sock\w*|s)\b(?! \()"
                        r"|\bstruct pollfd\b|\bfd_set\b|\bstruct mmsghdr\b")
PROTOTYPE = re.compile(r"extern [^;{}()]*?\b(\w+) \(((?:[^()]|\([^()]*\))*)\)")
PRIVATE = ("bits/", "gnu/", "asm/", "linux/", "rpc")
PREFIXES = ("__", "__libc_")


def exported(library):
    """The functions that a library exports, without versions."""
    lines = abi.run("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] in "TWi"}


def c_library():
    """The path of the C library of the running interpreter."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    return re.search(r"/\S*/libc\.so\.6", maps)[0]


def headers(compiler):
    """All public headers of the C library, preprocessed."""
    listed = subprocess.run(["dpkg", "-L", "libc6-dev"], capture_output=True, text=True,
                            check=False).stdout
    names = re.findall(r"^/usr/include/(?:[^/\n]*-linux-gnu\w*/)?(\S+\.h)$", listed, re.M)
    # Some say #error beside others, which ends nothing.
    source = "".join(f"#include <{name}>\n" for name in ["sys/types.h", *names]
                     if not name.startswith(PRIVATE))
    text = subprocess.run([*compiler, "-E", "-P", "-D_GNU_SOURCE", "-xc", "-"], input=source,
                          capture_output=True, text=True, check=False).stdout
    return re.sub(r"\s+", " ", text)


def takers(text, symbols):
    """The functions among symbols that take a descriptor, with their other names."""
    found = {name for name, arguments in PROTOTYPE.findall(text) if DESCRIPTOR.search(arguments)}
    others = {other for name in found for prefix in PREFIXES
              for other in (prefix + name, f"{prefix}{name}_chk", f"{prefix}{name}_2")}
    return (found | others) & symbols


def main():
    library, rows, *compiler = sys.argv[1:]
    lines = pathlib.Path(rows).read_text(encoding="utf-8").splitlines()
    listed = {word for line in lines if not line.startswith("#") for word in line.split()}
    symbols, ours = exported(c_library()), exported(library)
    text = headers(compiler)
    if "epoll_wait (" not in text:
        abi.skip("no headers of the C library; install libc6-dev")
    taken = takers(text, symbols)
    missing = sorted(taken - ours - listed)
    twice = sorted(listed & ours)
    if missing or twice:
        sys.exit(f"neither intercepted nor in {rows}: {missing}; both: {twice}")
    print(f"{len(taken & ours)} intercepted, {len(taken - ours)} that need not be")


main()
