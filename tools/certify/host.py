# SPDX-License-Identifier: BSD-2-Clause
"""A host under test: its programs, its cmportd, and its properties. The conductor uses a Host of
its own, and one on the other host through link.py, with the same methods."""
import json
import os
from pathlib import Path
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import inventory
import network

HERE = Path(__file__).resolve().parent
STOCK_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib"
READY_S = 20
OTHER_READY_S = 5
END_S = 5
ATTRIBUTES_S = 30
WORD = r"[\w.:%\[\]][\w.:%\[\]-]*"  # a name, an address or a number: no option, no path
# The commands of trials.py and scripts.py, and no others: @ is a WORD.
COMMANDS = {program: re.compile(words.replace("@", WORD)) for program, words in {
    "purecm": r"stat --json|doctor --json @|ping --json -c @ -i @ @|"
              r"drill --json --to @ --agent @( --qp1)?( DATA/drill/[\w-]+\.drill)+",
    "purecm-agent": "@ ::", "attributes": "", "mads": "(ask|answer)( @)+",
    "connect": "(server|client)( -[fn]| @)*", "hold": "(server|client)( @)+",
    "parity": "list|server|client( @)+"}.items()}
DISRUPTED_S = 1
PEER = struct.Struct("iII")  # of SO_PEERCRED: pid, uid, gid
QUIET = ("parity",)  # prints the time of each scenario on standard error


class Trouble(Exception):
    """A request that cannot be carried out; the text says why."""


def find_program(name):
    """Find a program of the build tree that contains this file or its copy, or of an installation.
    """
    places = [HERE / name, HERE.parent / name, HERE.parent / name / name]
    places += [folder / where / name for folder in HERE.parents
               for where in ("bin", "libexec/purecm")]
    found = next((place for place in places if place.is_file()), None) or shutil.which(name)
    if not found:
        raise Trouble(f"{name} is not installed beside purecm certify: install all of it")
    return str(found)


def find_library():
    """The directory of purecm's librdmacm: Debian's private one, a build's, or libdir."""
    for folder in (HERE.parent, HERE.parents[1] / "lib", HERE.parents[1]):
        if (folder / "librdmacm.so.1").exists():
            return str(folder)
    raise Trouble("purecm's librdmacm.so.1 is not installed beside purecm certify")


def do_apart(work):
    """Call a function to its end in a process that no signal to this one interrupts. Raise Trouble
    if it does."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        status = 1
        try:
            work()
            status = 0
        except (Trouble, OSError) as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, encoding="utf-8", errors="replace") as said:
        trouble = said.read()
    if os.waitpid(pid, 0)[1]:
        raise Trouble(trouble)


def be_interruptible():
    """Restore SIGINT, which background jobs of a shell ignore; some scenarios need it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Host:
    """The remote methods are those without an underscore, with JSON values."""

    def __init__(self, is_stock=False, may_disrupt=False):
        self._is_stock, self._may_disrupt = is_stock, may_disrupt
        self._folder = tempfile.TemporaryDirectory(prefix="certify-")
        self._env = dict(os.environ)
        self._running = {}  # number: (Popen, path of its output)
        self._count = 0
        self._cmportd = None
        self._listener = None  # has a cmportd that is not ours open the ports
        libraries = [STOCK_LIBRARIES if is_stock else find_library()]
        self._env["LD_LIBRARY_PATH"] = ":".join(
            filter(None, [*libraries, os.environ.get("LD_LIBRARY_PATH")]))
        self._has_own_cmportd = not is_stock and not self._is_served()
        if self._has_own_cmportd:
            self._env["PURECM_SOCKET"] = self._folder.name + "/cmportd.sock"

    def _is_served(self):
        """Whether a cmportd is running already, which is left alone."""
        done = subprocess.run([find_program("purecm"), "stat", "--json"], env=self._env,
                              capture_output=True, check=False)
        return done.returncode == 0

    @staticmethod
    def clock():
        """Seconds since some moment."""
        return time.monotonic()

    # --- programs ---

    def share(self, secret):
        """The secret that drills and agents of both hosts have in common."""
        self._env["PURECM_SECRET"] = secret

    def start(self, program, *words):
        """Start a program; a word that begins with @DATA is a file of ours. Return: its number."""
        line = " ".join(words)
        known = COMMANDS.get(program)
        if not known or not known.fullmatch(line.replace("@DATA", "DATA")):
            raise Trouble(f"{program} {line}: no command of purecm certify")
        return self._start(program, *words)

    def _start(self, program, *words):
        words = [word.replace("@DATA", str(HERE)) for word in words]
        self._count += 1
        path = Path(self._folder.name, str(self._count))
        with open(path, "wb") as output:
            child = subprocess.Popen([find_program(program), *words], env=self._env,
                                     stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=subprocess.DEVNULL if program in QUIET
                                     else subprocess.STDOUT, start_new_session=True,
                                     preexec_fn=be_interruptible)
        self._running[self._count] = child, path
        return self._count

    def said(self, number):
        """Return: [its output so far, its status or None]."""
        child, path = self._running[number]
        status = child.poll()
        return [path.read_text(encoding="utf-8", errors="replace"), status]

    def expect(self, number, pattern, limit_s):
        """Wait until a program has printed a text or ended, or for the timeout. Return: as said().
        """
        deadline = time.monotonic() + limit_s
        while True:
            text, status = self.said(number)
            if re.search(pattern, text, re.MULTILINE) or status is not None \
                    or time.monotonic() > deadline:
                return [text, status]
            time.sleep(0.02)

    def signal(self, number, name):
        """Send a signal to a program."""
        child, _ = self._running[number]
        if child.poll() is None:
            child.send_signal(getattr(signal, name))

    def end(self, number):
        """End a program. Return: as said()."""
        child, _ = self._running[number]
        for name in ("SIGTERM", "SIGKILL"):
            if child.poll() is None:
                self.signal(number, name)
                try:
                    child.wait(END_S)
                except subprocess.TimeoutExpired:
                    pass
        said = self.said(number)
        del self._running[number]
        return said

    def run(self, limit_s, program, *words):
        """Run a program to its end. Return: [its output, its status], None if it hung."""
        number = self.start(program, *words)
        child, _ = self._running[number]
        try:
            child.wait(limit_s)
            hung = False
        except subprocess.TimeoutExpired:
            hung = True
        text, status = self.end(number)
        return [text, None if hung else status]

    def close(self):
        """End everything that was started."""
        for number in list(self._running):
            if number != self._cmportd:
                self.end(number)
        self.stop_cmportd()
        self._folder.cleanup()

    # --- cmportd ---

    def has_own_cmportd(self):
        """Whether cmportd was started here, and may be stopped and killed."""
        return self._has_own_cmportd

    def start_cmportd(self):
        """Start cmportd, unless one is running already or none is needed. It ends if a program
        has started another one at the same time, which serves a moment later."""
        if not self._has_own_cmportd and not self._is_stock and not self._listener:
            self._open_ports()
        if not self._has_own_cmportd or self._cmportd:
            return
        self._cmportd = self._start("cmportd", "--idle", "0", "--open", "--socket",
                                    self._env["PURECM_SOCKET"])
        begin = time.monotonic()
        while not self._is_served():
            text, status = self.said(self._cmportd)
            if time.monotonic() - begin > (READY_S if status is None else OTHER_READY_S):
                raise Trouble(f"cmportd does not start: {text.strip() or status}")
            time.sleep(0.02)

    def _open_ports(self):
        """Listen on all addresses: the running cmportd may open ports only for programs, and
        answers nobody before."""
        self._listener = self.start("hold", "server", "0.0.0.0", "0")
        begin = time.monotonic()
        while "ready" not in self.said(self._listener)[0]:
            text, status = self.said(self._listener)
            if status is not None or time.monotonic() - begin > READY_S:
                raise Trouble(f"no program can listen: {text.strip() or status}")
            time.sleep(0.02)

    def stop_cmportd(self, name="SIGTERM"):
        """End cmportd by a signal. If the signal permits, it disconnects remaining connections
        first. A program that loses its cmportd starts another one, which is then the one that
        serves."""
        if not self._has_own_cmportd:
            return
        for signal_name in (name, "SIGKILL"):
            pid = self._serving_pid()
            if pid:
                os.kill(pid, getattr(signal, signal_name))
                deadline = time.monotonic() + END_S
                while self._serving_pid() == pid and time.monotonic() < deadline:
                    time.sleep(0.02)
        if self._cmportd:
            self.end(self._cmportd)
        self._cmportd = None

    def _serving_pid(self):
        """The pid of the process that serves our socket, or 0."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
            try:
                link.connect(self._env["PURECM_SOCKET"])
            except OSError:
                return 0
            peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        return PEER.unpack(peer)[0]

    # --- taking stock ---

    def stock(self):
        """Return the properties of this host."""
        text, _ = self.run(ATTRIBUTES_S, "attributes")
        said = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return {"library": "stock" if self._is_stock else "purecm",
                "may_disrupt": self._may_disrupt, **inventory.take(said)}

    # --- disruptions ---

    def disrupt(self, what, *words):
        """Disrupt this host for a second, if --disrupt permits it, and restore it; meanwhile it may
        be unreachable. Return: the command."""
        if not self._may_disrupt:
            raise Trouble("the host was not told --disrupt")
        if not all(re.fullmatch(f"{WORD}(/[0-9]+)?", word) for word in words):
            raise Trouble(f"{' '.join(words)}: neither an interface nor an address")
        there, *back = self._disruption(what, *words)
        interface = words[0] if what == "address" else None
        do_apart(lambda: self._change_for_a_moment(interface, there, back))
        return " ".join(there)

    def _change_for_a_moment(self, interface, there, back):
        before = network.take()
        self._administer(there)
        try:
            time.sleep(DISRUPTED_S)
            for command in back:
                self._administer(command)
        finally:
            lost = network.put_back(before, interface)
        if lost:
            raise Trouble(f"after {' '.join(there)}, not put back: {', '.join(lost)}")

    @staticmethod
    def _disruption(what, subject, value=""):
        """Return: the command that disrupts, and those that revert it, but for the network."""
        fabric = os.environ.get("PURECM_FABRIC")
        if fabric and what in ("down", "rename"):
            verb = [find_program("purecm"), "fabric", "port" if what == "down" else what, "--dir",
                    fabric + "/../..", Path(fabric).name]
            return [[*verb, *words] for words in
                    (((value,), (subject,)) if what == "rename" else
                     (("down", "--port", value), ("up", "--port", value)))]
        if what == "down":
            return [["ip", "link", "set", subject, word] for word in ("down", "up")]
        if what == "address":
            value = next((each for each in inventory.addresses(subject)
                          if each.split("/")[0] == value), value)
            return [["ip", "addr", "del", value, "dev", subject]]
        if what == "rename":
            rename = ["rdma", "dev", "set"]
            return [*rename, subject, "name", value], [*rename, value, "name", subject]
        raise Trouble(f"{what} is no disruption")

    @staticmethod
    def _administer(command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False,
                                  env=inventory.ADMINISTRATOR)
        except FileNotFoundError as error:
            raise Trouble(f"{command[0]} is not installed") from error
        if done.returncode:
            raise Trouble(f"{' '.join(command[-6:])}: {done.stderr.strip() or 'failed'}")
