"""Runs each scenario on the four faces."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from .face import FACES, Face


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """One of the four ways to run a scenario, with a fresh broker."""
    make, wire = FACES[request.param]
    yield make(wire)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """DUPS_OK acknowledges what nothing follows at once, not after a second (D12)."""
    monkeypatch.setattr("jmsish.client.ledger.LAZY_SECONDS", 0.0)
    monkeypatch.setattr("jmsish.drivers.threaded.TICK", 0.01)
    monkeypatch.setattr("jmsish.drivers.loop.LONGEST_NAP", 0.01)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A scenario is a coroutine function: its face runs it."""
    scenario = pyfuncitem.obj
    if not inspect.iscoroutinefunction(scenario):
        return None
    wanted = inspect.signature(scenario).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    runs = pyfuncitem.funcargs["face"]
    assert isinstance(runs, Face)
    runs.run(scenario(**arguments))
    return True
