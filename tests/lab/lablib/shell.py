# SPDX-License-Identifier: BSD-2-Clause
"""A terminal on the guests' consoles (/dev/hvc0), for `lab shell`."""
import contextlib
import os
import select
import shutil
import sys
import termios
import tty

SWITCH = b"\x1d"
POLL_S = 0.2
CHUNK_BYTES = 4096


def interact(guests, host):
    """Join our terminal to a guest's until its shell ends. Return: the shell's exit status.

    guests: name -> Guest; host: the first one to talk to
    """
    processes = {name: start_shell(guest) for name, guest in guests.items()}
    print(f"lab: this is host {host}; Ctrl-] changes to the other one, exit ends the lab",
          flush=True)
    order = [host] + [name for name in guests if name != host]
    with raw_terminal():
        while processes[order[0]].alive:
            pump(guests, order)
        drain(guests[order[0]])
    return processes[order[0]].status or 0


def start_shell(guest):
    """Start a shell on the guest's terminal; it leads a session, so job control works."""
    size = shutil.get_terminal_size()
    return guest.start(
        f"exec </dev/hvc0 >/dev/hvc0 2>&1; stty sane rows {size.lines} cols {size.columns}; "
        "exec bash -i", env={"TERM": os.environ.get("TERM", "dumb"),
                             "PS1": f"{guest.name}:\\w# "})


@contextlib.contextmanager
def raw_terminal():
    """Hand every key to the guest, if we have a terminal at all."""
    if not sys.stdin.isatty():
        yield
        return
    saved = termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def pump(guests, order):
    """Pass on one round of input and output; order[0] is the guest we talk to."""
    terminal = guests[order[0]].terminal()
    readable, _, _ = select.select([terminal, *stdin_if_open()], [], [], POLL_S)
    if terminal in readable:
        write_out(terminal.recv(CHUNK_BYTES))
    if sys.stdin in readable:
        take_keys(guests, order, os.read(sys.stdin.fileno(), CHUNK_BYTES))


def take_keys(guests, order, keys):
    """Send keys to the guest in front; SWITCH among them brings the next to the front."""
    if not keys:
        stdin_if_open.closed = True
        keys = b"\x04"
    for position, part in enumerate(keys.split(SWITCH)):
        if position:
            order.append(order.pop(0))
            write_out(f"\r\n[host {order[0]}]\r\n".encode())
        guests[order[0]].terminal().sendall(part)


def stdin_if_open():
    """Return the list of our standard input, empty once it has ended."""
    return [] if getattr(stdin_if_open, "closed", False) else [sys.stdin]


def drain(guest):
    """Print what the shell wrote just before it ended."""
    while select.select([guest.terminal()], [], [], POLL_S)[0]:
        data = guest.terminal().recv(CHUNK_BYTES)
        if not data:
            return
        write_out(data)


def write_out(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
