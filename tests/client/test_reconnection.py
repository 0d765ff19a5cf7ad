"""The plan of where and when to connect again: turns, waits, limits, refusals, other hosts (M111, scenarios J)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from jmsish.client.reconnection import HOPS, OVER, STANDING, Reconnection
from jmsish.errors import ConnectionLostError, InvalidClientIDError, JMSError, JMSSecurityError
from jmsish.options import parse_url
from jmsish.types import Symbol, UShort

LOST = ConnectionLostError("gone", scope="connection")
THREE = "failover:(amqp://a,amqp://b,amqp://c)"


class Play:
    """A plan, and a clock that goes to each moment it names."""

    def __init__(self, url: str = THREE, **options: Any) -> None:
        self.plan = Reconnection(parse_url(url, **options), shuffle=lambda places: places.reverse())
        self.now = 100.0

    def dial(self) -> tuple[str, float]:
        """Goes on to what is next: the host, and how long that was waited for."""
        found = self.plan.next()
        assert found is not None
        place, at = found
        waited, self.now = round(at - self.now, 6), max(at, self.now)
        self.plan.due()
        return str(place.host), waited

    def fail(self, error: JMSError = LOST) -> None:
        self.plan.failed(self.now, error)

    def stand(self, seconds: float = 60) -> None:
        self.plan.restored(self.now)
        self.now += seconds

    def tries(self, count: int) -> list[tuple[str, float]]:
        found = []
        for _ in range(count):
            found.append(self.dial())
            self.fail()
        return found

    def start(self) -> Play:
        """A first connection, to the first broker, that is lost."""
        self.plan.lost(self.now)
        self.dial()
        self.stand()
        self.plan.lost(self.now, LOST)
        return self


def test_the_first_turn_begins_with_the_first_broker_and_waits_for_nothing() -> None:
    play = Play()
    play.plan.lost(play.now)
    assert play.tries(3) == [("a", 0), ("b", 0), ("c", 0)]


def test_after_a_loss_the_turn_begins_behind_the_broker_that_was_lost() -> None:
    assert Play().start().tries(3) == [("b", 0), ("c", 0), ("a", 0)]


def test_waits_stand_between_turns_and_grow_by_the_back_off() -> None:
    play = Play("failover:(amqp://a,amqp://b)", max_reconnect_delay=0.05).start()
    waits = [wait for _, wait in play.tries(10)]
    assert waits == [0, 0, 0.01, 0, 0.02, 0, 0.04, 0, 0.05, 0]


def test_without_back_off_they_are_all_alike() -> None:
    play = Play("failover:(amqp://a)", use_reconnect_back_off=False, reconnect_delay=0.5).start()
    assert [wait for _, wait in play.tries(4)] == [0, 0.5, 0.5, 0.5]


def test_by_the_multiplier_that_was_chosen() -> None:
    play = Play("failover:(amqp://a)?failover.reconnectBackOffMultiplier=3&failover.reconnectDelay=100").start()
    assert [wait for _, wait in play.tries(4)] == [0, 0.1, 0.3, 0.9]


def test_the_wait_is_bounded_after_a_thousand_attempts() -> None:
    assert Play("failover:(amqp://a)").start().tries(1000)[-1] == ("a", 30)


def test_the_first_attempt_after_a_loss_waits_as_it_was_told() -> None:
    assert Play("failover:(amqp://a)", initial_reconnect_delay=2).start().dial() == ("a", 2)


def test_a_success_starts_the_waits_anew() -> None:
    play = Play("failover:(amqp://a)").start()
    play.tries(5)
    play.dial()
    play.stand()
    play.plan.lost(play.now, LOST)
    assert play.tries(2) == [("a", 0), ("a", 0.01)]


def test_a_connection_that_is_lost_at_once_again_is_waited_for() -> None:
    """A broker that accepts and closes is not dialled in a tight loop."""
    play = Play("failover:(amqp://a)").start()
    play.dial()
    play.stand(seconds=0)
    play.plan.lost(play.now, LOST)
    assert play.dial() == ("a", 0.01)


def test_in_random_order_where_that_is_wanted() -> None:
    play = Play(randomize=True)
    play.plan.lost(play.now)
    assert [host for host, _ in play.tries(3)] == ["c", "b", "a"]


@pytest.mark.parametrize(("url", "tries"), [(THREE, 6), ("failover:(amqp://a)", 2)])
def test_attempts_are_turns_and_their_number_is_kept_to(url: str, tries: int) -> None:
    play = Play(url, max_reconnect_attempts=2).start()
    play.tries(tries)
    assert play.plan.next() is None and play.plan.state == OVER
    assert isinstance(play.plan.verdict(), ConnectionLostError)


def test_at_the_start_as_many_as_later_unless_told_otherwise() -> None:
    play = Play("failover:(amqp://a)", max_reconnect_attempts=2)
    play.plan.lost(play.now)
    play.tries(2)
    assert play.plan.state == OVER
    play = Play("failover:(amqp://a)", max_reconnect_attempts=2, startup_max_reconnect_attempts=1)
    play.plan.lost(play.now)
    play.tries(1)
    assert play.plan.state == OVER


def test_no_attempt_makes_a_loss_final_and_leaves_the_first_connection_one(caplog: pytest.LogCaptureFixture) -> None:
    play = Play("failover:(amqp://a)", max_reconnect_attempts=0)
    play.plan.lost(play.now)
    play.dial()
    play.stand()
    play.plan.lost(play.now, LOST)
    assert play.plan.state == OVER and play.plan.verdict() is LOST
    assert "is made again" not in caplog.text


def test_the_verdict_names_each_broker_and_what_was_wrong_with_it() -> None:
    """A list with one wrong entry says which."""
    play = Play(startup_max_reconnect_attempts=1)
    play.plan.lost(play.now)
    for text in ("connection refused", "no such host", "no answer within 15 s"):
        play.dial()
        play.fail(ConnectionLostError(text))
    said = str(play.plan.verdict())
    assert "amqp://a:5672: connection refused" in said and "amqp://b:5672: no such host" in said
    assert "in 1 attempt:" in said and "amqp://c:5672: no answer within 15 s" in said


def test_a_broker_that_refuses_the_password_is_not_asked_again() -> None:
    play = Play("failover:(amqp://a,amqp://b)")
    play.plan.lost(play.now)
    play.dial()
    play.fail(JMSSecurityError("no", scope="connection"))
    assert [host for host, _ in play.tries(3)] == ["b", "b", "b"]


def test_when_all_refuse_it_is_over() -> None:
    play = Play("failover:(amqp://a,amqp://b)")
    play.plan.lost(play.now)
    for _ in range(2):
        play.dial()
        play.fail(JMSSecurityError("the credentials were refused", scope="connection"))
    assert play.plan.next() is None
    assert isinstance(play.plan.verdict(), JMSSecurityError)


def test_the_next_outage_asks_those_again_that_refused() -> None:
    play = Play("failover:(amqp://a,amqp://b)").start()
    play.dial()
    play.fail(JMSSecurityError("no", scope="connection"))
    play.dial()
    play.stand()
    play.plan.lost(play.now, LOST)
    assert [host for host, _ in play.tries(2)] == ["b", "a"]


def test_a_client_id_in_use_ends_a_first_connection_and_is_waited_for_later() -> None:
    """After a loss it is our own old connection, which the broker has not missed yet."""
    play = Play("failover:(amqp://a)")
    play.plan.lost(play.now)
    play.dial()
    play.fail(InvalidClientIDError("in use"))
    assert play.plan.state == OVER and isinstance(play.plan.verdict(), InvalidClientIDError)
    play = Play("failover:(amqp://a)").start()
    play.dial()
    play.fail(InvalidClientIDError("in use"))
    assert play.dial() == ("a", 0.01)


# -- other hosts -------------------------------------------------------------------------------------------------------


def entry(host: str, **more: Any) -> dict[Any, Any]:
    return {Symbol(key.replace("_", "-")): value for key, value in {"network_host": host, **more}.items()}


LIST: dict[Any, Any] = {Symbol("failover-server-list"): [entry("x", port=UShort(1)), entry("y", port=2)]}


@pytest.mark.parametrize(
    ("action", "hosts"),
    [("REPLACE", ["x:1", "y:2"]), ("ADD", ["x:1", "y:2", "a:5672"]), ("IGNORE", ["a:5672"])],
)
def test_m39_hosts_that_a_broker_names(action: str, hosts: list[str]) -> None:
    """They replace those of the URL, join them, or are ignored, as the option says."""
    plan = Reconnection(parse_url("failover:(amqp://a)", amqp_open_server_list_action=action))
    plan.learned(LIST)
    assert [f"{place.host}:{place.port}" for place in plan.places] == hosts


@pytest.mark.parametrize(
    "named",
    [
        None, "x", [], [None], [{}], [entry("x", port=0)], [entry("x", port="1")], [entry("x", scheme="ws")],
        [entry("")], [entry("x\0y")], [entry("x\ny")], [entry("x y")],
    ],
)  # fmt: skip
def test_a_list_that_says_nothing_changes_nothing(named: Any) -> None:
    plan = Reconnection(parse_url("failover:(amqp://a)"))
    plan.learned({Symbol("failover-server-list"): named})
    assert [place.host for place in plan.places] == ["a"]


def test_credentials_and_options_go_along_to_a_host_that_was_learned() -> None:
    plan = Reconnection(parse_url("failover:(amqps://u:p@a?jms.prefetch=3)"))
    plan.learned({"failover-server-list": [entry("x", hostname="shop")]})
    (place,) = plan.places
    assert (place.url, place.username, place.password, place.options.prefetch) == ("amqps://x:5671", "u", "p", 3)
    assert place.options.vhost == "shop"


def redirect(host: str, **more: Any) -> ConnectionLostError:
    return ConnectionLostError("over there", condition="amqp:connection:redirect", info=entry(host, **more))


def test_m40_a_redirect_of_a_connection_is_followed_at_once() -> None:
    play = Play(initial_reconnect_delay=5)
    play.plan.lost(play.now)
    play.dial()
    play.fail(redirect("z", port=9))
    assert play.dial() == ("z", 0)
    play.stand()
    assert play.plan.current.url == "amqp://z:9" and play.plan.state == STANDING
    play.plan.lost(play.now, redirect("w"))
    assert play.dial() == ("w", 0)


@pytest.mark.parametrize("url", ["amqps://a", "amqpwss://a"])
def test_m37_no_redirect_leads_out_of_tls(url: str) -> None:
    play = Play(f"failover:({url})")
    play.plan.lost(play.now)
    play.dial()
    play.fail(redirect("z", scheme="amqp"))
    assert play.dial()[0] == "a"


def test_redirects_in_a_circle_end() -> None:
    play = Play("failover:(amqp://a)", max_reconnect_attempts=1).start()
    for _ in range(HOPS + 1):
        play.dial()
        play.fail(redirect("z"))
    assert play.plan.state == OVER


# -- what the log says -------------------------------------------------------------------------------------------------


def test_retries_are_in_the_log_once_a_broker_and_every_ten_attempts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "jmsish.client")
    play = Play("failover:(amqp://a,amqp://b)").start()
    caplog.clear()
    play.tries(50)
    said = [record.getMessage() for record in caplog.records]
    assert sum("is not reached" in line for line in said) == 2
    assert [line.split(":")[0] for line in said if "attempts" in line] == [
        "10 attempts to connect have failed",
        "20 attempts to connect have failed",
    ]


def test_no_password_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "jmsish.client")
    play = Play("failover:(amqp://u:secret@a,amqp://b)", password="secret", username="u").start()
    play.tries(30)
    play.plan.learned(LIST)
    assert "secret" not in caplog.text and "secret" not in str(play.plan.verdict())
