#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Plays two programs of perftest, ib_OP_bw and ib_OP_lat, with each service and option that they
# take: OP FABRIC, on host b; a server runs on host a. They refuse rdma_cm with UC and XRC, inline
# data with reads and atomics, and events and shared receive queues with writes. Prints a line for
# each, and "N passed, N failed".
op=$1 fabric=$2 passed=0 failed=0
cd "$PURECM_FABRIC" || exit

# A client that comes before its server listens, or by rdma_cm before it listens again, tries again.
early="Couldn't connect\|Unexpected CM event\|Failed to exchange\|Unable to open file descriptor"

play() {
	"$fabric" exec a "timeout 120 $*" </dev/null >server 2>&1 &
	for _ in $(seq 50); do
		timeout 120 "$@" 10.77.0.1 </dev/null >client 2>&1
		status=$?
		if [ $status = 0 ] || ! grep -q "$early" client; then break; fi
		sleep 0.2
	done
	[ $status = 0 ] || kill $!
	wait $! || status="$status, its server $?"
	if [ "$status" = 0 ]; then
		echo "ok   $*"
		passed=$((passed + 1))
	else
		echo "FAIL $*: status $status: $(tail -n 3 client server)"
		failed=$((failed + 1))
	fi
}

case $op in
send) services="RC UC UD XRC" ;;
write) services="RC UC XRC" ;;
*) services="RC XRC" ;;
esac
for service in $services; do
	for kind in bw lat; do
		options="-g0 -m1024 -D1 --use_old_post_send"
		# By XRC this program waits where its peer does not write.
		[ $op$kind$service = writelatXRC ] || options="$options --mr_per_qp"
		case $op in send | write) options="$options -I0" ;; esac
		[ $op = write ] || options="$options -e"
		[ $op = atomic ] || options="$options -a"
		case $service in RC | UD) options="$options -R -z" ;; esac
		[ $op$service = sendRC ] || [ $op$service = sendUD ] && options="$options --use-srq"
		[ $kind = bw ] && options="$options -b -q4 -l4 -t16 -Q1 -N" || options="$options -U"
		for option in $options; do
			set -- ib_${op}_$kind -d fab0 -F -c $service
			case $option in -R | -z) ;; *) set -- "$@" -x 1 ;; esac
			[ $option = -a ] || [ $op = atomic ] || set -- "$@" -s 1024
			case $option in
			-D1) ;;
			-a) set -- "$@" -n 20 ;;
			*) set -- "$@" -n 100 ;;
			esac
			[ $option = -g0 ] || set -- "$@" $option
			play "$@"
		done
	done
done
echo "$passed passed, $failed failed"
