"""freeze: exchanges held still while a command runs, or until standard input ends, or until interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jmsish
from jmsish.cli.main import main

from .conftest import Complaint, Run

SWITCH = '{"remove": [["blue", "k"]], "add": [["green", "k"]]}'
CLI = (sys.executable, "-m", "jmsish")
LONG = ("--hold", "300")
"""As long as a busy machine takes to run a command."""


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    """The queues blue and green, and the exchange `orders`, whose messages with the key k go to blue."""
    with jmsish.EmbeddedBroker() as broker:
        broker.declare_queue("blue")
        broker.declare_queue("green")
        broker.declare_exchange("orders", "direct").bind("blue", "k")
        yield broker


@pytest.fixture
def url(broker: jmsish.EmbeddedBroker) -> str:
    """For other processes."""
    return broker.listen().url


@pytest.fixture
def switch(tmp_path: Path) -> str:
    path = tmp_path / "switch.json"
    path.write_text(SWITCH)
    return str(path)


def bound(broker: jmsish.EmbeddedBroker) -> set[tuple[str, str]]:
    return {(binding.queue, binding.key) for binding in broker.exchange("orders").bindings()}


def python(text: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", text)


def test_it_is_held_while_the_command_runs(broker: jmsish.EmbeddedBroker, url: str, run: Run) -> None:
    shown = run("freeze", url, "orders", "amq.fanout", *LONG, "--", *CLI, "topology", url, "--all")
    assert "orders (direct, frozen)" in shown and "amq.fanout (fanout, frozen)" in shown
    assert "amq.direct (direct)" in shown
    assert not broker.exchange("orders").is_frozen


def test_its_status_is_that_of_the_command(broker: jmsish.EmbeddedBroker) -> None:
    assert main(["freeze", broker.url, "orders", *LONG, *python("raise SystemExit(7)")]) == 7
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert main(["freeze", broker.url, "orders", *LONG, *python(killed)]) == 128 + signal.SIGTERM
    assert not broker.exchange("orders").is_frozen


def test_what_the_command_is_given_is_not_ours_to_read(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    text = "import sys; print(sys.argv[1:])"
    shown = run("freeze", broker.url, "orders", "--hold", "200", *python(text), "--hold", "5", "--", "x")
    assert shown == "['--hold', '5', '--', 'x']\n"


def test_bindings_change_when_the_command_is_done(
    broker: jmsish.EmbeddedBroker, run: Run, switch: str, capfd: pytest.CaptureFixture[str]
) -> None:
    failing = python("raise SystemExit(3)")
    assert main(["freeze", broker.url, "orders", *LONG, "--rebind", switch, *failing]) == 3
    assert "the bindings stay as they were" in capfd.readouterr().err
    assert bound(broker) == {("blue", "k")}
    run("freeze", broker.url, "orders", *LONG, "--rebind", switch, *python("pass"))
    assert bound(broker) == {("green", "k")}


def test_without_a_command_it_is_held_until_standard_input_ends(
    broker: jmsish.EmbeddedBroker, run: Run, switch: str
) -> None:
    assert run("freeze", broker.url, "orders", "amq.fanout") == "frozen: amq.fanout, orders\n"
    assert not broker.exchange("orders").is_frozen
    run("freeze", broker.url, "orders", "--rebind", switch)
    assert bound(broker) == {("green", "k")}


class Holder:
    """`jmsish freeze` in a process of its own, that holds."""

    def __init__(self, *arguments: str) -> None:
        pipe, command = subprocess.PIPE, [*CLI, "freeze", *LONG, *arguments]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "frozen: orders\n"

    def end(self) -> tuple[int, str]:
        """Status and standard error."""
        _, error = self.process.communicate(timeout=30)
        return self.process.returncode, error


def test_it_is_held_until_interrupted(broker: jmsish.EmbeddedBroker, url: str, switch: str) -> None:
    for options, status in (((), 0), (("--rebind", switch), 130)):
        holder = Holder(url, "orders", *options)
        assert broker.exchange("orders").is_frozen
        holder.process.send_signal(signal.SIGINT)
        holder.process.wait(30)
        assert holder.end() == (status, "") and not broker.exchange("orders").is_frozen
        assert bound(broker) == {("blue", "k")}


def test_standard_input_of_a_process(broker: jmsish.EmbeddedBroker, url: str, switch: str) -> None:
    holder = Holder(url, "orders", "--rebind", switch)
    assert broker.exchange("orders").is_frozen
    assert holder.end() == (0, "")
    assert bound(broker) == {("green", "k")}


def test_the_end_of_the_process_is_the_end_of_the_freeze(broker: jmsish.EmbeddedBroker, url: str, switch: str) -> None:
    holder = Holder(url, "orders", "--rebind", switch)
    holder.process.kill()
    holder.end()
    broker.exchange("orders").bind("green", "other", timeout=20)
    assert bound(broker) == {("blue", "k"), ("green", "other")}


def test_the_limit_of_the_hold_is_an_error(broker: jmsish.EmbeddedBroker, url: str, complaint: Complaint) -> None:
    """The command waits for the end of the freeze that it runs in."""
    bind = (*CLI, "bind", url, "orders", "green", "other")
    status, line = complaint("freeze", url, "orders", "--hold", "0.2", "--", *bind)
    assert status == 1 and "held longer than 0.2 s" in line and "(status 410)" in line
    assert bound(broker) == {("blue", "k"), ("green", "other")}


def test_what_cannot_be_frozen_is_said(broker: jmsish.EmbeddedBroker, complaint: Complaint) -> None:
    with broker.exchange("orders").freeze():
        status, line = complaint("freeze", broker.url, "orders", "--timeout", "0")
    assert status == 1 and "stayed frozen" in line
    for arguments, status, says in [
        (("nowhere",), 1, "no exchange 'nowhere' (status 404)"),
        ((), 2, "EXCHANGE"),
        (("orders", "--hold", "0"), 2, "--hold"),
        (("orders", "--rebind", "no-such-file"), 1, "no-such-file"),
        (("orders", "--", "no-such-command"), 1, "no-such-command"),
    ]:
        got, line = complaint("freeze", broker.url, *arguments)
        assert got == status and says in line, arguments
    assert not broker.exchange("orders").is_frozen
