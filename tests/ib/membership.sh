#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Two members of a group on one host: one is killed, the subnet manager is replaced, the other is
# killed. Run by programs.py on host b of a soft fabric, which notes who is in a group in files.
#
#   membership.sh FABRIC_PROGRAM
fabric=$PURECM_FABRIC/../..
mark=$PURECM_FABRIC/mark

await() {
	for _ in $(seq 100); do
		"$@" && return
		sleep 0.1
	done
	echo "in vain: $*"
	exit 1
}

is_member() { ls "$fabric"/joined/*/b.1 >/dev/null 2>&1; }
is_no_member() { ! is_member; }
is_member_anew() { [ -n "$(find "$fabric"/joined -name b.1 -newer "$mark")" ]; }
has_joined() { grep -q 'joined dgid' "$PURECM_FABRIC/$1"; }

stdbuf -oL mckey -m 239.1.1.1 -b 10.77.0.2 >"$PURECM_FABRIC/one" &
one=$!
stdbuf -oL mckey -m 239.1.1.1 -b 10.77.0.2 >"$PURECM_FABRIC/two" &
two=$!
await has_joined one
await has_joined two
kill -9 $one
sleep 0.3
is_member && echo "one is left"
touch "$mark"
sleep 0.1
"$1" sm --dir "$fabric"
await is_member_anew
echo "joined anew"
kill -9 $two
await is_no_member
echo "none is left"
