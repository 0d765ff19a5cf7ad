"""A neighbour that tells an address and does not take its messages: nobody waits for ever or goes in circles."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker.network.ingress import LINGER, REFUSED_FOR
from jmsish.engine.outcomes import ACCEPTED, RELEASED, AmqpError, Modified, Rejected, Target
from tests.network.stranger import Stranger, refusing, taking
from tests.network.test_mobile import bodies, to
from tests.network.world import Network

NO = Rejected(AmqpError("test:no", "not here"))


@pytest.fixture
def line() -> Network:
    return Network("EA1-INT.A-INT.B")


def telling(network: Network, at: str, answers: Any, *, router: str = "INT.X") -> Stranger:
    stranger = Stranger(network, at, router=router, answers=answers)
    stranger.tell({"Aorders": 0})
    return stranger


@pytest.mark.parametrize("sending", ["INT.B", "INT.A", "EA1"])
def test_what_waited_for_a_refused_link_is_rejected_with_the_words_of_the_neighbour(
    line: Network, sending: str
) -> None:
    stranger = telling(line, "INT.B", refusing())
    sender = line.connect(sending).sender("orders")
    told = sender.send(*map(str, range(30)))
    assert told == [[NO]] * 30
    assert len(stranger.attached) == 1 and sender.error is None
    assert sender.link.credit == 0 or sending != "INT.B"


def test_it_is_asked_again_after_a_while_and_not_with_each_message(line: Network) -> None:
    stranger = telling(line, "INT.B", refusing())
    sender = line.connect("INT.B").sender("orders")
    assert sender.send("a") == [[NO]]
    assert sender.link.credit == 0
    for _ in range(3):
        line.advance(REFUSED_FOR / 2)
        line.advance(REFUSED_FOR / 2)
        assert sender.send("b") == [[NO]]
    assert len(stranger.attached) == 4
    stranger.answers = taking()
    line.advance(REFUSED_FOR)
    (told,) = sender.send("c")
    assert bodies(stranger.arrived) == ["c"]
    for delivery in stranger.arrived:
        delivery.link.session.disposition(delivery, ACCEPTED, True)
    line.run()
    assert told == [ACCEPTED]


def test_it_is_asked_again_at_once_when_its_address_is_told_anew(line: Network) -> None:
    stranger = telling(line, "INT.B", refusing())
    sender = line.connect("INT.A").sender("orders")
    sender.send("a")
    stranger.answers = taking()
    stranger.tell(remove=["Aorders"])
    stranger.tell({"Aorders": 0})
    sender.send("b")
    assert bodies(stranger.arrived) == ["b"]


def test_another_way_is_taken(line: Network) -> None:
    telling(line, "INT.A", refusing())
    far = line.connect("INT.B").receiver("orders", credit=10)
    line.advance(0.1)
    sender = line.connect("INT.A").sender("orders")
    sender.send("a", "b")
    assert sorted(bodies(far.arrived)) == ["a", "b"]
    assert sender.link.credit > 0


def test_a_receiver_that_comes_here_meanwhile_gets_what_comes(line: Network) -> None:
    telling(line, "INT.B", refusing())
    sender = line.connect("INT.B").sender("orders")
    sender.send("a")
    receiver = line.connect("INT.B").receiver("orders", credit=10)
    (told,) = sender.send("b")
    receiver.accept(receiver.take())
    assert told == [ACCEPTED]


def test_an_anonymous_sender_hears_it_of_each_message(line: Network) -> None:
    stranger = telling(line, "INT.B", refusing())
    sender = line.connect("INT.B").sender(None)
    told = [sender.transfer(to("orders", str(number))) for number in range(10)]
    line.run()
    assert told == [[NO]] * 10
    assert sender.send_octets(to("orders", "later")) == [NO]
    assert sender.link.credit > 0 and len(stranger.attached) == 1


def test_of_a_multicast_message_the_others_have_their_copies(line: Network) -> None:
    telling(line, "INT.B", refusing())
    receiver = line.connect("INT.A").receiver("orders", credit=300, capabilities=("topic",))
    sender = line.connect("INT.B").sender("orders", target=Target(address="orders", capabilities=("topic",)))
    told = sender.send(*map(str, range(50)))
    receiver.accept(receiver.take())
    told += sender.send(*map(str, range(50)))
    receiver.accept(receiver.take())
    assert told == [[ACCEPTED]] * 100


def test_of_a_multicast_message_that_nobody_takes_the_refusal_is_told(line: Network) -> None:
    telling(line, "INT.B", refusing())
    sender = line.connect("INT.B").sender("orders", target=Target(address="orders", capabilities=("topic",)))
    assert sender.send("a", "b") == [[NO]] * 2


def test_a_link_that_is_ended_after_a_while_gives_back_what_it_has_and_another_is_made(line: Network) -> None:
    stranger = telling(line, "INT.B", taking(2))
    sender = line.connect("INT.B").sender("orders")
    told = sender.send("a", "b", "c", "d")
    assert bodies(stranger.arrived) == ["a", "b"]
    stranger.attached[0].detach(closed=True, error=AmqpError("test:enough", "enough"))
    line.run()
    assert [type(states[0]) for states in told[:2]] == [Modified] * 2  # they may have been seen
    assert told[2:] == [[]] * 2
    assert bodies(stranger.arrived) == ["a", "b", "c", "d"] and len(stranger.attached) == 2


def test_links_that_are_ended_before_they_took_anything_are_refused(line: Network) -> None:
    def answer(link: Any) -> None:
        link.attach()
        link.flow(10)
        link.detach()

    stranger = telling(line, "INT.B", answer)
    sender = line.connect("INT.B").sender("orders")
    told = sender.send("a", "b")
    line.advance(0.1)
    assert told == [[RELEASED]] * 2 and len(stranger.attached) == 1


def test_a_session_that_is_ended_gives_back_what_it_has(line: Network) -> None:
    stranger = telling(line, "INT.B", lambda link: link.session.end(AmqpError("test:no", "no session")))
    sender = line.connect("INT.B").sender("orders")
    told = sender.send("a", "b")
    assert told == [[RELEASED]] * 2
    line.advance(LINGER)
    assert sender.link.credit == 0
    assert len(stranger.attached) == 1 and not stranger.closed


def test_a_large_message_is_not_begun_for_ever(line: Network) -> None:
    stranger = telling(line, "INT.B", refusing())
    sender = line.connect("INT.A").sender("orders")
    (told,) = sender.send("x" * 500_000)
    assert told == [NO] and len(stranger.attached) == 1
    assert sender.send("small") == [[]] or sender.link.credit >= 0


def test_sessions_of_refused_links_do_not_stay(line: Network) -> None:
    telling(line, "INT.B", refusing())
    sender = line.connect("INT.B").sender("orders")
    for _ in range(5):
        sender.send("a")
        line.advance(REFUSED_FOR)
    (neighbour,) = [each for each in line["INT.B"].neighbours if each.container_id == "INT.X"]
    assert len(neighbour.sessions) == 2  # those of the two control links
    sender.detach()
    assert not line["INT.B"].known_address("orders")


def test_each_refusal_is_told_the_log_once(line: Network, caplog: pytest.LogCaptureFixture) -> None:
    telling(line, "INT.B", refusing())
    sender = line.connect("INT.B").sender("orders")
    sender.send(*map(str, range(100)))
    (record,) = [each for each in caplog.records if "takes none of the messages" in each.getMessage()]
    assert "'INT.X'" in record.getMessage() and "not here" in record.getMessage()
