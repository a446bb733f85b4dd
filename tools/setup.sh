# SPDX-License-Identifier: BSD-2-Clause
# What tools/check and tools/install need before they can begin: packages and a build. Sourced by
# both, after they have changed to the root of the checkout. bash, because nothing else can be
# counted on yet.
#
# shellcheck shell=bash disable=SC2034,SC2154
#
# $setup_name names the caller in messages. A step that fails says what failed and what to do, and
# ends the caller with status 1.

export DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export HOME=${HOME:-/root} PATH=$PATH:/usr/sbin:/sbin
umask 022 # tests are other users, too

build_packages=(gcc libc6-dev pkg-config meson ninja-build python3 check
	libibverbs-dev libibumad-dev libnl-3-dev libnl-route-3-dev libpcap-dev libncurses-dev
	libdeflate-dev zlib1g-dev libseccomp-dev libmicrohttpd-dev)
device_packages=(ibverbs-providers rdmacm-utils)
lab_packages=("${device_packages[@]}" qemu-system-x86 busybox-static util-linux kmod iproute2
	procps tcpdump ibverbs-utils zstd mmdebstrap)
test_packages=(g++ binutils abigail-tools librdmacm-dev perftest qperf python3-pyverbs tshark
	python3-pytest python3-jsonschema clang-format systemd valgrind mandoc chromium opensm ibsim-utils
	infiniband-diags libumad2sim0 curl iperf3 netcat-openbsd rsync socat openssh-server nftables
	prometheus reuse ucx-utils
	gcc-s390x-linux-gnu libc6-dev-s390x-cross gcc-i686-linux-gnu libc6-dev-i386-cross
	qemu-user-static)
# Programs and machines that only `tools/check --long` plays: tests/programs/table.py,
# tests/machines/machines.py, tests/tools/screenshot.py, tests/docs/site.py, tests/packaging,
# tests/certify.
long_packages=(libfabric-bin fio dapl2-utils openmpi-bin python3-mpi4py netpipe-openmpi
	netpipe-mpich2 mpich libgloo-dev librpma-dev srptools gcc-aarch64-linux-gnu
	libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross musl-tools
	automake libtool libiscsi-bin wireshark xvfb xdotool imagemagick mkdocs git rpm
	openssh-client openssh-server)
fuzz_packages=(clang libclang-rt-14-dev)

# fail WHAT ADVICE: a sentence each.
fail() {
	printf '\n%s: %s\n%s\n' "$setup_name" "$1" "$2" >&2
	exit 1
}

# row NAME TEXT [SECONDS]: one line of progress.
row() {
	if [ $# -gt 2 ]; then
		printf "  %-9s %-62s%7s s\n" "$1" "$2" "$3"
	else
		printf "  %-9s %s\n" "$1" "$2"
	fi
}

# seconds_since EPOCHREALTIME: with one decimal.
seconds_since() {
	local us=$((${EPOCHREALTIME/[.,]/} - ${1/[.,]/}))
	printf '%d.%d' $((us / 1000000)) $((us / 100000 % 10))
}

# say_now STARTED: every 30 s how long it takes, and the last line of what is in descriptor 9.
say_now() {
	while sleep 30 >&- 2>&- && kill -0 $$; do # holds no pipe open, and ends with us
		row "" "$(tail -n 1 /dev/fd/9 | tr -d '\r' | cut -c 1-62)" "$(seconds_since "$1")"
	done
}

# quietly WHAT ADVICE COMMAND...: runs it; the end of its output is shown only if it fails. What is
# slow ($is_slow) shows how far it is.
quietly() {
	local what=$1 advice=$2 log saying='' status=0
	shift 2
	log=$(mktemp) || fail "no temporary file can be made." "Make room in ${TMPDIR:-/tmp}."
	exec 9<>"$log"
	rm -f "$log" # the open descriptor keeps it until we end, however we end
	if [ -n "${is_slow:-}" ]; then
		say_now "$EPOCHREALTIME" &
		saying=$!
	fi
	"$@" >&9 2>&1 </dev/null || status=$?
	[ -z "$saying" ] || kill "$saying"
	if [ "$status" != 0 ]; then
		printf '\n' >&2
		tail -n 40 /dev/fd/9 >&2
		fail "$what" "$advice"
	fi
	exec 9>&-
}

# missing PACKAGE...: prints those that are not installed.
missing() {
	local package installed
	installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" 2>/dev/null)"
	for package; do
		[[ $installed == *" installed:$package "* ]] || printf '%s ' "$package"
	done
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n -- env DEBIAN_FRONTEND=noninteractive "$@"
	fi
}

# need_root WHY ADVICE: at a terminal sudo asks for the password.
need_root() {
	[ "$(id -u)" != 0 ] || return 0
	command -v sudo >/dev/null || fail "$1, this user is not root, and there is no sudo." "$2"
	if [ -t 0 ] && [ -t 2 ]; then
		sudo -v || fail "$1, and sudo refuses." "$2"
	else
		sudo -n true 2>/dev/null ||
			fail "$1, and neither root nor sudo without a password is at hand." "$2"
	fi
}

# The lab's kernel comes from apt too, so with $wants_lists they are wanted even if no package is.
have_lists() {
	compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null
}

# may_install: whether packages may be installed: $setup_asks is empty, or the user says so.
may_install() {
	local answer
	[ -n "${setup_asks:-}" ] || return 0
	[ -t 0 ] && [ -t 1 ] || return 1
	read -r -p "  Have apt fetch them? [y/N] " answer
	[[ $answer == [yY]* ]]
}

# install_packages PACKAGE...: installs what is missing, with what is needed for that.
install_packages() {
	local started=$EPOCHREALTIME wanted lack command
	command -v dpkg-query apt-get >/dev/null ||
		fail "this is no Debian: there is no apt-get to install packages with." \
			"Install what these packages hold, then use meson and ninja by hand: $*"
	wanted=$(missing "$@")
	if [ -z "$wanted" ] && { [ -z "${wants_lists:-}" ] || have_lists; }; then
		row install "nothing is missing" "$(seconds_since "$started")"
		return
	fi
	if [ -n "$wanted" ]; then
		row install "packages missing: $(wc -w <<<"$wanted"); a minute or two"
		lack="these packages are missing: $wanted"
	else
		row install "package lists"
		lack="apt has no lists of packages, of which the lab's kernel is one."
	fi
	command="apt-get update${wanted:+ && apt-get install --no-install-recommends $wanted}"
	may_install || fail "$lack" "Get them with $setup_name --setup, or as root: $command"
	need_root "${lack%%[:.]*}" "As root: $command"
	quietly "the package lists could not be fetched." \
		"Is the network up, and are /etc/apt/sources.list* right?" \
		as_root apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update
	# shellcheck disable=SC2086 # words on purpose
	[ -z "$wanted" ] || quietly "these packages could not be installed: $wanted" \
		"See above what apt says; mend it, and run $setup_name again." \
		as_root apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
		install -y --no-install-recommends $wanted
	newly_installed=1
	row install "done" "$(seconds_since "$started")"
}

# use_system_python: puts the Python that Debian's packages are for first in the path. The scripts
# by which a version manager chooses another one take ten times as long to start.
use_system_python() {
	[[ $(type -P python3) != /usr/bin/* && -x /usr/bin/python3 ]] || return
	mkdir -p build/python && ln -sf /usr/bin/python3 build/python/ && PATH=$PWD/build/python:$PATH
}

# is_of_here FOLDER: whether a folder was configured in this checkout. Meson writes absolute paths,
# so a folder that was copied or moved tests the original.
is_of_here() {
	python3 - "$1" <<'END'
import json, os, sys
with open(f"{sys.argv[1]}/meson-info/meson-info.json", encoding="utf-8") as info:
    sys.exit(json.load(info)["directories"]["build"] != os.path.realpath(sys.argv[1]))
END
}

# begin_builds: locks the folder build until this run ends; otherwise a second run would rebuild
# what this one tests.
begin_builds() {
	mkdir -p build && exec 8>>build/.lock ||
		fail "$PWD/build is not this user's." "Remove it, or become the user whose it is."
	flock -n 8 && return
	row build "another run in this checkout has to end first"
	flock 8
}

# build_in FOLDER TARGETS [MESON_OPTION...]: configures once, then builds what changed; all if
# TARGETS is empty, what suite unit needs if it is "needed". The build ends with this script.
build_in() {
	local folder=$1 targets=$2 started=$EPOCHREALTIME with=(setpriv --pdeathsig TERM --)
	shift 2
	if [ -e "$folder/build.ninja" ] && ! is_of_here "$folder" 2>&-; then
		row build "$folder was built in another place: it is built anew"
		find "$folder" -mindepth 1 -maxdepth 1 ! -name .lock ! -name python -exec rm -rf {} +
	fi
	if [ ! -e "$folder/build.ninja" ]; then
		row build "$folder, from nothing"
		quietly "meson could not configure $folder." "See above what it misses." \
			"${with[@]}" meson setup "$folder" "$@"
	elif [ -n "${newly_installed:-}" ]; then
		# What was missing may have left tests out.
		quietly "meson could not configure $folder." "See above what it misses." \
			"${with[@]}" meson setup --reconfigure "$folder"
	else
		# Meson looks for targets in what it wrote down before it looks whether that is old.
		quietly "meson could not configure $folder." "See above what it misses." \
			"${with[@]}" ninja -C "$folder" --quiet build.ninja
	fi
	[ "$targets" != needed ] || targets=$(python3 tests/sanitized.py needed "$folder")
	# shellcheck disable=SC2086 # words on purpose
	quietly "the build in $folder failed." \
		"If the code is not to blame, remove $folder and run $setup_name again." \
		"${with[@]}" ninja -C "$folder" --quiet $targets
	row build "$folder" "$(seconds_since "$started")"
}
