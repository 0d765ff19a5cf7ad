"""A broker of ours on a TCP port, a broker not ours, and the rule that in CI nothing here may be skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from jmsish import EmbeddedBroker
from tests.interop import brokers, fetch
from tests.scenarios.conftest import pytest_pyfunc_call as pytest_pyfunc_call  # scenarios are coroutine functions

T = TypeVar("T")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("JMSISH_CI") == "1" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where JMSISH_CI=1 wants everything run: {call.excinfo and call.excinfo.value}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run in several processes, those of peers run in one, so that each foreign broker is started once.

    And each has the time for what is downloaded, compiled and started at its first use.
    """
    for item in items:
        if "/tests/interop/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("peers"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(autouse=True, scope="session")
def _wanted() -> None:
    if os.environ.get("JMSISH_INTEROP") == "0":
        pytest.skip("JMSISH_INTEROP=0")


def need(what: Callable[..., T], *arguments: Any) -> T:
    """What `what` finds or downloads; the test is skipped, with the reason, where it is not to be had."""
    try:
        return what(*arguments)
    except fetch.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    """Where the peers go: a broker of ours, fresh for each test, or the one that JMSISH_INTEROP_URL names."""
    if other := os.environ.get("JMSISH_INTEROP_URL"):
        return other
    broker: EmbeddedBroker = request.getfixturevalue("broker")
    return broker.listen().url


@pytest.fixture(scope="session")
def artemis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an Apache Artemis without persistence."""
    need(fetch.artemis)
    with brokers.artemis(tmp_path_factory.mktemp("artemis")) as target:
        yield f"amqp://{target}"


@pytest.fixture(scope="session")
def broker_j(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Qpid Broker-J that makes queues on first use."""
    need(fetch.broker_j)
    with brokers.broker_j(tmp_path_factory.mktemp("broker-j")) as target:
        yield f"amqp://{target}"
