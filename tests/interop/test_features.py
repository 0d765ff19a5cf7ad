"""Subscriptions, selectors, browsers, temporary destinations, groups, delay: Qpid JMS at our broker, jmsish at others.

The scenarios are the same, in two languages, and so is what they must see.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need
from tests.interop.features import Features, Seen

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PEER = Path(__file__).parent / "peers/FeaturePeer.java"
SHARED_DURABLY: Seen = {"together": ["a", "b", "c", "d"], "kept": ["e", "f"], "anew": []}
TEMPORARY: Seen = {
    "received": ["a", "b"],
    "consumed_elsewhere": True,
    "deleted_in_use": True,
    "consumed_when_gone": True,
}
EXPECTED: dict[str, Seen] = {
    "non_durable": {"one": ["b", "c"], "two": ["c"]},
    "durable": {"first": ["a"], "kept": ["b", "c"], "anew": []},
    "durable_changed": {"other_selector": ["w3"], "other_topic": []},
    "unsubscribing": {"active": True, "unknown": "invalid destination"},
    "shared": {"together": ["a", "b", "c", "d"], "other": ["a", "b", "c", "d"], "left": ["e"], "anew": []},
    "shared_durable": SHARED_DURABLY,
    "shared_durable_of_a_client": SHARED_DURABLY,
    "no_local": {"received": ["other's"]},
    "selectors": {
        "heavy": ["w11", "w12"],
        "light": ["w1", "w2", "w3"],
        "published": ["w2", "w3", "w4"],
        "bad": "invalid selector",
    },
    "browsers": {
        "heavy": ["w11", "w12"],
        "all": ["w1", "w11", "w2", "w12"],
        "received": ["w1", "w11", "w2", "w12"],
        "after": [],
    },
    "temporary_queue": TEMPORARY,
    "temporary_topic": TEMPORARY,
    "groups": {
        "owners": [1, 1, 1],
        "bodies": [[f"{group}{number}" for number in range(4)] for group in "abc"],
        "left": ["a4"],
    },
    "delay": {"early": False, "received": ["now", "later"]},
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if other := os.environ.get("JMSISH_INTEROP_URL"):
        yield other
        return
    with EmbeddedBroker() as broker:
        yield broker.listen().url


@pytest.fixture(scope="module")
def of_java(address: str) -> dict[str, Any]:
    """What Qpid JMS sees of all scenarios, in one virtual machine."""
    classes = need(fetch.qpid_jms, PEER)
    command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", classes, "FeaturePeer"]
    done = subprocess.run([*command, address, *EXPECTED], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return {line["scenario"]: line["seen"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("scenario", EXPECTED)
def test_qpid_jms_at_the_bundled_broker(of_java: dict[str, Any], scenario: str) -> None:
    assert of_java[scenario] == EXPECTED[scenario]


@pytest.mark.parametrize("scenario", EXPECTED)
def test_jmsish_at_artemis(artemis: str, scenario: str) -> None:
    assert Features(artemis).run(scenario) == EXPECTED[scenario]


NOT_AT_BROKER_J = {
    "temporary_topic": "set to make queues, it makes one of the address that a consumer of the topic names",
    "delay": "queues hold delayed messages only where they are told to when they are made",
}


@pytest.mark.parametrize("scenario", [scenario for scenario in EXPECTED if scenario not in NOT_AT_BROKER_J])
def test_jmsish_at_broker_j(broker_j: str, scenario: str) -> None:
    assert Features(broker_j, "amq.topic/").run(scenario) == EXPECTED[scenario]
