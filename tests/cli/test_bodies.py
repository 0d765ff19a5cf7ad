"""Bodies, properties and headers as the shell writes them."""

from __future__ import annotations

import json

import pytest

import jmsish
from jmsish.cli import bodies
from jmsish.cli.parsing import UsageError, destination, url_with_options


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ('"text"', "text"),
        ('{"a": 1, "b": null, "c": 2.5, "d": true}', {"a": 1, "b": None, "c": 2.5, "d": True}),
        ('[1, "two", null]', [1, "two", None]),
        ("null", None),
        ('{"base64": "AAEC"}', b"\x00\x01\x02"),
        ('{"photo": {"base64": "AAEC"}}', {"photo": b"\x00\x01\x02"}),
    ],
)
def test_json_gives_typed_bodies(line: str, body: object) -> None:
    assert bodies.json_body(line) == body


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nope", "not JSON"),
        ("17", "no message body"),
        ("true", "no message body"),
        ('{"a": {"b": 1}}', "a is nested"),
        ("[1, [2]]", "element 1 is nested"),
        ('{"base64": "?"}', "not base64"),
    ],
)
def test_json_that_is_no_body_is_refused(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        bodies.json_body(line)


@pytest.mark.parametrize("body", [None, "text", b"\xff\x00", {"a": 1, "b": b"\x01"}, [1, "two", None]])
def test_what_is_printed_as_json_can_be_sent_again(body: object) -> None:
    assert bodies.json_body(json.dumps(bodies.plain(body))) == body


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (None, ""),
        ("text", "text"),
        ("Zürich".encode(), "Zürich"),
        (b"\xff", '{"base64": "/w=="}'),
        ({"a": "ü"}, '{"a": "ü"}'),
        ([1, 2], "[1, 2]"),
    ],
)
def test_a_body_as_a_line(body: object, line: str) -> None:
    assert bodies.text_line(body) == line


@pytest.mark.parametrize(
    ("text", "name", "value", "kind"),
    [
        ("colour=red", "colour", "red", str),
        ("empty=", "empty", "", str),
        ("equation=a=b", "equation", "a=b", str),
        ("ok:boolean=true", "ok", True, bool),
        ("n:byte=7", "n", 7, jmsish.Byte),
        ("n:int=-5", "n", -5, jmsish.Int),
        ("n:long=5000000000", "n", 5_000_000_000, jmsish.Long),
        ("x:double=2.5", "x", 2.5, jmsish.Double),
    ],
)
def test_properties_have_types(text: str, name: str, value: object, kind: type) -> None:
    assert bodies.parse_property(text) == (name, value)
    assert type(bodies.parse_property(text)[1]) is kind


@pytest.mark.parametrize("text", ["novalue", "=x", "n:int=x", "n:byte=300", "n:thing=1", "ok:boolean=maybe"])
def test_wrong_properties_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError, match="--property"):
        bodies.parse_property(text)


def test_headers_go_by_several_spellings() -> None:
    assert bodies.parse_header("priority=9") == ("priority", "9")
    assert bodies.parse_header("jms_correlation_id=a=b") == ("correlation-id", "a=b")
    with pytest.raises(UsageError, match="--header"):
        bodies.parse_header("colour=red")


def test_envelopes_are_read_back() -> None:
    line = json.dumps(
        {
            "headers": {"priority": 9, "message-id": "ID:1", "type": "order"},
            "properties": {"colour": "red", "JMSXGroupSeq": 1},
            "type": "TextMessage",
            "body": "x",
        }
    )
    assert bodies.read_envelope(line) == ("x", {"colour": "red"}, {"priority": "9", "type": "order"})
    with pytest.raises(ValueError, match="envelope"):
        bodies.read_envelope("[]")


def test_destinations() -> None:
    assert destination("orders") == jmsish.Queue("orders")
    assert destination("queue://a/b") == jmsish.Queue("a/b")
    assert destination("topic://news") == jmsish.Topic("news")
    for wrong in ("http://x", "queue://"):
        with pytest.raises(UsageError, match="destination"):
            destination(wrong)


def test_options_join_the_url() -> None:
    assert url_with_options("amqp://h", ["prefetch=5"]) == "amqp://h?jms.prefetch=5"
    assert url_with_options("amqp://h?a=b", ["amqp.vhost=v"]) == "amqp://h?a=b&amqp.vhost=v"
    with pytest.raises(UsageError, match="--option"):
        url_with_options("amqp://h", ["prefetch"])
