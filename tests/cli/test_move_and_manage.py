"""move, list, create, update, delete and purge: by a user's hand, against the bundled broker."""

from __future__ import annotations

import json

import pytest

import jmsish

from .conftest import Complaint, Run

PREDECLARED = ("amq.direct", "amq.topic", "amq.fanout", "amq.match")


def bodies(broker: jmsish.EmbeddedBroker, queue: str) -> list[str]:
    return [message.body for message in broker.queue(queue).messages()]


def kill(broker: jmsish.EmbeddedBroker, *texts: str, queue: str = "orders") -> None:
    """Messages that end as dead letters of a queue."""
    broker.declare_queue(queue, max_delivery_attempts=1, dead_letter="dead")
    with jmsish.connect(broker.url) as connection, connection.create_session(transacted=True) as session:
        producer = session.create_producer(session.create_queue(queue))
        for text in texts:
            producer.send(text, properties={"colour": text.split()[0]}, priority=7)
        session.commit()
        consumer = session.create_consumer(session.create_queue(queue))
        for _ in texts:
            assert consumer.receive(timeout=30) is not None
        session.rollback()
    assert bodies(broker, "dead")[-len(texts) :] == list(texts)


def test_dead_letters_go_back_to_where_they_died(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    kill(broker, "red 1", "blue 2", "red 3")
    kill(broker, "red 4", queue="others")
    broker.declare_queue("orders", max_delivery_attempts=0)
    assert run("move", broker.url, "dead") == "3 to queue://orders\n1 to queue://others\n"
    assert bodies(broker, "orders") == ["red 1", "blue 2", "red 3"] and bodies(broker, "others") == ["red 4"]
    (first, *_) = broker.queue("orders").messages()
    assert first.delivery_count == 1 and first.jms_priority == 7 and first.properties["colour"] == "red"
    assert broker.queue("dead").depth == 0


def test_a_selection_and_a_number_go_to_a_place_of_choice(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    kill(broker, "red 1", "blue 2", "red 3", "red 4")
    assert run("move", broker.url, "dead", "kept", "--selector", "colour = 'red'", "-n", "2") == "2 to queue://kept\n"
    assert bodies(broker, "kept") == ["red 1", "red 3"] and bodies(broker, "dead") == ["blue 2", "red 4"]


def test_a_move_in_several_transactions_keeps_the_order(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "q", stdin="".join(f"{number}\n" for number in range(25)))
    assert run("move", broker.url, "q", "r", "--batch", "10") == "25 to queue://r\n"
    assert bodies(broker, "r") == [str(number) for number in range(25)]


def test_what_comes_back_at_once_is_not_moved_in_circles(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    """Somebody lets the moved ones die again while the move goes on."""
    kill(broker, "red 1", "red 2")
    with jmsish.connect(broker.url) as connection:
        session = connection.create_session(acknowledge_mode=jmsish.AcknowledgeMode.AUTO)
        consumer = session.create_consumer(session.create_queue("orders"))

        def never(message: jmsish.Message) -> None:
            raise ValueError("nobody can do this")

        consumer.listener = never
        moved = run("move", broker.url, "dead", "--batch", "1")
    count = int(moved.split()[0])
    assert 2 <= count <= 4


def test_a_live_time_to_live_goes_on(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    with jmsish.connect(broker.url) as connection:
        session = connection.create_session()
        session.create_producer(session.create_queue("q")).send("mayfly", time_to_live=3600)
    run("move", broker.url, "q", "r")
    (message,) = broker.queue("r").messages()
    assert 3590_000 < message.jms_expiration - message.jms_timestamp <= 3600_000


def test_without_a_place_to_go_it_is_refused_and_stays(
    broker: jmsish.EmbeddedBroker, complaint: Complaint, run: Run
) -> None:
    run("send", broker.url, "q", stdin="a\n")
    status, line = complaint("move", broker.url, "q")
    assert status == 1 and "does not say where it died" in line
    assert bodies(broker, "q") == ["a"]
    assert complaint("move", broker.url, "q", "q")[0] == 2
    assert complaint("move", broker.url, "topic://q", "r")[0] == 2


def test_queues_and_topics_are_made_listed_changed_and_deleted(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("create", broker.url, "orders", "max_delivery_attempts=2", "dead_letter=orders.dead")
    run("create", broker.url, "topic://prices")
    run("update", broker.url, "orders", "max_messages=10", "overflow=drop-head")
    settings = broker.queue("orders").settings
    assert (settings.max_delivery_attempts, settings.max_messages, settings.dead_letter) == (2, 10, "orders.dead")
    run("send", broker.url, "orders", stdin="a\nb\n")
    table = run("list", broker.url).splitlines()
    assert table[0].split()[:2] == ["queue", "depth"] and table[1].split()[:2] == ["orders", "2"]
    assert [line.split()[0] for line in table[2:]] == ["exchange", *PREDECLARED, "prices"]
    every = [json.loads(line) for line in run("list", broker.url, "--json").splitlines()]
    assert [(each["type"], each["name"]) for each in every] == [
        ("queue", "orders"), *(("exchange", name) for name in (*PREDECLARED, "prices"))
    ]  # fmt: skip
    assert run("purge", broker.url, "orders") == "2 removed from queue://orders\n"
    run("delete", broker.url, "orders")
    run("delete", broker.url, "topic://prices")
    assert [line.split()[0] for line in run("list", broker.url).splitlines()] == ["exchange", *PREDECLARED]


def test_what_policy_says_and_has_refused_is_listed(run: Run) -> None:
    staff = {"users": ["ann", "joe"], "remote_hosts": ["*"], "may_manage": True, "max_message_size": 500}
    config = {"policy": {"max_message_size": 1000}, "vhosts": {"$default": {"groups": {"staff": staff}}}}
    with jmsish.EmbeddedBroker(config=config) as broker:
        with jmsish.connect(broker.url, username="joe") as connection, pytest.raises(jmsish.JMSError):
            session = connection.create_session()
            session.create_consumer(session.create_queue("orders"))
        wanted = ("list", broker.url, "--policy", "--username", "ann")
        lines = [line.split() for line in run(*wanted).splitlines()]
        rows = [json.loads(line) for line in run(*wanted, "--json").splitlines()]
    heads = {line[0]: dict(zip(line[1:], row[1:])) for line, row in zip(lines[::2], lines[1::2])}  # noqa: B905
    assert list(heads) == ["policy", "vhost", "group"]
    assert heads["policy"]["max_message_size"] == "1000" and heads["policy"]["links_denied"] == "1"
    assert heads["vhost"]["max_message_size"] == "-" and heads["vhost"]["receivers_denied"] == "1"
    assert lines[-1][:3] == ["$default/staff", "ann", "joe"] and "500" in lines[-1]
    assert [row["type"] for row in rows] == ["policy", "vhost", "group"] and rows[0]["total_denials"] == 1


def test_subscriptions_are_listed(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    with jmsish.connect(broker.url, client_id="ann") as connection:
        session = connection.create_session()
        session.create_durable_consumer(session.create_topic("news"), "daily", "colour = 'red'")
        lines = run("list", broker.url).splitlines()
    row = next(line for line in lines if line.startswith("daily"))
    assert row.split() == ["daily", "ann", "news", "colour", "=", "'red'", "true", "false", "0", "1"]


def test_what_cannot_be_done_is_said(broker: jmsish.EmbeddedBroker, complaint: Complaint) -> None:
    for arguments, says in [
        (("delete", broker.url, "nowhere"), "there is no queue 'nowhere' (status 404)"),
        (("create", broker.url, "q", "colour=red"), "colour"),
        (("create", broker.url, "q", "max_messages=-1"), "max_messages"),
        (("purge", broker.url, "topic://t"), "PURGE"),
    ]:
        status, line = complaint(*arguments)
        assert status == 1 and says in line
    assert complaint("create", broker.url, "q", "colour")[0] == 2
    assert broker.queues() == []


def test_who_may_manage_needs_no_other_right(run: Run) -> None:
    """As in the group of operators on the page about policy: no temporary queues, and here no queue more."""
    operators = {"users": ["carol"], "remote_hosts": ["*"], "may_manage": True}
    config = {
        "policy": {"max_queues": 1},
        "vhosts": {"$default": {"groups": {"operators": operators}}},
        "queues": {"orders": {}},
    }
    with jmsish.EmbeddedBroker(config=config) as broker:
        rows = [json.loads(line) for line in run("list", broker.url, "--json", "--username", "carol").splitlines()]
        assert [row["name"] for row in rows if row["type"] == "queue"] == ["orders"]
        run("update", broker.url, "orders", "max_messages=5", "--username", "carol")
        assert "orders" in run("topology", broker.url, "--username", "carol")
        run("delete", broker.url, "orders", "--username", "carol")
        assert broker.queues() == [] and broker.policy.denials.links_denied == 0
