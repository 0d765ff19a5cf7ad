"""`jmsish broker` as a process: what it prints, whom it serves, how it ends."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import jmsish

Start = Callable[..., "subprocess.Popen[str]"]


def hear_interrupts() -> None:
    """Who runs the tests in the background has them, and all that they start, ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def start() -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "jmsish", *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_it_serves_until_it_is_told_to_stop(start: Start, name: str) -> None:
    process = start("broker", "--host", "127.0.0.1", "--port", "0")
    line = line_of(process)
    assert line.startswith("listening on amqp://127.0.0.1:")
    with jmsish.connect(line.split()[-1]) as connection, connection.create_session() as session:
        place = session.create_queue("q")
        session.create_producer(place).send("hello")
        message = session.create_consumer(place).receive(timeout=30)
        assert message is not None and message.body == "hello"
        process.send_signal(getattr(signal, name))
        assert process.wait(30) == 0
    assert process.communicate() == ("", "")


def test_the_shell_talks_to_it(start: Start, tmp_path: Path) -> None:
    url = line_of(start("broker", "--port", "0")).split()[-1]
    (tmp_path / "lines").write_text("a\nb\n", encoding="utf-8")
    assert start("send", url, "q", str(tmp_path / "lines")).wait(30) == 0
    taken = start("receive", url, "q", "-n", "2", "--timeout", "5")
    assert taken.communicate(timeout=30) == ("a\nb\n", "")
    assert taken.returncode == 0


def test_each_message_is_printed_at_once(start: Start) -> None:
    url = line_of(start("broker", "--port", "0")).split()[-1]
    reader = start("receive", url, "q")
    with jmsish.connect(url) as connection, connection.create_session() as session:
        producer = session.create_producer(session.create_queue("q"))
        for word in ("one", "two"):
            producer.send(word)
            assert line_of(reader) == word + "\n"
    reader.send_signal(signal.SIGINT)
    assert reader.wait(30) == 130


def test_a_reader_that_leaves_takes_no_message_with_it(start: Start) -> None:
    """`jmsish receive … | head -1`: what could not be printed stays on the queue."""
    url = line_of(start("broker", "--port", "0")).split()[-1]
    with jmsish.connect(url) as connection, connection.create_session() as session:
        queue = session.create_queue("q")
        producer = session.create_producer(queue)
        reader = start("receive", url, "q")
        producer.send("one")
        assert line_of(reader) == "one\n"
        assert reader.stdout is not None and reader.stderr is not None
        reader.stdout.close()
        producer.send("two")
        reader.wait(30)
        assert "Traceback" not in reader.stderr.read()
        message = session.create_consumer(queue).receive(timeout=30)
        assert message is not None and message.body == "two"


def test_a_configuration_sets_limits_and_listeners(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text(
        '[queues.orders]\nmax_delivery_attempts = 1\ndead_letter = "dead"\n'
        '[[listeners]]\nhost = "127.0.0.1"\nport = 0\n[[listeners]]\nport = 0\n'
    )
    process = start("broker", "--config", str(config))
    urls = [line_of(process).split()[-1] for _ in range(2)]
    assert len(set(urls)) == 2
    with jmsish.connect(urls[1]) as connection, connection.create_session(transacted=True) as session:
        session.create_producer(session.create_queue("orders")).send("bad")
        session.commit()
        assert session.create_consumer(session.create_queue("orders")).receive(timeout=30) is not None
        session.rollback()
        assert session.create_consumer(session.create_queue("dead")).receive(timeout=30) is not None
        session.commit()


def test_routers_are_served_and_say_who_may_come_in_by_which_door(start: Start, tmp_path: Path) -> None:
    interior = '[router]\nid = "INT.A"\nmode = "interior"\n'
    doors = "".join(f'[[listeners]]\nport = 0\nrole = "{role}"\n' for role in ("normal", "edge", "inter-router"))
    (tmp_path / "interior.toml").write_text(interior + doors)
    process = start("broker", "--config", str(tmp_path / "interior.toml"))
    said = [line_of(process).split() for _ in range(3)]
    assert [line[:2] + line[3:] for line in said] == [
        ["listening", "on"], ["listening", "on", "for", "edge"], ["listening", "on", "for", "inter-router"],
    ]  # fmt: skip
    edge = f'[router]\nid = "EA1"\nmode = "edge"\n[[connectors]]\nurl = "{said[1][2]}"\nrole = "edge"\n'
    (tmp_path / "edge.toml").write_text(edge)
    url = line_of(start("broker", "--port", "0", "--config", str(tmp_path / "edge.toml"))).split()[-1]
    with jmsish.connect(url) as near, jmsish.connect(said[0][2], send_timeout=30) as far:
        one, other = near.create_session(), far.create_session()
        received: queue.SimpleQueue[jmsish.Message] = queue.SimpleQueue()
        one.create_consumer(one.create_queue("orders")).listener = received.put
        producer = other.create_producer(other.create_queue("orders"))
        producer.send("hello")
        assert received.get(timeout=30).body == "hello"
    told = start("topology", url).communicate(timeout=30)[0]
    assert told == "EA1 (edge)\n└─ INT.A (interior)\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [("[queues.orders]\nmax_delivery_attemps = 1\n", "max_delivery_attempts"), ("not toml", "broker.toml")],
)
def test_a_wrong_configuration_is_one_line(start: Start, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "broker.toml").write_text(text)
    process = start("broker", "--port", "0", "--config", str(tmp_path / "broker.toml"))
    output, error = process.communicate(timeout=30)
    assert (process.returncode, output) == (1, "")
    assert error.startswith("jmsish: ") and error.count("\n") == 1 and words in error


def test_a_port_that_is_taken_is_one_line(start: Start) -> None:
    port = line_of(start("broker", "--port", "0")).rpartition(":")[2].strip()
    process = start("broker", "--port", port)
    output, error = process.communicate(timeout=30)
    assert (process.returncode, output) == (1, "")
    assert error.startswith("jmsish: ") and error.count("\n") == 1 and port in error


def test_a_port_for_websocket_beside_the_other(start: Start) -> None:
    process = start("broker", "--port", "0", "--ws-port", "0")
    urls = [line_of(process).split()[-1] for _ in range(2)]
    assert [url.partition(":")[0] for url in urls] == ["amqp", "amqpws"]
    with jmsish.connect(urls[1]) as connection, connection.create_session() as session:
        session.create_producer(session.create_queue("orders")).send("one")
