"""The integration tests of go-amqp, run by Go itself against our broker: written by others, and fetched at run time."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]  # Compiling them is most of it.

TESTS = [
    "TestIntegrationRoundTrip",
    "TestIntegrationRoundTrip_Buffered",
    "TestIntegrationReceiverModeSecond",
    "TestIntegrationSessionHandleMax",
    "TestIntegrationLinkName",
    "TestIntegrationClose",
    "TestMultipleSessionsOpenClose",
    "TestConcurrentSessionsOpenClose",
    "TestDialWithCancelledContext",
    "TestNewSessionWithCancelledContext",
    "TestReceiverModeFirst",
    "TestSenderExactlyOnce",
    "TestReceivingLotsOfSettledMessages",
    "TestNewReceiverWithCancelledContext",
    "TestMultipleSendersSharedSession",
    "TestDrainingLink",
    "TestSenderNullValue",
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if other := os.environ.get("JMSISH_INTEROP_URL"):
        yield other
        return
    with EmbeddedBroker() as broker:
        listener = broker.listen()
        yield f"amqp://{listener.host}:{listener.port}"


@pytest.fixture(scope="module")
def said(address: str) -> str:
    """What one run of all of them said."""
    program = need(fetch.go_amqp)
    chosen = "^(" + "|".join(TESTS) + ")$"
    done = subprocess.run(
        [str(program), "-test.v", "-test.timeout=240s", f"-test.run={chosen}"],
        cwd=program.parent,
        env={**os.environ, "AMQP_BROKER_ADDR": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.stdout


@pytest.mark.parametrize("name", TESTS)
def test_go_amqp(said: str, name: str) -> None:
    verdict = re.search(rf"^--- (\w+): {name} ", said, re.MULTILINE)
    assert verdict is not None, f"{name} did not run to its end:\n{said[-3000:]}"
    assert verdict[1] == "PASS", said_of(said, name)


def said_of(said: str, name: str) -> str:
    """The lines of a run that are about one test."""
    start = said.find(f"=== RUN   {name}\n")
    end = re.compile(rf"^--- \w+: {name} .*$(\n +.*$)*", re.MULTILINE).search(said)
    return said[start : None if end is None else end.end()][-6000:]
