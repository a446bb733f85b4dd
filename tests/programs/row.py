# SPDX-License-Identifier: BSD-2-Clause
"""What a program is played as: a Row of table.py or sockets.py."""
import dataclasses

A = "10.77.0.1"


@dataclasses.dataclass(frozen=True)
class Row:
    """What runs on host a and on host b; a server ends with the last client.

    In commands, {fabric} is the program fabric, {source} the folder where a source of Debian was
    built. said: (regex, how often at least it must match in all output). figure: regex with one
    group, what is worth noting of a run.
    """

    name: str
    package: str  # that of Debian it comes from
    server: str
    client: str
    said: tuple
    figure: str = ""
    unit: str = ""
    options: tuple = ()  # of `fabric run`
    plain: bool = False  # part of each run of tools/check
    patient: bool = True  # the client may be started again: a server may be slow to listen
    absent: str = ""  # why a release cannot play it
    by_rdma: int = 0  # the bytes that must go so, of a program that knows only TCP
    as_root: bool = False  # an ordinary user cannot play it
    raced: str = ""  # regex: what an end says that has lost a race with itself
    source: str = ""  # source package
    build: str = ""  # shell commands, in its folder
    minutes: int = 5  # it may take
