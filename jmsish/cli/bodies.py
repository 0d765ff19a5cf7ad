"""Message bodies as the shell sees them: lines of text, JSON values, whole files, and the other way round.

Pure: nothing is read, written or sent here.

A JSON line is a typed body: a string is a TextMessage, an object a MapMessage, an array a StreamMessage, null a
plain Message. `{"base64": "…"}` alone is a BytesMessage. What `receive --json` prints is an envelope with
`headers`, `properties`, `type` and `body`; `send --envelope` reads it back.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jmsish
from jmsish.cli.parsing import UsageError

HEADERS = ("type", "correlation-id", "reply-to", "priority", "time-to-live", "delivery-delay", "delivery-mode")
_TYPES: dict[str, Callable[[str], Any]] = {
    "string": str,
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "byte": lambda text: jmsish.Byte(int(text)),
    "short": lambda text: jmsish.Short(int(text)),
    "int": lambda text: jmsish.Int(int(text)),
    "long": lambda text: jmsish.Long(int(text)),
    "float": lambda text: jmsish.Float(float(text)),
    "double": lambda text: jmsish.Double(float(text)),
}


def parse_property(text: str) -> tuple[str, Any]:
    """`name=value` is a string; `name:int=5` names the type."""
    left, equals, value = text.partition("=")
    name, colon, kind = left.partition(":")
    if not equals or not name:
        raise UsageError(f"--property {text!r} is not NAME=VALUE or NAME:TYPE=VALUE")
    make = _TYPES.get(kind if colon else "string")
    if make is None:
        raise UsageError(f"--property {text!r}: unknown type {kind!r}, one of {', '.join(_TYPES)}")
    try:
        return name, make(value)
    except (ValueError, KeyError, OverflowError) as error:
        raise UsageError(f"--property {text!r}: {value!r} is no {kind}") from error


def parse_header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name = name.lower().removeprefix("jms").lstrip("_-").replace("_", "-")
    if not equals or name not in HEADERS:
        raise UsageError(f"--header {text!r} is not NAME=VALUE with one of {', '.join(HEADERS)}")
    return name, value


def json_body(line: str) -> Any:
    """The body that a line of JSON stands for."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    return body_of(value)


def body_of(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from error
    if isinstance(value, dict):
        return {name: element_of(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [element_of(item, f"element {index}") for index, item in enumerate(value)]
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"the JSON value {json.dumps(value)} is no message body: a string, object, array or null is")


def element_of(item: Any, where: str) -> Any:
    if isinstance(item, dict) and set(item) == {"base64"} and isinstance(item["base64"], str):
        return body_of(item)
    if isinstance(item, (dict, list)):
        raise ValueError(f"{where} is nested, and map and stream messages are flat (send it as text, without --json)")
    return item


def plain(value: Any) -> Any:
    """A body or property value as JSON can hold it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def text_line(body: Any) -> str:
    """A body as one line for people and for pipes: text as it is, everything else as JSON."""
    if body is None:
        return ""
    if isinstance(body, (bytes, bytearray)):
        try:
            return bytes(body).decode("utf-8")
        except UnicodeDecodeError:
            return json.dumps(plain(body))
    return body if isinstance(body, str) else json.dumps(plain(body), ensure_ascii=False)


DEAD_LETTER = "x-opt-dead-letter-"
"""So begin the annotations of a dead letter: from where, why, when and how often."""


def envelope(message: jmsish.Message) -> dict[str, Any]:
    """A message as a JSON object: its headers that say something, its properties, its type and its body."""
    mode = "persistent" if message.jms_delivery_mode == jmsish.DeliveryMode.PERSISTENT else "non-persistent"
    headers = {
        "message-id": message.jms_message_id,
        "correlation-id": message.jms_correlation_id,
        "type": message.jms_type,
        "destination": message.jms_destination and str(message.jms_destination),
        "reply-to": message.jms_reply_to and str(message.jms_reply_to),
        "priority": message.jms_priority,
        "delivery-mode": mode,
        "timestamp": message.jms_timestamp or None,
        "expiration": message.jms_expiration or None,
        "redelivered": message.jms_redelivered,
        "delivery-count": message.delivery_count,
    }
    properties = {name: plain(value) for name, value in message.properties.items() if name != "JMSXDeliveryCount"}
    died = {
        name.removeprefix(DEAD_LETTER): plain(value)
        for name, value in message.annotations.items()
        if name.startswith(DEAD_LETTER)
    }
    return {
        "headers": {name: value for name, value in headers.items() if value is not None},
        "properties": properties,
        **({"dead-letter": died} if died else {}),
        "type": type(message).__name__,
        "body": plain(message.body),
    }


def read_envelope(line: str) -> tuple[Any, dict[str, Any], dict[str, str]]:
    """Body, properties and the headers that a sender may set, from what `receive --json` printed."""
    value = json.loads(line)
    if not isinstance(value, dict) or "body" not in value:
        raise ValueError('an envelope is a JSON object with at least "body" (as `jmsish receive --json` prints it)')
    known = {name: str(item) for name, item in (value.get("headers") or {}).items() if name in HEADERS}
    properties = {name: item for name, item in (value.get("properties") or {}).items() if not name.startswith("JMSX")}
    return body_of(value["body"]), properties, known
