"""Every bench runs, with next to nothing to do. What it finds is looked at by people, not here."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import __main__ as bench
from tests.bench import rates

FEW = ["-n", "50"]


@pytest.fixture
def figures(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "figures.json"
    yield str(path)
    assert path.stat().st_size > 50


@pytest.fixture(autouse=True)
def _peers() -> None:
    if importlib.util.find_spec("proton") is None:
        pytest.skip("the benches compare with proton, which is not installed (pip install 'jmsish[peers]')")


def test_rates(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["rates", *FEW, "--repeat", "1", "--json", figures]) == 0
    shown = capsys.readouterr().out
    assert "failed" not in shown
    for work in rates.WORKS:
        assert work.title in shown


def test_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["rates", *FEW, "--repeat", "1", "--only", "sync_send", "--clients", "jmsish", "--at", "tcp"]
    assert bench.main([*arguments, "--profile", "--profile-broker"]) == 0
    shown = capsys.readouterr().out
    assert "Profile: jmsish at tcp" in shown
    assert "The broker" in shown and "tottime" in shown


def test_depth(figures: str) -> None:
    assert bench.main(["depth", *FEW, "--rounds", "1", "--json", figures]) == 0


def test_transactions(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["transactions", *FEW, "--rounds", "1", "--json", figures]) == 0
    assert "an open transaction" in capsys.readouterr().out


def test_selector(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["selector", *FEW, "--repeat", "1", "--json", figures]) == 0
    assert "from octets, a second" in capsys.readouterr().out


def test_exchanges(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--repeat", "1", "--swaps", "2", "--most", "1000"]
    assert bench.main(["exchanges", *FEW, *few, "--json", figures]) == 0
    assert "routes a second" in capsys.readouterr().out


def test_soak(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["soak", "-n", "4", "--between", "1", "--json", figures]) == 0
    assert "none lost" in capsys.readouterr().out


def test_routers(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--most", "1", "--repeat", "1", "--megabytes", "1", "--seconds", "0.2", "--turns", "1", "--transports", "vm"]
    assert bench.main(["routers", "-n", "50", *few, "--json", figures]) == 0
    shown = capsys.readouterr().out
    assert "held by each router" in shown and "one amid a large message" in shown


def test_startup(figures: str) -> None:
    assert bench.main(["startup", "--repeat", "1", "--json", figures]) == 0


def test_broker(figures: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["broker", *FEW, "--repeat", "1", "--profile", "--json", figures]) == 0
    assert "Profile: message in" in capsys.readouterr().out


def test_engine(figures: str) -> None:
    assert bench.main(["engine", *FEW, "--repeat", "1", "--seconds", "0.05", "--json", figures]) == 0
