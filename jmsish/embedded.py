"""A broker inside the program: no port, no process, started in less than a millisecond; and a port if wanted."""

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
from typing import Any, TypeVar
from urllib.parse import quote

from jmsish._listening import check_exposure, check_listen, tls_of, websocket_of
from jmsish._policy import Policy
from jmsish._users_file import UsersFile
from jmsish._views import ExchangeView, QueueView
from jmsish.broker.bindings import Binding
from jmsish.broker.broker import Broker
from jmsish.broker.config import ConfigurationError
from jmsish.broker.config.listeners import ListenerConfig
from jmsish.broker.users import User
from jmsish.broker.views import ConnectionView, SubscriptionView, TransactionView
from jmsish.broker.views import ExchangeView as BrokerExchangeView
from jmsish.drivers import registry
from jmsish.drivers.certificates import ServerCertificates
from jmsish.drivers.listener import Listener, SocketReactor
from jmsish.drivers.lobby import Lobby
from jmsish.drivers.serving import BrokerDriver
from jmsish.errors import IllegalStateError, UnsupportedFeatureError
from jmsish.freezing import Freeze, FrozenExchange, change, owner

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "Binding",
    "ConnectionView",
    "EmbeddedBroker",
    "ExchangeView",
    "Freeze",
    "FrozenExchange",
    "Listener",
    "Policy",
    "QueueView",
    "SubscriptionView",
    "TransactionView",
]

_T = TypeVar("_T")
_numbers = count(1)

Authenticator = Callable[[str, bytes | None], str | None]
"""Asked (mechanism, initial response); answers a user name, or ``None`` to refuse."""

Config = Mapping[str, Any] | str | os.PathLike[str]
"""A mapping, or the path of a TOML file of the same shape."""


class EmbeddedBroker:
    """A broker in this process, reached by ``broker.url`` (``vm://NAME``) and by what it listens on.

    ::

        with jmsish.EmbeddedBroker() as broker:
            with jmsish.connect(broker.url) as connection:
                ...
            assert broker.queue("orders").depth == 0

    ``config`` says what queues, users and limits there are; ``clock`` is a callable that gives seconds since the epoch,
    such as a :class:`~jmsish.testing.VirtualClock`: it drives what happens to messages and transactions. ``profile``
    is the name of another broker (``"rabbitmq"``, ``"servicebus"``, ``"artemis"`` …) whose limits and refusals this one
    then has, for tests (docs/profiles.md). Everything may be called by any thread.

    ``authenticator`` is asked (mechanism, initial response) for who comes in by OAUTHBEARER or XOAUTH2, and by PLAIN
    where there are no ``users``, and answers a user name, or ``None`` to refuse. It runs in a thread of its own, so it
    may take its time; :func:`jmsish.broker.read_bearer` takes the response apart.
    """

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
        if authenticator is not None and not callable(authenticator):
            raise TypeError(f"authenticator must be a callable, not {type(authenticator).__name__}")
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
        self._broker = Broker(
            self._name, self._config, clock=self._clock, authenticator=self._authenticator, profile=self._profile
        )
        self._driver = BrokerDriver(self._broker, name=self._name, clock=self._clock)
        self._reactor: SocketReactor | None = None
        self._certificates: list[ServerCertificates] = []
        named = self._broker.config.authentication.users_file
        self._users_file = UsersFile(self._place(named) if named else "", self._take_users)

    def _take_users(self, users: Mapping[str, User]) -> None:
        self._call(lambda: self._broker.authentication.take_file(users))

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
            self._running = True
            try:
                for wanted in self._broker.config.listeners:
                    self._listen_as(wanted)
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

    def __enter__(self) -> EmbeddedBroker:
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
        check_listen(host, port, role)
        websocket = websocket_of(protocol, origins)
        tls = tls_of(ssl_context, certificate, key, key_password, client_ca, require_client_certificate, protocol)
        if not allow_insecure:
            check_exposure(host, port, tls, asks=self._broker.authentication.is_required)
        with self._life:
            if not self._running:
                raise IllegalStateError(f"the broker {self._name!r} is not running: start it before it listens")
            if self._reactor is None:
                caps = self._broker.config.caps
                self._reactor = SocketReactor(
                    self._driver,
                    self._users_file.refresh,
                    lobby=Lobby(caps.max_opening, caps.max_opening_per_host),
                    handshake_timeout=caps.handshake_timeout,
                    stall_timeout=caps.stall_timeout,
                )
            listener = self._reactor.listen(host, port, tls, websocket)
            self._listeners.append(listener)
            if isinstance(tls, ServerCertificates):
                self._certificates.append(tls)
            return listener

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

    # Queues.

    def queue(self, name: str) -> QueueView:
        """A live view of a queue that exists; :class:`~jmsish.errors.InvalidDestinationError` for others."""
        return QueueView(self._driver, self._call(lambda: self._broker.queue(name)))

    def queues(self) -> list[QueueView]:
        """Views of all queues, temporary ones included."""
        return [QueueView(self._driver, view) for view in self._call(self._broker.queues)]

    def declare_queue(self, name: str, **settings: Any) -> QueueView:
        """Make a queue with these settings, or give them to the one that exists.

        ``durable``, ``max_delivery_attempts`` (0: no limit), ``dead_letter``, ``expiry_address``, ``redelivery_delay``,
        ``max_messages``, ``max_octets``, ``overflow`` (``"reject"``, ``"drop-head"``, ``"block"``).
        """
        return QueueView(self._driver, self._call(lambda: self._broker.declare_queue(name, **settings)))

    def delete_queue(self, name: str) -> None:
        """Delete a queue and what it holds; its consumers are detached."""
        self._call(lambda: self._broker.delete_queue(name))

    def redirect(self, source: str, target: str) -> None:
        """Pair two queues: from now on what is sent to ``source`` goes into ``target``, and the other way round.

        Who receives goes on receiving from the queue it has. It is one step: a message sent before is in one queue, a
        message sent after in the other. ``InvalidDestinationError`` for an unknown queue, ``ValueError`` for a queue
        with itself and for temporary ones and those of subscriptions, ``IllegalStateError`` where one is paired.
        """
        self._call(lambda: self._broker.redirect(source, target))

    def end_redirect(self, source: str) -> int:
        """End the pair of a queue, as deleting one of the two does: each queue is given its own messages back.

        Returns how many went back. What a consumer holds stays in the queue it was taken from. ``IllegalStateError``
        where the queue is in no pair.
        """
        return self._call(lambda: self._broker.end_redirect(source))

    # Exchanges and subscriptions.

    def exchange(self, name: str) -> ExchangeView:
        """A live view of an exchange that exists; :class:`~jmsish.errors.InvalidDestinationError` for others.

        ``amq.direct``, ``amq.topic``, ``amq.fanout`` and ``amq.match`` (headers) always do. The keys of ``amq.topic``
        are the topics that have no exchange of their own. In the nameless exchange, ``""``, every queue is bound by its
        own name.
        """
        return self._view(self._call(lambda: self._broker.exchange(name)))

    def exchanges(self) -> list[ExchangeView]:
        """Views of all exchanges, temporary topics included."""
        return [self._view(view) for view in self._call(self._broker.exchanges)]

    def declare_exchange(self, name: str, type: str, **settings: Any) -> ExchangeView:
        """Make an exchange of the type ``"direct"``, ``"topic"``, ``"fanout"`` or ``"headers"``, or find the one that
        is there and give it these settings; ``ValueError`` where it has another type.

        ``durable``, ``auto_delete`` (with its last binding and link), ``alternate`` (the exchange that gets what goes
        nowhere), ``unroutable`` (``"discard"``, ``"reject"``, ``"release"``; by default a direct exchange rejects and
        the others discard), ``sequence`` (messages are numbered), ``initial_value`` (a new binding gets the last one).

        A topic of exactly that name is then this exchange, and its messages are told apart by their subjects.
        """
        return self._view(self._call(lambda: self._broker.declare_exchange(name, type, **settings)))

    def delete_exchange(self, name: str, *, timeout: float | None = None) -> None:
        """Delete an exchange, its bindings and its subscriptions; their producers and consumers are detached.

        ``ValueError`` for those that are always there, and for the alternate of another. Where somebody else holds it
        frozen this waits, at most ``timeout`` seconds (:class:`~jmsish.errors.FreezeTimeoutError`).
        """
        exchange = self.exchange(name)._view.exchange
        who = owner()
        if self._call(lambda: self._broker.freezes.is_held_by(exchange, who)):
            self._call(lambda: self._broker.delete_exchange(name))
        else:
            freezes = self._broker.freezes
            change(self._driver, freezes, exchange, lambda: self._broker.delete_exchange(name), timeout)

    def freeze(self, *names: str, timeout: float | None = None, max_hold: float | None = None) -> Freeze:
        """Hold several exchanges still for a block: see :class:`~jmsish.freezing.Freeze`.

        They are taken in the order of their names, so that two who want the same do not wait for each other.
        """
        return Freeze(self._driver, self._broker.freezes, names, timeout, max_hold)

    def _view(self, view: BrokerExchangeView) -> ExchangeView:
        return ExchangeView(self._driver, view, self._broker.freezes)

    def subscriptions(self) -> list[SubscriptionView]:
        """The subscriptions to topics, as they are at this moment; what they hold is in the queue they name."""
        return self._call(self._broker.subscriptions)

    # Policy.

    @property
    def policy(self) -> Policy:
        """Who may come in and what they may do, while it runs: see :class:`~jmsish.embedded.Policy`."""
        return Policy(self._driver, self._broker)

    # What is live now.

    def transactions(self) -> list[TransactionView]:
        """The transactions that are open, as they are at this moment."""
        return self._call(self._broker.transactions)

    def connections(self) -> list[ConnectionView]:
        """The connections that are open, as they are at this moment."""
        return self._call(self._broker.connections)

    def _call(self, function: Callable[[], _T]) -> _T:
        return self._driver.call(function)

    def __repr__(self) -> str:
        return f"<EmbeddedBroker {self.url} {'running' if self._running else 'not running'}>"


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
            found: dict[str, Any] = tomllib.loads(Path(config).read_text(encoding="utf-8"))
        except ValueError as error:  # not UTF-8, or not TOML
            raise ValueError(f"{os.fspath(config)}: {error}") from error
        return found
    return config
