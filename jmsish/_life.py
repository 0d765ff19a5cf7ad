"""The life of an embedded broker: how it is made, started and stopped, and where it listens and whom it dials."""

from __future__ import annotations

import os
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from jmsish._listening import check_authenticator, check_exposure, check_listen, tls_of, websocket_of
from jmsish._network import Connector, Router, check_role
from jmsish._users_file import UsersFile
from jmsish.broker.broker import Broker
from jmsish.broker.config import BrokerConfig, ConfigurationError
from jmsish.broker.config.listeners import ListenerConfig
from jmsish.broker.network.doors import NORMAL
from jmsish.broker.network.node import RouterNode
from jmsish.broker.users import User
from jmsish.broker.views import ConnectionView
from jmsish.drivers import registry
from jmsish.drivers.certificates import ServerCertificates
from jmsish.drivers.dialling import Dialler
from jmsish.drivers.forks import brokers
from jmsish.drivers.listener import Listener, SocketReactor
from jmsish.drivers.lobby import Lobby
from jmsish.drivers.serving import BrokerDriver
from jmsish.errors import IllegalStateError, UnsupportedFeatureError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from typing_extensions import Self  # in the standard library from 3.11 on

_T = TypeVar("_T")
_numbers = count(1)

Authenticator = Callable[[str, bytes | None], str | None]
"""Asked (mechanism, initial response); answers a user name, or ``None`` to refuse."""

Config = Mapping[str, Any] | str | os.PathLike[str]
"""A mapping, or the path of a TOML file of the same shape."""


class BrokerLife:
    """What every embedded broker has, whether it holds queues or is a router."""

    def __init__(
        self,
        name: str | None = None,
        *,
        config: Config | None = None,
        store: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] | None = None,
        authenticator: Authenticator | None = None,
        profile: str | None = None,
    ) -> None:
        if store is not None:
            raise UnsupportedFeatureError(
                f"store={os.fspath(store)!r}: this version keeps messages in memory only; leave store out"
            )
        if clock is not None and not callable(clock):
            raise TypeError(f"clock must be a callable that gives seconds since the epoch, not {clock!r}")
        if authenticator is not None:
            check_authenticator(authenticator)
        self._authenticator = authenticator
        self._name = _free_name() if name is None else _check_name(name)
        self._config = _read_config(config)
        self._directory = os.path.dirname(os.fspath(config)) if isinstance(config, (str, os.PathLike)) else ""
        self._clock = time.time if clock is None else clock
        self._profile = profile
        self._listeners: list[Listener] = []
        self._running = False
        self._life = threading.RLock()  # start, stop and listen, one at a time
        try:
            self._prepare()
        except ConfigurationError as error:
            if not isinstance(config, (str, os.PathLike)):
                raise
            raise error.in_file(os.fspath(config)) from error

    def _prepare(self) -> None:
        self._core = self._make(BrokerConfig.from_mapping(self._config))
        self._driver = BrokerDriver(self._core, name=self._name, clock=self._clock)
        self._driver.errands.dialler = Dialler(self._driver, self._sockets).dial
        self._reactor: SocketReactor | None = None
        self._certificates: list[ServerCertificates] = []
        named = self._core.config.authentication.users_file
        self._users_file = UsersFile(self._place(named) if named else "", self._take_users)

    def _make(self, config: BrokerConfig) -> Broker | RouterNode:
        if not config.router.is_router:
            return Broker(
                self._name, config, clock=self._clock, authenticator=self._authenticator, profile=self._profile
            )
        if self._profile is not None:
            raise ValueError(f"profile={self._profile!r} imitates a broker, and this one is a router")
        return RouterNode(self._name, config, clock=self._clock, authenticator=self._authenticator)

    def _take_users(self, users: Mapping[str, User]) -> None:
        self._call(lambda: self._core.authentication.take_file(users))

    # Life.

    @property
    def name(self) -> str:
        return self._name

    @property
    def url(self) -> str:
        """``vm://NAME``: for connections from this process."""
        return f"vm://{quote(self._name, safe='')}"

    @property
    def is_running(self) -> bool:
        return self._running

    def start(self) -> None:
        """Become reachable, by name and by the listeners of the configuration. On a running broker nothing happens.

        A broker that was stopped starts anew, as it was made: what it held is gone.
        """
        with self._life:
            if self._running:
                return
            if self._driver.stopped:
                self._prepare()
            registry.register(self._driver)
            brokers.add(self)
            self._running = True
            try:
                for wanted in self._core.config.listeners:
                    self._listen_as(wanted)
                for each in self._core.config.connectors:
                    self.connector(each.url, role=each.role, name=each.name)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """Tell everybody, and end. Twice is silent; what the queues held can still be looked at."""
        with self._life:
            if not self._running:
                return
            self._running = False
            registry.unregister(self._driver)
            if self._reactor is not None:
                self._reactor.close_listeners()
            self._driver.stop()
            if self._reactor is not None:
                self._reactor.stop()
            self._listeners.clear()

    def disown(self) -> None:
        """After a fork, in the child: it is the parent's, and stopped here; started anew there is nothing in it."""
        self._life = threading.RLock()
        self._running = False
        self._listeners.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def listen(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        ssl_context: ssl.SSLContext | None = None,
        role: str = "normal",
        protocol: str = "amqp",
        origins: Sequence[str] = (),
        certificate: str | None = None,
        key: str | None = None,
        key_password: str | None = None,
        client_ca: str | None = None,
        require_client_certificate: bool = False,
        allow_insecure: bool = False,
    ) -> Listener:
        """Serve AMQP 1.0 over TCP, or TLS; port 0 takes a free one, which ``.port`` names.

        TLS is by an ``ssl_context``, or by files in PEM: ``certificate`` and its ``key``, and ``client_ca`` with those
        who issue certificates to clients, which may be required. The files are read anew when they change.

        Who listens where other machines come (any host but this one) has to have TLS, and to ask who they are: else
        ``ValueError``, unless ``allow_insecure`` says that this is meant.

        ``protocol="ws"`` serves it over WebSocket (extra ``ws``), on every path; ``origins`` are then the web sites
        whose pages may connect, besides those of this host and port: ``"https://app.example"``, or ``"*"`` for all.
        """
        check_listen(host, port)
        check_role(self._core.config.router, role)
        websocket = websocket_of(protocol, origins)
        tls = tls_of(ssl_context, certificate, key, key_password, client_ca, require_client_certificate, protocol)
        if not allow_insecure:
            check_exposure(host, port, tls, asks=self._core.authentication.is_required)
        with self._life:
            if not self._running:
                raise IllegalStateError(f"the broker {self._name!r} is not running: start it before it listens")
            listener = self._sockets().listen(host, port, tls, websocket, None if role == NORMAL else role)
            self._listeners.append(listener)
            if isinstance(tls, ServerCertificates):
                self._certificates.append(tls)
            return listener

    def _sockets(self) -> SocketReactor:
        with self._life:
            if not self._running:  # as who was just dialling finds it
                raise IllegalStateError(f"the broker {self._name!r} is stopped")
            if self._reactor is None:
                caps = self._core.config.caps
                self._reactor = SocketReactor(
                    self._driver,
                    self._users_file.refresh,
                    lobby=Lobby(caps.max_opening, caps.max_opening_per_host),
                    handshake_timeout=caps.handshake_timeout,
                    stall_timeout=caps.stall_timeout,
                )
            self._reactor.begin()
            return self._reactor

    def _listen_as(self, wanted: ListenerConfig) -> None:
        """As a section of the configuration says, in which files are named from where it stands."""
        given = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
        for name in ("certificate", "key", "client_ca"):
            if given[name] is not None:
                given[name] = self._place(given[name])
        self.listen(**given)

    def _place(self, path: str) -> str:
        return os.path.join(self._directory, path)

    def reload(self) -> None:
        """Read the file of users and the certificates of the listeners anew, as happens by itself when they change.

        ``ValueError`` says what is wrong with one; then that one stays as it was. Connections that are there stay.
        """
        wrong = []
        with self._life:
            for reload in (self._users_file.reload, *(each.reload for each in self._certificates)):
                try:
                    reload()
                except ValueError as error:
                    wrong.append(str(error))
        if wrong:
            raise ValueError("; ".join(wrong))

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Those that are open, in the order of their making."""
        return tuple(listener for listener in self._listeners if not listener.closed)

    # Routers.

    @property
    def router(self) -> Router:
        """This router of a network; :class:`~jmsish.errors.UnsupportedFeatureError` where the broker is none."""
        if isinstance(self._core, RouterNode):
            return Router(self._driver, self._core)
        raise UnsupportedFeatureError(f"the broker {self._name!r} is no router: its configuration has no [router]")

    def connector(self, url: str, *, role: str = NORMAL, name: str | None = None) -> Connector:
        """A connection that this router makes, and makes again when it is lost, until it is closed.

        ``role`` is ``"inter-router"`` between interiors, ``"edge"`` for the uplink of an edge, and ``"normal"`` to a
        broker that link routes lead to. ``ValueError`` for a role that this router cannot have.
        """
        return self.router.connect(url, role, name)

    @property
    def _broker(self) -> Broker:
        """What holds queues; a router does not."""
        if isinstance(self._core, Broker):
            return self._core
        raise UnsupportedFeatureError(
            f"the router {self._core.router!r} holds no queues and no exchanges: its addresses are wherever somebody "
            "receives from them, or at the brokers of its link routes"
        )

    # What is live now.

    def connections(self) -> list[ConnectionView]:
        """The connections that are open, as they are at this moment."""
        return self._call(self._core.connections)

    def _explained(self) -> int:
        """About how many blocks of memory its connections, links, queues and messages are made of."""
        return self._call(self._core.explained)

    def _call(self, function: Callable[[], _T]) -> _T:
        return self._driver.call(function)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url} {'running' if self._running else 'not running'}>"


def _free_name() -> str:
    """The next name of its own that no broker of this process has."""
    taken = registry.running()
    return next(name for number in _numbers if (name := f"broker-{number}") not in taken)


def _check_name(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a broker is a str, not {type(name).__name__}")
    if not name:
        raise ValueError("the name of a broker is empty")
    return name


def _read_config(config: Config | None) -> Mapping[str, Any] | None:
    if isinstance(config, (str, os.PathLike)):
        try:
            found: dict[str, Any] = tomllib.loads(Path(config).read_text(encoding="utf-8-sig"))
        except ValueError as error:  # not UTF-8, or not TOML
            raise ValueError(f"{os.fspath(config)}: {error}") from error
        return found
    return config
