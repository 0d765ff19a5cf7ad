"""A broker, and command lines run in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator

import pytest

import jmsish
from jmsish.cli.main import main

Run = Callable[..., str]
Complaint = Callable[..., tuple[int, str]]


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    with jmsish.EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line that must succeed; gives its standard output."""

    def run(*arguments: str, stdin: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8")), encoding="ascii"))
        status = main(arguments)
        captured = capfd.readouterr()
        assert (status, captured.err) == (0, "")
        return captured.out

    return run


@pytest.fixture
def complaint(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Complaint:
    """Runs a command line that must fail; gives its status and its one line."""

    def complaint(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            status = main(arguments)
        except SystemExit as end:
            status = int(str(end.code))
        error = capfd.readouterr().err
        assert error.startswith("jmsish: ") and error.count("\n") == 1, error
        return status, error

    return complaint
