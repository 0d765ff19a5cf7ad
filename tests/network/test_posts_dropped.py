"""A post that a router drops on a link route: its broker does not hear of it, and must not commit the others alone.

The transaction is the broker's, and the router does not look into it. So where a post is dropped with a link that ended
here, or that the broker ended while more was under way, the connection of the client ends, and all its transactions are
rolled back; of a neighbour it is the session by which that client's messages come.
"""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.network.linkroutes import Through
from jmsish.engine.outcomes import Rejected, TransactionalState
from tests.broker.world import Peer, in_transaction, message
from tests.network.world import Network

LIMIT = 30_000
LARGE = "x" * LIMIT
FORCED, EXCEEDED = "amqp:connection:forced", "amqp:link:message-size-exceeded"
LINK = {"policy": {"max_message_size": LIMIT, "on_oversize": "link"}}


class Limited(Network):
    """The edge has a limit, and closes the link alone."""

    def _config(self, name: str, mode: str | None) -> dict[str, Any]:
        return {**super()._config(name, mode), **(LINK if name == "EA1" else {})}


class Stage:
    """A client at the edge, in a transaction of the broker behind the interior, with one message posted."""

    def __init__(self) -> None:
        self.net = Limited("EA1-INT.A", routes={"work.": ("INT.A", "broker")})
        self.broker = self.net.brokers["broker"]
        self.peer: Peer = self.net.connect("EA1")
        self.sender = self.peer.sender("work.q")
        other = self.peer.sender("work.other")
        self.controller = self.peer.controller()
        self.txn = self.controller.declare()
        self.state = in_transaction(self.txn)
        other.send("beside", state=self.state, settled=True)

    def post(self, body: str = "m", **options: Any) -> Any:
        return self.sender.send(body, state=self.state, **options)

    def bring(self, data: bytes) -> None:
        self.peer.connection.receive(data)
        self.net.run()

    def is_rolled_back(self) -> bool:
        """Nothing is left of it that could be committed, and nothing was."""
        return not self.broker.transactions() and self.broker.queue("work.other").depth == 0

    def closed_with(self) -> list[str]:
        return [str(error.condition) for error in self.peer.closed if error is not None]


def test_too_large_and_settled_ends_the_connection() -> None:
    stage = Stage()
    stage.post(LARGE, settled=True)
    assert stage.sender.error is not None and stage.sender.error.condition == EXCEEDED
    assert stage.closed_with() == [FORCED] and stage.is_rolled_back()
    assert stage.net["EA1"].denials.max_message_size_denied == 1


def test_too_large_and_unsettled_its_sender_is_told_in_the_transaction_and_may_commit_the_rest() -> None:
    stage = Stage()
    (answers,) = stage.post(LARGE)
    assert isinstance(answers[0], TransactionalState) and isinstance(answers[0].outcome, Rejected)
    assert stage.controller.commit(stage.txn) is None and not stage.peer.closed
    assert stage.broker.queue("work.other").depth == 1 and stage.broker.queue("work.q").depth == 0


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
@pytest.mark.parametrize("together", [True, False], ids=["in the same octets", "later"])
def test_a_post_behind_one_too_large(together: bool, settled: bool) -> None:
    stage = Stage()
    said = []
    for body in (LARGE, "m"):
        stage.post(body, settled=settled and body == "m", run=False)
        said.append(stage.peer.engine.take_output())
    if not together:
        stage.bring(said.pop(0))
        assert stage.sender.detached
    stage.bring(b"".join(said))
    assert stage.closed_with() == [FORCED] and stage.is_rolled_back()


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_a_post_behind_the_brokers_own_detach(settled: bool) -> None:
    """Had it come to the broker, that would have rolled the transaction back."""
    stage = Stage()
    stage.broker.delete_queue("work.q")
    stage.post(settled=settled, run=False)
    stage.net.run()
    assert stage.is_rolled_back() or stage.controller.commit(stage.txn) == "amqp:transaction:rollback"


def test_a_post_that_comes_when_its_link_is_gone_at_all_routers() -> None:
    stage = Stage()
    stage.post(settled=True, run=False)
    said = stage.peer.engine.take_output()
    stage.broker.delete_queue("work.q")
    stage.net.run()
    assert stage.sender.detached
    stage.bring(said)
    assert stage.closed_with() == [FORCED] and stage.is_rolled_back()


def test_half_a_post_when_the_broker_ends_its_link() -> None:
    stage = Stage()
    stage.sender.transfer(message(LARGE[:25_000]), state=stage.state, settled=True)
    said = stage.peer.engine.take_output()
    stage.bring(said[:-20])
    stage.broker.delete_queue("work.q")
    stage.net.run()
    stage.bring(said[-20:])
    assert stage.is_rolled_back() or stage.controller.commit(stage.txn) == "amqp:transaction:rollback"


def test_posts_that_wait_for_credit_when_the_broker_ends_their_link() -> None:
    """They were under way when others filled the queue, and credit was taken back."""
    stage = waiting()
    stage.broker.delete_queue("work.q")
    stage.net.run()
    assert stage.closed_with() == [FORCED] and stage.is_rolled_back()


def test_posts_that_wait_for_credit_when_one_behind_them_is_too_large() -> None:
    stage = waiting(LARGE)
    assert stage.sender.error is not None and stage.sender.error.condition == EXCEEDED
    assert stage.closed_with() == [FORCED] and stage.is_rolled_back()


def test_posts_that_wait_for_credit_when_their_own_client_detaches() -> None:
    stage = waiting()
    stage.sender.detach()
    assert stage.closed_with() == [FORCED] and stage.is_rolled_back()


def waiting(*behind: str) -> Stage:
    """The second of its posts is at the edge: the first had the broker see that the queue is full."""
    stage = Stage()
    stage.broker.declare_queue("work.q", max_messages=5, overflow="block")
    said = []
    for body in ("first", "second", *behind):
        stage.post(body, run=False, settled=body not in behind)
        said.append(stage.peer.engine.take_output())
    stage.net.connect("EA1").sender("work.q").send(*"abcde")
    for octets in said[:2]:
        stage.bring(octets)
    (transaction,) = stage.broker.transactions()
    assert transaction.posts == 2, "one beside, the first, and not the second"
    for octets in said[2:]:
        stage.bring(octets)
    return stage


def test_what_its_client_detaches_behind_has_left() -> None:
    stage = Stage()
    stage.post(settled=True, run=False)
    stage.sender.link.detach(closed=True)
    stage.net.run()
    assert stage.controller.commit(stage.txn) is None
    assert stage.broker.queue("work.q").depth == 1 and stage.broker.queue("work.other").depth == 1


def test_what_comes_from_the_broker_is_no_post() -> None:
    """A message acquired in the transaction says so, and comes too late for a consumer that has closed."""
    stage = Stage()
    (connection,) = [each for each in stage.net["INT.A"]._connections if isinstance(each.connector, Through)]
    for session in connection.sessions:
        connection.missed(session, "its link", stage.state)
    assert stage.controller.commit(stage.txn) is None and not connection.ended
