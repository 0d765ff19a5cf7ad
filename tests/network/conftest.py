"""Peers that are nothing but frames may take their time."""

from __future__ import annotations

import pytest

from tests.network.raw import PATIENCE


@pytest.fixture(autouse=True)
def _lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is closed for a fault of its own has a second to hear why; what it says after that resets its socket."""
    monkeypatch.setattr("jmsish.drivers.outlet.LINGER", PATIENCE)
