# SPDX-License-Identifier: BSD-2-Clause
# bash completion of purecm(1): commands and options as the program itself tells them.
#
# shellcheck shell=bash

_purecm_options() {
	purecm "$1" --help 2>/dev/null | grep -oE -- '(^|[ ,])(--[a-z][a-z-]*=?|-[a-z?])' | tr -d ' ,'
}

_purecm() {
	local word=$2 before=$3 command=${COMP_WORDS[1]}
	local messages='REQ MRA REJ REP RTU DREQ DREP SIDR_REQ SIDR_REP LAP APR SA'
	local outcomes='failed unanswered unconfirmed rejected gave-up unclosed established closed
		resolved probed fragment'

	# bash takes "--outcome=rej" apart.
	[ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$word" = = ] && word=
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(purecm --commands) --help --version" -- "$word")
		return
	fi
	case $before in
	-r | --read | -w | --write | --output | -l | --library | --socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		;;
	-i | --interface)
		[ "$command" = ping ] ||
			mapfile -t COMPREPLY < <(compgen -W "any $(ls /sys/class/net)" -- "$word")
		;;
	-m | --message)
		mapfile -t COMPREPLY < <(compgen -W "$messages" -- "${word^^}")
		;;
	-o | --outcome)
		mapfile -t COMPREPLY < <(compgen -W "$outcomes" -- "$word")
		;;
	*)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_purecm_options "$command")" -- "$word")
		elif [ "$command" = run ]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$word")
		fi
		;;
	esac
	[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}

complete -o default -F _purecm purecm
