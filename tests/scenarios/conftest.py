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
