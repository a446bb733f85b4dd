# SPDX-License-Identifier: BSD-2-Clause
"""Programs and libraries that use RDMA, a Row each: how they run on two hosts of the soft fabric
over purecm, and what counts as success. run.py plays them; docs/programs.md is printed from here.
"""
import dataclasses
from pathlib import Path
import re

from row import A, Row
import sockets

HERE = Path(__file__).resolve().parent
FABRIC = HERE.parents[1] / "tools/fabric/fabric"
IB = ("--link", "ib")


def alone(name, package, command, said, **more):
    """One program on host a."""
    return Row(name, package, "", command, said, patient=False, **more)


def ucx_perftest(transports, test, options="", **more):
    env = f"UCX_TLS={transports} UCX_NET_DEVICES=fab0:1"
    latency = "lat" in test or "fadd" in test
    return Row(f"ucx_perftest -t {test} {options}, {transports}".replace(" ,", ","), "ucx-utils",
               f"{env} ucx_perftest -p 13337",
               f"{env} ucx_perftest {A} -p 13337 -t {test} -n 1000 {options}", ((r"^Final: ", 1),),
               figure=r"^Final: +\d+ +\S+ +(\S+)" if latency else
               r"^Final: +\d+ +\S+ +\S+ +\S+ +\S+ +(\S+)", unit="µs" if latency else "MB/s", **more)


def fi_pingpong(provider, endpoint, **more):
    command = f"fi_pingpong -p '{provider}' -e {endpoint} -I 100"
    return Row(f"fi_pingpong -p {provider} -e {endpoint}", "libfabric-bin", command,
               f"{command} {A}", ((r"^64 .*=100", 1), (r"^4k .*=100", 1)), **more,
               figure=r"^64 +\S+ +\S+ +\S+ +\S+ +\S+ +(\S+)", unit="µs")


def on_hosts(name, package, command, said, hosts, **more):
    """One program that starts processes on so many hosts."""
    if hosts > 2:
        name, more["options"] = f"{name}, {hosts} hosts", ("--hosts", str(hosts))
    return alone(name, package, command, said, **more)


OPENMPI = "openmpi-bin libopenmpi-dev gcc python3-mpi4py"


def openmpi(hosts, words):
    slots = ",".join(f"{host}:1" for host in "abcdefgh"[:hosts])
    return f"mpirun --mca plm_rsh_agent '{{fabric}} exec' --host {slots} -np {hosts} {words}"


def mpich(hosts):
    """Hydra takes our program for rsh."""
    return ("printf '#!/bin/sh\\nexec {fabric} exec \"$@\"\\n' >$PURECM_FABRIC/rsh && "
            "chmod +x $PURECM_FABRIC/rsh && cd $PURECM_FABRIC && UCX_TLS=rc_verbs,ud_verbs,self "
            "mpiexec.mpich -genvlist UCX_TLS -launcher rsh -launcher-exec $PURECM_FABRIC/rsh "
            f"-hosts {','.join('abcdefgh'[:hosts])} -np {hosts}")


def mpi(name, words, program, said, hosts=2, **more):
    return on_hosts(f"mpirun, {name}", OPENMPI, openmpi(hosts, words) +
                    f" /usr/bin/python3 -m mpi4py.bench {program}", said, hosts, **more)


def collectives(name, package, launch, hosts):
    compiler = "mpicc.mpich" if "mpich" in package else "mpicc.openmpi"
    return on_hosts(f"{name}, collectives", package,
                    f"{compiler} -O2 {HERE / 'collectives.c'} -o $PURECM_FABRIC/collectives && "
                    f"{launch} $PURECM_FABRIC/collectives", ((r": 0 wrong words", 5),), hosts)


def all_collectives(hosts):
    """Between so many hosts, by each way of OpenMPI and MPICH."""
    by_ucx = openmpi(hosts, "-x UCX_TLS=rc_verbs,ud_verbs,self --mca pml ucx --mca osc ucx")
    by_ofi = openmpi(hosts, "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs "
                     "--mca osc rdma --mca btl ofi,self")
    return (collectives("mpirun, UCX", OPENMPI, by_ucx, hosts),
            collectives("mpirun, libfabric", OPENMPI, by_ofi, hosts),
            collectives("mpiexec.mpich, UCX", "mpich libmpich-dev gcc", mpich(hosts), hosts))


def netpipe(package, program, launch, **more):
    """Messages of up to 4 KiB between two hosts, each 100 times."""
    return alone(f"{program}, UCX", package, f"cd $PURECM_FABRIC && {launch} {program} -u 4096 "
                 "-n 100", ((r"4096 bytes +100 times", 1),),
                 figure=r"4096 bytes +100 times +--> .* in +(\S+)", unit="µs", **more)


def verbs(feature):
    """A conversation of our own through pyverbs."""
    command = f"{HERE}/verbs_end.py {{}} {feature} {A}"
    return Row(f"verbs_end.py {feature}", "python3-pyverbs", command.format("server"),
               command.format("client"), ((r"^end 0$", 2),),
               options=("--quirk", "ece") if feature == "ECE" else ())


FEATURES = ("RC", "UC", "UD", "SRQ", "XRC", "extended-QP", "windows", "rereg", "device-memory",
            "on-demand", "parent-domain", "events", "timestamps", "ECE", "import")

RING = ("ringtest -n 65536 -l 100", ((r"time for 100 loops", 1),))
RING_TIME = {"figure": r"time for 100 loops = (\S+)", "unit": "s"}


def fio(verb):
    """To fio, who has a hostname and writes is the client, whatever the verb. It asks for no
    retries where no receive is posted, so its server posts one for each of the 256 messages."""
    common = "--ioengine=rdma --port=9999 --bs=64k --size=16m"
    return Row(f"fio --ioengine=rdma --verb={verb}", "fio",
               f"fio --name=server {common} --rw=read --iodepth=256",
               f"fio --name=client {common} --rw=write --iodepth=4 --hostname={A} --verb={verb}",
               ((r"bw=\S+", 1),), figure=r"bw=(\S+)")


def perftest(program, options="", **more):
    """By rdma_cm: its server listens anew for the second connection, which comes soon."""
    return Row(f"{program} {options}".strip(), "perftest", f"{program} -n 1000 {options}",
               f"{program} -n 1000 {options} {A}", ((r"^ +\d+ +\d+000 +\S+", 1),),
               figure=r"^ +\d+ +\d+000 +\S+ +(\S+)" if "bw" in program else
               r"^ +\d+ +1000 +\S+ +\S+ +(\S+)", unit="MB/s" if "bw" in program else "µs",
               options=("--faults", "mads:delay=50ms") if "-R" in options else (), **more)


def xrc_perftest(program):
    """It names its domain by a file of /tmp."""
    return dataclasses.replace(perftest(program, "-d fab0 -x 1 -c XRC"), options=("--own-tmp",))


def perftest_options(operation, count):
    """Each service and option; some are by rdma_cm, and some name a domain as above."""
    return alone(f"ib_{operation}_bw and ib_{operation}_lat, all options", "perftest",
                 f"sh {HERE / 'perftest.sh'} {operation} '{{fabric}}'",
                 ((rf"^{count} passed, 0 failed$", 1),), minutes=30,
                 options=("--own-tmp", "--faults", "mads:delay=50ms"))


def qperf(test):
    """By rdma_cm what can be. The others give no GRH, and so need InfiniBand."""
    by_cm = not test.startswith(("uc_", "ud_"))
    return Row(f"qperf {test}", "qperf", "qperf",
               f"qperf {A} {'-cm1 ' * by_cm}-t 1 {test}",
               ((r"(?:bw|latency|msg_rate) +=", 1),),
               figure=r"(?:bw|latency|msg_rate) += +(.+)", options=() if by_cm else IB)


QPERF = ("rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw",
         "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat", "rc_compare_swap_mr",
         "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add", "uc_lat", "uc_bw",
         "uc_bi_bw", "uc_rdma_write_lat", "uc_rdma_write_bw", "uc_rdma_write_poll_lat", "ud_lat",
         "ud_bw", "ud_bi_bw")


def built(source, libraries, program):
    """How a host builds a conversation of ours with a library, and the words that begin it."""
    compiler = "g++" if source.endswith(".cc") else "gcc"
    return (f"{compiler} -O2 {HERE / source} -o $PURECM_FABRIC/{program} {libraries} && "
            f"exec $PURECM_FABRIC/{program}")


GLOO = built("gloo.cc", "-lgloo", "gloo")
RPMA = built("rpma.c", "-lrpma -libverbs", "rpma")

DAT_CONF = ('echo ofa-v2-fab0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 '
            "'\"fab0 0\" \"\"' >$PURECM_FABRIC/dat.conf; "
            "export DAT_OVERRIDE=$PURECM_FABRIC/dat.conf; ")


def dapl(program, said, options="", run_options=()):
    command = f"{DAT_CONF}{program} -P ofa-v2-fab0 {options}"
    return Row(f"{program} {options}".strip(), "dapl2-utils", command, f"{command} -h {A}", said,
               options=run_options)


def pingpong(program, options="-g 1"):
    return Row(f"ibv_{program} {options}", "ibverbs-utils", f"ibv_{program} {options}",
               f"ibv_{program} {options} {A}", ((r"1000 iters in", 1),),
               figure=r"iters in \S+ seconds = (\S+)", unit="µs")


def rdmacm(server, client, said):
    """The client's address is its last word."""
    return Row(client, "rdmacm-utils", server, f"{client} {A}", ((said, 1),))


def subnet(command, *said, **more):
    """A program that asks the subnet, of host a."""
    return alone(command, "infiniband-diags", command, tuple((regex, 1) for regex in said),
                 options=IB, **more)


def between(program, client, said):
    """A server of the management datagrams of a vendor, and its client."""
    return Row(program, "infiniband-diags", f"{program} -S", client, ((said, 1),), options=IB)


# cm_open_listen_close stores its endpoint only after its other thread may have asked for it.
SLOW_MADS = ("--faults", "mads:delay=20ms")
GTEST = alone(
    "gtest rdmacm/*", "automake libtool make g++ librdmacm-dev",
    "cd {source}/test/gtest && ./gtest --gtest_filter='rdmacm/*-*non_exist_ip*'",
    ((r"^\[  PASSED  \] 114 tests", 1),), source="ucx", options=SLOW_MADS,
    build="./autogen.sh && ./contrib/configure-release --enable-gtest --disable-doxygen-doc "
    "--without-java --without-go && make -j2 GTEST_CXXFLAGS='-O2 -g0 -Wno-error'")

# As Debian packs them. Those skip themselves that need root, huge pages, another device, or what
# this one does not announce.
OWN_TESTS = ("cp -r /usr/share/doc/rdma-core/tests $PURECM_FABRIC && cd $PURECM_FABRIC && "
             "gunzip -f tests/*.gz && /usr/bin/python3 tests/run_tests.py --dev fab0 --port 1 "
             "--gid 1 -v 2>&1")


def told(server):
    """The command of a server, of which the client's command waits for a word."""
    return f"stdbuf -oL {server} | tee $PURECM_FABRIC/told"


def has_told(word):
    return f"until grep -sq {word} $PURECM_FABRIC/../a/told; do sleep 0.1; done; "


MACHINE = "qemu-system-x86_64 -accel tcg -m 64 -display none -nodefaults -S -monitor stdio"
ARRIVED = "(until grep -q 'status: completed' $PURECM_FABRIC/said; do echo info migrate; " \
          "sleep 0.5; done; echo quit)"
MIGRATION = Row("qemu-system-x86_64, migrate rdma:", "qemu-system-x86",
                f"sleep 1000 | {MACHINE} -incoming rdma:{A}:4444",
                f": >$PURECM_FABRIC/said; (echo migrate -d rdma:{A}:4444; {ARRIVED}) | "
                f"{MACHINE} | tee $PURECM_FABRIC/said",
                ((r"Migration status: completed", 1),), figure=r"(?s).*total time: (\d+ ms)",
                patient=False)

ROWS = (
    alone("ucx_info -d", "ucx-utils", "ucx_info -d",
          ((r"Transport: rc_verbs", 1), (r"Transport: ud_verbs", 1),
           (r"Connection manager: rdmacm", 1))),
    ucx_perftest("rc_verbs,ud_verbs", "tag_lat", plain=True),
    ucx_perftest("ud_verbs", "tag_lat"),
    ucx_perftest("rc_verbs,ud_verbs", "tag_bw", "-s 1000000"),
    ucx_perftest("rc_verbs,ud_verbs", "ucp_put_bw", "-s 65536"),
    ucx_perftest("rc_verbs,ud_verbs", "ucp_get", "-s 65536"),
    ucx_perftest("rc_verbs,ud_verbs", "ucp_fadd"),
    ucx_perftest("rc_verbs,ud_verbs", "stream_bw", "-s 65536"),
    Row("io_demo, by rdma_cm", "ucx-utils", "UCX_TLS=rc_verbs,ud_verbs io_demo",
        f"UCX_TLS=rc_verbs,ud_verbs io_demo -i 500 {A}", ((r"read +\S+ MB/s|total", 1),)),
    alone("fi_info -p verbs", "libfabric-bin", "fi_info -p verbs",
          ((r"FI_EP_MSG", 1), (r"FI_EP_DGRAM", 1))),
    fi_pingpong("verbs", "msg"),
    fi_pingpong("verbs;ofi_rxm", "rdm", raced="cq_readerr: Work Request Flushed Error"),
    fi_pingpong("verbs;ofi_rxd", "rdm"),
    fi_pingpong("verbs", "dgram"),
    mpi("UCX", "--mca pml ucx", *RING, **RING_TIME),
    mpi("libfabric", "--mca pml cm --mca mtl ofi", *RING, **RING_TIME),
    mpi("openib", "--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib true", *RING,
        options=IB, **RING_TIME),
    *(fio(verb) for verb in ("write", "read", "send")),
    dapl("dtest", ((r"DAPL Test Complete|PASSED", 2),)),
    # Its server tells its address by TCP and listens after that.
    dapl("dtestx", ((r"PASSED|Complete", 2),), run_options=("--faults", "mads:delay=500ms")),
    dapl("dtestcm", ((r"PASS|onnections", 1),)),
    Row("dapltest -T T", "dapl2-utils", f"{DAT_CONF}dapltest -T S -D ofa-v2-fab0",
        f"{DAT_CONF}dapltest -T T -s {A} -D ofa-v2-fab0 -i 100 -t 1 -w 1 client SR 256 "
        "server SR 256", ((r"End of Work", 1),), figure=r"Total WQE +: +(\S+)", unit="WQE/s"),
    MIGRATION,
    perftest("ib_send_bw", "-d fab0 -x 1"), perftest("ib_send_bw", "-d fab0 -x 1 -c UC"),
    perftest("ib_send_bw", "-d fab0 -x 1 -c UD"), perftest("ib_write_bw", "-d fab0 -x 1 -q 4"),
    perftest("ib_read_bw", "-d fab0 -x 1"), perftest("ib_atomic_bw", "-d fab0 -x 1"),
    perftest("ib_write_lat", "-d fab0 -x 1"),
    perftest("ib_send_lat", "-d fab0 -x 1 -e", plain=True),
    perftest("ib_read_lat", "-d fab0 -x 1"), perftest("ib_atomic_lat", "-d fab0 -x 1"),
    perftest("ib_send_lat", "-d fab0 -x 1 -c UD"), perftest("ib_write_bw", "-d fab0 -x 1 -c UC"),
    xrc_perftest("ib_send_bw"), xrc_perftest("ib_write_bw"),
    perftest("ib_send_bw", "-R"), perftest("ib_write_lat", "-R"),
    perftest_options("send", 104), perftest_options("write", 66),
    perftest_options("read", 46), perftest_options("atomic", 42),
    *(qperf(test) for test in QPERF),
    pingpong("rc_pingpong"), pingpong("uc_pingpong"), pingpong("ud_pingpong"),
    pingpong("rc_pingpong", "-g 1 -e -c"), pingpong("rc_pingpong", "-g 1 -t"),
    pingpong("rc_pingpong", "-g 1 -N"), pingpong("srq_pingpong"),
    Row("ibv_xsrq_pingpong -g 1", "ibverbs-utils", "ibv_xsrq_pingpong -g 1",
        f"ibv_xsrq_pingpong -g 1 {A}", ((r"^success", 1),), options=("--own-tmp",)),
    alone("ibv_devices, ibv_devinfo", "ibverbs-utils", "ibv_devices; ibv_devinfo -v",
          ((r"^ +fab0\s", 1), (r"GID\[ +1\]:\s+::ffff:10.77.0.1, RoCE v2", 1))),
    pingpong("ud_pingpong", "-g 1 -e"),
    Row("ibv_asyncwatch", "ibverbs-utils", told("ibv_asyncwatch -d fab0"),
        "{fabric} port --dir $PURECM_FABRIC/../.. a down; " + has_told("PORT_ERR") +
        "{fabric} port --dir $PURECM_FABRIC/../.. a up; " + has_told("PORT_ACTIVE"),
        ((r"event_type IBV_EVENT_PORT_ERR", 1), (r"event_type IBV_EVENT_PORT_ACTIVE", 1)),
        patient=False),
    Row("udpong", "rdmacm-utils", f"udpong -b {A} -C 50", f"udpong -s {A} -C 50",
        ((r"^custom ", 1),),
        figure=r"^custom +\S+ +\S+ +\S+ +\S+ +\S+ +(\S+)", unit="Gbit/s"),
    Row("cmtime", "rdmacm-utils", f"cmtime -b {A}", f"cmtime -s {A} -c 50", ((r"^disconnect", 1),)),
    Row("rdma_xclient, rdma_xserver", "rdmacm-utils", "rdma_xserver", f"rdma_xclient -s {A}",
        ((r"^rdma_xclient: end 0$", 1),)),
    rdmacm("rping -s -C 3", "rping -c -C 3 -v -a", r"^ping data: rdma-ping-2"),
    rdmacm("ucmatose -C 20", "ucmatose -C 20 -s", r"return status 0"),
    rdmacm("udaddy", "udaddy -s", r"return status 0"),
    rdmacm("rdma_server", "rdma_client -s", r"^rdma_client: end 0$"),
    Row("mckey", "rdmacm-utils", told(f"mckey -m 239.1.1.1 -b {A}"), has_told("joined") +
        "mckey -m 239.1.1.1 -s -b 10.77.0.2; " + has_told("status"), ((r"return status 0", 2),),
        patient=False),
    rdmacm("rstream -S 65536 -C 100 -T v", "rstream -S 65536 -C 100 -T v -s", r"^custom +64k +100"),
    rdmacm("riostream -S 64 -C 10 -T v", "riostream -S 64 -C 10 -T v -s", r"^custom +64 +10"),
    Row("rcopy", "rdmacm-utils", "cd $PURECM_FABRIC && rcopy", "cd $PURECM_FABRIC && "
        f"seq 200000 >numbers && rcopy numbers {A}:copy && cmp numbers ../a/copy && echo equal",
        ((r"equal$", 1),)),
    Row("rdma_xclient -c x, XRC by rdma_cm", "rdmacm-utils", "rdma_xserver -c x",
        f"rdma_xclient -s {A} -c x", ((r"^rdma_xclient: end 0$", 1),), plain=True),
    GTEST, dataclasses.replace(GTEST, name=f"{GTEST.name}, InfiniBand", options=IB + SLOW_MADS),
    alone("rdma-core's tests of verbs and rdma_cm", "python3-pyverbs",
          OWN_TESTS, ((r"^OK", 1),), figure=r"(?s)^(Ran \d+ tests.*skipped=\d+\))", plain=True),
    *(verbs(feature) for feature in FEATURES),
    Row("AllreduceRing, by verbs", "libgloo-dev g++",
        f"mkdir $PURECM_FABRIC/../../gloo; {GLOO} 0 2 $PURECM_FABRIC/../../gloo",
        f"{GLOO} 1 2 $PURECM_FABRIC/../../gloo", ((r"^sum of 2 ranks", 2),),
        figure=r"^sum of 2 ranks: (\d+)", unit="µs", patient=False),
    Row("write, flush, read", "librpma-dev", f"{RPMA} server {A} 7777", f"{RPMA} client {A} 7777",
        ((r"^the same$", 1),)),
    netpipe("netpipe-openmpi openmpi-bin", "NPopenmpi", "mpirun --mca plm_rsh_agent '{fabric} exec'"
            " --host a:1,b:1 -np 2 --mca pml ucx"),
    netpipe("netpipe-mpich2 mpich", "NPmpich2", mpich(2)),
    *all_collectives(2), *all_collectives(8),
    alone("ibstat, ibstatus", "infiniband-diags", "ibstat; ibstatus",
          ((r"State: Active", 1), (r"state:\s+4: ACTIVE", 1)), options=IB),
    alone("saquery", "infiniband-diags", "saquery -p --src-to-dst 1:2", ((r"dlid", 1),),
          options=IB),
    alone("ibsrpdm -v", "srptools", "ibsrpdm -v && ibsrpdm -v -d /dev/infiniband/umad0",
          ((r"^Device fab0 was found", 2), (r"performing a capability query", 2)), options=IB),
    subnet("sminfo", r"sminfo: sm lid \d+ .* state 3 SMINFO_MASTER"),
    subnet("smpquery nodeinfo 1", r"^NodeType:\.+Channel Adapter"),
    subnet("ibnetdiscover", r"^Switch\s", r"^Ca\s"),
    subnet("iblinkinfo", r"Active/ +LinkUp"),
    subnet("ibhosts; ibswitches; ibnodes", r"^Ca\s+:", r"^Switch\s+:"),
    subnet("ibaddr", r"LID start"),
    subnet("ibtracert 1 2", r"^From ca .* portnum 1 lid 1", r"^To ca .* lid 2"),
    subnet("ibroute 0xbe00", r"0x0002 002 :.*b fab0"),
    subnet("dump_fts", r"0x0002 002 .*b fab0"),
    subnet("smpquery -D switchinfo 0,1", r"LinearFdbCap"),
    subnet("smpdump 1 17", r"^(?:[0-9a-f]{4} ){7}[0-9a-f]{4}"),
    subnet("ibportstate 1 1 query", r"LinkState:\.+Active"),
    subnet("perfquery; perfquery -x 2 1; perfquery -R 0xbe00 2", r"^PortXmitData:\.+\d",
           r"^PortUnicastRcvPkts:\.+\d"),
    subnet("ibqueryerrors", r"3 nodes checked, 0 bad nodes found"),
    between("ibping", "ibping -c 2 1", r"2 packets transmitted, 2 received"),
    between("ibsysstat", "ibsysstat 1 ping", "sysstat ping succeeded"),
)

# What Debian 13 lacks: regexes of rows, and why.
ABSENT_IN_TRIXIE = ((r"^d(test|apltest)", "it has no dapl2-utils"),
                    (r"^mpirun, openib", "its OpenMPI has no openib"),
                    (r"^gtest|collectives|all options", "not tried"))

# rdma(8) asks the kernel for the interface of a device.
RDMA = (r"""printf '#!/bin/sh\necho "[{\\"ifname\\":\\"fab0\\",\\"port\\":1,\\"netdev\\":"""
        r"""\\"fab0\\"}]"\n' >rdma && chmod +x rdma && PATH=$PWD:$PATH """)

# How commands differ there: regex of rows, text, its replacement.
TRIXIE = (
    # Its server accepts so many connections, 100 if not told, and ends.
    (r"^cmtime", f"cmtime -b {A}", f"cmtime -b {A} -c 50"),
    # Its own is built with MPI, and takes itself for one of a world of processes where its input
    # is no terminal.
    (r"^ucx_perftest", "ucx_perftest ", "ucx_perftest -P 0 "),
    (r"^rdma-core's tests", "/usr/bin/python3 tests/", f"{RDMA}/usr/bin/python3 tests/"),
)


def rows_of(release):
    """The rows as a release of Debian plays them: "own", which is Debian 12, or "trixie"."""
    if release == "own":
        return ROWS + sockets.ROWS
    return tuple(changed(row) for row in ROWS) + ONLY_TRIXIE


def on_rxe(row):
    """Return: the case of a row in tests/lab, or None, and why it has none."""
    for name, case in ON_RXE:
        found = re.search(name, row.name)
        if found:
            return found.expand(case), ""
    if row.options == IB:
        return None, "no InfiniBand"
    return None, next(why for name, why in NOT_ON_RXE if re.search(name, row.name))


def changed(row):
    """A row as Debian 13 plays it."""
    for name, why in ABSENT_IN_TRIXIE:
        if re.search(name, row.name):
            row = dataclasses.replace(row, absent=why)
    for name, old, new in TRIXIE:
        if re.search(name, row.name):
            row = dataclasses.replace(row, server=row.server.replace(old, new),
                                      client=row.client.replace(old, new))
    return row


def ceph(way, options, *said):
    """Two processes of ceph's messenger, 100 requests of 4 KiB; they need no cluster. It
    has few buffers here; its default is 32,768 of 128 KiB."""
    env = ("PURECM_LOG=debug CEPH_ARGS='--ms_type async+rdma --ms_async_rdma_device_name fab0 "
           "--ms_async_op_threads 1 --ms_async_rdma_receive_buffers 256 "
           f"--ms_async_rdma_receive_queue_len 64 --ms_async_rdma_send_buffers 256 {options}'")
    return Row(f"ceph_perf_msgr_client, {way}", "ceph-test",
               f"cd $PURECM_FABRIC && {env} ceph_perf_msgr_server {A}:17777 1 0",
               f"cd $PURECM_FABRIC && {env} ceph_perf_msgr_client {A}:17777 1 4 100 0 4096",
               ((r"Total op 100 run time", 1), *said), figure=r"run time (\d+)us", unit="µs")


# ssh, as fabtests calls it.
SSH = ("cd $PURECM_FABRIC && printf '#!/bin/sh\\nwhile [ \"${1#-}\" != \"$1\" ]; do "
       "[ \"$1\" = -o ] && shift; shift; done\\nexec {fabric} exec \"$@\"\\n' >ssh && chmod +x ssh")


def fabtests(provider, suites, options, *said):
    """libfabric's own tests."""
    tests = "{source}/fabtests"
    return alone(f"runfabtests.sh -t {suites} {provider}",
                 "libfabric-dev automake libtool make xz-utils",
                 f"{SSH} && PATH=$PWD:{tests}/bin:$PATH runfabtests.sh -v -p {tests}/bin "
                 f"-t {suites} {options} '{provider}' a b",
                 ((r"^# Total Fail +0$", 1), *((regex, 1) for regex in said)), minutes=15,
                 # A client starts a second after its server, which may not listen yet.
                 raced="Work Request Flushed Error|eq_readerr 111 .Connection refused",
                 source="libfabric", build="(cd fabtests && ./autogen.sh && "
                 "./configure --bindir=$PWD/bin && make -j2 && make install-exec)")


def fabtests_of(provider, excluded, configuration, passed, exchanges):
    """All of a provider: the plain tests, and ubertest's exchanges with few sizes of messages."""
    configs = "{source}/fabtests/test_configs"
    return (fabtests(provider, "unit,regression,functional,standard,multinode",
                     f"-T 60 -e ^fi_msg_sockets -f {configs}/{excluded}.exclude",
                     rf"^# Total Pass +{passed}$"),
            fabtests(provider, "complex", "-T 600 -u $(sed '/test_flags/d; "
                     "s/^}/test_flags: FT_FLAG_QUICKTEST}/' "
                     f"{configs}/{configuration}.test >quick && realpath quick)",
                     rf"^ +result: Pass \[{exchanges}/"))


VALKEY = alone("runtest-rdma", "python3-netifaces make gcc librdmacm-dev",
               "cd {source} && ./runtest-rdma",
               ((r"^Valkey Over RDMA test over 10.77.0.1 \[OK\]$", 1),), source="valkey",
               build="make -C src -j2 BUILD_RDMA=yes MALLOC=libc valkey-server && "
               "make -C tests/rdma && chmod a+w tests/rdma")

# What Debian 12 does not have.
ONLY_TRIXIE = (
    verbs("flush"), VALKEY,
    *fabtests_of("verbs", "verbs/verbs", "verbs/all", 35, 142),
    *fabtests_of("verbs;ofi_rxm", "ofi_rxm/ofi_rxm", "ofi_rxm/verbs", 56, 76),
    mpi("UCX", "--mca pml ucx", *RING, **RING_TIME, hosts=8),
    mpi("libfabric", "--mca pml cm --mca mtl ofi", *RING, **RING_TIME, hosts=8),
    ceph("async+rdma", "--ms_async_rdma_gid_idx 1"),
    ceph("async+rdma by rdma_cm", "--ms_async_rdma_cm true --ms_async_rdma_type iwarp",
         (r"listening on", 1)),
)

# How a row is played between two kernels with rxe: regex of rows, and the case of
# tests/lab/program_cases.py, which has each pairing of stock's library and ours.
ON_RXE = (
    (r"^io_demo", "io_demo"),
    (r"^fi_pingpong -p verbs -e (\w+)$", r"fi_pingpong -e \1"),
    (r"^fi_pingpong -p verbs;ofi_rxd", "fi_pingpong -e rdm;ofi_rxd"),
    (r"^write, flush, read", "write, flush, read"),
    (r"^(dtest\w*|dapltest -T T)$", r"\1"),
    (r"^qperf (rc_rdma_write_poll_lat|rc_compare_swap_mr|rc_fetch_add_mr)$",
     "qperf -cm1 rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr"),
    (r"^qperf (ver_rc_\w+)$", "qperf -cm1 ver_rc_compare_swap ver_rc_fetch_add"),
    (r"^fio --ioengine=rdma (.*)", r"fio \1"),
    (r"^qemu", "qemu-system-x86_64, migrate rdma:"),
    (r"^(ib_\w+) -R$", r"\1 -R -s 64"),
    (r"^qperf (rc_lat|rc_rdma_read_bw)$", "qperf -cm1 rc_lat rc_rdma_read_bw"),
    (r"^qperf (rc_bw|rc_bi_bw)$", "qperf -cm1 rc_bw rc_bi_bw"),
    (r"^qperf (rc_rdma_write_bw|rc_rdma_write_lat|rc_rdma_read_lat)$",
     "qperf -cm1 rc_rdma_write_bw rc_rdma_write_lat rc_rdma_read_lat"),
    (r"^cmtime", "cmtime -c 50"),
    (r"^rdma_xclient, ", "rdma_xclient -c r"),
    (r"^rping", "rping -C 10"),
    (r"^ucmatose", "ucmatose -c 100"),
    (r"^udaddy", "udaddy -c 100 -t 8"),
    (r"^rdma_client", "rdma_client"),
    (r"^mckey", "mckey -C 5"),
    (r"^rstream", "rstream -C 20 -S 65536 -I 10 -T v"),
    (r"^riostream", "riostream -C 20 -S 65536 -T v"),
    (r"^rcopy", "rcopy"),
    (r"^rdma-core's tests", "pyverbs sync"),
)

# Why others are not: regex of rows, reason. Of those with the option --link ib: rxe has no
# InfiniBand.
NOT_ON_RXE = (
    (r"-c XRC|XRC by rdma_cm|xsrq", "no XRC"),
    (r"^udpong", "stock has no datagrams on RoCE"),
    (r"^ceph.*rdma_cm", "not in Debian 12"),
    (r"ofi_rxm|^mpirun, libfabric", "stock fails (fi_enable: Invalid argument)"),
    (r"^(mpirun, UCX|NPopenmpi)", "stock fails (UCX's datagrams time out)"),
    (r"^(ucx|fi)_info", "not tried"),
    (r"^(ucx_|ibv_|ib_|verbs_end|AllreduceRing|NPmpich2|mpiexec|ceph)", "verbs only"),
)

# What came of suites, the reasons why tests fail or skip themselves.
SUITES = (
    ("rdma-core's", "143 of 44's 273 tests pass, 152 of 56's 321, 174 of 65's 390. "
     "65's test_multi_process_alloc_dm fails in Python 3.14, which cannot pickle it. Others need "
     "mlx5 or EFA (95, 129, 143), a GPU or PCI device (14, 17, 19), raw packets (14, 14, 16), tag "
     "matching (4), huge pages (3, 3, 4); of 56 and 65 flushes (2, 3), of 65 a confidential guest "
     "(14), DMA handles (6), a hardware clock (4), rates, root."),
    ("UCX's gtest", "of rdmacm/*, 114, also with `--wire roce` or `--link ib`, and MADs that take "
     "20 ms: cm_open_listen_close stores its endpoint late. Of uct's 442 over rc and ud 262 pass, "
     "178 skip; with `--link ib` 266, 172. get_size_limit tests a check that release builds omit, "
     "sys_device wants PCI, test_pkey_pairs confuses P_Keys. Of ucp's sockaddr, 1,961; "
     "wireup_fail waits for flags above 16 bits, which release builds lose: with 32, 72 pass, 24 "
     "skip."),
    ("fabtests", "all but `fi_msg_sockets` (libfabric 2.1 resolves an address twice, which stock "
     "refuses, too), with 142 and 76 exchanges of ubertest."),
    ("Valkey's `runtest-rdma`", "of 8.1.1 and 9.1.2."),
    ("perftest", "all 258 pairs of a service and an option that its programs take."),
)

# What has no row, and why.
ABSENT = (
    ("tgtd (iSER)", "It refuses the login, with stock on rxe too. The lab plays LIO's target."),
    ("SPDK, nvmet-rdma, NFS/RDMA, RDS, SMB Direct", "Debian has no initiator in user space."),
    ("librpma's examples, fio's librpma engines", "Debian packs neither."),
    ("perftest's `raw_ethernet_*`", "The fabric has no raw packet queue pairs."),
    ("qperf's `uc_*` and `ud_*` on RoCE", "They give no GRH. They run on InfiniBand."),
)
