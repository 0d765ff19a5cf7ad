"""The command line and what peers may have left for it: dead letters without a way back, names that are no words."""

from __future__ import annotations

import jmsish

from .conftest import Complaint, Run
from .test_move_and_manage import bodies, kill


def test_the_move_ends_at_a_dead_letter_of_a_queue_that_is_no_more(
    broker: jmsish.EmbeddedBroker, run: Run, complaint: Complaint
) -> None:
    """What lay before it is moved and what lies behind it stays; the complaint says which one it is, and what to do."""
    kill(broker, "red 1", "blue 2")
    with jmsish.connect(broker.url) as connection, connection.create_session(transacted=True) as session:
        temporary = session.create_temporary_queue()
        kill_temporary(broker, session, temporary)
    kill(broker, "red 3")
    broker.declare_queue("orders", max_delivery_attempts=0)
    status, said = complaint("move", broker.url, "dead")
    assert status == 1 and "is no more" in said and "--selector \"JMSMessageID = 'ID:" in said
    assert bodies(broker, "orders") == ["red 1", "blue 2"] and bodies(broker, "dead") == ["lost", "red 3"]
    selector = said.split('--selector "')[1].split('"')[0]
    assert run("move", broker.url, "dead", "kept", "--selector", selector) == "1 to queue://kept\n"
    assert run("move", broker.url, "dead") == "1 to queue://orders\n"


def kill_temporary(broker: jmsish.EmbeddedBroker, session: jmsish.Session, temporary: jmsish.TemporaryQueue) -> None:
    broker.declare_queue(temporary.name, max_delivery_attempts=1, dead_letter="dead")
    session.create_producer(temporary).send("lost", priority=7)
    session.commit()
    consumer = session.create_consumer(temporary)
    assert consumer.receive(timeout=30) is not None
    session.rollback()
    consumer.close()


def test_names_that_peers_chose_do_nothing_to_the_terminal(
    broker: jmsish.EmbeddedBroker, run: Run, complaint: Complaint
) -> None:
    """A queue is made on first use, under whatever name: the operator's terminal shows it and does not obey it."""
    name = "or\x1b]0;mine\x07ders\nnone"
    kill(broker, "red 1", queue=name)
    broker.declare_queue(name, max_delivery_attempts=0)
    assert run("move", broker.url, "dead") == "1 to queue://or\\u001b]0;mine\\u0007ders\\u000anone\n"
    assert "or\\u001b]0;mine\\u0007ders\\u000anone" in run("list", broker.url)
    assert "\x1b" not in complaint("delete", broker.url, "no\x1bwhere")[1]
