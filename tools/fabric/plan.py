# SPDX-License-Identifier: BSD-2-Clause
"""What a fabric is to consist of: hosts, their addresses, the commands on them; and what is wrong
with what was asked for."""
import dataclasses
import re
import string

HOSTS_MAX = 200
NAME = re.compile(r"[a-z][a-z0-9-]{0,14}\Z")
DIR_BYTES_MAX = 60  # a socket's name in it has to fit into sun_path


class Wrong(Exception):
    """Something the user can mend; the text says what."""


@dataclasses.dataclass
class Host:
    """A host of the fabric; its number, from 1, is in its addresses, its GUID and its LID."""
    name: str
    number: int

    @property
    def ipv4(self):
        return f"10.77.0.{self.number}"

    @property
    def ipv6(self):
        return f"fd77::{self.number:x}"

    @property
    def mac(self):
        return bytes([0x02, 0x50, 0x43, 0, self.number >> 8, self.number & 255])


@dataclasses.dataclass
class Command:
    """A command on a host; what is in the background ends with the last of the others."""
    host: Host
    text: str
    background: bool


def hosts_of(text):
    """The hosts that --hosts means: how many, or their names."""
    if text.isdigit():
        count = int(text)
        if not 1 <= count <= HOSTS_MAX:
            raise Wrong(f"--hosts {text}: a fabric has 1 to {HOSTS_MAX} hosts")
        letters = string.ascii_lowercase
        names = list(letters[:count]) if count <= 26 else [f"h{i}" for i in range(1, count + 1)]
    else:
        names = text.split(",")
    for name in names:
        if not NAME.match(name):
            raise Wrong(f"--hosts: '{name}' cannot be a host's name: a letter, then letters, "
                        "digits and '-', 15 at most")
        if names.count(name) > 1:
            raise Wrong(f"--hosts: two hosts are called {name}")
    return [Host(name, number) for number, name in enumerate(names, start=1)]


def command_of(text, hosts):
    """The command that "a:COMMAND" or "a&:COMMAND" means."""
    name, colon, command = text.partition(":")
    background = name.endswith("&")
    host = next((host for host in hosts if host.name == name.rstrip("&")), None)
    if not colon or not command.strip():
        raise Wrong(f"'{text}' is no command: HOST:COMMAND is, as in 'a:rping -s'")
    if not host:
        raise Wrong(f"'{text}': there is no host {name.rstrip('&')} in this fabric of "
                    + ", ".join(host.name for host in hosts))
    return Command(host, command, background)
