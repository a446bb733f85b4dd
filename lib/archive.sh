#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes a static library of which nothing but the public names can be seen: archive.sh OUTPUT
# LIBRARY OTHERS... takes all of the first library and what that needs of the others.
set -e
output=$1 library=$2
shift 2
${LD:-ld} -r -o "$output.o" --whole-archive "$library" --no-whole-archive \
	--start-group "$@" --end-group
# What LTO reads does not know of the names that are gone.
${OBJCOPY:-objcopy} --localize-hidden --remove-section='.gnu.lto_*' \
	--remove-section='.gnu.debuglto_*' --strip-symbol=__gnu_lto_v1 "$output.o"
rm -f "$output"
${AR:-ar} rcs "$output" "$output.o"
rm "$output.o"
