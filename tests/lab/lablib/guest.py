# SPDX-License-Identifier: BSD-2-Clause
"""One host of a lab: what a test calls as lab.a and lab.b."""
import shlex
import time

from . import qemu
from .capture import Capture
from .channel import Channel, patient
from .errors import LabError, LabTimeout
from .faults import Faults

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb"}
MODES = ("stock", "purecm", "bare")
INTERFACE = "eth0"
DEVICE = "rxe0"


class Guest(Faults):
    """A booted host. Every method that waits takes a timeout in seconds and raises LabTimeout."""

    def __init__(self, name, number, mode, config):
        self.name = name
        self.number = number
        self.addr4 = f"10.77.0.{number}"
        self.addr6 = f"fd00:77::{number:x}"
        self.link_local = f"fe80::5054:ff:fe77:{number:x}"
        self.interface = INTERFACE
        self.device = DEVICE
        self._mode = mode
        self._config = config
        self._image = None
        self._hosts = None
        self._link = None
        self._machine = None
        self._channel = None

    def prepare(self, image, hosts, link):
        """Say what boot() needs: an Image, lines of /etc/hosts, a LinkEnd or None."""
        self._image = image
        self._hosts = hosts
        self._link = link

    def boot(self):
        """Start QEMU and return at once; wait_ready() waits."""
        variables = {
            "LAB_NUMBER": str(self.number), "LAB_NAME": self.name, "LAB_MODE": self._mode,
            "LAB_ADDR4": self.addr4, "LAB_ADDR6": self.addr6,
            "LAB_ETC_HOSTS": ",".join(self._hosts),
            "LAB_MODULES": str(self._image.modules), "LAB_PYTHON": self._config.python(),
            "LAB_SHARES": ",".join(self._config.shares),
        }
        self._machine = qemu.Machine(self._image, self._config, variables, self._link)
        self._channel = Channel(self.name, self._machine.control, self._machine.console)

    def wait_ready(self, timeout):
        """Wait until the agent answers and addresses and rxe are set up."""
        end = time.monotonic() + patient(timeout)
        try:
            self._channel.wait_until(lambda: self._channel.ready, timeout,
                                     lambda: "the agent did not come up")
        except LabTimeout as error:
            raise LabTimeout(f"{error}; the serial console printed last:\n"
                             f"{self.console()[-1500:].strip()}\nIf it still moves, the machine "
                             "is busy: try a longer boot_timeout") from None
        script = ("until [ -e /run/lab/ready ]; do sleep 0.02; done; "
                  "cat /run/lab/setup.log; exit $(cat /run/lab/ready)")
        result = self.run(script, timeout=max(1, end - time.monotonic()))
        if not result.ok:
            raise LabError(f"host {self.name} booted, but its set-up failed: {result.output}\n"
                           f"kernel messages:\n{self.dmesg()[-1500:]}")

    def shut_down(self, reason="the lab ended"):
        """End the guest and free what belongs to it. May be called twice."""
        if self._machine:
            self._channel.give_up(reason)
            self._machine.stop()
            self._channel.join()
            self._machine.close_sockets()
            self._machine = None

    def start(self, command, env=None, cwd=None, stdin=b"", timeout=30):
        """Start a process in the background. Return: Process.

        command: a shell command line, or a list of words to be run without a shell
        env: variables added to ENVIRONMENT
        cwd: folder to run in; the checkout by default
        stdin: bytes or text it can read; nothing by default
        timeout: seconds, for the start alone

        A command line runs below a shell, whose pid the Process has. To signal one program and
        nothing else, start it from a list, or with exec.
        """
        if isinstance(command, str):
            argv, shown = ["/bin/sh", "-c", command], command
        else:
            argv = [str(word) for word in command]
            shown = shlex.join(argv)
        variables = ENVIRONMENT | self._config.env | (env or {})
        data = stdin.encode() if isinstance(stdin, str) else stdin
        process = self._channel.spawn(argv, {k: str(v) for k, v in variables.items()},
                                      str(cwd or self._config.cwd), data, shown)
        process.wait_started(timeout)
        return process

    def run(self, command, timeout=30, env=None, cwd=None, stdin=b"", check=False):
        """Run a command to its end. Return: Result. Arguments as for start().

        After timeout seconds it is killed and LabTimeout raised with what it had printed.
        check: raise LabError if its status is not 0
        """
        process = self.start(command, env, cwd, stdin, timeout)
        try:
            result = process.wait(timeout)
        except LabTimeout as error:
            process.kill()
            raise LabTimeout(f"{error} and was killed; it had printed: "
                             f"{process.output()[-1500:].strip()}") from None
        return result.check() if check else result

    def wait_for(self, command, timeout=30, interval=0.1, env=None, process=None):
        """Run a command every interval seconds until its status is 0. Return: its Result.

        process: a Process that the command waits for; raises LabError if it has ended before
        """
        end = time.monotonic() + patient(timeout)
        while True:
            left = end - time.monotonic()
            has_ended = process and not process.alive
            result = self.run(command, env=env, timeout=max(left, 1))
            if result.ok:
                return result
            if has_ended:
                raise LabError(f"`{process.command}` ended with status {process.status} before "
                               f"`{command}` succeeded: {process.output()[-1500:].strip()}")
            if left <= 0:
                raise LabTimeout(f"host {self.name}: `{command}` did not succeed within "
                                 f"{patient(timeout)} s; last output: "
                                 f"{result.output[-1500:].strip()}")
            time.sleep(interval)

    def mode(self, name, timeout=60, kill=False):
        """Turn the guest into a "stock", "purecm" or "bare" host; see README.md.

        Raises LabError if a process still holds an RDMA device that has to go or change hands.
        kill: SIGKILL such processes instead
        """
        if name not in MODES:
            raise LabError(f"mode {name!r} is none of {', '.join(MODES)}")
        result = self.run(["/run/lab/mode", name], timeout=timeout,
                          env={"LAB_KILL": "yes" if kill else ""})
        if not result.ok:
            raise LabError(f"host {self.name} cannot become {name}: {result.output.strip()}")
        self._mode = name

    def read_file(self, path, timeout=60):
        """Return the content of a guest's file as bytes."""
        return self.run(["cat", "--", path], timeout=timeout, check=True).stdout_bytes

    def write_file(self, path, data, timeout=60):
        """Make a file in the guest; the host never sees it. data: bytes or text"""
        self.run(["sh", "-c", 'cat >"$1"', "sh", path], stdin=data, timeout=timeout, check=True)

    def capture(self, path, filter="udp port 4791"):
        """Context manager: what passes the interface while it is open goes to a host's file.

        path: pcap file on the host, written when the block ends
        filter: pcap-filter(7) expression; all RoCE v2 traffic by default
        """
        return Capture(self, path, filter)

    def refresh(self):
        """Forget cached files, so that what the host has changed since is read anew."""
        self.run("sync; echo 3 >/proc/sys/vm/drop_caches", check=True)

    @property
    def pid(self):
        """The process id of the host's QEMU."""
        return self._machine.process.pid

    def terminal(self):
        """Return the host's end of the guest's /dev/hvc0, a socket that stays the guest's."""
        return self._machine.terminal

    def console(self):
        """Return what the serial console printed."""
        return self._channel.console()

    def dmesg(self):
        """Return the kernel's messages."""
        return self.run(["dmesg"]).stdout
