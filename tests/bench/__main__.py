"""`python -m tests.bench [NAME] [options]`, NAME as in the table below; without a name, all of them."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

from tests.bench import broker, depth, engine, exchanges, load, rates, routers, selector, soak, startup, transactions

BENCHES: dict[str, ModuleType] = {
    "rates": rates,
    "broker": broker,
    "engine": engine,
    "depth": depth,
    "transactions": transactions,
    "selector": selector,
    "exchanges": exchanges,
    "soak": soak,
    "routers": routers,
    "load": load,
    "startup": startup,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    commands = parser.add_subparsers(dest="bench", metavar="|".join(BENCHES))
    for name, module in BENCHES.items():
        module.add_arguments(commands.add_parser(name, help=module.__doc__, description=module.__doc__))
    names = [arguments[0]] if arguments and arguments[0] in BENCHES else []
    if not names:
        parser.parse_args([] if not arguments else arguments)  # `--help`, or what is no bench
        names = list(BENCHES)
    for name in names:
        options = parser.parse_args([name, *arguments[1:]] if arguments else [name])
        print(f"\n## {name}\n")
        BENCHES[name].run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
