# SPDX-License-Identifier: BSD-2-Clause
"""What programs.py plays: Debian's programs with their options, a Case each.

Stock with stock plays all of them, too (programs.py --control). Not here is what fails with stock:
ib_send_bw -R -c UC           librdmacm has no UC
rdma_xclient -c x, perftest   rxe has no XRC; the soft fabric plays them
rdma_xclient over IPv6        its server listens on IPv4 only
ucmatose, udaddy -f gid       AF_IB does not route on RoCE
udaddy -P ipoib, mckey -p 0x2 no IPoIB without InfiniBand
mckey -l                      rxe always loops multicast back
mckey -C 5 on Debian 13       the sender may end before rxe has sent more than one
mckey -m, -M, groups of IPv6  error 524 at the join
rstream -T a                  takes the disconnect message for a failure
udpong                        no datagrams of stock on RoCE
qperf -cm1, uc_*, ud_*        without rdma_cm qperf has no GIDs
fi_pingpong -p verbs;ofi_rxm  fi_enable: Invalid argument
dtest                         does not end its transfer of 4 MB
"""
import contextlib
import dataclasses
from pathlib import Path
import re

FAMILIES = ("ipv4", "ipv6")
IPV4 = ("ipv4",)
GROUP = "239.77.0.1"
QPERF_PORT = 19765
PYVERBS_GROUP = "239.77.0.2"
FORKING = Path(__file__).resolve().parent / "forking.py"
TEN = "seq 1500000 | head -c 10M"
TEN_SHA256 = "074150f329f71f11632523dd98c722bd8f635fa343a447aac9010065c3a8266a"
PYVERBS = Path(__file__).resolve().parent / "pyverbs_end.py"
ISER_TARGET = Path(__file__).resolve().parent / "iser_target.sh"
RPMA = Path(__file__).resolve().parents[1] / "programs/rpma.c"
DAT_CONF = ("echo ofa-v2-eth0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "
            "\\\"eth0 0\\\" \\\"\\\" >/tmp/dat.conf; export DAT_OVERRIDE=/tmp/dat.conf; ")


@dataclasses.dataclass(frozen=True)
class Case:
    """A program's two ends. said: (regex, how often it must match) for both ends' output.

    In commands, {address} is the server's address and {folder} that of our library. The rest is
    for what is unusual.
    """

    name: str
    server: str
    client: str
    said: tuple
    server_said: tuple = ()  # where the server does not say the same
    families: tuple = FAMILIES
    one_host: bool = False  # both ends run on host a, with one library
    stock: bool = True  # False: stock cannot do it, so there is no pairing with it
    stock_client: bool = True  # False: only its client cannot
    long: bool = False  # part of `tools/check --long` only
    long_v6: bool = True  # IPv6 is
    clients: int = 1  # at the same time
    one_by_one: bool = False  # a client begins when the one before it is connected
    endless: bool = False  # the server serves until a signal ends it
    member: str = ""  # the group that the server joins, where it does not listen
    in_kernel: bool = False  # the server is the kernel's, and so needs its connection manager
    ready: str = ""  # shell command whose status says that the server waits for clients
    raced: str = ""  # regex: what an end says when its server was too slow for it
    listens_late: bool = False  # that is so because its requests come before it listens


RPING_RACED = r"(?m:^rdma_get_cm_event: Bad file descriptor)"
FAST_ATTEMPTS = 2
PERFTEST_RACED = r"EVENT_(REJECTED; error: 8|UNREACHABLE; error: 1)\.|(?m:event bl blka 8$)"
QPERF_RACED = "unexpected event from RDMA CM: Event rejected"


def slowed(client, number):
    """Return a context in which a client's requests come later, if it is not one of its first
    attempts: its server was too slow in those."""
    late = number >= FAST_ATTEMPTS
    return client.netem_of_requests("delay 300ms") if late else contextlib.nullcontext()


def rping_ended(done):
    """Fail unless an rping ended well, or by the race that it loses with itself at its end."""
    if not re.search(RPING_RACED, done.output):
        done.check()


def rping(messages, server="", client=""):
    """server, client: an end's own options, such as -q: it moves its queue pair itself.

    At its end rping destroys the channel that its thread is about to read from.
    """
    return Case(" ".join(filter(None, [f"rping -C {messages}", server and f"s{server}",
                                       client and f"c{client}"])),
                f"rping -s -a {{address}} -C {messages} -v {server}",
                f"rping -c -a {{address}} -C {messages} -v {client}", (r"ping data: ", messages),
                raced=RPING_RACED)


def persistent_rping(clients, messages, options=""):
    """A server that gives each of several clients a thread of its own.

    A request that it hears of before that thread has begun with the last one replaces that one:
    two threads then serve one id, and an id nobody. Hence one by one. What is in the server's
    buffer when the signal comes that ends it is lost: what it says of the end of each connection
    is not.
    """
    return Case(" ".join(f"rping -P {options} for {clients}".split()),
                f"rping -s -P -a {{address}} -v {options}",
                f"rping -c -a {{address}} -C {messages} -v {options}", (r"ping data: ", messages),
                server_said=(r"server DISCONNECT EVENT", clients), clients=clients,
                one_by_one=True, endless=True, raced=f"{RPING_RACED}|setup_qp failed")


def ucmatose(options):
    return Case(f"ucmatose {options}", f"ucmatose -b {{address}} {options}",
                f"ucmatose -s {{address}} {options}", (r"^return status 0$", 1))


def udaddy(options):
    return Case(f"udaddy {options}", f"udaddy -b {{address}} {options}",
                f"udaddy -s {{address}} {options}", (r"^return status 0$", 1))


def by_name(program):
    """Both ends are told a host's name, which /etc/hosts knows."""
    return Case(f"{program} -f name", f"{program} -f name -b a", f"{program} -f name -s a",
                (r"^return status 0$", 1), families=IPV4)


# The steps that cmtime has timed; that of Debian 13 prints tables, of connections with queue pairs
# and without.
TIMED = r"^(connect|disconnect|destroy) +:|^(qp|cm)_conn +\d+$|^Connect \(\d+\) QPs test$"


def cmtime(options):
    """Many connections at once, by several threads. Debian 12's server serves for ever."""
    return Case(f"cmtime {options}", f"cmtime -b {{address}} {options}",
                f"cmtime -s {{address}} {options}", (TIMED, 3), server_said=("", 1), endless=True)


def rdma_client():
    return Case("rdma_client", "rdma_server -s {address}", "rdma_client -s {address}",
                (r"^rdma_(client|server): end 0$", 1))


def rdma_xclient(options):
    """Its server takes no address, listens on IPv4 only, and answers with private data."""
    return Case(f"rdma_xclient {options}", f"rdma_xserver {options}",
                f"rdma_xclient -s {{address}} {options}", (r"^rdma_x(client|server): end 0$", 1),
                families=IPV4)


def perftest(program, options=""):
    """A measurement over connections made by rdma_cm; what it measures is of no interest here.

    The client makes a second connection 0.1 s after the first, by when the server has to listen
    again: on a slow machine stock fails in this, too, every fifth time.
    """
    command = f"{program} -n 20 {options}"
    return Case(f"{program} {options}", command, f"{command} {{address}}",
                (r"^ remote address: ", 4 if "-q 4" in options else 1), families=IPV4,
                raced=PERFTEST_RACED, listens_late=True)


def qperf(*tests):
    """A server listens with TCP, and with rdma_cm for each test anew.

    The process that serves a test ends by a segmentation fault, with stock too: it destroys a queue
    pair that is gone. Over purecm one of eight, on a busy machine, ended right after rdma_listen(),
    which is not explained yet; that is played again, and said.
    """
    return Case(f"qperf -cm1 {' '.join(tests)}", "qperf",
                f"qperf {{address}} -cm1 -t 1 -to 60 {' '.join(tests)}",
                (r"^    (bw|latency|msg_rate) +=", len(tests)), server_said=("", 1), families=IPV4,
                raced=QPERF_RACED, listens_late=True,
                endless=True, ready=f"ss -ltn | grep -q :{QPERF_PORT}")


def rstream(options, program="rstream"):
    """Both ends print a line of figures for each size; what they are is of no interest here.

    With -T a stock's client takes the server's farewell for a failure if it comes together with the
    last data, and ends without a word and with status 16, whatever the server is: here always with
    64 KiB, else every other time.
    """
    return Case(f"{program} {options}", f"{program} -b {{address}} {options}",
                f"{program} -s {{address}} {options}", (r"^\S+ +\S+ +\d+ +\d+ +\S+ +[\d.]+s", 1),
                stock_client="-T a" not in options)


def riostream(options):
    return rstream(options, "riostream")


def udpong(options):
    """Stock has no pairing: its datagrams do not work on RoCE. Not -T e: it waits for ever if a
    datagram is lost or late, over the kernel's UDP as well."""
    return Case(f"udpong {options}", f"udpong -b {{address}} {options}",
                f"udpong -s {{address}} {options}", (r"^\S+ +\S+ +\d+ +\S+ +[\d.]+s", 1),
                server_said=("", 1), endless=True, ready="ss -lun | grep -q :7174", stock=False)


def rcopy(path):
    """The server never ends by itself: it is ended when its file equals the other host's."""
    server = (f"sh -c 'rcopy & until cmp -s {path} /tmp/rcopied; do sleep 0.2; done; sleep 1; "
              "kill $!; rm /tmp/rcopied; wait'")
    return Case("rcopy", server, f"rcopy {path} {{address}}:/tmp/rcopied",
                (r"closing\.\.\.done", 1), families=IPV4)


def rcopy_ten():
    """10 MB that nowhere repeat, and their checksum at both ends."""
    make = f"{TEN} >/tmp/ten"
    server = (f"sh -c '{make}; rcopy & until cmp -s /tmp/ten /tmp/rcopied; do sleep 0.5; done; "
              "sha256sum </tmp/rcopied; sleep 1; kill $!; rm /tmp/rcopied; wait'")
    client = f"{make}; sha256sum </tmp/ten; exec rcopy /tmp/ten {{address}}:/tmp/rcopied"
    return Case("rcopy of 10 MB", server, f"sh -c '{client}'",
                (rf"{TEN_SHA256}  -$|^10485760 bytes in ", 2),
                server_said=(rf"{TEN_SHA256}  -$", 1), families=IPV4)


def preload(program, serve, fetch, server, client, **changes):
    """A program that knows nothing of RDMA: over RDMA if both ends have the preload library.

    serve, fetch: the ends' shell commands, with {load} where the library may go. server, client:
    whether that end has it. The transfer is over TCP if not both have.
    """
    load = "LD_PRELOAD={folder}/rsocket/librspreload.so "
    expect = "" if server and client else "! "
    serve = "sh -c '" + serve.format(load=load * server) + "'"
    fetch = ("sh -c '" + fetch.format(load=load * client) +
             f" && {expect}grep -q \"CONNECTING -> OPEN\" /tmp/log && echo same || "
             "grep \"preload: TCP to\" /tmp/log'")
    ends = " and ".join(["server"] * server + ["client"] * client)
    return Case(f"preloaded {program}, {ends}", serve, fetch, (r"^same$", 1), server_said=("", 1),
                families=IPV4, ready="ss -ltn | grep -q :8000", stock=False,
                raced="preload: TCP to .*: Connection timed out" if not expect else "", **changes)


def web(server, client):
    """Python's web server and curl."""
    return preload("curl", "{load}exec python3 -m http.server --directory /usr/share/doc/bash "
                   "--bind {{address}} 8000",
                   "{load}curl -sSg -m 30 http://{{address}}:8000/copyright 2>/tmp/log | "
                   "cmp - /usr/share/doc/bash/copyright", server, client, endless=True)


def netcat(server, client):
    """A file one way. Its server ends with the connection, and has the file by then."""
    return preload("nc", "{load}nc -l {{address}} 8000 </dev/null >/tmp/received; "
                   "exec cmp /tmp/received /bin/true",
                   "{load}nc -N {{address}} 8000 </bin/true 2>/tmp/log", server, client)


def iperf3(server, client):
    """Two connections each: one to agree on what to measure, one to measure."""
    return preload("iperf3", "{load}exec iperf3 -s -1 -p 8000 -B {{address}}",
                   "{load}iperf3 -c {{address}} -p 8000 -n 256K -l 16K 2>/tmp/log | "
                   "grep -q \"iperf Done\"", server, client)


def forking(clients):
    """A server whose children serve: each connection over RDMA."""
    load = "PURECM_LOG=debug LD_PRELOAD={folder}/rsocket/librspreload.so "
    return Case(f"preloaded server that forks, {clients} clients",
                f"sh -c '{load}exec python3 {FORKING} server {{address}} {clients} 2>/tmp/served'",
                f"sh -c '{load}python3 {FORKING} client {{address}} {clients} 2>/tmp/log; "
                "grep -c \"CONNECTING -> OPEN\" /tmp/log'",
                (rf"^(forked )?{clients}$", 2), server_said=("", 1), families=IPV4,
                ready="ss -ltn | grep -q :8000", stock=False,
                raced=rf"^forked {clients}\n\d+$")


def mckey(options, sender_options=""):
    """The server receives. Both end by destroying a channel with a thread inside."""
    return Case(f"mckey {options} {sender_options}".rstrip(),
                f"mckey -m {GROUP} -b {{address}} {options}",
                f"mckey -m {GROUP} -b {{address}} -s {options} {sender_options}",
                (r"^return status 0$", 1), families=IPV4, member=GROUP)


def pyverbs(scenario, **changes):
    """A conversation of our own through Debian's python3-pyverbs."""
    return Case(f"pyverbs {scenario}", f"{PYVERBS} server {scenario} {{address}}",
                f"{PYVERBS} client {scenario} {{address}}", (r"^end 0$", 1), **changes)


def fio(verb):
    """To fio, who has a hostname and writes is the client, whatever the verb. The server of an
    RDMA write or read has nothing to measure."""
    common = "fio --ioengine=rdma --port=9999 --bs=16k --size=1m"
    return Case(f"fio --verb={verb}", f"{common} --name=server --rw=read --iodepth=64",
                f"{common} --name=client --rw=write --iodepth=4 --hostname={{address}} "
                f"--verb={verb}", (r"bw=\S+", 1), families=IPV4,
                server_said=(r"bw=\S+" if verb == "send" else "err= 0", 1))


def fi_pingpong(endpoint, largest, layer=""):
    """With its largest message; rxe's datagrams have 1024 bytes here."""
    command = f"fi_pingpong -p 'verbs{layer}' -e {endpoint} -I 10"
    return Case(f"fi_pingpong -e {endpoint}{layer}", command, f"{command} {{address}}",
                (rf"^{largest} .*=10", 1), families=IPV4, ready="ss -ltn | grep -q :47592")


def rpma():
    """The host compiles it."""
    make = f"gcc {RPMA} -o /tmp/rpma -lrpma -libverbs && exec /tmp/rpma"
    return Case("write, flush, read", f"sh -c '{make} server {{address}} 7777'",
                f"sh -c '{make} client {{address}} 7777'", (r"^the same$", 1),
                server_said=("", 1), families=IPV4)


def dapl(program, options, said):
    """Its ends agree by TCP, and connect by rdma_cm then, for which the server may be too slow."""
    command = f"{DAT_CONF}exec {program} -P ofa-v2-eth0 {options}"
    return Case(program, f"sh -c '{command}'", f"sh -c '{command} -h {{address}}'", said,
                families=IPV4, ready="ss -ltn | grep -q :15828",
                raced="non-consumer REJ, reason=8", listens_late=True)


def dapltest():
    return Case("dapltest -T T", f"sh -c '{DAT_CONF}exec dapltest -T S -D ofa-v2-eth0'",
                f"sh -c '{DAT_CONF}exec dapltest -T T -s {{address}} -D ofa-v2-eth0 -i 10 -t 1 "
                "-w 1 client SR 256 server SR 256'", (r"End of Work", 1), server_said=("", 1),
                families=IPV4, endless=True)


def io_demo():
    """UCX's, whose server serves until a signal ends it."""
    command = "env UCX_TLS=rc_verbs,ud_verbs io_demo"
    return Case("io_demo", command, f"{command} -i 100 {{address}}", ("exit with status 'OK'", 1),
                server_said=("", 1), families=IPV4, endless=True)


def migration():
    """A machine of QEMU's, of 64 MB, that moves to the server."""
    machine = "qemu-system-x86_64 -accel tcg -m 64 -display none -nodefaults -S -monitor stdio"
    arrived = ("(until grep -q \"status: completed\" /tmp/said; do echo info migrate; sleep 1; "
               "done; echo quit)")
    return Case("qemu-system-x86_64, migrate rdma:",
                f"sh -c 'sleep 1000 | exec {machine} -incoming rdma:{{address}}:4444'",
                "sh -c ': >/tmp/said; (sleep 1; echo migrate -d rdma:{address}:4444; "
                f"{arrived}) | {machine} | tee /tmp/said'",
                (r"Migration status: completed", 1), server_said=("", 1), families=IPV4,
                endless=True)


def iser():
    """A disk of the kernel's target, asked and read by libiscsi."""
    iqn = "iqn.2026-01.test:disk"
    disk = f"iser://{{address}}:3260/{iqn}/0"
    return Case("iscsi-inq, iscsi-perf, iSER", f"{ISER_TARGET} {{address}} {iqn}",
                f"sh -c 'iscsi-inq {disk} && iscsi-readcapacity16 {disk} && "
                f"iscsi-perf -t 2 {disk}'",
                (r"^Vendor:LIO-ORG|^Total size:16777216$|^finished\.$", 3),
                server_said=("", 1), families=IPV4, endless=True, in_kernel=True,
                ready="grep -q 1 /sys/kernel/config/target/iscsi/*/tpgt_1/enable")


def itself(case, **changes):
    """The same with both ends on one host, over IPv4."""
    return dataclasses.replace(case, name=f"{case.name} itself", one_host=True, families=IPV4,
                               **changes)


def rarely(case):
    return dataclasses.replace(case, long=True)


def also_v6(case):
    return dataclasses.replace(case, long_v6=False)


PRELOADED = ((True, True), (True, False), (False, True))  # server, client

USUAL = (
    also_v6(rping(10)), rping(3, "-q", "-q"), persistent_rping(4, 50),
    also_v6(ucmatose("-c 100")), also_v6(ucmatose("-c 20 -m")),
    ucmatose("-c 3 -C 5 -S 4000 -t 8 -a 21 -p 7555"), udaddy("-c 100 -t 8"),
    rdma_client(), rdma_xclient("-c r"), cmtime("-c 50"),
    perftest("ib_send_bw", "-R -s 64"), perftest("ib_write_lat", "-R -s 64"),
    perftest("ib_read_lat", "-R -s 64"), perftest("ib_atomic_lat", "-R"),
    perftest("ib_send_lat", "-R -c UD"), qperf("rc_lat", "rc_rdma_read_bw"),
    mckey("-C 1"), mckey("-C 1", "-o"), rstream("-C 20 -S 64 -I 10 -T b"),
    rstream("-C 20 -S 65536 -I 10 -T a"), riostream("-C 20 -S 65536 -T v"), rcopy("/bin/bash"),
    udpong("-C 50 -S 64"), web(True, True), netcat(True, True),
    pyverbs("sync"), pyverbs("async"))

ONE_HOST = (rping(10), ucmatose("-c 20 -m"), rdma_client(), cmtime("-c 20"),
            perftest("ib_send_lat", "-R -c UD"))

RARE_ONE_HOST = (persistent_rping(4, 50), ucmatose("-c 5 -P ib"), udaddy("-c 20"),
                 rdma_xclient("-c r"), perftest("ib_send_bw", "-R -s 64"), qperf("rc_lat"),
                 mckey("-C 5"), pyverbs("sync"))

OTHERS = (*(fio(verb) for verb in ("write", "read", "send")), fi_pingpong("msg", "4k"),
          fi_pingpong("dgram", "1k"), fi_pingpong("rdm", "4k", ";ofi_rxd"), io_demo(), migration(),
          rpma(), iser(), dapl("dtest", "-b 4096 -B 10", (r"DAPL Test Complete. PASSED", 1)),
          dapl("dtestx", "", (r"IB extension test - .* PASSED", 1)),
          dapl("dtestcm", "-c 50", (r"DAPL Connection Test Complete", 1)),
          dapltest())

RARE = (
    *OTHERS,
    rcopy_ten(), rping(3, "-q"), rping(3, "", "-q"), ucmatose("-c 5 -P ib"), udaddy("-C 5 -S 500"),
    mckey("-c 4"), rstream("-C 20 -S 1024 -I 10 -T v"), pyverbs("udp"),
    pyverbs("reject", families=IPV4), pyverbs("external", families=IPV4),
    pyverbs("multicast", families=IPV4, member=PYVERBS_GROUP),
    *(web(*ends) for ends in PRELOADED if not all(ends)),
    rping(3, "-V -S 65535 -p 7999", "-V -S 65535 -p 7999"), rping(20, "-d", "-d"),
    persistent_rping(16, 50, "-q"),
    ucmatose("-f ip -c 4"), ucmatose("-C 0"), ucmatose("-c 20 -m -P ib"), by_name("ucmatose"),
    udaddy("-P udp -c 4"), udaddy("-C 0"), udaddy("-p 0x111 -S 1000"), by_name("udaddy"),
    rdma_xclient("-p 7999"), cmtime("-c 200 -r 3 -t 3000 -p 7999"),
    perftest("ib_send_bw", "-R -c UD"), perftest("ib_send_bw", "-R -b"),
    perftest("ib_send_bw", "-R -q 4"), perftest("ib_send_bw", "-z"), perftest("ib_send_lat", "-R"),
    perftest("ib_write_bw", "-R"), perftest("ib_write_lat", "-z"), perftest("ib_read_bw", "-R"),
    perftest("ib_atomic_bw", "-R"),
    qperf("rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr"),
    qperf("ver_rc_compare_swap", "ver_rc_fetch_add"), qperf("rc_bw", "rc_bi_bw"),
    qperf("rc_rdma_write_bw", "rc_rdma_write_lat", "rc_rdma_read_lat"),
    mckey("-S 1000 -C 20"), mckey("-C 5", "-o"), rstream("-C 20 -S 64 -I 10 -T n"),
    rstream("-C 20 -S 64 -I 10 -T a"),
    rstream("-C 20 -S 1024 -I 10 -T b"), rstream("-C 20 -S 1024 -I 10 -T n"),
    rstream("-C 20 -S 1024 -I 10 -T a"), rstream("-C 20 -S 64 -I 10 -T v"),
    rstream("-C 20 -S 65536 -I 10 -T n"),
    rstream("-C 20 -S 65536 -I 10 -T b"), rstream("-C 20 -S 65536 -I 10 -T v"),
    riostream("-C 20 -S 64 -T b"), riostream("-C 20 -S 4096 -T n"), udpong("-C 50 -S 1000 -T a"),
    *(netcat(*ends) for ends in PRELOADED if not all(ends)),
    *(iperf3(*ends) for ends in PRELOADED), forking(4))

CASES = (*USUAL, *(itself(case) for case in ONE_HOST), *(rarely(case) for case in RARE),
         *(rarely(itself(case)) for case in RARE_ONE_HOST))
