"""A broker of ours on a TCP port, a broker not ours, and the rule that in CI nothing here may be skipped."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.scenarios.conftest import pytest_pyfunc_call as pytest_pyfunc_call  # scenarios are coroutine functions

T = TypeVar("T")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("JMSISH_CI") == "1" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where JMSISH_CI=1 wants everything run: {call.excinfo and call.excinfo.value}"


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
    home = need(fetch.artemis)
    instance = tmp_path_factory.mktemp("artemis") / "instance"
    port = _free_port()
    options = ["--user", "admin", "--password", "admin", "--allow-anonymous", "--no-web", "--host", "127.0.0.1"]
    options += ["--default-port", str(port), "--disable-persistence", "--no-autotune", "--silent"]
    options += [f"--no-{name}-acceptor" for name in ("amqp", "stomp", "hornetq", "mqtt")]
    subprocess.run([home / "bin/artemis", "create", instance, *options], check=True, capture_output=True, timeout=60)
    with _running(instance):
        yield f"amqp://127.0.0.1:{port}"


class _running:
    """Artemis as a process: entered once it says that it serves."""

    def __init__(self, instance: Path) -> None:
        command = [str(instance / "bin/artemis"), "run"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.reader = threading.Thread(target=self._read, name="artemis-output", daemon=True)
        self.serving = threading.Event()
        self.said: list[str] = []

    def __enter__(self) -> None:
        self.reader.start()
        if not self.serving.wait(90) or self.process.poll() is not None:
            self.__exit__()
            pytest.fail("Artemis does not serve: " + "".join(self.said[-20:]))

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)
        self.reader.join(10)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.said.append(line)
                if "AMQ221007" in line:  # Server is now active
                    self.serving.set()
        self.serving.set()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
