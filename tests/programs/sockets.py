# SPDX-License-Identifier: BSD-2-Clause
"""Programs that know only TCP, a Row each, with librspreload.so under both ends: those of table.py
with a number of bytes that must go by RDMA, as the device counts them."""
import textwrap

from row import A, Row

DATA = "/usr/share/common-licenses/GPL-3"
FOLDER = "/usr/share/common-licenses"
BYTES = 35149  # of it
CURL = f"curl -sSg -m 20 http://{A}:8000/GPL-3 | cmp - {DATA}"
HTTPD = f"exec python3 -m http.server --directory {FOLDER} --bind {A} 8000"
ECHO = f"exec socat TCP-LISTEN:8000,bind={A},fork EXEC:cat"
SAME = f"| cmp - {DATA}"


def own(name, text):
    """A command that writes a file of the host's own."""
    return f"cd $PURECM_FABRIC; cat >{name} <<'END'\n{textwrap.dedent(text).strip()}\nEND\n"


def sockets(name, package, server, client, said=(), bytes=BYTES, **more):  # noqa: A002
    return Row(name, package, server, client, said, by_rdma=bytes, **more)


def web(name, package, server, **more):
    """A web server with the folder."""
    return sockets(name, package, server, CURL, **more)


def fetch(name, package, client, said=(), **more):
    """A client of Python's web server."""
    return sockets(name, package, HTTPD, client, said, **more)


def script(name, package, command, server, client, end="", **more):
    """Two programs in one language: the client gets the data from the server."""
    return sockets(name, package, own(f"server{end}", server) + f"exec {command} server{end}",
                   own(f"client{end}", client) + f"{command} client{end} {SAME}", **more)


NGINX = f"""
    daemon off; master_process on; worker_processes 2; pid pid; error_log stderr;
    events {{ }}
    http {{ access_log off; sendfile on; tcp_nopush on;
           client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;
           uwsgi_temp_path t4; scgi_temp_path t5;
           server {{ listen {A}:8000 reuseport; root {FOLDER}; }} }}
"""
APACHE = f"""
    ServerName a
    Listen {A}:8000
    PidFile pid
    ErrorLog /dev/stderr
    DocumentRoot {FOLDER}
    LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
    LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
"""
LIGHTTPD = f"""
    server.bind = "{A}"
    server.port = 8000
    server.document-root = "{FOLDER}"
"""
HAPROXY = f"""
    defaults
      mode http
      timeout connect 5s
      timeout client 20s
      timeout server 20s
    listen web
      bind {A}:8000
      server one {A}:8001
"""
BACKEND = f"python3 -m http.server --directory {FOLDER} --bind {A} 8001 & "
RSYNCD = f"[it]\npath={FOLDER}\nuse chroot=no\n"
SSHD = f"""ssh-keygen -q -t ed25519 -N '' -f key; mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e \\
  -f /dev/null -p 8000 -o HostKey=$PWD/key -o AuthorizedKeysFile=$PWD/key.pub \\
  -o StrictModes=no -o PidFile=none -o ListenAddress={A}"""
SSH = f"""ssh -F /dev/null -i $PURECM_FABRIC/../a/key -o StrictHostKeyChecking=no \\
  -o UserKnownHostsFile=/dev/null -p 8000 {A} cat <{DATA} {SAME}"""
GIT = """git init -q it; cp {data} it/; cd it; git add .; git -c user.name=x -c user.email=x@x \\
  commit -qm x; cd ..; exec git daemon --export-all --base-path=$PWD --listen={a} --port=8000"""
CERTIFICATE = ("openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=a "
               "-days 2 2>/dev/null; ")
TLS = (f"(printf 'GET /GPL-3 HTTP/1.0\\r\\n\\r\\n'; sleep 1) | openssl s_client -quiet -connect "
       f"{A}:8000 2>/dev/null | tail -c {BYTES} {SAME}")
STUNNEL = f"""
    foreground = yes
    pid =
    [web]
    accept = {A}:8000
    connect = {A}:8001
    cert = cert
    key = key
"""
# The server of a database that root may not start.
PLAIN_USER = "exec unshare -U --map-user=1000 --map-group=1000 "
POSTGRES = f"""
    export PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    initdb -D db -A trust -U postgres --no-sync >/dev/null
    exec postgres -D db -p 8000 -c listen_addresses={A} -c unix_socket_directories= \\
      -c fsync=off
"""
# Trust is for other addresses, too.
OPEN_DB = f"sed -i 's/^exec/echo host all all 0.0.0.0\\/0 trust >>db\\/pg_hba.conf\\nexec/' run; "
PGBENCH = f"""
    set -e
    export PGHOST={A} PGPORT=8000 PGUSER=postgres
    PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    psql -qc 'drop table if exists t'
    pgbench -q -i postgres
    pgbench -n -c 4 -t 25 postgres
    psql -c 'create table t(n serial, v text)'
    psql -c "\\copy t(v) from '{DATA}' (format text)"
    psql -Atc 'select v from t order by n' {SAME}
"""
MEMCACHED = f"""
    import socket
    data = open({DATA!r}, 'rb').read()
    f = socket.create_connection(({A!r}, 8000)).makefile('rwb')
    f.write(b'set k 0 0 %d\\r\\n%s\\r\\nget k\\r\\n' % (len(data), data))
    f.flush()
    assert f.readline() == b'STORED\\r\\n'
    assert f.readline().startswith(b'VALUE')
    assert f.read(len(data)) == data
"""
BEANSTALK = f"""
    import socket
    data = open({DATA!r}, 'rb').read()
    f = socket.create_connection(({A!r}, 8000)).makefile('rwb')
    f.write(b'put 0 0 60 %d\\r\\n%s\\r\\nreserve\\r\\n' % (len(data), data))
    f.flush()
    assert f.readline().startswith(b'INSERTED')
    assert f.readline().startswith(b'RESERVED')
    assert f.read(len(data)) == data
"""
MOSQUITTO = f"listener 8000 {A}\nallow_anonymous true\n"

ASYNCIO = (f"""
    import asyncio
    async def serve(reader, writer):
        writer.write(open({DATA!r}, 'rb').read())
        await writer.drain()
        writer.close()
    async def main():
        async with await asyncio.start_server(serve, {A!r}, 8000) as server:
            await server.serve_forever()
    asyncio.run(main())
""", f"""
    import asyncio, sys
    async def main():
        reader, writer = await asyncio.open_connection({A!r}, 8000)
        sys.stdout.buffer.write(await reader.read())
    asyncio.run(main())
""")
MULTIPROCESSING = (f"""
    from multiprocessing.connection import Listener
    while True:
        with Listener(({A!r}, 8000)) as listener, listener.accept() as c:
            c.send(open({DATA!r}, 'rb').read())
            c.poll(20)
""", f"""
    import sys
    from multiprocessing.connection import Client
    sys.stdout.buffer.write(Client(({A!r}, 8000)).recv())
""")
JAVA_IO = (f"""
    import java.net.*; import java.nio.file.*;
    class Server {{ public static void main(String[] a) throws Exception {{
      ServerSocket s = new ServerSocket(8000, 9, InetAddress.getByName("{A}"));
      while (true) try (Socket c = s.accept()) {{
        c.getOutputStream().write(Files.readAllBytes(Path.of("{DATA}"))); }} }} }}
""", f"""
    import java.net.*;
    class Client {{ public static void main(String[] a) throws Exception {{
      new Socket("{A}", 8000).getInputStream().transferTo(System.out); System.out.flush(); }} }}
""")
JAVA_NIO = (f"""
    import java.net.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*;
    class Server {{ public static void main(String[] a) throws Exception {{
      ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of("{DATA}")));
      Selector all = Selector.open();
      ServerSocketChannel s = ServerSocketChannel.open().bind(new InetSocketAddress("{A}", 8000));
      s.configureBlocking(false).register(all, SelectionKey.OP_ACCEPT);
      while (true) {{
        all.select();
        for (SelectionKey k : all.selectedKeys())
          if (k.isAcceptable())
            s.accept().configureBlocking(false).register(all, SelectionKey.OP_WRITE,
                                                         data.duplicate());
          else {{
            ByteBuffer left = (ByteBuffer)k.attachment();
            ((SocketChannel)k.channel()).write(left);
            if (!left.hasRemaining()) k.channel().close();
          }}
        all.selectedKeys().clear(); }} }} }}
""", f"""
    import java.net.*; import java.nio.*; import java.nio.channels.*;
    class Client {{ public static void main(String[] a) throws Exception {{
      SocketChannel c = SocketChannel.open(new InetSocketAddress("{A}", 8000));
      ByteBuffer b = ByteBuffer.allocate(4096);
      while (c.read(b.clear()) >= 0) System.out.write(b.array(), 0, b.position());
      System.out.flush(); }} }}
""")
NODE = (f"""
    const fs = require('fs');
    require('net').createServer(c => fs.createReadStream('{DATA}').pipe(c)).listen(8000, '{A}');
""", f"""
    require('net').connect(8000, '{A}').pipe(process.stdout);
""")
PERL = (f"""
    use IO::Socket::INET; use File::Copy;
    my $s = IO::Socket::INET->new(LocalAddr => '{A}:8000', Listen => 9, ReuseAddr => 1) or die;
    while (my $c = $s->accept) {{ copy('{DATA}', $c); close $c; }}
""", f"""
    use IO::Socket::INET; use File::Copy;
    copy(IO::Socket::INET->new('{A}:8000') || die, \\*STDOUT);
""")
RUBY = (f"""
    require 'socket'
    s = TCPServer.new('{A}', 8000)
    loop {{ Thread.new(s.accept) {{ |c| IO.copy_stream('{DATA}', c); c.close }} }}
""", f"""
    require 'socket'
    IO.copy_stream(TCPSocket.new('{A}', 8000), $stdout)
""")
TCL = (f"""
    proc serve {{c host port}} {{
      set f [open {DATA} rb]; fconfigure $c -translation binary; fcopy $f $c; close $c; close $f }}
    socket -server serve -myaddr {A} 8000
    vwait forever
""", f"""
    set c [socket {A} 8000]; fconfigure $c -translation binary
    fconfigure stdout -translation binary; fcopy $c stdout
""")
GUNICORN = f"""
    def app(environ, start):
        start('200 OK', [])
        return [open({DATA!r}, 'rb').read()]
"""

ROWS = (
    fetch("curl", "curl", CURL, plain=True),
    fetch("wget", "wget", f"wget -qO- http://{A}:8000/GPL-3 {SAME}"),
    fetch("aria2c", "aria2", "cd $PURECM_FABRIC; aria2c -q --file-allocation=none -o got "
          f"http://{A}:8000/GPL-3 && cmp got {DATA}"),
    fetch("axel", "axel", f"cd $PURECM_FABRIC; axel -q -n1 -o got http://{A}:8000/GPL-3 && "
          f"cmp got {DATA}"),
    fetch("ab", "apache2-utils", f"ab -q -n 20 -c 4 http://{A}:8000/GPL-3",
          ((r"^Complete requests: +20$", 1), (r"^Failed requests: +0$", 1)), plain=True),
    fetch("siege", "siege", f"HOME=$PURECM_FABRIC siege -q -b -c2 -r5 http://{A}:8000/GPL-3 && "
          "echo sieged", ((r"sieged", 1),)),
    web("lighttpd", "lighttpd", own("conf", LIGHTTPD) + "exec lighttpd -D -f conf", plain=True),
    web("nginx with two workers", "nginx-light",
        own("conf", NGINX) + "exec nginx -p $PWD -e stderr -c $PWD/conf", plain=True),
    web("apache2 (mpm_event)", "apache2-bin",
        own("conf", APACHE) + "exec apache2 -DFOREGROUND -d $PWD -f $PWD/conf"),
    web("haproxy", "haproxy", BACKEND + own("conf", HAPROXY) + "exec haproxy -f conf"),
    web("varnishd", "varnish", BACKEND + "cd $PURECM_FABRIC; exec varnishd -F -j none "
        f"-n $PWD/v -a {A}:8000 -b {A}:8001"),
    web("php -S", "php-cli", f"exec php -S {A}:8000 -t {FOLDER}"),
    web("gunicorn with two workers", "gunicorn", own("app.py", GUNICORN) +
        f"exec gunicorn -w 2 --worker-tmp-dir $PWD -b {A}:8000 app:app"),
    sockets("wrk", "wrk nginx-light", own("conf", NGINX) +
            "exec nginx -p $PWD -e stderr -c $PWD/conf",
            f"wrk -t1 -c8 -d1 http://{A}:8000/GPL-3", ((r"requests in", 1),),
            figure=r"^Requests/sec: +(\S+)", unit="requests/s"),
    sockets("h2load and nghttpd", "nghttp2-client nghttp2-server",
            f"exec nghttpd --no-tls -a {A} -d {FOLDER} 8000",
            f"h2load -n 50 -c 5 http://{A}:8000/GPL-3", ((r"50 succeeded, 0 failed", 1),)),
    sockets("iperf3", "iperf3", f"exec iperf3 -s -p 8000 -B {A}",
            f"iperf3 -c {A} -p 8000 -n 8M", ((r"iperf Done", 1),), bytes=8 << 20, plain=True),
    sockets("iperf", "iperf", f"exec iperf -s -p 8000 -B {A}",
            f"iperf -c {A} -p 8000 -n 8M", ((r"Bytes ", 1),), bytes=8 << 20),
    sockets("sockperf", "sockperf", f"exec sockperf server --tcp -i {A} -p 8000",
            f"sockperf ping-pong --tcp -i {A} -p 8000 -t 1 --data-integrity",
            ((r"Summary: Latency", 1),), figure=r"Latency is (\S+) usec", unit="µs"),
    sockets("redis", "redis-server redis-tools", f"exec redis-server --bind {A} --port 8000 "
            "--save '' --protected-mode no --dir $PURECM_FABRIC",
            f"redis-cli -h {A} -p 8000 -x set k <{DATA} && redis-cli -h {A} -p 8000 --raw get k "
            f"| head -c {BYTES} {SAME}", plain=True),
    sockets("redis-benchmark", "redis-server redis-tools", f"exec redis-server --bind {A} --port "
            "8000 --save '' --protected-mode no --dir $PURECM_FABRIC",
            f"redis-benchmark -h {A} -p 8000 -n 5000 -P 8 -t get -q | tr '\\r' '\\n'",
            ((r"GET: .* requests", 1),), figure=r"GET: (\S+) requests", unit="requests/s"),
    sockets("memcached", "memcached", f"exec memcached -u root -l {A} -p 8000",
            own("client", MEMCACHED) + "python3 client", plain=True),
    sockets("beanstalkd", "beanstalkd", f"exec beanstalkd -z 100000 -l {A} -p 8000",
            own("client", BEANSTALK) + "python3 client"),
    sockets("PostgreSQL with pgbench", "postgresql-15 postgresql-contrib",
            own("run", POSTGRES) + OPEN_DB + PLAIN_USER + "sh run", own("run", PGBENCH) + "sh run",
            ((r"processed: 100/100", 1),), figure=r"^tps = (\S+)", unit="transactions/s"),
    sockets("mariadb", "mariadb-server mariadb-client",
            "cd $PURECM_FABRIC; mariadb-install-db --no-defaults --user=root --datadir=$PWD/db "
            "--auth-root-authentication-method=normal --skip-test-db >/dev/null; "
            f"exec mariadbd --no-defaults --user=root --datadir=$PWD/db --bind-address={A} "
            "--port=8000 --socket=$PWD/s --skip-grant-tables --skip-name-resolve",
            f"(echo -n \"select x'\"; xxd -p {DATA} | tr -d '\\n'; echo \"'\") | mariadb -h {A} "
            f"-P 8000 --raw -N | head -c {BYTES} {SAME}"),
    sockets("mosquitto and its clients", "mosquitto mosquitto-clients",
            own("conf", MOSQUITTO) + "exec mosquitto -c conf",
            f"cd $PURECM_FABRIC; mosquitto_pub -h {A} -p 8000 -t x -r -q 1 -f {DATA} && "
            f"mosquitto_sub -h {A} -p 8000 -t x -C 1 -N -q 1 {SAME}", plain=True),
    sockets("ssh and sshd", "openssh-server", f"cd $PURECM_FABRIC; {SSHD}", SSH, as_root=True),
    sockets("rsync", "rsync", own("conf", RSYNCD) + "exec rsync --daemon --no-detach --config conf "
            f"--address {A} --port 8000", f"cd $PURECM_FABRIC; rsync rsync://{A}:8000/it/GPL-3 got "
            f"&& cmp got {DATA}", bytes=12000),
    sockets("git daemon", "git", "cd $PURECM_FABRIC; export HOME=$PWD; " +
            GIT.format(data=DATA, a=A), "cd $PURECM_FABRIC; rm -rf it; "
            f"git clone -q git://{A}:8000/it && cmp it/GPL-3 {DATA}", bytes=12000),
    sockets("nc", "netcat-openbsd", f"exec nc -k -l {A} 8000 <{DATA}",
            f"nc -d {A} 8000 | head -c {BYTES} {SAME}", plain=True),
    # At an end of file from the client, ncat -e forgets what its program has not yet written.
    sockets("ncat", "ncat", f"exec ncat -k -l {A} 8000 -e '/bin/cat {DATA}'",
            f"ncat --recv-only {A} 8000 {SAME}"),
    sockets("socat with fork", "socat", ECHO, f"socat -t 20 - TCP:{A}:8000 <{DATA} {SAME}",
            plain=True),
    sockets("openssl s_server and s_client", "openssl", f"cd $PURECM_FABRIC; {CERTIFICATE} "
            f"cp {DATA} .; exec openssl s_server -accept {A}:8000 -cert cert -key key -WWW", TLS,
            plain=True),
    sockets("stunnel", "stunnel4", BACKEND + "cd $PURECM_FABRIC; " + CERTIFICATE +
            own("conf", STUNNEL) + "exec stunnel4 conf", TLS),
    sockets("tinyproxy", "tinyproxy-bin", own("conf", f"Port 8000\nListen {A}\n") +
            BACKEND + "exec tinyproxy -d -c conf",
            f"curl -sSg -m 20 -x {A}:8000 http://{A}:8001/GPL-3 {SAME}"),
    sockets("nbdkit and nbdcopy", "nbdkit libnbd-bin",
            f"exec nbdkit -f -i {A} -p 8000 -r file {DATA}",
            f"nbdcopy nbd://{A}:8000 - | head -c {BYTES} {SAME}", bytes=30000),
    script("asyncio", "python3", "python3", *ASYNCIO, plain=True),
    script("multiprocessing", "python3", "python3", *MULTIPROCESSING, plain=True),
    script("java.net", "openjdk-17-jdk-headless", "java", *JAVA_IO, end=".java"),
    script("java.nio", "openjdk-17-jdk-headless", "java", *JAVA_NIO, end=".java"),
    script("node", "nodejs", "node", *NODE),
    script("perl", "perl", "perl", *PERL, plain=True),
    script("ruby", "ruby", "ruby", *RUBY),
    script("tcl", "tcl", "tclsh", *TCL),
)

# What has no row, and why.
ABSENT = (
    ("programs in Go", "They make system calls without the C library."),
    ("rabbitmq, samba, nfs-ganesha, distcc, icecc, dask, php-fpm", "Not tried."),
)
