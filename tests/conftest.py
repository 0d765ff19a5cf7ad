"""What all tests share: how much hypothesis may do, what the garbage collector looks at, and who runs which.

The gate is reproducible: with the profile ``default`` every run of one state of the tests tries the same examples, so a
change is judged by what it changed and never by luck (``derandomize``; nothing is read from ``.hypothesis`` either).
New counterexamples are looked for with the profile ``explore``, twenty times as many examples and new ones in each run:
``tox -e explore``, or ``pytest --hypothesis-profile explore`` or ``JMSISH_HYPOTHESIS=explore``. What it finds is mended
and stays as a named test.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=150, deadline=None, print_blob=True, suppress_health_check=SLOW_IS_FINE, derandomize=True
)
settings.register_profile(
    "explore", max_examples=3000, deadline=timedelta(seconds=30), print_blob=True, suppress_health_check=SLOW_IS_FINE
)
settings.load_profile(os.environ.get("JMSISH_HYPOTHESIS", "default"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end, so the garbage collector never looks at it: a million objects, of which each
    look would cost half a second, and tests of what is let go look often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module")
def _put_aside() -> None:
    """What earlier tests have left, so that a module that looks again and again looks at what it makes itself."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def uncollected(_put_aside: None) -> Iterator[None]:
    """The collector of garbage does nothing unless it is asked."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """With ``-n auto`` one process more than there are processors: a third of their time tests wait for time-outs."""
    return (yield) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``-n`` and ``--dist loadgroup``."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from tests.distribution import FileByFile  # pytest-xdist is there

    return FileByFile(config, log)
