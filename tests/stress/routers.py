"""A network of routers, killed and revived at random under load for as long as it takes; then each message is counted.

    python -m tests.stress.routers --at vm --seeds 1:20 [--kills 50] [--routes] [--gigabyte]

It plays `tests.network.test_chaos`, whose runs in the suite are short: a message is accepted only if somebody received
it, each is heard of once, and the network is whole again after each revival, within two seconds if the machine has
nothing else to do. With `--routes` it plays `tests.network.test_chaos_routes`: of transactions at a broker behind the
routers all that was committed is there once. With `--gigabyte` a message of that size is sent to an edge whose interior
takes a megabyte, and what the process grows by is told.
"""

from __future__ import annotations

import argparse
import time

from tests.network import test_chaos, test_chaos_routes
from tests.network.test_memory import BOUND, LIMIT, grown


def seeds_of(text: str) -> range:
    """``5`` is one, ``1:20`` are twenty."""
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def pour(transport: str) -> None:
    octets, sent, said, closed, _ = grown(transport, LIMIT, 1 << 30)
    print(f"{transport}: {sent >> 20} MB sent, {said}, grew by {octets >> 10} kB", flush=True)
    assert said == "rejected" and closed == "False" and octets < BOUND


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--at", default="vm", choices=("vm", "tcp"), help="in memory, or over sockets")
    arguments.add_argument("--seeds", type=seeds_of, default=range(1, 6), metavar="FIRST:LAST")
    arguments.add_argument("--kills", type=int, default=50, help="how many routers are killed in a run")
    arguments.add_argument("--heals-within", type=float, default=30.0, metavar="SECONDS", help="as the machine allows")
    arguments.add_argument("--routes", action="store_true", help="transactions at a broker behind the routers")
    arguments.add_argument("--gigabyte", action="store_true", help="only send a message of that size")
    said = arguments.parse_args()
    if said.gigabyte:
        pour(said.at)
        return
    play = test_chaos_routes.play if said.routes else test_chaos.play
    for seed in said.seeds:
        began = time.monotonic()
        play(said.at, seed, said.kills, said.heals_within)
        print(f"seed {seed} at {said.at}: {said.kills} kills, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
