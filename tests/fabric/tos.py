#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The type of service of connections, as IP packets of a fabric's RoCE v2 carry it: from the option
of an id, from PURECM_TOS, and from what root has set for the port, which cmportd reads again.

Prints what fails and then "N passed, N failed, N skipped".
"""
import os
from pathlib import Path
import re
import shutil
import sys
import tempfile

from hosts import Skip, main, run_on_fabric

LIMIT_S = 60
CAPTURE = ("b&:exec tcpdump -l -nn -v -i fab0 'src 10.77.0.1 and udp dst port 4791' "
           ">$PURECM_FABRIC/seen 2>$PURECM_FABRIC/begun")
CAPTURES = "until grep -q listening $PURECM_FABRIC/../b/begun; do sleep 0.1; done; "
LAST_IS_SEEN = ("until grep -q 'tos 0x2[0-3]' $PURECM_FABRIC/../b/seen; do sleep 0.1; done; "
                "cat $PURECM_FABRIC/../b/seen; ")
SERVER = "b&:while :; do ucmatose >/dev/null; done"
CLIENT = ("for i in $(seq 100); do {} ucmatose -s 10.77.0.2 {} >/dev/null && break; sleep 0.1; "
          "done")
PORTS = "{}/ports"
# How the client asks for it, and what packets have then; the two bits of congestion are others'.
# Packets without a type of service are the hosts' own, of no connection.
DSCP = 0xfc
ASKED = (("", "", 106), ("PURECM_TOS=16", "", 16), ("PURECM_TOS=16", "-t 48", 48),
         (f"echo '* * default_roce_tos=32' >{PORTS}; kill -HUP $P;", "", 32))


def packets_have_the_type_of_service_that_was_asked_for(build):
    if os.geteuid():
        raise Skip("only root may capture\n")
    if not (shutil.which("tcpdump") and shutil.which("ucmatose")):
        raise Skip("tcpdump and rdmacm-utils are not both installed\n")
    with tempfile.TemporaryDirectory() as folder:
        Path(PORTS.format(folder)).write_text("fab0 1 default_roce_tos=106\n", encoding="ascii")
        clients = "; ".join(CLIENT.format(before.format(folder), option)
                            for before, option, _ in ASKED)
        done = run_on_fabric(
            build, LIMIT_S, "--wire", "roce", "--gap", "0", CAPTURE, SERVER,
            f"a:{CAPTURES}{build}/tools/cmportd/cmportd --ports {PORTS.format(folder)} & P=$!; "
            f"until [ -S $PURECM_SOCKET ]; do sleep 0.1; done; {clients}; {LAST_IS_SEEN}kill $P")
    seen = list(dict.fromkeys(int(tos, 16) & DSCP
                              for tos in re.findall(r"tos 0x([0-9a-f]+)", done.stdout)))
    seen = [tos for tos in seen if tos]
    assert seen == [tos & DSCP for _, _, tos in ASKED], (seen, done.stdout[-2000:], done.stderr)


TESTS = (packets_have_the_type_of_service_that_was_asked_for,)

if __name__ == "__main__":
    sys.exit(main(__doc__, TESTS))
