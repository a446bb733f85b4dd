#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a host of the soft fabric sees besides its network: a name, the device in /sys and /dev,
memory and files that no other host has.

Prints what failed, then "N passed, N failed, N skipped".
"""
import os
import subprocess
import sys
import tempfile

import hosts

FABRIC = f"{hosts.FABRIC} {{}} --dir $PURECM_FABRIC/../.. {{}}"
PORT = "/sys/class/infiniband/fab0/ports/1"
KEPT = (("/dev", "/dev/infiniband"), ("/sys/class", "/sys/class/infiniband"))


def lines(build, *words):
    done = hosts.run_on_fabric(build, 20, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


BEYOND = """
import errno, socket
for family, address in ((socket.AF_INET, "240.0.0.1"), (socket.AF_INET6, "2001:db8::1")):
    print(socket.socket(family).connect_ex((address, 1)) == errno.ENETUNREACH)
"""


def address_beyond_has_a_route_that_ends_at_a_router(build):
    """TCP hears so at once; a request of rdma_cm is lost, as with any other router."""
    clients = (f"PURECM_CONNECT_TIMEOUT_MS=500 rping -c -a {address} 2>&1"
               for address in ("240.0.0.1", "2001:db8::1"))
    said = lines(build, "--hosts", "1", f"a:python3 -c '{BEYOND}'; {'; '.join(clients)}; true")
    assert said[:2] == ["True", "True"], said
    assert sum("RDMA_CM_EVENT_UNREACHABLE, error -110" in line for line in said) == 2, said


def another_user_is_told_why_there_is_no_device(build):
    if os.geteuid():
        raise hosts.SkipOne("only root can become another user")
    said = lines(build, "--hosts", "1",
                 "a:setpriv --reuid 65534 --regid 65534 --clear-groups ibv_devices 2>&1")
    assert "user 65534 may not use this fabric, which is another user's" in said[0], said


# Listens, becomes another user, and accepts; by synchronous calls.
ACCEPT_LATER = """
import ctypes, errno, os, struct
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
hints = struct.pack("4i2I6P", 1, 0, 2, 0x106, 0, 0, *6 * [0])  # RAI_PASSIVE, RC, RDMA_PS_TCP
attr = struct.pack("4P7I", *4 * [0], 1, 1, 1, 1, 0, 2, 0)
found, listener, request = (ctypes.c_void_p() for _ in range(3))
assert cm.rdma_getaddrinfo(None, b"7471", hints, ctypes.byref(found)) == 0
assert cm.rdma_create_ep(ctypes.byref(listener), found, None, attr) == 0
assert cm.rdma_listen(listener, 1) == 0
os.setuid(65534)
assert cm.rdma_get_request(listener, ctypes.byref(request)) == 0
print(cm.rdma_accept(request, None), errno.errorcode[ctypes.get_errno()], flush=True)
"""


def a_server_that_becomes_another_user_is_told_why_it_cannot_accept(build):
    if os.geteuid():
        raise hosts.SkipOne("only root can become another user")
    said = lines(build, "--raw", f"a&:exec python3 -c '{ACCEPT_LATER}' 2>&1",
                 "b:rping -c -a 10.77.0.1 -p 7471 >/dev/null 2>&1; true")
    assert "user 65534 may not use this fabric" in said[0] and said[1:] == ["-1 EACCES"], said


def each_host_has_its_name_and_finds_the_others_by_theirs(build):
    said = lines(build, "--hosts", "server,client", "server:hostname; getent hosts client",
                 "client:hostname; getent hosts server")
    assert [line.split() for line in said] == [["server"], ["10.77.0.2", "client"], ["client"],
                                               ["10.77.0.1", "server"]], said


def the_device_node_can_be_read_and_written(build):
    said = lines(build, "a:cd /dev/infiniband; echo *; test -c uverbs0 && test -r uverbs0 && "
                 "test -w uverbs0 && : <>uverbs0")
    assert said == ["uverbs0"], said


def sys_says_what_verbs_say(build):
    said = lines(build, f"a:cd {PORT}; cat state rate link_layer gids/1 gid_attrs/types/1 "
                 "gid_attrs/ndevs/1 pkeys/0; cat ../../node_guid; ibv_devinfo | grep node_guid; "
                 "cat /sys/class/infiniband_verbs/uverbs0/ibdev")
    assert said[:7] == ["4: ACTIVE", "40 Gb/sec (4X QDR)", "Ethernet",
                        "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", "fab0",
                        "0xffff"], said
    assert said[8].split()[-1] == said[7] and said[9] == "fab0", said


def sys_lists_umad_by_port(build):
    """So that a program that is told a node of umad finds the device (srp_daemon)."""
    said = lines(build, "--hosts", "1", "--ports", "2", "a:cd /sys/class/infiniband_mad; "
                 "cat abi_version umad?/ibdev umad?/port")
    assert said == ["5", "fab0", "fab0", "1", "2"], said


# What has no capability may not mount, as in most containers.
WITHOUT_MOUNTS = ("unshare", "-Urn", "sh", "-c", "ip link set lo up; ip address add 10.1.1.1/24 "
                  'dev lo; exec setpriv --bounding-set=-all --inh-caps=-all "$@"', "sh")


def without_mounts_programs_see_the_device_by_a_library(build):
    done = subprocess.run(
        [*WITHOUT_MOUNTS, hosts.FABRIC, "run", "--build", build, "--hosts", "1", "--here", "lo",
         "--raw", "--timeout", "20", f"a:cat {PORT}/state; "
         "ls /sys/class/infiniband /dev/infiniband /sys/class/infiniband_mad; "
         "node=/dev/infiniband/uverbs0; test -c $node && test -w $node && : <>$node && echo open; "
         "ibstatus; "
         "python3 -c 'import os; print(os.listdir(\"/sys/class/infiniband\"))'; "
         "rping -s -C 1 >/dev/null & until rping -c -v -C 1 -a 10.1.1.1 2>/dev/null | "
         "grep -o 'ping data'; do sleep 0.1; done; wait"],
        capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said[0] == "4: ACTIVE", done.stdout + done.stderr
    for line in ("uverbs0", "fab0", "umad0", "open", "['fab0']", "ping data",
                 "Infiniband device 'fab0' port 1 status:"):
        assert line in said, (line, done.stdout + done.stderr)


def hosts_on_infiniband_can_share_a_network(build):
    """Where there are neither mounts nor namespaces."""
    lid = f"cat {PORT}/lid"
    done = subprocess.run(
        [*WITHOUT_MOUNTS, hosts.FABRIC, "run", "--build", build, "--hosts", "2", "--here", "lo",
         "--link", "ib", "--raw", "--timeout", "100", f"a&:{lid}; ibv_rc_pingpong >/dev/null",
         f"b:{lid}; ibv_rc_pingpong 127.0.0.1 | grep -c 'bytes in'"],
        capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0x1\n0x2\n1\n"), done


def sys_of_infiniband_has_its_lid(build):
    said = lines(build, "--link", "ib", "--lmc", "2", f"b:cd {PORT}; cat link_layer lid "
                 "lid_mask_count sm_lid", "a:true")
    assert said == ["InfiniBand", "0x8", "2", "0x4"], said


def sys_says_whose_an_interface_is(build):
    """UCX's tests, for instance, find the interfaces of devices so."""
    seen = "; ".join(f"ls fab{i}/device/infiniband; test -d fab{i}/statistics && "
                     f"grep -qx 4500 fab{i}/mtu && echo rest" for i in range(2))
    for link in "roce", "ib":
        said = lines(build, "--hosts", "1", "--ports", "2", "--link", link,
                     f"a:cd /sys/class/net; {seen}; {FABRIC.format('rename', 'a roce7')}; until ls "
                     "fab0/device/infiniband | grep roce7; do sleep 0.02; done")
        assert said == 2 * ["fab0", "rest"] + ["roce7"], said


def sys_follows_the_port_and_the_device(build):
    """An order is carried out some time after it was given."""
    wait = "until {}; do sleep 0.02; done; echo ok; "
    said = lines(build, "--hosts", "1", f"a:{FABRIC.format('port', 'a down')}; "
                 + wait.format(f"grep -q '1: DOWN' {PORT}/state")
                 + f"{FABRIC.format('remove', 'a')}; "
                 + wait.format("! test -e /sys/class/infiniband/fab0")
                 + wait.format("! test -e /sys/class/infiniband_mad/umad0"))
    assert said == ["ok", "ok", "ok"], said


def addresses_are_read_when_there_are_descriptors_again(build):
    """The second order is handled after the news of the address, which came before the first."""
    order, count = FABRIC.format("port", "a up"), "ibv_devinfo -v | grep -c GID"
    limit = "prlimit --pid $(pgrep -P $PPID fabric-host) --nofile"
    said = lines(build, "--hosts", "1",
                 f"a:{count}; {limit}=0:; ip addr add 10.77.9.9/24 dev fab0; "
                 f"{order} && {order} && {limit}=1024:; "
                 f"until ibv_devinfo -v | grep -qw 10.77.9.9; do sleep 0.1; done; {count}")
    assert int(said[1]) == int(said[0]) + 1, said


# Takes all descriptors of fabric-host, asks it for an agent, and waits until it sleeps.
WITHOUT_DESCRIPTORS = """
import ctypes, itertools, os, resource, sys
host = int(sys.argv[1])
used = {int(name) for name in os.listdir(f"/proc/{host}/fd")}
free = next(number for number in itertools.count() if number not in used)
resource.prlimit(host, resource.RLIMIT_NOFILE,
                 (free, resource.prlimit(host, resource.RLIMIT_NOFILE)[1]))
umad = ctypes.CDLL("libibumad.so.3")
print(umad.umad_register(umad.umad_open_port(None, 0), 7, 2, 0, None) < 0)
while open(f"/proc/{host}/stat").read().rpartition(")")[2].split()[0] != "S":
    pass
"""


def a_process_is_refused_where_there_is_no_descriptor(build):
    said = lines(build, "--hosts", "1",
                 f"a:python3 -c '{WITHOUT_DESCRIPTORS}' $(pgrep -P $PPID fabric-host)")
    assert said == ["True"], said


def the_rest_of_sys_and_dev_stays(build):
    """But for interfaces, of which a host has its own."""
    said = lines(build, "a:" + "; ".join(f"ls {folder}; echo =" for folder, _ in KEPT)
                 + "; ls /sys/class/net")
    for folder, ours in KEPT:
        end = said.index("=")
        inside, said = set(said[:end]), said[end + 1:]
        missing = set(os.listdir(folder)) - inside
        assert not missing and os.path.basename(ours) in inside, (folder, missing)
    assert sorted(said) == ["fab0", "lo"], said


def shared_memory_is_not_shared_between_hosts(build):
    """Neither POSIX's nor System V's."""
    said = lines(build, "a:echo x >/dev/shm/purecm-test; ls /dev/shm; "
                 "readlink /proc/self/ns/ipc",
                 "b:ls /dev/shm; readlink /proc/self/ns/ipc")
    assert said[0] == "purecm-test" and len(set(said)) == 3, said
    assert not os.path.exists("/dev/shm/purecm-test")


def tmp_is_a_hosts_own_if_that_is_wanted(build):
    """What the fabric runs, and the folder that it was started in, stay there."""
    said = lines(build, "--own-tmp", f"a:echo x >/tmp/purecm-test; test -e {build} && pwd",
                 "b:ls /tmp/purecm-test 2>/dev/null; rping -s -C 1 >/dev/null 2>&1 & "
                 "until rping -c -v -C 1 -a b 2>/dev/null | grep -o 'ping data'; do sleep 0.1; "
                 "done; wait")
    assert said == [os.getcwd(), "ping data"], said
    assert not os.path.exists("/tmp/purecm-test")


EXEC = f"{hosts.FABRIC} exec"


def a_command_runs_on_another_host_as_by_ssh(build):
    said = lines(build, f"a:{EXEC} b hostname; echo in | {EXEC} b 'cat; echo err >&2; exit 3'; "
                 f"echo $?; {EXEC} b 'kill -9 $$'; echo $?", "b:true")
    assert said == ["b", "in", "err", "3", "137"], said


def a_command_on_another_host_ends_with_who_started_it(build):
    pid = "$PURECM_FABRIC/pid"
    said = lines(build, f"a:{EXEC} b 'echo $$; exec sleep 1000' >{pid} & "
                 f"until test -s {pid}; do sleep 0.02; done; kill -KILL $!; "
                 f"while test -e /proc/$(cat {pid}); do sleep 0.02; done; echo ended", "b:true")
    assert said[-1] == "ended", said


def a_host_that_there_is_not_runs_nothing(build):
    done = hosts.run_on_fabric(build, 20, f"a:{EXEC} c true", "b:true")
    assert done.returncode == 2 and "host c: No such file" in done.stdout, done.stdout


SILENT = """\"
import os, socket, subprocess
mute, rude = (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2))
for visitor in mute, rude:
    visitor.connect(os.environ['PURECM_FABRIC'] + '/exec')
socket.send_fds(rude, [bytes([255])], 3 * [os.open(os.devnull, os.O_WRONLY)])
subprocess.run(['{0}', 'exec', 'a', 'echo hello'], timeout=20)
\""""


def a_visitor_who_says_nothing_stops_no_host(build):
    """It connects to the socket of `fabric exec`, and sends no command, or what is no text."""
    said = lines(build, f"a:python3 -c {SILENT.format(hosts.FABRIC)}")
    assert said == ["hello"], said


def a_folder_that_others_may_change_is_refused(build):
    """They could put links in it, to what the fabric then overwrites."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        done = hosts.run_on_fabric(build, 20, "--dir", folder, "a:true")
    assert done.returncode == 2 and "other users may change what is in it" in done.stderr, done


def a_folder_that_others_may_read_lets_them_do_nothing(build):
    """Not even with an umask that makes all sockets theirs: commands would run as this user. Any
    user may connect to cmportd, as on a real host."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        theirs = f"find {folder} ! -type l -perm /o+w ! -name cmportd.sock; ls -l {folder}/pcap"
        done = hosts.run_on_fabric(build, 20, "--dir", folder, "--pcap", f"{folder}-pcap",
                                   f"a:{theirs}", prefix=["sh", "-c", 'umask 0; exec "$@"', "sh"])
        os.unlink(f"{folder}-pcap")
    assert done.stdout.startswith("-rw------- ") and done.stdout.count("\n") == 1, done


def a_process_with_the_environment_of_another_host_is_noticed(build):
    """Not so one in a network namespace of its own, as of a pod."""
    done = hosts.run_on_fabric(
        build, 20, "a:ibv_devices >/dev/null; PURECM_FABRIC=${PURECM_FABRIC%/*}/b ibv_devices "
        ">/dev/null; unshare -Urn ibv_devices >/dev/null || true", "b:ibv_devices >/dev/null")
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if "network" in line]
    assert said == ["fabric: PURECM_FABRIC says host b, but this process is in the network of host "
                    "a; \"purecm fabric exec b COMMAND\" runs a command on host b"], said


def a_name_of_tmpdir_that_is_long_is_in_nobodys_way(build):
    with tempfile.TemporaryDirectory(prefix=60 * "x") as folder:
        done = hosts.run_on_fabric(build, 20, "a&:rping -s -C 1", "a:rping -c -a 10.77.0.1 -C 1",
                                   env={**os.environ, "TMPDIR": folder})
        assert done.returncode == 0 and os.listdir(folder) == [], done


NO_MODULE = ("import netlink\n"
             "try: netlink.add_link('x', 'purecm-test')\n"
             "except netlink.Failure as failure: print(failure)")


def a_module_that_the_kernel_lacks_is_named_with_its_command(_):
    done = subprocess.run(["unshare", "-Urn", sys.executable, "-Bc", NO_MODULE],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(hosts.ROOT / "tools/fabric")})
    assert done.stdout.startswith("interface x: Operation not supported: the kernel has no module "
                                  "purecm-test; as the machine's root, `modprobe purecm-test` "
                                  "loads it"), done


TESTS = (
    a_module_that_the_kernel_lacks_is_named_with_its_command,
    address_beyond_has_a_route_that_ends_at_a_router,
    another_user_is_told_why_there_is_no_device,
    a_server_that_becomes_another_user_is_told_why_it_cannot_accept,
    a_process_with_the_environment_of_another_host_is_noticed,
    a_folder_that_others_may_read_lets_them_do_nothing,
    each_host_has_its_name_and_finds_the_others_by_theirs,
    the_device_node_can_be_read_and_written,
    sys_says_what_verbs_say,
    sys_lists_umad_by_port,
    without_mounts_programs_see_the_device_by_a_library,
    hosts_on_infiniband_can_share_a_network,
    sys_of_infiniband_has_its_lid,
    sys_says_whose_an_interface_is,
    sys_follows_the_port_and_the_device,
    addresses_are_read_when_there_are_descriptors_again,
    a_process_is_refused_where_there_is_no_descriptor,
    the_rest_of_sys_and_dev_stays,
    shared_memory_is_not_shared_between_hosts,
    tmp_is_a_hosts_own_if_that_is_wanted,
    a_command_runs_on_another_host_as_by_ssh,
    a_command_on_another_host_ends_with_who_started_it,
    a_host_that_there_is_not_runs_nothing,
    a_visitor_who_says_nothing_stops_no_host,
    a_folder_that_others_may_change_is_refused,
    a_name_of_tmpdir_that_is_long_is_in_nobodys_way,
)

if __name__ == "__main__":
    sys.exit(hosts.main(__doc__, TESTS))
