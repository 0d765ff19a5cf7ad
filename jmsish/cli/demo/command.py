"""`jmsish demo`: the command line of the demo."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import jmsish
from jmsish.cli.demo import stage_aio, stage_threads
from jmsish.cli.demo.conservation import Conservation, plain_table, table_rows
from jmsish.cli.demo.ledger import Ledger
from jmsish.cli.demo.orders import FORMATS, OrderFile, read_orders
from jmsish.cli.demo.plan import Plan
from jmsish.cli.demo.progress import showing
from jmsish.cli.demo.run import Run
from jmsish.cli.demo.story import Queues, StoryError
from jmsish.cli.demo.trace import LOGGER, TraceCollector, completed, draw
from jmsish.cli.parsing import (
    CommandError,
    UsageError,
    add_command,
    add_connection_arguments,
    connection_options,
    positive,
    read_target,
    seconds,
    url_with_options,
    whole,
)

DEFAULT_FILE = "orders.csv"
TRACED = 12

DESCRIPTION = """\
The main job, start to end. Each line of FILE is an order. A producer sends the orders in transacted batches. Two
consumers of one transacted session take an order, send its result and commit: one transaction for both. Every k-th
order fails: it is rolled back, comes again before all later ones with a higher count, and after --max-attempts goes
to the dead-letter queue. On the way one consumer is closed and one connection is cut in mid-transaction.

At the end a table proves that every order was processed once or dead-lettered once; the last line of standard
output says the same in JSON, and the status is 0 only if it holds."""

EPILOG = """\
examples:
  jmsish demo                             the orders that come with the product, a broker in memory
  jmsish demo orders.csv --tcp            a file of yours (text, CSV, JSON lines), the broker over TCP
  jmsish demo --trace                     draw the lives of the first orders
  jmsish demo --trace 196-204             ... and of those around the cut
  jmsish demo --aio                       the same work by the asyncio face
  jmsish demo --url amqp://localhost      the same work by a broker of yours (its queues have names of their own)
  jmsish demo --fail-every 2 --max-attempts 5 --prefetch 1

With --url the demo itself moves an order to its dead-letter queue at the last attempt, in the same transaction,
since it cannot know that broker's limits; a limit below --max-attempts there shows up as orders lost.
"""


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "demo",
        run,
        help="the main job, with a proof at its end",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="orders: any text, CSV or JSON-lines file; - is stdin")
    parser.add_argument("--url", metavar="URL", help="work against this broker instead of one of our own")
    parser.add_argument("--tcp", action="store_true", help="reach our own broker over TCP instead of in memory")
    parser.add_argument("--aio", action="store_true", help="use the asyncio face")
    add_work_arguments(parser)
    add_view_arguments(parser)
    add_connection_arguments(parser)


def add_work_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("work")
    group.add_argument(
        "--batch", metavar="N", type=positive, default=10, help="orders in a producer's transaction (10)"
    )
    group.add_argument("--fail-every", metavar="K", type=whole, default=7, help="every K-th order fails; 0: none (7)")
    group.add_argument("--max-attempts", metavar="N", type=positive, default=3, help="then it is dead-lettered (3)")
    group.add_argument("--prefetch", metavar="N", type=whole, default=50, help="what a consumer fetches ahead (50)")
    group.add_argument("--limit", metavar="N", type=whole, help="take only the first N orders")
    group.add_argument("--format", choices=FORMATS, default="auto", help="what FILE is (default: by its name)")
    group.add_argument("--timeout", metavar="S", type=seconds, default=30.0, help="seconds without an order (30)")


def add_view_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("view")
    group.add_argument(
        "--trace",
        metavar="N",
        nargs="?",
        const=str(TRACED),
        help=f"draw the lives of the first N orders ({TRACED}), or of some: 95-105",
    )
    group.add_argument("--width", metavar="N", type=positive, help="columns of the drawing (the terminal's)")
    group.add_argument("--quiet", action="store_true", help="print the line of JSON alone")


def run(arguments: argparse.Namespace) -> int:
    settle_trace(arguments)
    if arguments.tcp and arguments.url:
        raise UsageError("--tcp is about our own broker; it does not go with --url")
    file = load(arguments)
    with ExitStack() as stack:
        work = prepare(arguments, file, stack)
        collector = stack.enter_context(tracing(work, arguments.trace)) if arguments.trace else None
        say(arguments, opening(arguments, file, work))
        started = time.monotonic()
        with showing(len(file.orders), quiet=arguments.quiet) as progress:
            work.report = progress.update
            perform(work, aio=arguments.aio)
        elapsed = time.monotonic() - started
    proof = work.proof()
    if collector is not None:
        say(arguments, picture(arguments, work, collector))
    conclude(arguments, proof, elapsed)
    return 0 if proof.holds else 1


def settle_trace(arguments: argparse.Namespace) -> None:
    """`--trace FILE` reads FILE as the number that may follow; what is no number was meant as the file."""
    text = arguments.trace
    if text is None:
        arguments.trace = range(0)
        return
    first, _, last = text.rpartition("-")
    if last.isdecimal() and (first or "1").isdecimal():
        arguments.trace = range(int(first or 1), int(last) + 1)
    elif arguments.file is None:
        arguments.file, arguments.trace = text, range(1, TRACED + 1)
    if not isinstance(arguments.trace, range) or not arguments.trace or arguments.trace[0] < 1:
        raise UsageError(f"argument --trace: {text!r} is neither a number of 1 or more nor a range as 95-105")


def perform(work: Run, *, aio: bool) -> None:
    try:
        if aio:
            asyncio.run(stage_aio.perform(work))
        else:
            stage_threads.perform(work)
    except StoryError as error:
        raise CommandError(str(error)) from error


def load(arguments: argparse.Namespace) -> OrderFile:
    if arguments.file is None:
        data, name = resources.files(__package__).joinpath("data").joinpath(DEFAULT_FILE).read_bytes(), DEFAULT_FILE
    elif arguments.file == "-":
        data, name = sys.stdin.buffer.read(), ""
    else:
        data, name = Path(arguments.file).read_bytes(), arguments.file
    return read_orders(data, name, format=arguments.format, limit=arguments.limit)


def prepare(arguments: argparse.Namespace, file: OrderFile, stack: ExitStack) -> Run:
    """The run, and the broker it works against: ours with its limit declared, or the one asked for."""
    total = len(file.orders)
    plan = Plan(total, arguments.fail_every, arguments.max_attempts)
    queues = Queues.named(f"jmsish-demo-{uuid.uuid4().hex[:8]}")
    own = arguments.url is None
    url = url_with_options(start_broker(arguments, queues, stack) if own else arguments.url, arguments.option)
    read_target(url, {})
    return Run(
        url=url,
        orders=file.orders,
        plan=plan,
        ledger=Ledger(total, arguments.max_attempts, broker_limit=own),
        queues=queues,
        options={"prefetch": arguments.prefetch, **({} if own else connection_options(arguments))},
        batch=arguments.batch,
        timeout=arguments.timeout,
        counts_bind=own,
    )


def start_broker(arguments: argparse.Namespace, queues: Queues, stack: ExitStack) -> str:
    # The demo cuts a connection on purpose: the warnings of its own broker and client would read as faults.
    logger = logging.getLogger("jmsish")
    stack.callback(logger.setLevel, logger.level)
    logger.setLevel(logging.ERROR)
    broker = stack.enter_context(jmsish.EmbeddedBroker())
    broker.declare_queue(queues.orders, max_delivery_attempts=arguments.max_attempts, dead_letter=queues.dead)
    return broker.listen().url if arguments.tcp else broker.url


@contextmanager
def tracing(work: Run, lanes: range) -> Iterator[TraceCollector]:
    """Listens to the client's trace for the time of the block."""
    collector = TraceCollector(work.queues.orders, lanes)
    work.labelled = lanes
    logger = logging.getLogger(LOGGER)
    level, propagate = logger.level, logger.propagate
    logger.addHandler(collector)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield collector
    finally:
        logger.removeHandler(collector)
        logger.setLevel(level)
        logger.propagate = propagate


def picture(arguments: argparse.Namespace, work: Run, collector: TraceCollector) -> str:
    events = completed(collector.events, work.plan.max_attempts if work.ledger.broker_limit else 0)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return draw(events, work.labels, width=columns(arguments), plain=not is_unicode(), colour=colour)


def opening(arguments: argparse.Namespace, file: OrderFile, work: Run) -> str:
    what = {"csv": "CSV with a header" if file.header else "CSV", "jsonl": "JSON lines", "text": "text"}[file.format]
    name = arguments.file or f"{DEFAULT_FILE} (comes with the product)"
    own = "the embedded broker, " + ("over TCP" if arguments.tcp else "in memory")
    where = own if work.counts_bind else arguments.url
    fails = f"every {work.plan.fail_every}th fails" if work.plan.fail_every else "none fails by itself"
    return (
        f"{len(file.orders):,} orders from {name} ({what}); {where}; "
        f"{fails}, {work.plan.max_attempts} attempts, prefetch {arguments.prefetch}"
    )


def conclude(arguments: argparse.Namespace, proof: Conservation, elapsed: float) -> None:
    say(arguments, table(table_rows(proof)))
    for remark in proof.notes:
        say(arguments, f"note: {remark}")
    verdict = "conservation holds" if proof.holds else "CONSERVATION DOES NOT HOLD"
    rate = f", {proof.sent / elapsed:,.0f} orders/s" if elapsed > 0 else ""
    say(arguments, f"{verdict}: {elapsed:.2f} s{rate}")
    print(proof.as_json(seconds=round(elapsed, 3)), flush=True)


def table(rows: list[tuple[str, str, str]]) -> str:
    """By rich on a terminal, where it is installed; in plain characters elsewhere."""
    if not sys.stdout.isatty():
        return plain_table(rows)
    try:  # optional extra: jmsish[cli]
        from rich import box, console
        from rich import table as tables
    except ImportError:
        return plain_table(rows)
    drawn = tables.Table(box=box.ROUNDED, show_header=False)
    for justify in ("left", "right", "left"):
        drawn.add_column(justify=justify)
    for name, figure, verdict in rows:
        drawn.add_row(name, figure, f"[{'red' if verdict == 'WRONG' else 'green'}]{verdict}[/]" if verdict else "")
    screen = console.Console()
    with screen.capture() as captured:
        screen.print(drawn)
    return captured.get().rstrip("\n")


def say(arguments: argparse.Namespace, text: str) -> None:
    if not arguments.quiet:
        print(text, flush=True)


def columns(arguments: argparse.Namespace) -> int:
    return int(arguments.width or shutil.get_terminal_size((100, 24)).columns)


def is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
