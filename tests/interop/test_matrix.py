"""Every type of message, property, id and header goes from us to Qpid JMS and back, through our broker and Artemis.

One virtual machine does it all, once for each broker. What left here must be what Java saw, by value and by type, and
what left Java must be what came here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need
from tests.interop.trip import AGAIN, EQUAL, PEER, SERIALISED, Trip, travel

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=["bundled", "artemis"])
def trip(request: pytest.FixtureRequest) -> Iterator[Trip]:
    classes = need(fetch.qpid_jms, PEER)
    if request.param == "artemis":
        yield travel(request.getfixturevalue("artemis"), classes)
        return
    with EmbeddedBroker() as broker:
        yield travel(broker.listen().url, classes)


@pytest.mark.parametrize("name", EQUAL)
def test_java_sees_what_was_sent(trip: Trip, name: str) -> None:
    assert trip.java[name]["came"] == trip.sent[name]


@pytest.mark.parametrize("name", EQUAL)
def test_what_java_sends_is_seen_here(trip: Trip, name: str) -> None:
    assert "error" not in trip.java[name], trip.java[name]["error"]
    assert trip.back[name] == trip.java[name]["sent"]


def test_a_serialised_object_stays_the_octets_it_came_as(trip: Trip) -> None:
    """What Java serialised is an ObjectMessage whose body nobody opens here; sent to Java again, it is what it was."""
    there, back, again = trip.java[SERIALISED], trip.back[SERIALISED], trip.java[AGAIN[SERIALISED]]
    assert there["came"] == trip.sent[SERIALISED]
    assert back["type"] == "ObjectMessage"
    kind, octets = back["body"]
    assert kind == "byte[]" and octets.startswith("aced0005")  # Java's own magic number, and version 5
    assert again["came"]["type"] == "ObjectMessage"
    assert again["came"]["body"] == there["sent"]["body"] == there["came"]["body"]
