"""send, receive and browse against a broker, and what they say when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jmsish
from jmsish.cli.main import main

from .conftest import Complaint, Run


def test_lines_go_and_come_in_order(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    assert run("send", broker.url, "q", stdin="one\n\nthree: ü 日本\nno newline at the end") == ""
    assert (
        run("receive", broker.url, "q", "-n", "4", "--timeout", "5") == "one\n\nthree: ü 日本\nno newline at the end\n"
    )
    assert broker.queue("q").depth == 0


def test_lines_of_a_file_and_over_tcp(broker: jmsish.EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    url = broker.listen().url
    (tmp_path / "lines").write_text("a\nb\n", encoding="utf-8")
    run("send", url, "queue://q", str(tmp_path / "lines"), "--count", "2")
    assert run("receive", url, "q", "-n", "4", "--timeout", "30") == "a\nb\na\nb\n"


def test_all_there_is_until_none_came_for_so_long(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "q", stdin="a\nb\n")
    assert run("receive", broker.url, "q", "--timeout", "0.1") == "a\nb\n"


def test_a_whole_file_goes_and_comes_octet_for_octet(broker: jmsish.EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    (tmp_path / "photo").write_bytes(data)
    run("send", broker.url, "q", "--file", str(tmp_path / "photo"), "--count", "2")
    names = run("receive", broker.url, "q", "-n", "2", "--timeout", "5", "--file", str(tmp_path / "copy.bin")).split()
    assert names == [str(tmp_path / "copy.bin"), str(tmp_path / "copy-2.bin")]
    assert [Path(name).read_bytes() for name in names] == [data, data]


def test_a_file_as_text(broker: jmsish.EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("two\nlines\n", encoding="utf-8")
    run("send", broker.url, "q", "--file", str(tmp_path / "text"), "--text")
    (message,) = broker.queue("q").messages()
    assert isinstance(message, jmsish.TextMessage) and message.body == "two\nlines\n"


def test_json_bodies_properties_and_headers(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    headers = ["--header", "priority=9", "--header", "type=order", "--header", "correlation-id=c-1"]
    properties = ["--property", "colour=red", "--property", "weight:int=5"]
    run("send", broker.url, "q", "--json", *headers, *properties, stdin='{"item": "lamp", "pieces": 3}\n\n["x", 1]\n')
    lines = run("receive", broker.url, "q", "-n", "2", "--timeout", "5", "--json").splitlines()
    first, second = map(json.loads, lines)
    assert first["type"] == "MapMessage" and first["body"] == {"item": "lamp", "pieces": 3}
    assert second["type"] == "StreamMessage" and second["body"] == ["x", 1]
    assert first["properties"] == {"colour": "red", "weight": 5}
    assert first["headers"].items() >= {
        "priority": 9, "type": "order", "correlation-id": "c-1", "destination": "queue://q",
        "delivery-mode": "persistent", "redelivered": False, "delivery-count": 1,
    }.items()  # fmt: skip


def test_envelopes_move_messages_to_another_broker(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "old", "-m", "hello", "--property", "n:int=1", "--header", "type=greeting")
    lines = run("receive", broker.url, "old", "-n", "1", "--timeout", "5", "--json")
    with jmsish.EmbeddedBroker() as other:
        run("send", other.url, "new", "--envelope", stdin=lines)
        (message,) = other.queue("new").messages()
    assert (message.body, message.jms_type, message.properties["n"]) == ("hello", "greeting", 1)


def test_browsing_takes_nothing(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "q", stdin="a\nb\nc\n")
    assert run("browse", broker.url, "q") == "a\nb\nc\n"
    assert run("browse", broker.url, "q", "-n", "2") == "a\nb\n"
    assert json.loads(run("browse", broker.url, "q", "-n", "1", "--json"))["headers"]["delivery-count"] == 1
    assert broker.queue("q").depth == 3


def test_a_transacted_send_is_all_or_nothing(broker: jmsish.EmbeddedBroker, complaint: Complaint, run: Run) -> None:
    status, error = complaint("send", broker.url, "q", "--json", "--transacted", stdin=b'"good"\nbad\n')
    assert status == 1 and "line 2" in error
    assert broker.queue("q").depth == 0
    run("send", broker.url, "q", "--batch", "2", stdin="a\nb\nc\n")
    assert broker.queue("q").depth == 3


def test_receiving_in_transactions_and_giving_back(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "q", stdin="a\nb\nc\n")
    assert run("receive", broker.url, "q", "-n", "2", "--timeout", "5", "--rollback") == "a\nb\n"
    assert broker.queue("q").depth == 3
    assert run("receive", broker.url, "q", "-n", "2", "--timeout", "5", "--transacted", "--batch", "2") == "a\nb\n"
    assert broker.queue("q").depth == 1


def test_what_was_not_asked_for_stays_uncounted(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "q", stdin="a\nb\nc\n")
    run("receive", broker.url, "q", "-n", "1", "--timeout", "5", "--prefetch", "10")
    left = [(message.body, message.delivery_count) for message in broker.queue("q").messages()]
    assert left == [("b", 1), ("c", 1)]


def test_fewer_than_asked_for_is_status_1(broker: jmsish.EmbeddedBroker, complaint: Complaint) -> None:
    status, error = complaint("receive", broker.url, "q", "-n", "1", "--timeout", "0.1")
    assert status == 1 and "received 0 of 1" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["sned"], "invalid choice"),
        (["send"], "URL"),
        (["receive", "vm://x", "q", "-n", "0"], "1 or more"),
        (["receive", "vm://x", "q", "--timeout", "soon"], "seconds"),
        (["receive", "vm://x", "q", "--batch", "2"], "--transacted"),
        (["receive", "vm://x", "http://q"], "destination"),
        (["browse", "vm://x", "topic://news"], "topic"),
        (["send", "vm://x", "q", "--property", "n:int=x"], "no int"),
        (["send", "vm://x", "q", "file", "-m", "text"], "FILE"),
        (["send", "vm://x", "q", "--text"], "--file"),
        (["send", "vm://x", "q", "--json", "--envelope"], "choose one"),
        (["broker", "--port", "70000"], "port"),
        (["send", "http://127.0.0.1", "q", "-m", "x"], "unknown scheme 'http'"),
        (["send", "amqp://127.0.0.1?jms.prefech=1", "q", "-m", "x"], "prefetch"),
        (["receive", "vm://x", "q", "--option", "prefetch=many"], "whole number"),
        (["demo", "--url", "nowhere"], "no URL"),
        (["browse", "vm://x", "q", "--deep"], "--deep (see jmsish browse --help)"),
        (["freeze", "vm://x", "e", "--deep", "--", "true"], "--deep (see jmsish freeze --help)"),
        (["demo", "--url", "amqp://x", "--tcp"], "--url"),
        (["demo", "--trace", "0"], "--trace"),
        (["demo", "--trace", "9-5"], "--trace"),
        (["demo", "file", "--trace", "other"], "--trace"),
        (["demo", "--max-attempts", "0"], "1 or more"),
    ],
)
def test_wrong_usage_is_status_2(arguments: list[str], words: str, complaint: Complaint) -> None:
    status, error = complaint(*arguments)
    assert status == 2 and words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["send", "amqp://127.0.0.1:1", "q", "-m", "x"], "127.0.0.1:1"),
        (["receive", "vm://nobody-is-called-so", "q"], "nobody-is-called-so"),
        (["send", "vm://x", "q", "--file", "/no/such/file"], "No such file"),
        (["demo", "/no/such/file"], "No such file"),
        (["broker", "--config", "/no/such/file"], "No such file"),
    ],
)
def test_failures_are_status_1(arguments: list[str], words: str, complaint: Complaint) -> None:
    status, error = complaint(*arguments)
    assert status == 1 and words in error


def test_a_fault_in_a_selector_is_said_in_one_line(broker: jmsish.EmbeddedBroker, complaint: Complaint) -> None:
    """Without the caret, which has no line to point into here."""
    status, error = complaint("receive", broker.url, "q", "--selector", "weight > AND 1", "--timeout", "1")
    assert status == 1 and "at position 10 of the selector (InvalidSelectorError)" in error and "^" not in error


def test_a_dead_letter_says_why_it_is_one(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    broker.declare_queue("fragile", max_delivery_attempts=1, dead_letter="dead")
    with jmsish.connect(broker.url) as connection:
        session = connection.create_session(transacted=True)
        fragile = session.create_queue("fragile")
        session.create_producer(fragile).send("glass")
        session.commit()
        assert session.create_consumer(fragile).receive(timeout=5)
        session.rollback()
    printed = json.loads(run("browse", broker.url, "dead", "--json"))
    assert printed["body"] == "glass" and printed["dead-letter"]["time"] > 0
    told = {name: printed["dead-letter"][name] for name in ("from", "reason", "delivery-count", "times")}
    assert told == {"from": "fragile", "reason": "max-delivery-attempts", "delivery-count": 1, "times": 1}


def test_octets_that_are_no_text_are_named(broker: jmsish.EmbeddedBroker, complaint: Complaint) -> None:
    status, error = complaint("send", broker.url, "q", stdin=b"good\n\xff\n")
    assert status == 1 and "UTF-8" in error


def test_debug_shows_the_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "/no/such/file", "--debug"]) == 1
    error = capfd.readouterr().err
    assert "Traceback" in error and error.splitlines()[-1].startswith("jmsish: ")


@pytest.mark.parametrize("command", ["", "demo", "broker", "send", "receive", "browse"])
def test_help_teaches_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"] if command else ["--help"])
    assert end.value.code == 0
    assert f"jmsish {command}".strip() in capsys.readouterr().out.partition("examples:")[2]
