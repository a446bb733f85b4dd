# SPDX-License-Identifier: BSD-2-Clause
"""The control agent inside a lab guest; boot starts it, lablib/channel.py talks to it.

It starts processes and tells what becomes of them, over a virtio-serial port. A frame on the port
is two big-endian 32-bit lengths, then a JSON object, then raw bytes:

  to the agent    {"op": "spawn", "id", "argv", "env", "cwd"} + standard input
                  {"op": "signal", "id", "signal", "group"}
  from the agent  {"event": "hello"}
                  {"event": "started", "id", "pid"}
                  {"event": "refused", "id", "error"}          the process could not be started
                  {"event": "output", "id", "stream"} + bytes  stream 1 or 2
                  {"event": "exit", "id", "status"}            negative: killed by that signal

One thread and few imports: under software emulation each of them is felt.
"""
import json
import os
import resource
import select
import struct
import time

PORT_NAME = "lab.control"
PORT_WAIT_S = 20
PORTS = "/sys/class/virtio-ports"
HEADER = struct.Struct("!II")
CHUNK_BYTES = 65536
SIGPIPE, SIGKILL, SIGXFSZ = 13, 9, 25


def open_port():
    """Return a descriptor of the virtio-serial port called PORT_NAME.

    The host tells the names of ports, and the driver makes their nodes, some time after the start.
    """
    end = time.monotonic() + PORT_WAIT_S
    while time.monotonic() < end:
        for entry in os.listdir(PORTS):
            if port_name(entry) == PORT_NAME and os.path.exists(f"/dev/{entry}"):
                return os.open(f"/dev/{entry}", os.O_RDWR)
        time.sleep(0.02)
    raise SystemExit(f"no virtio-serial port is called {PORT_NAME}")


def port_name(entry):
    """Return the name of a virtio-serial port, or None if the host has not said it yet."""
    try:
        with open(f"{PORTS}/{entry}/name") as name:
            return name.read().strip()
    except OSError:
        return None


def raise_limits():
    """Let every process pin what memory it likes and open many files."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (65536, 1048576))


class Child:
    """A process of ours: its pidfd and the pipes it writes to."""

    def __init__(self, ident, pid, pipes):
        self.ident = ident
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.pipes = pipes


class Agent:
    """Everything the agent knows: the port, its children and which descriptor is whose."""

    def __init__(self, port):
        self.port = port
        self.received = bytearray()
        self.children = {}
        self.poll = select.poll()
        self.handlers = {}
        self.watch(port, self.read_port)

    def watch(self, fd, handler, *args):
        self.handlers[fd] = (handler, args)
        self.poll.register(fd, select.POLLIN)

    def forget(self, fd):
        self.poll.unregister(fd)
        del self.handlers[fd]
        os.close(fd)

    def send(self, message, blob=b""):
        text = json.dumps(message).encode()
        frame = memoryview(HEADER.pack(len(text), len(blob)) + text + blob)
        while frame:
            frame = frame[os.write(self.port, frame):]

    def run(self):
        self.send({"event": "hello"})
        while True:
            for fd, _ in self.poll.poll():
                # An earlier handler of this turn may have closed it.
                if fd in self.handlers:
                    handler, args = self.handlers[fd]
                    handler(*args)

    def read_port(self):
        data = os.read(self.port, CHUNK_BYTES)
        if not data:
            raise SystemExit("the host closed the control port")
        self.received += data
        while len(self.received) >= HEADER.size:
            text_bytes, blob_bytes = HEADER.unpack_from(self.received)
            end = HEADER.size + text_bytes + blob_bytes
            if len(self.received) < end:
                return
            message = json.loads(self.received[HEADER.size:end - blob_bytes])
            blob = bytes(self.received[end - blob_bytes:end])
            del self.received[:end]
            self.obey(message, blob)

    def obey(self, message, blob):
        if message["op"] == "spawn":
            try:
                self.spawn(message, blob)
            except OSError as error:
                self.send({"event": "refused", "id": message["id"], "error": str(error)})
        else:
            self.signal(message)

    def spawn(self, message, stdin):
        os.chdir(message["cwd"])
        fd_in = stdin_of(stdin)
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        try:
            pid = os.posix_spawnp(
                message["argv"][0], message["argv"], message["env"], setsid=True,
                setsigmask=(), setsigdef=(SIGPIPE, SIGXFSZ),
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, number)
                              for number, fd in enumerate((fd_in, out_w, err_w))])
        except OSError:
            os.close(out_r)
            os.close(err_r)
            raise
        finally:
            for fd in (fd_in, out_w, err_w):
                os.close(fd)
        self.adopt(Child(message["id"], pid, {1: out_r, 2: err_r}))

    def adopt(self, child):
        self.children[child.ident] = child
        self.watch(child.pidfd, self.reap, child)
        for stream, fd in child.pipes.items():
            os.set_blocking(fd, False)
            self.watch(fd, self.drain, child, stream)
        self.send({"event": "started", "id": child.ident, "pid": child.pid})

    def drain(self, child, stream):
        """Pass on one chunk. Return: whether more may be had at once."""
        fd = child.pipes[stream]
        try:
            data = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not data:
            del child.pipes[stream]
            self.forget(fd)
            return False
        self.send({"event": "output", "id": child.ident, "stream": stream}, data)
        return True

    def reap(self, child):
        """Tell the exit, after all that the process wrote itself.

        The pipes stay: a daemon it left behind may hold them and must not meet SIGPIPE.
        """
        _, status = os.waitpid(child.pid, 0)
        for stream in tuple(child.pipes):
            while self.drain(child, stream):
                pass
        self.forget(child.pidfd)
        del self.children[child.ident]
        self.send({"event": "exit", "id": child.ident,
                   "status": os.waitstatus_to_exitcode(status)})

    def signal(self, message):
        child = self.children.get(message["id"])
        if child is None:
            return
        # It is our child and not reaped yet, so its pid cannot have been given to another.
        send = os.killpg if message["group"] else os.kill
        send(child.pid, message["signal"])


def stdin_of(data):
    """Return a descriptor that reads as data and then as end of file."""
    if not data:
        return os.open("/dev/null", os.O_RDONLY)
    fd = os.memfd_create("stdin")
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest):]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


if __name__ == "__main__":
    raise_limits()
    Agent(open_port()).run()
