# SPDX-License-Identifier: BSD-2-Clause
# bash completion of purecm(1): commands and options as the program itself tells them.
#
# shellcheck shell=bash

_purecm_options() {
	purecm "$@" --help 2>/dev/null | grep -oE -- '(^|[ ,[])(--[a-z][a-z-]*=?|-[a-z?])' | tr -d ' ,['
}

_purecm_commands() {
	case $1 in
	purecm) echo "$(purecm --commands) help --help --version" ;;
	help) purecm --commands ;;
	fabric) purecm fabric --help | sed -n 's/^ *\([a-z|]*|[a-z]*\)$/\1 --help/p; T; q' | tr '|' ' ' ;;
	esac
}

_purecm() {
	local word=$2 before=$3 command=${COMP_WORDS[1]} commands
	local messages='REQ MRA REJ REP RTU DREQ DREP SIDR_REQ SIDR_REP LAP APR SA'
	local outcomes='failed unanswered unconfirmed rejected gave-up unclosed established closed
		resolved probed fragment'

	# bash takes "--outcome=rej" apart.
	[ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$word" = = ] && word=
	[ "$COMP_CWORD" -le 2 ] && commands=$(_purecm_commands "${COMP_WORDS[COMP_CWORD - 1]}")
	if [ -n "$commands" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$word")
		return
	fi
	case $command$before in
	*-r | *--read | *-w | *--write | *--output | timeline-o | *-l | *--library | *--socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	ping-i | ping--interface) ;;
	*-i | *--interface)
		mapfile -t COMPREPLY < <(compgen -W "any $(ls /sys/class/net)" -- "$word")
		;;
	*-m | *--message)
		mapfile -t COMPREPLY < <(compgen -W "$messages" -- "${word^^}")
		;;
	*-o | *--outcome)
		mapfile -t COMPREPLY < <(compgen -W "$outcomes" -- "$word")
		;;
	run-- | runrun)
		[[ $word == -* ]] || mapfile -t COMPREPLY < <(compgen -c -- "$word")
		;;&
	*)
		if [[ $word == -* && " ${COMP_WORDS[*]:1:COMP_CWORD-1} " != *" -- "* ]]; then
			[ "$command" = fabric ] && command="fabric ${COMP_WORDS[2]}"
			# shellcheck disable=SC2086 # two words
			mapfile -t COMPREPLY < <(compgen -W "$(_purecm_options $command)" -- "$word")
		fi
		;;
	esac
	[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}

complete -o default -F _purecm purecm
