# SPDX-License-Identifier: BSD-2-Clause
"""Programs that know nothing of RDMA, with the preload library: rows for programs.py."""
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The preload library is in a folder of the library's.
PRELOAD = ("LD_PRELOAD=$(find $(echo $LD_LIBRARY_PATH | tr : ' ') "
           "-path '*/rsocket/librspreload.so' | head -1)")
PLAIN_SERVER = ("import socket; s = socket.create_server(('10.77.0.1', 8000)); "
                "c = s.accept()[0]; c.send(b'hello'); c.recv(1)")
PLAIN_CLIENT = ("import socket; c = socket.create_connection(('10.77.0.1', 8000)); "
                "print(c.recv(9))")
FORKING = ROOT / "tests/lab/forking.py"
DUPLICATE = ("import os, socket; c = socket.create_connection(('10.77.0.1', 8000)); "
             "os.dup2(c.fileno(), 100); c.close(); print(os.read(100, 9))")
# A process that was there before the connection serves it.
POOL_SERVER = """
import multiprocessing, socket
def serve(connections):
    c = connections.get()
    c.send(b'hello')
    c.recv(1)
connections = multiprocessing.Queue()
process = multiprocessing.Process(target=serve, args=(connections,))
process.start()
connections.put(socket.create_server(('10.77.0.1', 8000)).accept()[0])
process.join()
"""
# There is no descriptor 999: the other one stays what it is.
NO_DUPLICATE = """
import os, socket
c = socket.create_connection(('10.77.0.1', 8000))
try:
    os.dup2(999, c.fileno())
except OSError as error:
    print('errno', error.errno)
print(c.recv(9))
"""
# The TCP socket that holds the same port is no business of this one's.
BOUND = """
import select, socket
c = socket.socket()
c.bind(('10.77.0.2', 0))
c.setblocking(False)
c.connect_ex(('10.77.0.1', 8000))
epoll = select.epoll()
epoll.register(c, select.EPOLLOUT)
assert [events for _, events in epoll.poll()] == [select.EPOLLOUT]
epoll.modify(c, select.EPOLLIN)
assert [events for _, events in epoll.poll()] == [select.EPOLLIN]
poll = select.poll()
poll.register(c, select.POLLIN)
assert [events for _, events in poll.poll()] == [select.POLLIN]
print(c.recv(9))
assert poll.poll(0) == []
"""
# An epoll descriptor can be waited for itself, and may then wake for a completion without data.
NESTED = """
import select, socket
c = socket.create_connection(('10.77.0.1', 8000))
epoll = select.epoll()
epoll.register(c, select.EPOLLIN)
outer = select.poll()
outer.register(epoll, select.POLLIN)
found = []
while not found:
    assert outer.poll(20000) == [(epoll.fileno(), select.POLLIN)]
    found = epoll.poll(0)
assert found == [(c.fileno(), select.EPOLLIN)]
print(c.recv(9))
while outer.poll(0):
    assert epoll.poll(0) == []
"""
TWICE_SERVER = """
import socket
s = socket.create_server(('10.77.0.1', 8000))
for _ in range(2):
    c = s.accept()[0]
    c.send(b'hello')
    c.recv(1)
"""
# Both kinds of clients come to a listener that was added before it listened.
WATCHED = """
import select, socket
s = socket.socket()
epoll = select.epoll()
epoll.register(s, select.EPOLLIN)
s.bind(('10.77.0.1', 8000))
s.listen()
assert epoll.poll()
c = s.accept()[0]
c.send(b'hello')
c.recv(1)
"""
# The second connection has TCP at once, as the first has found no answer; it is in an epoll before.
MUTE = """
import select, socket
socket.create_connection(('10.77.0.1', 8000)).recv(9)
c = socket.socket()
c.setblocking(False)
epoll = select.epoll()
epoll.register(c, select.EPOLLOUT)
c.connect_ex(('10.77.0.1', 8000))
assert epoll.poll(20) == [(c.fileno(), select.EPOLLOUT)]
epoll.modify(c, select.EPOLLIN)
assert epoll.poll(20) == [(c.fileno(), select.EPOLLIN)]
print(c.recv(9))
"""
# Many at once, set up without waiting for any; the server greets when all are there.
CROWD_SERVER = """
import socket
s = socket.create_server(('10.77.0.1', 8000), backlog=8)
crowd = [s.accept()[0] for _ in range(8)]
for c in crowd:
    c.send(b'hello')
for c in crowd:
    c.recv(1)
"""
CROWD_CLIENT = """
import asyncio
async def greet():
    reader, writer = await asyncio.open_connection('10.77.0.1', 8000)
    said = await reader.readexactly(5)
    writer.close()
    return said
async def crowd():
    return await asyncio.gather(*(greet() for _ in range(8)))
print(f'{len(asyncio.run(crowd()))} greeted')
"""
SIZES = ("import socket; s = socket.socket(); "
         "print(*(s.getsockopt(0x10000, i) for i in range(3)))")
# What happens to a device between two connections; both are made, and one is RDMA's.
CHANGE = """
import os, socket, subprocess, sys
for what in ('true', sys.argv[1]):
    subprocess.run([what], shell=True, check=True, env=dict(os.environ, LD_PRELOAD=''))
    c = socket.create_connection(('10.77.0.1', 8000))
    print(c.recv(9), flush=True)
    c.close()
"""
FABRIC = ROOT / "tools/fabric/fabric"


def change(what, *said):
    """A client, and what changes in its fabric; "a": the server's host, "b": its own."""
    return (f"a preloaded client of two connections, and between them: {what}",
            f'{PRELOAD} python3 -c "{TWICE_SERVER}"',
            f"PURECM_LOG=debug {PRELOAD} python3 -c \"{CHANGE}\" '{FABRIC} "
            f"{what.replace(' ', ' --dir $PURECM_FABRIC/../.. ', 1)}' 2>&1 "
            "| grep -o \"CONNECTING -> OPEN\\|preload: .*\\|b'hello'\" | sort | uniq -c",
            ("1 CONNECTING -> OPEN", "2 b'hello'", *said))


PRELOADED = (
    change("port b down", "preload: TCP to 10.77.0.1 port 8000: No such device"),
    change("port a down", "preload: TCP to 10.77.0.1 port 8000: Connection timed out"),
    change("remove b"),
    change("remove a", "preload: TCP to 10.77.0.1 port 8000: Connection timed out"),
    ("sizes of preloaded sockets", f'RS_SQ_SIZE=99 RS_RQ_SIZE=33 {PRELOAD} python3 -c "{SIZES}"',
     f'RS_INLINE=0 {PRELOAD} python3 -c "{SIZES}"', ("a| 99 33 64", "b| 384 384 0")),
    ("a preloaded server that forks, and 16 clients",
     f"{PRELOAD} python3 {FORKING} server 10.77.0.1 16",
     f"PURECM_LOG=debug {PRELOAD} python3 {FORKING} client 10.77.0.1 16 "
     "2>&1 | grep -o 'CONNECTING -> OPEN\\|preload: .*\\|forked .*' | sort | uniq -c",
     ("16 CONNECTING -> OPEN", "1 forked 16")),
    ("a preloaded server of multiprocessing", f'{PRELOAD} python3 -c "{POOL_SERVER}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{PLAIN_CLIENT}" 2>&1',
     ("CONNECTING -> OPEN", "b| b'hello'")),
    ("a preloaded socket that is duplicated", f'{PRELOAD} python3 -c "{PLAIN_SERVER}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{DUPLICATE}" 2>&1',
     ("CONNECTING -> OPEN", "b| b'hello'")),
    ("a preloaded socket that cannot be duplicated", f'{PRELOAD} python3 -c "{PLAIN_SERVER}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{NO_DUPLICATE}" 2>&1',
     ("CONNECTING -> OPEN", "b| errno 9", "b| b'hello'")),
    ("a preloaded socket that is bound, and an epoll", f'{PRELOAD} python3 -c "{PLAIN_SERVER}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{BOUND}" 2>&1',
     ("CONNECTING -> OPEN", "b| b'hello'")),
    ("a preloaded socket in an epoll in a poll", f'{PRELOAD} python3 -c "{PLAIN_SERVER}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{NESTED}" 2>&1',
     ("CONNECTING -> OPEN", "b| b'hello'")),
    ("a preloaded listener in an epoll, RDMA", f'{PRELOAD} python3 -c "{WATCHED}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{PLAIN_CLIENT}" 2>&1',
     ("CONNECTING -> OPEN", "b| b'hello'")),
    ("a preloaded listener in an epoll, TCP", f'{PRELOAD} python3 -c "{WATCHED}"',
     f'python3 -c "{PLAIN_CLIENT}"', ("b| b'hello'",)),
    ("a preloaded asyncio client, and a host that knows nothing of RDMA",
     f'python3 -c "{CROWD_SERVER}"', f'{PRELOAD} python3 -c "{CROWD_CLIENT}"', ("b| 8 greeted",)),
    ("a preloaded socket in an epoll, and a host that knows nothing of RDMA",
     f'python3 -c "{TWICE_SERVER}"', f'{PRELOAD} python3 -c "{MUTE}"', ("b| b'hello'",)),
    ("a preloaded asyncio client, and a host that refuses it",
     f'rping -s & python3 -c "{CROWD_SERVER}"; kill $!',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{CROWD_CLIENT}" 2>&1', ("b| 8 greeted",)),
    ("a preloaded asyncio client, and a preloaded server", f'{PRELOAD} python3 -c "{CROWD_SERVER}"',
     f'PURECM_LOG=debug {PRELOAD} python3 -c "{CROWD_CLIENT}" 2>&1 '
     "| grep -o 'CONNECTING -> OPEN\\|preload: .*\\|.* greeted' | sort | uniq -c",
     ("8 CONNECTING -> OPEN", "1 8 greeted")),
)

# What knows nothing of RDMA: how it serves, what it fetches and that it was the same. Others are in
# tests/programs/sockets.py.
DATA = "/usr/share/common-licenses/GPL-3"
UNCHANGED = (
    ("curl", "exec python3 -m http.server --directory /usr/share/common-licenses "
     "--bind 10.77.0.1 8000 2>&1", "curl -sSg -m 20 http://10.77.0.1:8000/GPL-3 | cmp - " + DATA),
    # It forks for each connection.
    ("socat", "exec socat TCP-LISTEN:8000,bind=10.77.0.1,fork EXEC:cat",
     f"socat -t 20 - TCP:10.77.0.1:8000 <{DATA} | cmp - {DATA}"),
)
ENDS = ((True, True), (True, False), (False, True))  # server, client
