# SPDX-License-Identifier: BSD-2-Clause
"""Multicast groups whose members lose their device."""
from lucklib import check, same
from removal import start_removal

FIRST, SECOND, THIRD = "239.70.0.1", "239.70.0.2", "239.70.0.3"
AFTER = (f"leave one {FIRST}", f"leave one {FIRST}", f"leave two {FIRST}", "destroy one",
         "destroy two")


def is_member(guest, group):
    return guest.run(f"ip maddr show dev {guest.interface} | grep -qwF {group}").ok


def members(guest):
    return [group for group in (FIRST, SECOND, THIRD) if is_member(guest, group)]


def join(agent, name, group):
    agent.all(f"join {name} {group}")
    same(agent.event(), f"MULTICAST_JOIN {name} 0")


def device_goes(bench, here, variant=None):
    """Return what members see of a removal, and what becomes of the memberships."""
    with bench.agent(here, variant=variant, PURECM_LOG="warn") as agent:
        agent.all("channel")
        for name in ("one", "two"):
            agent.all(f"datagram {name}", f"bind {name} {here.addr4} 0", f"qp {name}")
            join(agent, name, FIRST)
        join(agent, "one", SECOND)
        agent.all(f"join two {THIRD}")  # its event waits
        same(members(here), [FIRST, SECOND, THIRD])
        removal = start_removal(here, agent)
        seen = [members(here), agent.event(), *sorted((agent.event(), agent.event())),
                agent.do(f"join one {THIRD}") != "ok", *map(agent.do, AFTER)]
        agent.stop()
        removal.wait(30)
        return seen


@check("groups", long=True)
def members_see_the_same_of_a_removal_as_with_stock(bench):
    bench.modes("stock", "purecm")
    stock = device_goes(bench, bench.a)
    same(device_goes(bench, bench.b), stock)


@check("groups", long=True)
def members_of_a_device_that_goes_touch_nothing_freed(bench):
    bench.modes("stock", "purecm")
    device_goes(bench, bench.b, "asan")
