# SPDX-License-Identifier: BSD-2-Clause
"""The command line, tests/lab/lab: prepare, doctor, run, shell."""
import argparse
import re
import sys

from . import doctor, image, shell
from .errors import LabError
from .guest import MODES
from .lab import Lab
from .release import RELEASES


def main():
    """Return the exit status."""
    args = parse()
    try:
        return args.act(args)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parse():
    parser = argparse.ArgumentParser(
        prog="lab", description="two emulated hosts with RDMA over Converged Ethernet")
    actions = parser.add_subparsers(required=True, metavar="action")

    prepare = actions.add_parser("prepare", help="download and make what hosts boot from")
    prepare.set_defaults(act=lambda args: image.prepare() and 0)

    check = actions.add_parser("doctor", help="tell what is missing and how to mend it")
    check.set_defaults(act=lambda args: doctor.main())

    interactive = actions.add_parser("shell", help="boot, and a terminal on a host")
    add_modes(interactive)
    interactive.add_argument("host", nargs="?", choices=("a", "b"), default="a")
    interactive.set_defaults(act=run_shell)

    run = actions.add_parser(
        "run", help="boot, run commands, print what they say, power off",
        description="Runs the commands one after the other; each is HOST:COMMAND. HOST+:COMMAND "
        "runs in the background; it gets SIGTERM when the others have ended and it has not "
        "after a second. The exit status is the first one of the others that is not 0.")
    add_modes(run)
    run.add_argument("--timeout", type=float, default=60, help="seconds per command (60)")
    run.add_argument("--capture", metavar="FILE", help="write what host a sends and receives")
    run.add_argument("command", nargs="+", type=host_and_command, metavar="HOST:COMMAND")
    run.set_defaults(act=run_commands)
    return parser.parse_args()


def add_modes(parser):
    for host, mode in (("a", "stock"), ("b", "purecm")):
        parser.add_argument(f"--{host}", choices=MODES, default=mode,
                            help=f"what host {host} is (default: {mode})")
    parser.add_argument("--release", choices=RELEASES, default="own",
                        help="Debian's, of the hosts (default: this machine's own)")


def host_and_command(text):
    """Split "a:cmd" or "a+:cmd". Return: (host, whether in the background, command)."""
    match = re.fullmatch(r"([ab])(\+?):(.+)", text, re.DOTALL)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} does not start with a: b: a+: or b+:")
    return match[1], bool(match[2]), match[3]


def run_shell(args):
    with Lab({"a": args.a, "b": args.b}, release=args.release) as lab:
        return shell.interact(lab.guests, args.host)


def run_commands(args):
    with Lab({"a": args.a, "b": args.b}, release=args.release) as lab:
        if args.capture:
            with lab.a.capture(args.capture):
                return run_each(lab, args)
        return run_each(lab, args)


def run_each(lab, args):
    """Run the commands in turn, then end those in the background."""
    background = []
    status = 0
    for host, keep, command in args.command:
        if keep:
            background.append((host, lab.guests[host].start(command)))
        else:
            result = lab.guests[host].run(command, timeout=args.timeout)
            show(host, result)
            status = status or result.status
    for host, process in background:
        show(host, end(process))
    return status & 0xff


def end(process):
    """Return the Result of a background process, ended now if need be."""
    try:
        return process.wait(timeout=1)
    except LabError:
        return process.stop()


def show(host, result):
    print(f"{host}$ {result.command}")
    for line in result.output.splitlines():
        print(f"{host}| {line}")
    print(f"{host}: status {result.status} after {result.seconds:.2f} s", flush=True)
