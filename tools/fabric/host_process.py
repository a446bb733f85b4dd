# SPDX-License-Identifier: BSD-2-Clause
"""A host of the fabric, as a process in namespaces of its own: it sets up its network, starts
fabric-host, and then runs commands, from a socket as one JSON object per line, and from `fabric
exec` through another one."""
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path

import lag
import listening
import namespaces
import netlink
import plan

KERNEL = "6.1"  # the version that a fabric imitates, on any kernel: see tests/fabric/stock.txt
VISITORS = "exec"  # a socket in the host's folder
COMMAND, SERVER = b":", b"&"  # the first byte of what a visitor sends
LISTENS, IDLE = b"listens", b"idle"  # in place of a server's status
ORDER_BYTES_MAX = 1 << 20
DATAGRAMS_QUEUED = 512  # of a unix socket; the kernel's own default is 10


def set_sysctl(name, value):
    """Ignores settings that the kernel lacks."""
    try:
        Path("/proc/sys/net", name).write_text(str(value), encoding="ascii")
    except OSError:
        pass


def set_up_network(host, mtu):
    set_sysctl("unix/max_dgram_qlen", DATAGRAMS_QUEUED)
    set_sysctl("ipv4/conf/all/arp_ignore", 1)  # all interfaces share one wire
    netlink.set_up("lo")
    for i, name in enumerate(host.interfaces):
        if host.is_lag:
            for slave in host.slaves(i):
                set_sysctl(f"ipv6/conf/{slave}/disable_ipv6", 1)
            lag.bond(name, host.slaves(i), host.mac(i), mtu)
        set_sysctl(f"ipv6/conf/{name}/disable_ipv6", 0)
        set_sysctl(f"ipv6/conf/{name}/accept_dad", 0)
        set_sysctl(f"ipv6/conf/{name}/router_solicitations", 0)
        netlink.set_up(name)
        for address in host.addresses(i):
            netlink.add_address(name, address)
    for router in plan.ROUTER:
        netlink.add_default_route(router)


def set_up_router(name):
    """A router for the hosts, on the interface of their switch. It says that what is beyond is
    unreachable, so that programs need not wait for a timeout."""
    set_sysctl("ipv4/ip_forward", 1)
    set_sysctl("ipv4/icmp_ratelimit", 0)
    set_sysctl("ipv6/conf/all/forwarding", 1)
    set_sysctl("ipv6/icmp/ratelimit", 0)
    set_sysctl(f"ipv6/conf/{name}/disable_ipv6", 0)
    for address, bits in zip(plan.ROUTER, (24, 64)):
        netlink.add_address(name, f"{address}/{bits}")


def environment(folder, host, arguments, libraries, preloads):
    """The variables by which a program finds its host, device and cmportd; and those of ipoib/."""
    here = Path(folder, "hosts", host.name)
    env = dict(os.environ, PURECM_FABRIC=str(here), PURECM_SOCKET=str(here / "cmportd.sock"),
               PURECM_FABRIC_SUBNETS=str(arguments.subnets),
               PURECM_FABRIC_IP_PKEY=arguments.ip_pkey)
    env.setdefault("PURECM_FABRIC_KERNEL", KERNEL)
    for name, ours in (("LD_LIBRARY_PATH", libraries), ("LD_PRELOAD", preloads)):
        before = env.get(name)
        if ours:
            env[name] = ":".join([*map(str, ours), *([before] if before else [])])
    return env


class HostProcess:
    """Runs in the child; communicates over self.link."""

    def __init__(self, host, link, env, purecm):
        """@purecm: the program, or None"""
        self.host, self.env, self.link, self.purecm = host, env, link, purecm
        self.heard = b""  # of the next line
        self.running = {}  # pid: callback for its status, and its Popen or None
        self.kernel = None
        self.visitors = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ready = selectors.DefaultSelector()

    def say(self, **what):
        self.link.sendall(json.dumps(what).encode() + b"\n")

    def listen(self):
        """Handle requests. Return: False at the end."""
        data = self.link.recv(65536)
        *lines, self.heard = (self.heard + data).split(b"\n")
        for line in lines:
            self.start_command(**json.loads(line))
        return bool(data)

    def start_kernel(self, program, arguments, pkeys, device, interfaces):
        """Start fabric-host, and wait until it is ready."""
        self.kernel = subprocess.Popen(
            [program, "--number", str(self.host.number), "--link", arguments.link,
             "--wire", arguments.wire, "--lmc", str(arguments.lmc),
             "--subnets", str(arguments.subnets),
             *(f"--pkey={pkey:#x}" for pkey in pkeys),
             *device,
             *(["--netdev=-"] if "--quirk=second-port" in device else []),
             *(f"--netdev={name}" for name in interfaces)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        if self.kernel.stdout.readline().strip() != b"ready":
            os._exit(1)  # it has said why

    def start(self, text, files, done):
        """Start a command with these standard streams; done(status) is called at its end."""
        child = subprocess.Popen(["/bin/sh", "-c", text], stdin=files[0], stdout=files[1],
                                 stderr=files[2], env=self.env, start_new_session=True,
                                 preexec_fn=begin_command)
        # Kept, because a collected Popen would reap its child.
        self.running[child.pid] = done, child
        return child.pid

    def start_command(self, number, text, fd, waits):
        """Start a command with its output to a descriptor of ours, and say whether it listens if
        somebody waits for that."""
        session = self.start(text, (subprocess.DEVNULL, fd, fd),
                             lambda status: self.say(ended=number, status=status))
        os.close(fd)
        if waits:
            self.watch_for_listener(session, lambda status: self.say(settled=number,
                                                                     listens=not status))

    def watch_for_listener(self, session, settled):
        """In a process of its own, as other commands need not wait for that. settled() is called
        with 0 if the command listens."""
        pid = os.fork()
        if pid == 0:
            namespaces.die_with_parent()
            os._exit(not listening.wait(session, self.purecm, self.env))
        self.running[pid] = settled, None

    def open_door(self):
        """Accept connections of `fabric exec`."""
        self.visitors.bind(self.env["PURECM_FABRIC"] + "/" + VISITORS)
        self.visitors.listen()
        self.ready.register(self.visitors, selectors.EVENT_READ, self.let_in)

    def let_in(self):
        """Wait for a visitor's command; others need not wait for that."""
        visitor, _ = self.visitors.accept()
        self.ready.register(visitor, selectors.EVENT_READ, lambda: self.take_order(visitor))

    def take_order(self, visitor):
        """Start a visitor's command, and end it if the visitor disconnects."""
        self.ready.unregister(visitor)
        try:
            text, files, _, _ = socket.recv_fds(visitor, ORDER_BYTES_MAX, 3)
        except OSError:
            return
        if len(files) == 3:
            pid = self.start(os.fsdecode(text[1:]), files,
                             lambda status: self.let_out(visitor, status))
            self.ready.register(visitor, selectors.EVENT_READ,
                                lambda: self.let_go(visitor, pid, signal.SIGHUP))
            if text[:1] == SERVER:
                self.watch_for_listener(pid, lambda status: self.let_stay(visitor, pid, status))
        for fd in files:
            os.close(fd)

    def let_out(self, visitor, status):
        self.ready.unregister(visitor)
        with contextlib.suppress(OSError):
            visitor.send(str(status).encode())
        visitor.close()

    def let_go(self, visitor, pid, number=0):
        """The visitor leaves, and the command gets a signal, or stays."""
        self.ready.unregister(visitor)
        visitor.close()
        self.running[pid] = (lambda _: None), self.running[pid][1]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)

    def let_stay(self, visitor, pid, status):
        """A visitor's server listens (0), or is idle: it stays until the fabric ends."""
        if visitor.fileno() >= 0:  # else it has ended, or the visitor has gone
            with contextlib.suppress(OSError):
                visitor.send(IDLE if status else LISTENS)
            self.let_go(visitor, pid)

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.kernel.pid:
                self.say(died=self.host.name)
            elif pid in self.running:
                done, child = self.running.pop(pid)
                code = os.waitstatus_to_exitcode(status)
                if child:
                    child.returncode = code
                done(code)

    def serve(self):
        """Run until the link is closed; then end everything on the host."""
        namespaces.adopt_orphans()
        namespaces.outlive_parent()
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker)
        self.ready.register(self.link, selectors.EVENT_READ, self.listen)
        self.ready.register(wake, selectors.EVENT_READ, lambda: os.read(wake, 4096))
        self.open_door()
        self.reap()
        while True:
            for key, _ in self.ready.select():
                if key.data() is False:
                    namespaces.end_descendants()
                    return
            self.reap()


def begin_command():
    """Runs in the process of a command. What a fabric ignores because nohup, or a shell in the
    background, has started it, its commands do not."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    namespaces.die_with_parent()


def die(host, error):
    print(f"fabric: host {host.name}: {error}", file=sys.stderr)
    os._exit(1)
