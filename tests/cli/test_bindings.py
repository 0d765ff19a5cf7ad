"""bind, unbind, rebind and the exchanges of create, update, delete and list: by a user's hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsish

from .conftest import Complaint, Run


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    """The queues blue and green, and the exchange `orders`, whose messages with the key k go to blue."""
    with jmsish.EmbeddedBroker() as broker:
        broker.declare_queue("blue")
        broker.declare_queue("green")
        broker.declare_exchange("orders", "topic").bind("blue", "k")
        yield broker


def bound(broker: jmsish.EmbeddedBroker, exchange: str = "orders") -> set[tuple[str, str]]:
    return {(binding.queue, binding.key) for binding in broker.exchange(exchange).bindings()}


def test_exchanges_are_made_changed_and_deleted(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    assert run("create", broker.url, "exchange://news", "type=fanout", "alternate=amq.topic", "durable=true") == ""
    news = broker.exchange("news")
    assert (news.type, news.settings.alternate, news.settings.durable) == ("fanout", "amq.topic", True)
    run("update", broker.url, "exchange://news", "unroutable=reject", "alternate=")
    assert (news.settings.unroutable, news.settings.alternate) == ("reject", None)
    run("delete", broker.url, "exchange://news")
    assert news.is_deleted


def test_bind_and_unbind(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("bind", broker.url, "orders", "green", "eu.#")
    run("bind", broker.url, "exchange://orders", "queue://green")
    assert bound(broker) == {("blue", "k"), ("green", "eu.#"), ("green", "")}
    run("unbind", broker.url, "orders", "green", "eu.#")
    run("unbind", broker.url, "orders", "green")
    assert bound(broker) == {("blue", "k")}


def test_an_exchange_is_bound_to_an_exchange(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("bind", broker.url, "amq.fanout", "exchange://orders")
    (binding,) = broker.exchange("amq.fanout").bindings()
    assert (binding.kind, binding.queue) == ("exchange", "orders")
    run("unbind", broker.url, "amq.fanout", "exchange://orders")
    assert broker.exchange("amq.fanout").bindings() == []


def test_arguments_have_the_types_of_json(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    said = ("x-match=all", "size=3", "eu=true", "colour=null", 'number="3"', "list=[1]")
    run("bind", broker.url, "amq.match", "green", *(word for text in said for word in ("--argument", text)))
    (binding,) = broker.exchange("amq.match").bindings()
    assert binding.arguments == {
        "x-match": "all", "size": 3, "eu": True, "colour": None, "number": "3", "list": "[1]"
    }  # fmt: skip
    run("bind", broker.url, "amq.match", "green", "--argument", "x-match=any", "--replace")
    (binding,) = broker.exchange("amq.match").bindings()
    assert binding.arguments == {"x-match": "any"}


def test_bindings_are_listed(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("bind", broker.url, "orders", "green", "#", "--argument", "x-filter-jms-selector=a = 1")
    run("send", broker.url, "orders/k", "-m", "hello")
    lines = run("list", broker.url).splitlines()
    at = next(number for number, line in enumerate(lines) if line.split()[0] == "binding")
    assert sorted(line.split(maxsplit=2) for line in lines[at + 1 : at + 3]) == [
        ["orders/blue/k", "1", "-"], ["orders/green/#", "0", '{"x-filter-jms-selector": "a = 1"}']
    ]  # fmt: skip
    (row,) = (line for line in lines if line.startswith("orders "))
    assert row.split() == ["orders", "topic", "2", "1", "1", "0", "0", "0"]
    every = [json.loads(line) for line in run("list", broker.url, "--json").splitlines()]
    assert {each["identity"] for each in every if each["type"] == "binding"} == {"orders/blue/k", "orders/green/#"}


REBINDS = {
    "switch.toml": """
[[remove]]
queue = "blue"
key = "k"
[[add]]
queue = "green"
key = "k"
arguments = { x-filter-jms-selector = "a = 1" }
""",
    "switch.json": '{"remove": [["blue", "k"]],'
    ' "add": [{"queue": "green", "key": "k", "arguments": {"x-filter-jms-selector": "a = 1"}}]}',
}


@pytest.mark.parametrize("name", REBINDS)
@pytest.mark.parametrize("place", ["file", "standard input"])
def test_rebind_is_one_step(broker: jmsish.EmbeddedBroker, run: Run, tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / name).write_text(REBINDS[name])
    if place == "file":
        said = run("rebind", broker.url, "orders", str(tmp_path / name))
    else:
        said = run("rebind", broker.url, "orders", "-", stdin=REBINDS[name])
    assert said == "1 added, 1 removed, 1 in force\n"
    (binding,) = broker.exchange("orders").bindings()
    assert (binding.queue, binding.key) == ("green", "k")
    assert binding.arguments == {"x-filter-jms-selector": "a = 1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"add": [["green", "k"], ["nowhere", "k"]]}', "add[1]: there is no queue 'nowhere' (status 404)"),
        ('{"add": [["green", "k"]], "remove": [["green", "k"]]}', "remove[0] ('green', key 'k')"),
        ('{"added": []}', "knows no 'added'"),
        ("{}", "says nothing"),
        ("[1]", "knows no '1'"),
        ("add = [", "switch:"),
        ('{"add": [', "switch:"),
    ],
)
def test_a_rebind_that_cannot_be_changes_nothing(
    broker: jmsish.EmbeddedBroker, complaint: Complaint, tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "switch"
    path.write_text(text)
    status, line = complaint("rebind", broker.url, "orders", str(path))
    assert status == 1 and says in line
    assert bound(broker) == {("blue", "k")}


def test_what_cannot_be_bound_is_said(broker: jmsish.EmbeddedBroker, complaint: Complaint) -> None:
    for arguments, status, says in [
        (("bind", "orders", "nowhere"), 1, "no queue 'nowhere' (status 404)"),
        (("bind", "nowhere", "blue"), 1, "no exchange 'nowhere' (status 404)"),
        (("bind", "amq.match", "blue"), 1, "x-match"),
        (("bind", "orders", "blue", "k", "--argument", "x-filter-jms-selector=a"), 1, "(status 4"),
        (("unbind", "orders", "green", "k"), 1, "no such binding in 'orders' (status 404)"),
        (("bind", "orders", "topic://blue"), 2, "is a topic"),
        (("bind", "orders", "blue", "--argument", "colour"), 2, "NAME=VALUE"),
        (("rebind", "orders", "no-such-file"), 1, "no-such-file: No such file"),
        (("create", "exchange://news"), 1, "exchange_type is missing"),
        (("create", "exchange://"), 2, "no destination"),
        (("purge", "exchange://orders"), 1, "PURGE is not known for exchange"),
    ]:
        got, line = complaint(arguments[0], broker.url, *arguments[1:])
        assert got == status and says in line, arguments
    assert bound(broker) == {("blue", "k")}


def test_a_change_of_a_frozen_exchange_waits_no_longer_than_is_said(
    broker: jmsish.EmbeddedBroker, complaint: Complaint
) -> None:
    with broker.exchange("orders").freeze():
        status, line = complaint("bind", broker.url, "orders", "green", "k", "--timeout", "0")
    assert status == 1 and "stayed frozen" in line and "(status 408)" in line
    assert bound(broker) == {("blue", "k")}
