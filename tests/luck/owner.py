# SPDX-License-Identifier: BSD-2-Clause
"""Who has the port: each reason why a port cannot be had has an errno and one line that says so,
whether this process wants it or cmportd."""
from lucklib import check, same

PORT = 7601
WARN = {"PURECM_LOG": "warn"}
INLINE = {"PURECM_PORTD": "inline"}
NO_DEVICE = "there is no RDMA device"


def refused(agent, address, errno, *words):
    """Both ways to need a port fail with errno, and with one warning that has the words; another
    one says what could not be done without."""
    agent.all("channel", "id client", "id server", f"bind server {address} {PORT}")
    same(agent.do(f"resolve client {address} {PORT} 1000"), errno)
    agent.process.wait_for_output("warn:", timeout=60)
    if [all(word in line for word in words) for line in agent.warnings].count(True) != 1:
        raise AssertionError(f"{words} are not in one of {agent.warnings}")
    same(agent.do("listen server"), errno)
    agent.all("destroy client", "destroy server")


@check("owner")
def ib_cm_on_the_port_is_ebusy_and_named_with_its_remedy(bench):
    bench.modes("stock", "purecm")
    bench.end_cmportd(bench.a)
    for way in (INLINE, {}):
        with bench.agent(bench.a, stock=False, **WARN, **way) as agent:
            refused(agent, bench.a.addr4, "EBUSY", "rxe0 port 1", "ib_cm", "modprobe -r rdma_ucm")


@check("owner")
def without_being_asked_to_the_library_says_nothing(bench):
    bench.modes("stock", "purecm")
    with bench.agent(bench.a, stock=False) as agent:
        agent.all("channel", "id client")
        same(agent.do(f"resolve client {bench.a.addr4} {PORT} 1000"), "EBUSY")
        same(agent.process.stderr, "")


@check("owner", long=True)
def another_process_on_the_port_is_eaddrinuse_and_named(bench):
    bench.modes("stock", "purecm")
    bench.end_cmportd(bench.b)
    address = bench.b.addr4
    with bench.agent(bench.b, **INLINE) as first, \
            bench.agent(bench.b, **WARN, **INLINE) as second:
        first.all("channel", "id server", f"bind server {address} {PORT}", "listen server")
        refused(second, address, "EADDRINUSE", "rxe0 port 1", "(cmportd)", "kill")
        first.do("exit")
        first.process.wait(30)
        second.all("id successor", f"bind successor {address} {PORT}", "listen successor")


@check("owner", long=True)
def cmportd_on_the_port_is_eaddrinuse_and_named(bench):
    bench.modes("stock", "purecm")
    address = bench.b.addr4
    with bench.agent(bench.b) as first, bench.agent(bench.b, **WARN, **INLINE) as second:
        first.all("channel", "id server", f"bind server {address} {PORT}", "listen server")
        refused(second, address, "EADDRINUSE", "rxe0 port 1", "cmportd")


@check("owner", long=True)
def missing_umad_module_is_enxio_and_named(bench):
    bench.modes("stock", "purecm")
    bench.end_cmportd(bench.b)
    bench.b.run("modprobe -r ib_umad", check=True)
    try:
        for way in ({}, INLINE):
            with bench.agent(bench.b, **WARN, **way) as agent:
                refused(agent, bench.b.addr4, "ENXIO", "rxe0", "modprobe ib_umad")
    finally:
        bench.b.run("modprobe ib_umad", check=True)


@check("owner", long=True)
def missing_permission_is_eacces_and_names_the_node(bench):
    bench.modes("stock", "purecm")
    bench.b.run("chmod 666 /dev/infiniband/uverbs0", check=True)
    as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with bench.agent(bench.b, prefix=as_nobody, **WARN, **INLINE) as agent:
        refused(agent, bench.b.addr4, "EACCES", "/dev/infiniband/umad0")


@check("owner", long=True)
def without_a_device_nothing_begins_as_with_stock(bench):
    bench.modes("stock", "purecm")
    for mode in ("no device", "no module"):
        seen = []
        for guest in (bench.a, bench.b):
            guest.run("rdma link del rxe0", check=True) if mode == "no device" else \
                guest.mode("bare", kill=True)
            for stock in (True, False):
                with bench.agent(guest, stock=stock, **WARN) as agent:
                    seen.append((agent.do("channel"), agent.do("devices")))
                    same([NO_DEVICE in line for line in agent.warnings], [] if stock else [True])
        same(set(seen), {("ENODEV", "ENODEV")})
