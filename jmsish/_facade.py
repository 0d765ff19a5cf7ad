"""What the blocking and the asyncio face share: everything that does not wait."""

from __future__ import annotations

import ssl
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from time import time
from typing import Any

from jmsish._attributes import KnownAttributes
from jmsish._consuming import check_destination as check_destination
from jmsish._creators import Creators
from jmsish._credentials import FetchToken, sasl_client, tls_context, token_maker, token_node, token_now
from jmsish._holding import ANY as FROZEN
from jmsish._holding import refuse_reentry
from jmsish._metadata import ConnectionMetaData as ConnectionMetaData
from jmsish._streams import EMPTY_BODY, message_of_stream
from jmsish._version import VERSION
from jmsish.client.answers import Answer
from jmsish.client.client_ids import check_client_id
from jmsish.client.connection import DESIRED, ClientConnection
from jmsish.client.producer import ClientProducer, Completion
from jmsish.client.reconnection import Reconnection
from jmsish.client.session import ClientSession
from jmsish.client.telemetry import telemetry_of
from jmsish.destination import Destination
from jmsish.drivers.proxy import proxy_of_environment
from jmsish.drivers.sockets import address_text
from jmsish.drivers.websocket import ClientWebSocket, WebSocketCodec
from jmsish.engine.codec import MessageTemplate, encode_for_send
from jmsish.engine.engine import Engine
from jmsish.engine.frame_trace import engine_kind
from jmsish.engine.session import INCOMING_WINDOW
from jmsish.engine.sharing import SHARED_WINDOWS
from jmsish.engine.streaming import STREAM_FRAME, STREAM_WINDOW
from jmsish.errors import IllegalStateError, JMSError
from jmsish.events import ConnectionEvent
from jmsish.message import (
    Message,
    body_to_message,
    is_message,
    tell,
)
from jmsish.modes import AcknowledgeMode, DeliveryMode
from jmsish.options import ConnectionTarget, Proxy

Duration = float | timedelta
"""Seconds, or a timedelta."""

DEFAULT_PRIORITY = 4
"""JMS 3.1, 3.4.10."""

LONGEST_SECONDS = 2**62 / 1000
"""Milliseconds since the epoch must fit AMQP's 64-bit timestamp."""


def seconds_of(duration: Duration, what: str) -> float:
    """A duration as seconds.  Raises `TypeError` or `ValueError` for what is none."""
    if isinstance(duration, timedelta):
        duration = duration.total_seconds()
    if isinstance(duration, bool) or not isinstance(duration, (int, float)):
        raise TypeError(f"{what} is a number of seconds or a timedelta, not {type(duration).__name__}")
    if not 0 <= duration <= LONGEST_SECONDS:
        raise ValueError(f"{what} must be 0 or more seconds, not {duration!r}")
    return float(duration)


def timeout_of(timeout: Duration | None) -> float | None:
    return None if timeout is None else seconds_of(timeout, "timeout")


def layers(target: ConnectionTarget) -> tuple[WebSocketCodec | None, Proxy | None]:
    """What there is between socket and AMQP beside TLS: a WebSocket, and the proxy to go through.

    Raises ``ImportError`` where there is to be a WebSocket and the library for it is missing.
    """
    host, port, proxy = target.host or "", target.port or 0, target.options.proxy
    if proxy is None and target.is_websocket:
        proxy = proxy_of_environment(host, target.is_secure, port=port)
    elif proxy is not None and not proxy.host:
        proxy = None
    if not target.is_websocket:
        return None, proxy
    usual = port == (443 if target.is_secure else 80)
    place = address_text(host, port)
    return ClientWebSocket(place.rpartition(":")[0] if usual else place, target.path), proxy


def check_places(target: ConnectionTarget, ssl_context: ssl.SSLContext | None) -> None:
    """What is wrong with the TLS of a list of brokers, or missing for a WebSocket, is told at once and not tried."""
    for place in target.targets:
        tls_context(place, ssl_context)
        layers(place)


def make_core(
    target: ConnectionTarget,
    client_id: str | None,
    token: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    fetch: FetchToken = token_now,
) -> ClientConnection:
    """A client connection for one broker, not yet joined to any transport; `fetch` renews tokens.

    Raises `InvalidClientIDError` for an empty client id.
    """
    if client_id is not None:
        check_client_id(client_id)
    place = target.alternatives[0]
    engine = make_engine(place, token, ssl_context, client_id or "")
    options = place.options
    clock: Callable[[], float] = options.clock or time
    core = ClientConnection(engine, options, clock, place.peer)
    core.telemetry = telemetry_of(options.tracing)
    if core.telemetry is not None:
        core.telemetry.watch(core)
    core.cbs = token_node(core, place, token, fetch)
    core.user_id = place.username if options.populate_user_id else None
    core.client_id, core.client_id_preset = client_id, client_id is not None
    if target.failover is not None:
        core.reconnection = Reconnection(target)
    return core


def make_engine(
    target: ConnectionTarget, token: str | None, ssl_context: ssl.SSLContext | None, container_id: str
) -> Engine:
    """The engine that speaks to one broker; without a name, its container gets one of its own."""
    options = target.options
    trusted = target.scheme == "vm"
    streams = options.stream_threshold is not None
    return engine_kind()(
        server=False,
        container_id=container_id or f"jmsish:{uuid.uuid4()}",
        hostname=(options.vhost or None) if options.vhost is not None else target.host,
        max_frame_size=min(options.max_frame_size, STREAM_FRAME) if streams else options.max_frame_size,
        incoming_window=STREAM_WINDOW if streams else INCOMING_WINDOW,
        idle_timeout=None if trusted else options.idle_timeout or None,
        desired_capabilities=DESIRED,
        properties={
            "product": "jmsish",
            "version": VERSION,
            "platform": f"Python {sys.version.split()[0]}",
            SHARED_WINDOWS: True,
        },
        sasl=sasl_client(target, token, ssl_context),
    )


def engine_maker(
    core: ClientConnection, place: ConnectionTarget, token: str | None, ssl_context: ssl.SSLContext | None
) -> Callable[[str], Engine]:
    """What makes the engine when a wire to `place` is joined, by the owner of the connection."""

    def make(container_id: str) -> Engine:
        if core.cbs is not None and place.options.cbs:
            core.cbs.make = token_maker(place, token)
        return make_engine(place, token, ssl_context, container_id)

    return make


class SessionFace(Creators):
    """The members of a session that do not wait."""

    _core: ClientSession

    @property
    def transacted(self) -> bool:
        """Whether the session is transacted."""
        return self._core.mode is AcknowledgeMode.TRANSACTED

    @property
    def acknowledge_mode(self) -> AcknowledgeMode:
        """Who acknowledges what is received, and when."""
        return self._core.mode

    @property
    def is_closed(self) -> bool:
        """Whether the session was closed, by the application or by a failure."""
        return self._core.closed or self._core.failure is not None

    _in_block = False

    @contextmanager
    def _one_block(self) -> Iterator[None]:
        """Of those that commit at their end one is open at a time: one inside would commit what the other may undo."""
        if self._in_block:
            raise IllegalStateError("a transaction() block of the session is open: one inside it would commit its work")
        self._in_block = True
        try:
            yield
        finally:
            self._in_block = False

    def _check_open(self) -> None:
        if self._core.closed:
            raise IllegalStateError("the session is closed")

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return f"<{type(self).__name__} {self._core.mode.name} {state}>"


def check_mode(transacted: bool, acknowledge_mode: AcknowledgeMode) -> AcknowledgeMode:
    """The mode of a new session; `transacted` goes before the mode, as in JMS.

    `TypeError` for a mode in the place of `transacted`, as one may have written in Java: it would count as true.
    """
    given: object = transacted
    if isinstance(given, AcknowledgeMode):
        said = f"acknowledge_mode=AcknowledgeMode.{given.name}"
        raise TypeError(f"transacted must be true or false, not a mode: say {said}")
    mode = AcknowledgeMode(acknowledge_mode)
    return AcknowledgeMode.TRANSACTED if transacted else mode


AS_THE_PRODUCER_SAYS = (None,) * 5
"""Delivery mode, priority, time to live, delay and properties of a send that names none of them."""


class ProducerSettings(KnownAttributes):
    """What a producer says of the messages it sends."""

    def __init__(self) -> None:
        self._disable_message_id = False
        self._disable_message_timestamp = False
        self._delivery_mode = DeliveryMode.PERSISTENT
        self._priority = DEFAULT_PRIORITY
        self._time_to_live = 0.0
        self._delivery_delay = 0.0

    def _check_settable(self) -> None:
        """Raise what forbids a change: the setters of what is closed raise as its methods do (jms rule 30)."""

    @property
    def disable_message_id(self) -> bool:
        """Whether sent messages go without an id."""
        return self._disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, disabled: bool) -> None:
        self._check_settable()
        self._disable_message_id = bool(disabled)

    @property
    def disable_message_timestamp(self) -> bool:
        """Whether sent messages go without a timestamp."""
        return self._disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, disabled: bool) -> None:
        self._check_settable()
        self._disable_message_timestamp = bool(disabled)

    @property
    def delivery_mode(self) -> DeliveryMode:
        """Whether messages are persistent."""
        return self._delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, mode: DeliveryMode) -> None:
        self._check_settable()
        self._delivery_mode = DeliveryMode(mode)

    @property
    def priority(self) -> int:
        """The priority of messages, 0 to 9."""
        return self._priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._check_settable()
        self._priority = check_priority(priority)

    @property
    def time_to_live(self) -> float:
        """Seconds until a message expires; 0 for never."""
        return self._time_to_live

    @time_to_live.setter
    def time_to_live(self, duration: Duration) -> None:
        self._check_settable()
        self._time_to_live = seconds_of(duration, "time_to_live")

    @property
    def delivery_delay(self) -> float:
        """Seconds before a message may be delivered."""
        return self._delivery_delay

    @delivery_delay.setter
    def delivery_delay(self, duration: Duration) -> None:
        self._check_settable()
        self._delivery_delay = seconds_of(duration, "delivery_delay")


class ProducerFace(ProducerSettings):
    """The settings of a producer, and how a message is made ready to be sent."""

    _core: ClientProducer

    def __init__(self, core: ClientProducer) -> None:
        super().__init__()
        self._core = core
        self._id_prefix = f"ID:{uuid.uuid4()}:"
        self._terms: tuple[Any, ...] = ()
        self._template: MessageTemplate | None = None

    def _check_settable(self) -> None:
        self._core.check()

    @property
    def destination(self) -> Destination | None:
        """Where messages go; None for an anonymous producer, which takes it with each send."""
        return self._core.destination

    @property
    def max_message_size(self) -> int | None:
        """How many octets the broker takes in one message of this producer; None where it names no limit.

        What counts is the message as it travels: headers, properties and body (AMQP 1.0 Part 2, 2.7.3).
        """
        return self._core.max_message_size or None

    def _choose_destination(self, destination: Destination | None) -> Destination:
        own = self._core.destination
        if destination is None:
            if own is None:
                raise IllegalStateError("an anonymous producer needs a destination with each send")
            return own
        if own is not None:
            raise IllegalStateError(f"this producer sends to {own}; only an anonymous one takes a destination")
        return self._core.session.connection.temporary.current(check_destination(destination))

    def _make(
        self, body: Any, destination: Destination, wanted: tuple[Any, ...], keep: bool
    ) -> tuple[Message | None, bytes, DeliveryMode]:
        """The octets to send; a message object beside them where one was given, or is wanted afterwards (`keep`)."""
        plain = body.__class__ is str or not is_message(body)
        if body is ...:
            raise TypeError("send takes a message or a body, or a stream")
        if keep or wanted != AS_THE_PRODUCER_SAYS or self._delivery_delay or not plain:
            made: tuple[Message | None, bytes, DeliveryMode] = self._prepare(body, destination, *wanted)
        else:
            made = None, self._octets(body, destination), self._delivery_mode
        if FROZEN:
            refuse_reentry(self._core.session.connection, destination, made[1])
        return made

    def _make_head(
        self, given: Any, destination: Destination, wanted: tuple[Any, ...]
    ) -> tuple[Message, bytes, DeliveryMode]:
        """The message of a stream, and its octets up to the body."""
        message, payload, mode = self._prepare(message_of_stream(given), destination, *wanted)
        assert payload.endswith(EMPTY_BODY)
        if FROZEN:
            refuse_reentry(self._core.session.connection, destination, payload)
        return message, payload[: -len(EMPTY_BODY)], mode

    def _context(
        self, message: Message | None, mode: DeliveryMode, on_completion: CompletionListener | None
    ) -> Future[Any] | Completion | None:
        """Who is to hear of the outcome: a callback, who waits, or nobody."""
        if on_completion is not None and message is not None:
            if not callable(on_completion):
                raise TypeError(f"on_completion is a callable or None, not {type(on_completion).__name__}")
            return Completion(on_completion, message, self._core.session)
        if mode is DeliveryMode.PERSISTENT and self._core.session.controller is None:
            return Answer()
        return None

    def _octets(self, body: Any, destination: Destination) -> bytes:
        """The octets of a message that is only its body, by the producer's settings: what most messages are."""
        terms = (
            destination, self._delivery_mode, self._priority, self._time_to_live, self._disable_message_id,
            self._disable_message_timestamp,
        )  # fmt: skip
        template = self._template
        connection = self._core.session.connection
        if template is None or terms != self._terms:
            self._terms = terms
            template = self._template = MessageTemplate(
                destination,
                prefixes=connection.prefixes,
                delivery_mode=int(self._delivery_mode),
                priority=self._priority,
                ttl=int(self._time_to_live * 1000),
                id_prefix=None if self._disable_message_id else self._id_prefix,
                stamped=not self._disable_message_timestamp,
                jmsx_user_id=connection.user_id,
            )
        core = self._core
        number = core.numbered = core.numbered + 1
        if body.__class__ is str:
            return template.encode_text(body, number, int(connection.clock() * 1000))
        return template.encode(body, number, connection.wall_milliseconds())

    def _follow_reply_to(self, message: Message) -> None:
        """A temporary destination may have another name since the application put it in (M105)."""
        temporary = self._core.session.connection.temporary
        if temporary.aliases and message.jms_reply_to is not None:
            message.jms_reply_to = temporary.current(message.jms_reply_to)

    def _prepare(
        self,
        body: Any,
        destination: Destination,
        delivery_mode: DeliveryMode | None,
        priority: int | None,
        time_to_live: Duration | None,
        delivery_delay: Duration | None,
        properties: Mapping[str, Any] | None,
    ) -> tuple[Message, bytes, DeliveryMode]:
        """The message, its octets and its mode; sets the headers that JMS has the provider set."""
        message = body if isinstance(body, Message) else body_to_message(body)
        if properties:
            set_properties(message, properties)
        mode = self._delivery_mode if delivery_mode is None else DeliveryMode(delivery_mode)
        ttl = self._time_to_live if time_to_live is None else seconds_of(time_to_live, "time_to_live")
        delay = self._delivery_delay if delivery_delay is None else seconds_of(delivery_delay, "delivery_delay")
        if delay:
            self._core.check_delay(destination)
        connection = self._core.session.connection
        self._follow_reply_to(message)
        now = connection.wall_milliseconds()
        number = self._core.numbered = self._core.numbered + 1
        payload = encode_for_send(
            message,
            message_id=None if self._disable_message_id else f"{self._id_prefix}{number}",
            timestamp=0 if self._disable_message_timestamp else now,
            now=now,
            destination=destination,
            delivery_mode=int(mode),
            priority=self._priority if priority is None else check_priority(priority),
            ttl=int(ttl * 1000),
            delivery_time=now + int(delay * 1000) if delay else 0,
            prefixes=connection.prefixes,
            jmsx_user_id=connection.user_id,
            delay_annotation=connection.profile.delay_annotation,
        )
        if message is not body and is_message(body):
            tell(body, message)
        return message, payload, mode

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self._core.destination or 'any destination'}>"


def set_properties(message: Message, properties: Mapping[str, Any]) -> None:
    if not isinstance(properties, Mapping):
        raise TypeError(f"properties is a mapping of names to values, not {type(properties).__name__}")
    for name, value in properties.items():
        message.properties[name] = value


def check_priority(priority: int) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(f"a priority is an int, not {type(priority).__name__}")
    if not 0 <= priority <= 9:
        raise ValueError(f"a priority is 0 to 9, not {priority}")
    return priority


def forbid_in_completion(calling: Any, what: str, session: ClientSession | None = None) -> None:
    """What waits for completion callbacks, of one session or of all, cannot be called from one (jms rules 44, 70)."""
    completion = getattr(calling, "__self__", None)
    if isinstance(completion, Completion) and session in (None, completion.session):
        raise IllegalStateError(f"{what} from a completion callback would wait for itself")


def check_listener(listener: Any) -> None:
    if listener is not None and not callable(listener):
        raise TypeError(f"a listener is a callable or None, not {type(listener).__name__}")


PATIENCE = 3
FIRST_BACK_OFF = 0.010
LONGEST_BACK_OFF = 5.0
"""From the fourth failure of the same message in a row the consumer backs off: 10 ms, doubling, at most 5 s (D6)."""


def back_off(failures: int) -> float:
    """Seconds to wait before a message that failed `failures` times in a row is tried again."""
    if failures <= PATIENCE:
        return 0.0
    return float(min(FIRST_BACK_OFF * 2 ** (failures - PATIENCE - 1), LONGEST_BACK_OFF))


ExceptionListener = Callable[[JMSError], Any]
EventListener = Callable[[ConnectionEvent], Any]
CompletionListener = Callable[[Message, "JMSError | None"], Any]
