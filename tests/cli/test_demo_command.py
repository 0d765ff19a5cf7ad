"""The demo from end to end: both faces, both transports, files of all kinds, and its picture."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jmsish
from jmsish.cli.demo import progress
from jmsish.cli.demo.ledger import Ledger
from jmsish.cli.demo.story import Queues
from jmsish.cli.main import main

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
Demo = Callable[..., "tuple[dict[str, Any], str]"]


@pytest.fixture
def demo(capfd: pytest.CaptureFixture[str]) -> Demo:
    """Runs the demo, which must succeed; gives its last line and all of its output."""

    def demo(*arguments: str) -> tuple[dict[str, Any], str]:
        status = main(["demo", *arguments])
        captured = capfd.readouterr()
        assert (status, captured.err) == (0, ""), captured
        return json.loads(captured.out.splitlines()[-1]), captured.out

    return demo


FACES = [[], ["--aio"]]
TRANSPORTS = [[], ["--tcp"]]


@pytest.mark.parametrize("face", FACES, ids=["sync", "aio"])
@pytest.mark.parametrize("transport", TRANSPORTS, ids=["vm", "tcp"])
def test_the_orders_that_come_with_the_product(demo: Demo, face: list[str], transport: list[str]) -> None:
    figures, output = demo(*face, *transport)
    assert figures["sent"] == 300
    assert (figures["processed"], figures["dead_lettered"]) == (258, 42)
    assert (figures["lost"], figures["doubled"], figures["out_of_order"], figures["wrong_count"]) == (0, 0, 0, 0)
    assert figures["redelivered"] == 42 * 2 + 1
    assert (figures["consumers_closed"], figures["connections_cut"]) == (1, 1)
    assert "| lost" in output and "conservation holds" in output


@pytest.mark.parametrize("face", FACES, ids=["sync", "aio"])
def test_against_a_broker_that_knows_nothing_of_the_demo(demo: Demo, face: list[str]) -> None:
    with jmsish.EmbeddedBroker() as broker:
        url = broker.listen().url
        for _ in range(2):  # a second run starts clean
            figures, _ = demo("--url", url, "--limit", "100", *face)
            assert (figures["sent"], figures["processed"], figures["dead_lettered"]) == (100, 86, 14)
            assert figures["redelivered"] == 14 * 2 + 1


@pytest.mark.parametrize("arguments", [["--prefetch", "0"], ["--prefetch", "1"], ["--batch", "1"], ["--batch", "1000"]])
def test_windows_of_all_sizes(demo: Demo, arguments: list[str]) -> None:
    assert demo("--limit", "60", *arguments)[0]["processed"] == 52


@pytest.mark.parametrize("every", ["0", "1", "2"])
@pytest.mark.parametrize("attempts", ["1", "2", "5"])
def test_failures_of_all_kinds(demo: Demo, every: str, attempts: str) -> None:
    figures, _ = demo("--limit", "21", "--fail-every", every, "--max-attempts", attempts)
    assert figures["processed"] + figures["dead_lettered"] == figures["sent"] == 21


@pytest.mark.parametrize(("name", "count"), [("orders.csv", 300), ("orders.jsonl", 120), ("orders.txt", 60)])
def test_files_of_all_kinds(demo: Demo, name: str, count: int) -> None:
    assert demo(str(DATA / name))[0]["sent"] == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("one", 1), ("a\nb\n", 2), ("\n\n\n", 3), ("same\n" * 10, 10), ("x" * 3_000_000 + "\nshort\n", 2)],
    ids=["empty", "one line", "two lines", "blank lines", "all alike", "a long line"],
)
def test_odd_files(demo: Demo, tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "orders").write_text(text, encoding="utf-8")
    figures, _ = demo(str(tmp_path / "orders"))
    assert figures["sent"] == figures["processed"] + figures["dead_lettered"] == count


def test_the_picture_shows_a_rollback(demo: Demo) -> None:
    _, output = demo("--limit", "30", "--trace", "8", "--width", "120")
    assert "order 7 │" in output
    for words in ("sent", "prefetched, unread", "handed over", "rolled back, counted", "released, not counted"):
        assert words in output


def test_the_picture_of_the_cut(demo: Demo) -> None:
    _, output = demo("--limit", "30", "--trace", "19-21")
    assert "order 20 │" in output and "order 18 │" not in output
    assert "! its connection was cut" in output.replace("\n", " ")


def test_trace_before_the_file_is_understood(demo: Demo) -> None:
    figures, output = demo("--trace", str(DATA / "orders.txt"))
    assert figures["sent"] == 60 and "order 12" in output


def test_quiet_is_one_line(demo: Demo) -> None:
    assert demo("--quiet", "--limit", "10")[1].count("\n") == 1


def test_as_a_module_from_another_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jmsish", "demo", "--limit", "20"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["lost"] == 0


def environment() -> dict[str, str]:
    """The product's place on the path, for a machine where it is not installed; no UTF-8, as on a bare one."""
    place = str(Path(jmsish.__file__).resolve().parents[1])
    return {"PYTHONPATH": place, "PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("face", FACES, ids=["sync", "aio"])
def test_a_broker_that_is_not_there_is_one_line(face: list[str]) -> None:
    command = [sys.executable, "-W", "error", "-m", "jmsish", "demo", "--url", "amqp://127.0.0.1:1", *face]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=DATA.parents[1])
    assert done.returncode == 1
    assert done.stderr.startswith("jmsish: ") and done.stderr.count("\n") == 1 and "127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("face", FACES, ids=["sync", "aio"])
def test_a_limit_of_the_brokers_own_is_found_and_explained(
    face: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that dead-letters earlier than the demo expects takes orders out of its hands: the proof must not
    hold.
    """
    names = Queues.named("demo-with-a-limit")
    monkeypatch.setattr(Queues, "named", lambda run: names)
    with jmsish.EmbeddedBroker() as broker:
        broker.declare_queue(names.orders, max_delivery_attempts=2, dead_letter="elsewhere")
        status = main(["demo", "--url", broker.listen().url, "--limit", "30", "--timeout", "1", *face])
    output = capfd.readouterr().out
    figures = json.loads(output.splitlines()[-1])
    assert status == 1 and not figures["holds"] and figures["lost"] == 4
    assert "has this broker a limit of its own" in output


def test_a_bar_is_drawn_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for bar in (None, progress._rich_bar):
        screen = Terminal()
        with pytest.MonkeyPatch.context() as patch:
            if bar is None:  # as where rich is not installed
                patch.setattr(progress, "_rich_bar", lambda stream: None)
            with progress.showing(10, stream=screen) as shown:
                shown.update(Ledger(10, 3, processed=10, head=11))
        assert "10/10" in screen.getvalue().replace(" ", "")
