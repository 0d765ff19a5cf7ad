"""The shim for the Apache Qpid interoperability test, against itself: what one process sends, another shows.

Run with the suite itself it stands beside the shims of other clients: see `README.md` in this folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.interop import fetch
from tests.interop.conftest import need

pytestmark = pytest.mark.interop

SHIM = Path(__file__).parent / "shim"

PRIMITIVES: list[tuple[str, Any]] = [
    ("null", None),
    ("boolean", True),
    ("boolean", False),
    *(("ubyte", value) for value in (0, 255)),
    *(("ushort", value) for value in (0, 65535)),
    *(("uint", value) for value in (0, 255, 256, 2**32 - 1)),
    *(("ulong", value) for value in (0, 255, 256, 2**64 - 1)),
    *(("byte", value) for value in (-128, 0, 127)),
    *(("short", value) for value in (-(2**15), -1, 2**15 - 1)),
    *(("int", value) for value in (-(2**31), -129, -128, 0, 127, 128, 2**31 - 1)),
    *(("long", value) for value in (-(2**63), -129, 0, 2**31, 2**63 - 1)),
    *(("float", value) for value in ("0x00000000", "0x80000000", "0x40490fdb", "0x00000001", "0xff800000")),
    ("float", "0x7fc00000"),
    *(("double", value) for value in ("0x0000000000000000", "0x8000000000000000", "0x400921fb54442d18")),
    *(("double", value) for value in ("0x0000000000000001", "0x7ff0000000000000", "0x7ff8000000000000")),
    ("decimal32", "0x2250000f"),
    ("decimal64", "0x223800000000000f"),
    ("decimal128", "0x2208000000000000000000000000000f"),
    *(("char", value) for value in (0, 65, 0x418, 0x1F4A9)),
    *(("timestamp", value) for value in (0, 1_609_459_200_000, -1)),
    ("uuid", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
    *(("binary", value) for value in ("", "00ff", "aa" * 256)),
    *(("string", value) for value in ("", "Grüße, 世界, 🎉", "b" * 256)),
    *(("symbol", value) for value in ("", "amqp:message-id:string", "t" * 256)),
]

COMPOUND: dict[str, list[Any]] = {
    "array": [
        {"element_type": "uint", "elements": []},
        {"element_type": "boolean", "elements": [True, False]},
        {"element_type": "uint", "elements": [0, 255, 256, 2**32 - 1]},
        {"element_type": "float", "elements": ["0x00000000", "0x7f800000"]},
        {"element_type": "symbol", "elements": ["a", "b" * 300]},
        {"element_type": "list", "elements": [[["string", "a"], ["int", 1]], []]},
        {"element_type": "array", "elements": [{"element_type": "ubyte", "elements": [1, 2]}] * 2},
    ],
    "list": [
        [],
        [["null", None], ["string", "a"], ["null", None], ["int", -42], ["binary", "00ff"]],
        [["list", [["long", 1]]], ["map", [[["symbol", "a"], ["uuid", str(uuid.UUID(int=7))]]]]],
        [["array", {"element_type": "short", "elements": [1, 2]}], ["char", 65]],
    ],
    "map": [
        [],
        [[["string", "a"], ["int", 1]], [["uint", 2], ["boolean", True]], [["long", 3], ["null", None]]],
        [[["string", "a"], ["map", [[["symbol", "b"], ["list", [["byte", -1]]]]]]]],
    ],
    "described": [
        {"descriptor": ["symbol", "a:b"], "value": ["list", [["string", "c"], ["int", 1]]]},
        {"descriptor": ["ulong", 300], "value": ["array", {"element_type": "uint", "elements": [1, 2]}]},
    ],
}

JMS: dict[str, list[tuple[str, Any, str, Any]]] = {
    # What is sent, and what is shown: a text message is no string, and so on.
    "string": [("string", "Grüße", "text", "Grüße"), ("string", "", "text", "")],
    "binary": [("binary", "00ff", "bytes", "00ff"), ("binary", "", "bytes", "")],
    "null": [("null", None, "null", None)],
    "map": [("short", -5, "short", -5), ("string", "a", "string", "a"), ("float", "0x40490fdb", "float", "0x40490fdb")],
    "list": [("byte", 7, "byte", 7), ("boolean", True, "boolean", True), ("char", 65, "char", 65)],
}

PROPERTIES = {
    "a_boolean": {"type": "boolean", "value": True},
    "a_byte": {"type": "byte", "value": "0xff"},
    "a_short": {"type": "short", "value": "0x8000"},
    "an_int": {"type": "int", "value": "0xffffffff"},
    "a_long": {"type": "long", "value": "0x0123456789abcdef"},
    "a_float": {"type": "float", "value": "0xc0490fdb"},
    "a_double": {"type": "double", "value": "0x400921fb54442d18"},
    "a_string": {"type": "string", "value": ""},
}


class Shim:
    """The program, at one queue of a broker."""

    def __init__(self, url: str) -> None:
        self.queue = f"qit.{uuid.uuid4().hex[:12]}"
        self.where = ["--broker", url, "--queue", self.queue]

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SHIM / "shim.sh"), command, *self.where, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "JMSISH_PYTHON": sys.executable},
        )

    def say(self, command: str, *arguments: str) -> Any:
        done = self.run(command, *arguments)
        assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
        return json.loads(done.stdout)

    def send(self, kind: str, entries: list[dict[str, Any]], *arguments: str) -> None:
        said = self.say("send", "--type", kind, "--count", str(len(entries)), "--data", json.dumps(entries), *arguments)
        assert said == {"messages": entries, "stats": {"sent": len(entries)}}

    def receive(self, count: int) -> list[dict[str, Any]]:
        said = self.say("receive", "--count", str(count), "--timeout", "20")
        assert said["stats"] == {"received": count}
        messages: list[dict[str, Any]] = said["messages"]
        return messages


@pytest.fixture
def shim(url: str) -> Shim:
    return Shim(url)


def entries_of(pairs: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [{"index": index, "type": name, "value": value} for index, (name, value) in enumerate(pairs)]


def bare(message: dict[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in ("index", "type", "value")}


def test_it_says_what_it_is() -> None:
    assert json.loads((SHIM / "shim.json").read_text()) == {
        "name": "Python (jmsish)",
        "type": "amqp",
        "broker_prefix": "amqp://",
    }


def test_primitive_types(shim: Shim) -> None:
    entries = entries_of(PRIMITIVES)
    shim.send("string", entries)
    assert [bare(message) for message in shim.receive(len(entries))] == entries


def test_compound_types(shim: Shim) -> None:
    entries = entries_of([(kind, value) for kind, values in COMPOUND.items() for value in values])
    shim.send("list", entries)
    assert [bare(message) for message in shim.receive(len(entries))] == entries


def test_jms_messages(shim: Shim) -> None:
    for kind, cases in JMS.items():
        shim.send(kind, entries_of([(name, value) for name, value, _, _ in cases]), "--jms-mode")
    expected = [(name, value) for cases in JMS.values() for _, _, name, value in cases]
    assert [(message["type"], message["value"]) for message in shim.receive(len(expected))] == expected


@pytest.mark.parametrize("mode", [[], ["--jms-mode"]], ids=["bare", "jms"])
def test_headers_and_properties(shim: Shim, mode: list[str]) -> None:
    headers = {
        "JMSCorrelationID": {"type": "bytes", "value": "00ff"},
        "JMSReplyTo": {"type": "topic", "value": "answers"},
        "JMSType": {"type": "string", "value": "order"},
    }
    others = {
        "JMSCorrelationID": {"type": "string", "value": "7"},
        "JMSReplyTo": {"type": "queue", "value": "answers"},
    }
    entry = entries_of([("string", "x")])
    shim.send("string", entry, *mode, "--headers", json.dumps(headers), "--properties", json.dumps(PROPERTIES))
    shim.send("string", entry, *mode, "--headers", json.dumps(others))
    first, second = shim.receive(2)
    assert first["headers"] == {**headers, "JMSType": "order"}
    assert first["properties"] == PROPERTIES
    assert second["headers"] == {**others, "JMSCorrelationID": "7"}
    assert "properties" not in second


def test_message_header(shim: Shim) -> None:
    wanted = {"durable": False, "priority": 7, "ttl": 300_000, "first_acquirer": True}
    shim.send("string", entries_of([("string", "x")]), "--message-header", json.dumps(wanted))
    (message,) = shim.receive(1)
    left = message["message_header"]["ttl"]
    assert 0 < left <= wanted["ttl"]
    assert message["message_header"] == {**wanted, "ttl": left, "delivery_count": 0}


@pytest.mark.parametrize("kind", ["binary", "array", "map", "described"])
def test_large_bodies(shim: Shim, kind: str) -> None:
    sized = ["--size", "200000"] if kind in ("binary", "string") else ["--elements", "24", "--element-size", "9000"]
    what = ["--large-content", kind, "--seed", "42", *sized]
    assert shim.say("send", *what)["sent"] is True
    assert shim.say("receive", *what)["match"] is True


def test_another_body_than_expected_is_said_to_differ(shim: Shim) -> None:
    shim.say("send", "--large-content", "string", "--seed", "42", "--size", "1000")
    done = shim.run("receive", "--large-content", "string", "--seed", "43", "--size", "1000")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["match"] is False and said["first_mismatch_offset"] < 1000


def test_no_body_is_null_and_an_empty_one_is_not(shim: Shim, url: str) -> None:
    """Proton writes no section for None, and an amqp-value for octets."""
    need(fetch.proton)
    from proton.utils import BlockingConnection

    from tests.interop.peers.proton_blocking import fill

    connection = BlockingConnection(url, timeout=30)
    fill(connection, shim.queue, [None, b""])
    connection.close()
    assert [(message["type"], message["value"]) for message in shim.receive(2)] == [("null", None), ("binary", "")]


def test_what_does_not_come_is_not_there(shim: Shim) -> None:
    assert shim.say("receive", "--timeout", "0")["messages"] == []
