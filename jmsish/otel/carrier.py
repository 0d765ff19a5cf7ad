"""The trace context in a message: where it is written, and where it is looked for.

It is written into the message annotations, as `x-opt-traceparent` and `x-opt-tracestate`: what a broker or a consumer
does not know under such a name it passes over (AMQP 1.0, Part 3, 3.2.10), and neither body nor properties of the
message change by it. Where the other side looks at properties only, as OpenTelemetry's instrumentations of Java's JMS
clients and those of Azure do, it can be written there instead (`traceparent`, `tracestate`).

It is looked for in both, annotations first, as the W3C's draft "Trace Context: AMQP protocol" says, under names
with and without the prefix, and as text as well as in that draft's binary form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jmsish.engine.codec import split_header, with_annotations
from jmsish.message import Message

PREFIX = "x-opt-"
FIELDS = ("traceparent", "tracestate")

_w3c = TraceContextTextMapPropagator()


def current() -> dict[str, str]:
    """The fields of the context that is current here; empty where there is none."""
    fields: dict[str, str] = {}
    _w3c.inject(fields)
    return fields


def annotate(payload: bytes) -> bytes:
    """The octets of a message, or of the head of one, with the current context among its annotations."""
    fields = current()
    if not fields:
        return payload
    rest = split_header(payload)[1]
    return payload[:rest] + with_annotations(payload, rest, {PREFIX + name: text for name, text in fields.items()})


def extract(message: Message) -> Context:
    """The context in which a message was sent; an empty one where it does not say."""
    source = message._source
    places: list[Mapping[str, Any]] = [] if source is None else [source.prefix.annotations]
    for place in (*places, message.properties):
        fields = {}
        for name in FIELDS:
            text = _text(place.get(PREFIX + name, place.get(name)))
            if text:
                fields[name] = text
        if "traceparent" in fields:
            return _w3c.extract(fields, Context())
    return Context()


def _text(value: Any) -> str | None:
    """As a header of HTTP has it; the binary form is a version, then trace, parent and flags by number."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes) and len(value) == 29 and (value[0], value[1], value[18], value[27]) == (0, 0, 1, 2):
        return f"00-{value[2:18].hex()}-{value[19:27].hex()}-{value[28]:02x}"
    return None
