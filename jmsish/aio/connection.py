"""Connections for asyncio."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from jmsish._credentials import brought_along, check_context, no_token, tls_context, token_soon
from jmsish._facade import (
    ConnectionMetaData,
    EventListener,
    ExceptionListener,
    check_listener,
    check_mode,
    check_places,
    engine_maker,
    forbid_in_completion,
    layers,
    make_core,
)
from jmsish._simplified import Family
from jmsish.aio.closing import Closing, Opening
from jmsish.aio.context import JMSContext
from jmsish.aio.session import Session
from jmsish.client.connection import ClientConnection
from jmsish.destination import Destination
from jmsish.drivers.layered_wire import join_layered
from jmsish.drivers.loop import Connect, LoopDriver
from jmsish.drivers.registry import connect_vm
from jmsish.engine.engine import Engine
from jmsish.errors import IllegalStateError, JMSError, OperationTimeoutError
from jmsish.modes import AcknowledgeMode
from jmsish.options import ConnectionTarget, parse_url


class Connection(Closing):
    """A connection to a broker (JMS 3.1, 6.1): made by `connect`, which starts it, or by a `ConnectionFactory`."""

    def __init__(self, core: ClientConnection, connect: Connect | None = None) -> None:
        self._core = core
        self._driver = LoopDriver(core, connect)
        self._driver.follow(core.options.clock)
        self._sessions: set[Session] = set()
        self._session_kind = Session if core.telemetry is None else core.telemetry.session_kind(Session)

    # -- state -----------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str | None:
        """The client id (the AMQP container id), or None when nobody gave one.

        It can be set once, before the connection is used, unless the factory gave it; else `IllegalStateError`.  Empty,
        it raises `InvalidClientIDError` (JMS 3.1, 6.1.2), and so does the first use when another connection has it.
        """
        return self._core.client_id

    @client_id.setter
    def client_id(self, client_id: str) -> None:
        self._driver.call(self._core.set_client_id, client_id)

    @property
    def metadata(self) -> ConnectionMetaData:
        """What this library is, and what the broker says of itself."""
        if self._core.remote is None:
            raise IllegalStateError("the connection is not open yet: it opens at its first use")
        return ConnectionMetaData(self._core)

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """A callable that gets the errors no call waits for, a lost connection above all."""
        return self._core.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        check_listener(listener)
        if self._core.closed:
            raise IllegalStateError("the connection is closed")
        self._core.exception_listener = listener

    @property
    def event_listener(self) -> EventListener | None:
        """A callable that gets the events of a connection that reconnects (`jmsish.events`): interrupted, restored,
        deliveries lost, transaction lost, temporary destination renamed.

        It is called where the exception listener is, and only while the connection lives on: its end is an exception.
        """
        return self._core.event_listener

    @event_listener.setter
    def event_listener(self, listener: EventListener | None) -> None:
        check_listener(listener)
        if self._core.closed:
            raise IllegalStateError("the connection is closed")
        self._core.event_listener = listener

    @property
    def is_started(self) -> bool:
        """Whether messages are delivered."""
        return self._core.started and not self.is_closed

    @property
    def is_closed(self) -> bool:
        """Whether the connection was closed, by the application or by a failure."""
        return self._core.closed or self._core.failure is not None

    # -- work ------------------------------------------------------------------------------------------------------

    async def create_session(
        self, transacted: bool = False, acknowledge_mode: AcknowledgeMode = AcknowledgeMode.AUTO
    ) -> Session:
        """A session; a transacted one ignores `acknowledge_mode`."""
        mode = check_mode(transacted, acknowledge_mode)
        session = self._session_kind(self, await self._driver.run(self._core.create_session(mode), cancellable=True))
        self._sessions.add(session)
        return session

    async def start(self) -> None:
        """Start, or resume, the delivery of messages.  On a started connection nothing happens."""
        await self._driver.run(self._core.ready_to_start())
        self._driver.call(self._core.start)
        self._driver.flush()

    async def stop(self) -> None:
        """Hold back the delivery of messages; waits for running listeners.  Raises `IllegalStateError` from one."""
        for session in list(self._sessions):
            if session._listeners is not None:
                session._listeners.forbid("stopping a connection")
        self._driver.call(self._core.stop)
        for session in list(self._sessions):
            if session._listeners is not None:
                await session._listeners.wait_until_idle()

    async def close(self) -> None:
        """Close the sessions, then the connection.  Raises `IllegalStateError` from a listener.  Twice is silent.

        Wakes blocked receives, which return None, and waits for running listeners, to whom all of the connection is
        there until they return: at most `close_timeout` seconds (JMS 3.1, 6.1.8).
        """
        sessions = list(self._sessions)
        for session in sessions:
            if session._listeners is not None:
                session._listeners.forbid("closing a connection")
        forbid_in_completion(self._driver.callbacks.calling, "closing a connection")
        try:
            await self._quiet(sessions)
            for session in sessions:
                try:
                    await session.close()
                except JMSError:
                    if self._core.failure is None:
                        raise
            await self._driver.run(self._core.close())
        except asyncio.CancelledError:  # who waits for nobody any more, still gives back what was not read, unmarked
            with suppress(JMSError):
                await self._driver.run(self._core.close())
            raise
        finally:
            self._driver.stop()
        await self._driver.closed()

    async def _quiet(self, sessions: list[Session]) -> None:
        """Nothing is handed over any more in any session, and no listener runs."""
        listening = any(session._runs_listener for session in sessions)
        for session in sessions:
            self._driver.call(session._core.begin_close, listening)
        for session in sessions:
            if session._listeners is not None:
                await session._listeners.wait_until_idle(self._core.options.close_timeout)

    async def _open(self) -> None:
        await self._driver.run(self._core.open())

    async def _create_temporary(self, topic: bool) -> Any:
        made = await self._driver.run(self._core.temporary.create(topic), cancellable=True)
        return type(made)(made.name, self)  # type: ignore[call-arg]

    async def delete_temporary(self, destination: Destination) -> None:
        """What `TemporaryQueue.delete` and `TemporaryTopic.delete` call."""
        await self._driver.run(self._core.temporary.delete(destination))

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and driver.abandon():
            text = f"connection to {self._core.peer} dropped without close()"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "started" if self._core.started else "stopped"
        return f"<Connection to {self._core.peer} {state}>"


class ConnectionFactory:
    """Makes stopped connections to one place, as JMS says."""

    def __init__(
        self,
        url: str,
        *,
        username: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        """See `connect` for the arguments.  Raises `ValueError` for an unknown scheme or option."""
        self._url = url
        self._given = {"username": username, "password": password, "client_id": client_id, **options}
        self._ssl_context = ssl_context
        parse_url(url, **self._given)

    async def create_connection(self, username: str | None = None, password: str | None = None) -> Connection:
        """A stopped connection, authenticated; its open goes out at the first use, so that `client_id` can be set."""
        given = dict(self._given)
        if username is not None:
            given.update(username=username, password=password)
        return await _dial(parse_url(self._url, **given), self._ssl_context)

    async def create_context(
        self,
        session_mode: AcknowledgeMode = AcknowledgeMode.AUTO,
        username: str | None = None,
        password: str | None = None,
    ) -> JMSContext:
        """A context on a connection of its own, which starts with the first consumer (JMS 3.1, 2.8).

        Its session begins at the first use, so that `client_id` can be set before.
        """
        mode = AcknowledgeMode(session_mode)
        return JMSContext(await self.create_connection(username, password), mode, Family())


def connect(
    url: str,
    *,
    username: str | None = None,
    password: str | None = None,
    client_id: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    start: bool = True,
    **options: Any,
) -> Opening[Connection]:
    """Connect to a broker: `vm://NAME`, `amqp://host:port`, `amqps://host:port`, `failover:(url,url)`.

    The connection is open, and started unless `start` is false.  Options are keywords (`prefetch=100`) or part of the
    URL (`?jms.prefetch=100`); see `jmsish.options.ConnectionOptions`.  Raises `ValueError` for an unknown scheme or
    option, `ConnectionLostError` when the broker cannot be reached, `JMSSecurityError` when it refuses the credentials.
    """
    target = parse_url(url, username=username, password=password, client_id=client_id, **options)
    return Opening(lambda: _connect(target, ssl_context, start))


async def _connect(target: ConnectionTarget, ssl_context: ssl.SSLContext | None, start: bool) -> Connection:
    connection = await _dial(target, ssl_context, opening=True)
    try:
        await connection._open()
        if start:
            await connection.start()
    except BaseException:
        connection._driver.stop()
        raise
    return connection


def create_context(
    url: str,
    session_mode: AcknowledgeMode = AcknowledgeMode.AUTO,
    username: str | None = None,
    password: str | None = None,
    client_id: str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    **options: Any,
) -> Opening[JMSContext]:
    """A context for a broker: a connection and a session in one (JMS 3.1, 2.8).

    `session_mode` says who acknowledges what is received; with `AcknowledgeMode.TRANSACTED` the session is transacted.
    The connection starts with the first consumer.  See `connect` for the other arguments and the errors.
    """
    mode = AcknowledgeMode(session_mode)
    target = parse_url(url, username=username, password=password, client_id=client_id, **options)
    return Opening(lambda: _create_context(target, ssl_context, mode))


async def _create_context(
    target: ConnectionTarget, ssl_context: ssl.SSLContext | None, mode: AcknowledgeMode
) -> JMSContext:
    return await JMSContext(await _dial(target, ssl_context), mode, Family())._opened()


async def _dial(target: ConnectionTarget, ssl_context: ssl.SSLContext | None, opening: bool = False) -> Connection:
    """Reach the target's broker, and authenticate; by `failover:` as its plan says, with `opening` to the open."""
    check_context(target, ssl_context)
    if target.failover is not None:
        return await _dial_by_plan(target, ssl_context, opening)
    tls = tls_context(target, ssl_context)
    core = make_core(target, target.client_id, await _token(target), ssl_context, _token)
    timeout = target.options.connect_timeout
    deadline = None if timeout is None else monotonic() + timeout  # that the broker has: the token took its own time
    connection = Connection(core)
    driver = connection._driver
    try:
        await _reach(driver, target, tls)
        driver.flush()
        await driver.wait(core.authenticated, deadline)
    except OperationTimeoutError as error:
        driver.stop()
        raise core.unanswered("SASL", error) from error
    except BaseException:
        driver.stop()
        raise
    return connection


async def _dial_by_plan(target: ConnectionTarget, ssl_context: ssl.SSLContext | None, opening: bool) -> Connection:
    """The first connection of one that is made again after a loss: it is made the same way."""
    check_places(target, ssl_context)
    core = make_core(target, target.targets[0].client_id or target.client_id, fetch=_token)
    core.now = monotonic()
    core.dial_first(opening)
    online = core.online
    connection = Connection(core, partial(_reach_for_engine, ssl_context))
    try:
        connection._driver.see_to_loss()
        await connection._driver.wait(online, None)
    except BaseException:
        connection._driver.stop()
        raise
    return connection


async def _reach_for_engine(
    ssl_context: ssl.SSLContext | None, driver: LoopDriver, place: ConnectionTarget
) -> Callable[[str], Engine]:
    core: Any = driver.core
    with brought_along(place, "SASL"):
        make = engine_maker(core, place, await _token(place), ssl_context)
    with brought_along(place, "TLS"):
        tls = tls_context(place, ssl_context)
    if core.dialling is not None:
        core.dialling.since = monotonic()
    await _reach(driver, place, tls)
    return make


async def _token(place: ConnectionTarget) -> str | None:
    """Asked for anew, within `connect_timeout`."""
    timeout = place.options.connect_timeout
    try:
        return await asyncio.wait_for(token_soon(place), timeout)
    except asyncio.TimeoutError as late:
        raise no_token(place, f"the callable gave none within {timeout:g} s") from late


async def _reach(driver: LoopDriver, place: ConnectionTarget, tls: ssl.SSLContext | None) -> None:
    """Connect to one broker, TLS and what else there is around the octets of AMQP included."""
    if place.scheme == "vm":
        assert place.name is not None
        driver.join_pipe(connect_vm(place.name))
        return
    assert place.host is not None and place.port is not None
    timeout = place.options.connect_timeout
    websocket, proxy = layers(place)
    name = place.options.tls_server_name
    if websocket is None and proxy is None and tls is None:
        await driver.join_socket(place.host, place.port, timeout=timeout)
    else:
        await join_layered(
            driver,
            place.host,
            place.port,
            timeout=timeout,
            ssl_context=tls,
            server_hostname=name,
            websocket=websocket,
            proxy=proxy,
        )


__all__ = ["Connection", "ConnectionFactory", "IllegalStateError", "connect", "create_context"]
