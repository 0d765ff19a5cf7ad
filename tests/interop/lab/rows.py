"""What each broker of the lab is asked: rows of the page, and tests.

A row is a function of a running server that gives the words for its cell: `yes`, or what is otherwise there. It raises
`AssertionError` where jmsish, and not the broker, is at fault: no cell may hide that a message was lost.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jmsish
from jmsish import conformance
from tests.interop import fetch
from tests.interop.lab.load import LIMITS, Load
from tests.interop.lab.servers import Server
from tests.interop.trip import EQUAL, PEER, SERIALISED, Ended, travel

ROOT = Path(__file__).resolve().parents[3]
YES, NO_TRANSACTIONS = "yes", "no transactions"
KILLS, TRIES = 10, 3
REDELIVERY = ("redelivery-", "commit-", "rollback-", "recover-")
SUBSCRIPTIONS = ("topic-", "selector-topic")
BETWEEN_KILLS = 40
"""Messages that arrive between one kill and the next."""

Row = Callable[[Server], str]


def demo(server: Server) -> str:
    """The demo with `--url`: nothing is lost, doubled or miscounted."""
    if not server.transactions:
        return NO_TRANSACTIONS
    command = [sys.executable, "-m", "jmsish", "demo", str(ROOT / "examples/data/orders.csv"), "--url", server.url]
    words = ""
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, timeout=250, cwd=ROOT)
        lines = done.stdout.splitlines()
        assert lines, done.stderr[-2000:]
        table: dict[str, Any] = json.loads(lines[-1])
        told = done.stdout[-3000:] + done.stderr[-2000:]
        assert table["lost"] == table["doubled"] == table["altered"] == 0 < table["redelivered"], told
        assert table["sent"] == table["processed"] + table["dead_lettered"] + table["left_over"] > 0, told
        if table["holds"]:
            return YES
        words = difference(table)
    return f"nothing lost or doubled; {words}"


def difference(table: dict[str, Any]) -> str:
    """What the demo counted that it should not have."""
    counted = {"out of order": "out_of_order", "with another count": "wrong_count", "left on the queue": "left_over"}
    return ", ".join(f"{table[name]} {words}" for words, name in counted.items() if table[name])


def scorecard(server: Server, *only: str) -> str:
    """How many of these scenarios of `jmsish check` hold, and which do not; all are run once for a server."""
    if server.card is None:
        server.card = conformance.check(server.url, patience=10.0, quiet=0.5)
    results = [each for each in server.card.results if not only or each.scenario.startswith(only)]
    passed = [each.scenario for each in results if each.result == conformance.PASS]
    failed = [each for each in results if each.result == conformance.FAIL]
    for each in failed:
        print(f"    {each.scenario}: {each.why}")
    words = f"{len(passed)} of {len(passed) + len(failed)}"
    if len(results) > len(passed) + len(failed):
        words += f", {len(results) - len(passed) - len(failed)} not supported"
    return words + (f"; not: {', '.join(each.scenario for each in failed)}" if failed else "")


def ask_again(server: Server, kinds: tuple[str, ...], known: str = "") -> None:
    """Those of these kinds that fail, and are not among the `known`, once more: at Artemis what is released races with
    the next credit in its threads (docs/artemis.md), so that one scenario in some hundreds is out of order there."""
    assert server.card is not None
    for _ in range(TRIES):
        odd = [each.scenario for each in server.card.results if each.result == conformance.FAIL]
        odd = [scenario for scenario in odd if scenario.startswith(kinds) and scenario not in known]
        if not odd:
            return
        again = conformance.check(server.url, only=odd, patience=10.0, quiet=0.5).results
        found = {each.scenario: each for each in again}
        server.card.results[:] = [found.get(each.scenario, each) for each in server.card.results]


def redelivery(server: Server) -> str:
    """The scenarios of redelivery, commit and rollback."""
    return scorecard(server, *REDELIVERY)


def subscriptions(server: Server) -> str:
    """The four kinds of subscription."""
    return scorecard(server, *SUBSCRIPTIONS)


def everything(server: Server) -> str:
    """All scenarios of `jmsish check`."""
    return scorecard(server)


def matrix(server: Server) -> str:
    """Every type of message, property, header and id to Qpid JMS and back, as it was."""
    try:
        trip = travel(server.url, fetch.qpid_jms(PEER), server.queue_prefix)
    except Ended as ended:
        return f"ends the connection at {ended}"
    names = [name for name in EQUAL if name not in trip.refused]
    refused = f", refused: {', '.join(trip.refused)}" if trip.refused else ""
    out = [name for name in names if name in trip.java and trip.java[name]["came"] == trip.sent[name]]
    back = [name for name in names if name in trip.back and trip.back[name] == trip.java.get(name, {}).get("sent")]
    if len(out) == len(back) == len(names) and SERIALISED in trip.back:
        return f"all {len(names)}{refused}"
    changed = sorted(set(names) - (set(out) & set(back)))
    which = ", ".join(changed[:8]) + (", …" if changed[8:] else "")
    return f"{len(out)} of {len(names)} there, {len(back)} back; not: {which}{refused}"


def restart(server: Server) -> str:
    """What is persistent is there after a restart, in its order; what is not is gone or there, as the broker likes."""
    name = f"restart.{uuid.uuid4().hex}"
    bodies = [f"m{number}" for number in range(20)]
    with jmsish.connect(server.url, **LIMITS) as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue(name))
        for body in bodies:
            producer.send(body)
    server.restart()
    with jmsish.connect(server.url, **LIMITS) as connection:
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue(name))
        came = []
        while (message := consumer.receive(timeout=10 if len(came) < len(bodies) else 1)) is not None:
            came.append(message.body)
    if came == bodies:
        return YES
    assert not came, f"some are gone, some are not: {came}"
    return "gone"


def durable_restart(server: Server) -> str:
    """A durable subscription and what it has collected are there after a restart."""
    topic_name, client = f"restart.{uuid.uuid4().hex}", f"client-{uuid.uuid4().hex}"
    try:
        with jmsish.connect(server.url, client_id=client, **LIMITS) as connection:
            session = connection.create_session()
            topic = session.create_topic(topic_name)
            session.create_durable_consumer(topic, "name").close()
            session.create_producer(topic).send("kept")
    except jmsish.UnsupportedFeatureError:
        return "no durable subscriptions"
    server.restart()
    with jmsish.connect(server.url, client_id=client, **LIMITS) as connection:
        session = connection.create_session()
        consumer = session.create_durable_consumer(session.create_topic(topic_name), "name")
        message = consumer.receive(timeout=10)
        consumer.close()
        session.unsubscribe("name")
    return YES if message is not None and message.body == "kept" else "gone"


def killed(server: Server) -> str:
    """Killed ten times under load of two transacted clients: what was promised of each message holds."""
    if not server.transactions:
        return NO_TRANSACTIONS
    with Load(failover(server.url), f"load.{uuid.uuid4().hex}") as load:
        for _ in range(KILLS):
            load.flows(BETWEEN_KILLS)
            server.kill()
            server.start()
        load.flows(BETWEEN_KILLS)
    account = load.account
    faults = account.faults()
    assert not faults, "\n".join(faults)
    doubts = len(account.sent_in_doubt) + len(account.taken_in_doubt)
    print(f"  {server.title}: {KILLS} kills, {len(account.sent)} sent, {doubts} commits in doubt, met: "
          f"{dict(account.interruptions)}")  # fmt: skip
    return YES


def failover(url: str) -> str:
    """The URL by which a client comes back by itself."""
    return f"failover:({url})?failover.maxReconnectDelay=500"


ROWS: dict[str, tuple[str, Row]] = {
    "demo": ("the demo (`jmsish demo --url`)", demo),
    "redelivery": ("scenarios of redelivery, commit, rollback and recover", redelivery),
    "subscriptions": ("scenarios of subscriptions", subscriptions),
    "check": ("all scenarios of `jmsish check`", everything),
    "matrix": ("types of message, property, header and id, to Qpid JMS and back", matrix),
    "restart": ("persistent messages are there after a restart", restart),
    "durable": ("a durable subscription is there after a restart", durable_restart),
    "killed": (f"killed {KILLS} times under load: nothing lost, doubled or half committed", killed),
}
"""The rows of the page, in order: the words for it, and how it is found out."""


def quietly(row: Row, server: Server) -> str:
    """A row without what it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        return row(server)
