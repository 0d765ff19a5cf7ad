"""Options of a connection, and the URL they may come from.

::

    vm://NAME                                     an embedded broker of this process
    amqp://[user:password@]host[:port]            TCP
    amqps://[user:password@]host[:port]           TLS
    amqpws://[user:password@]host[:port][/path]   WebSocket; also ws://
    amqpwss://[user:password@]host[:port][/path]  WebSocket over TLS; also wss://
    failover:(URL,URL…)[?options]                 the first that answers, again after a loss

An option is given as a keyword (``prefetch=100``) or in the URL (``?jms.prefetch=100``); the keyword wins. The names
that Qpid JMS gives its options are understood in URLs (:data:`QPID_NAMES`, in milliseconds where it counts so), so
that a URL can be carried over. A name nobody knows raises ``ValueError`` and says what was near.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from jmsish.failover_options import QPID_FAILOVER_NAMES, FailoverOptions
from jmsish.option_kinds import (
    FLAG,
    NO_HOST,
    OBJECT,
    PROXY,
    TEXT,
    VHOST,
    WATCHER,
    Proxy,
    choice,
    count,
    optional,
    read_proxy,
    seconds,
    unknown_name,
)
from jmsish.option_kinds import option as _option
from jmsish.option_security import QPID_SECURITY_NAMES, TLS_OPTIONS, SecurityOptions
from jmsish.profiles import NAMES as PROFILE_NAMES
from jmsish.profiles.shared_access import is_connection_string, read_connection_string

__all__ = [
    "QPID_NAMES",
    "WITHOUT_EFFECT",
    "ConnectionOptions",
    "ConnectionTarget",
    "FailoverOptions",
    "Proxy",
    "make_options",
    "parse_url",
    "read_proxy",
]


_WAIT = seconds(optional=True)
_PREFETCH = count(0, 0xFFFF)
_OUTCOMES = ("accepted", "rejected", "released", "modified_failed", "modified_failed_undeliverable")


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions(SecurityOptions):
    """All that can be chosen about a connection. Durations are seconds or ``timedelta``; ``None`` waits for ever."""

    prefetch: int = _option(1000, _PREFETCH)
    """How many messages the broker may send a consumer ahead of its ``receive``; 0 asks for each one."""
    queue_prefetch: int | None = _option(None, count(0, 0xFFFF, optional=True))
    """The same for consumers of queues; ``None``: as ``prefetch``."""
    topic_prefetch: int | None = _option(None, count(0, 0xFFFF, optional=True))
    """The same for consumers of topics; ``None``: as ``prefetch``."""
    durable_topic_prefetch: int | None = _option(None, count(0, 0xFFFF, optional=True))
    """The same for durable consumers of topics; ``None``: as ``prefetch``."""
    browser_prefetch: int | None = _option(None, count(0, 0xFFFF, optional=True))
    """The same for browsers; ``None``: as ``prefetch``."""
    cancel_on_commit: str = _option("auto", choice("auto", "always", "never"))
    """Whether a commit gives back what its consumers have buffered unread: ``"auto"`` when another consumer of the
    session has the same queue, ``"always"``, or ``"never"``."""
    local_priority: bool = _option(False, FLAG)
    """Whether a consumer orders the messages it has buffered by priority."""
    connect_timeout: float | None = _option(15, _WAIT)
    """How long making a connection may take, handshakes included."""
    request_timeout: float | None = _option(60, _WAIT)
    """How long the broker may take over anything but a send: a commit, a new consumer, a drain."""
    send_timeout: float | None = _option(None, _WAIT)
    """How long a send may take, waiting for credit included."""
    close_timeout: float | None = _option(60, _WAIT)
    """How long a close waits for the broker."""
    idle_timeout: float = _option(60, seconds(optional=False))
    """After how long without a word from the broker the connection counts as lost; 0 never. The broker is told half of
    it (Part 2, 2.4.5); Qpid Broker-J takes no connection that says less than a second."""
    resend_in_flight: bool = _option(False, FLAG)
    """Whether sends whose outcome a lost connection left unknown are sent again (duplicates are possible)."""
    close_links_that_fail_on_reconnect: bool = _option(False, FLAG)
    """What a consumer or producer does that a broker does not take back after a loss: with true it alone is closed,
    else the connection fails with the cause."""
    reattach_idle_links: bool | None = _option(None, optional(FLAG))
    """Whether a consumer or producer attaches anew when the broker detached its link for being idle
    (``amqp:link:detach-forced``); ``None``: at brokers of which that is known (Azure Service Bus)."""
    max_redeliveries: int | None = _option(None, count(0, optional=True))
    """How often a message may be redelivered before the consumer refuses it; ``None``: the broker decides."""
    redelivery_outcome: str = _option("modified_failed_undeliverable", choice(*_OUTCOMES))
    """With which outcome it is refused then."""
    vhost: str | None = _option(None, VHOST)
    """The virtual host to ask for; ``None``: the host of the URL; empty: none."""
    max_frame_size: int = _option(1 << 20, count(512, (1 << 32) - 1))
    """The largest frame the broker may send, in octets."""
    clock: Any = _option(None, OBJECT)
    """The clock for timestamps, and for what is waited for besides real time; ``None``: the real one."""
    profile: str | None = _option(None, optional(choice(*PROFILE_NAMES)))
    """The kind of broker (`docs/profiles.md`); ``None``: what is recognised in its open."""
    queue_prefix: str | None = _option(None, TEXT)
    """What the broker wants before the names of queues; ``None``: what it says itself."""
    topic_prefix: str | None = _option(None, TEXT)
    """What the broker wants before the names of topics; ``None``: what it says itself."""
    stream_threshold: int | None = _option(None, count(1, optional=True))
    """A ``BytesMessage`` of more octets is handed over while it arrives, to be read by ``message.open()``; ``None``:
    every message is handed over whole. A connection with a threshold has smaller frames and windows."""
    proxy: Proxy | None = _option(None, PROXY)
    """The HTTP proxy to go through, as ``http://[user:password@]host:port``; ``None``: over WebSocket the one that the
    environment names (``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY``), else none; empty: none in any case."""
    tracing: Any = _option(None, WATCHER)
    """Who watches the connection for traces and metrics, a ``jmsish.otel.Telemetry``; ``False``: nobody; ``None``: whom
    ``jmsish.otel.instrument`` has named, if it was called."""
    max_message_size: int | None = _option(None, count(1, (1 << 64) - 1, optional=True))
    """The largest message that consumers take, in octets; ``None``: any. The broker is told. Of one that sends a larger
    one all the same nothing is kept, and the consumer that it came for ends with an error."""
    populate_user_id: bool = _option(False, FLAG)
    """Whether sent messages carry the user name as ``JMSXUserID``."""

    def prefetch_for(self, *, topic: bool = False, durable: bool = False, browser: bool = False) -> int:
        """The prefetch of a consumer of this sort."""
        chosen = self.queue_prefetch
        if browser:
            chosen = self.browser_prefetch
        elif topic:
            chosen = self.durable_topic_prefetch if durable else self.topic_prefetch
        return self.prefetch if chosen is None else chosen


_MILLISECONDS = seconds(optional=True, per_second=1000)


def _read_outcome(name: str, text: str) -> str:
    """Qpid JMS takes the number of its enumeration as well as the name."""
    return _OUTCOMES[int(text) - 1] if text in ("1", "2", "3", "4", "5") else text.lower()


_SHORTEST = count(0, 0xFFFF, optional=True)

QPID_NAMES: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "jms.prefetchPolicy.all": ("prefetch", _PREFETCH.read),
    "jms.prefetchPolicy.queuePrefetch": ("queue_prefetch", _SHORTEST.read),
    "jms.prefetchPolicy.topicPrefetch": ("topic_prefetch", _SHORTEST.read),
    "jms.prefetchPolicy.durableTopicPrefetch": ("durable_topic_prefetch", _SHORTEST.read),
    "jms.prefetchPolicy.queueBrowserPrefetch": ("browser_prefetch", _SHORTEST.read),
    "jms.localMessagePriority": ("local_priority", FLAG.read),
    "jms.connectTimeout": ("connect_timeout", _MILLISECONDS.read),
    "transport.connectTimeout": ("connect_timeout", _MILLISECONDS.read),
    "jms.requestTimeout": ("request_timeout", _MILLISECONDS.read),
    "jms.sendTimeout": ("send_timeout", _MILLISECONDS.read),
    "jms.closeTimeout": ("close_timeout", _MILLISECONDS.read),
    "amqp.idleTimeout": ("idle_timeout", _MILLISECONDS.read),
    "jms.redeliveryPolicy.maxRedeliveries": ("max_redeliveries", count(0, optional=True).read),
    "jms.redeliveryPolicy.outcome": ("redelivery_outcome", _read_outcome),
    "amqp.vhost": ("vhost", VHOST.read),
    "amqp.maxFrameSize": ("max_frame_size", count(512).read),
    **QPID_SECURITY_NAMES,
    "jms.queuePrefix": ("queue_prefix", TEXT.read),
    "jms.topicPrefix": ("topic_prefix", TEXT.read),
    "jms.populateJMSXUserID": ("populate_user_id", FLAG.read),
    "jms.username": ("username", TEXT.read),
    "jms.password": ("password", TEXT.read),
    "jms.clientID": ("client_id", TEXT.read),
    "jms.client_id": ("client_id", TEXT.read),
    "jms.closeLinksThatFailOnReconnect": ("close_links_that_fail_on_reconnect", FLAG.read),
    **QPID_FAILOVER_NAMES,
}
"""Names of Qpid JMS: the option each stands for, and how its text is read."""

WITHOUT_EFFECT = frozenset(
    {
        "amqp.traceFrames",
        "jms.connectionIDPrefix",
        "jms.clientIDPrefix",
        "jms.forceAsyncAcks",
        "jms.useDaemonThread",
        "transport.receiveBufferSize",
        "transport.sendBufferSize",
        "transport.soLinger",
        "transport.soTimeout",
        "transport.tcpKeepAlive",
        "transport.tcpNoDelay",
        "transport.traceBytes",
        "transport.trafficClass",
        "transport.useEpoll",
        "transport.useKQueue",
        "transport.useOpenSSL",
    }
)
"""Names of Qpid JMS that tune its own machinery: accepted in a URL, and without effect here."""


_NOT_OFFERED = re.compile(
    r"""jms\.(forceSyncSend|forceAsyncSend|localMessageExpiry|validatePropertyNames|receiveLocalOnly|tracing
        |receiveNoWaitLocalOnly|awaitClientID|presettlePolicy\..*
        |messageIDPolicy\..*|deserializationPolicy\..*)
    |amqp\.(saslLayer|drainTimeout|channelMax|allowNonSecureRedirects)
    |transport\.(local.*|.*Store.*|storeType|contextProtocol|.*CipherSuites|.*Protocols|keyAlias|ws\..*)
    |proxy\..*""",
    re.VERBOSE,
)
"""Names of Qpid JMS for what cannot be chosen here, so that the error does not take them for mistakes of spelling."""

_FIELDS = {option.name: option for option in dataclasses.fields(ConnectionOptions)}
_FAILOVER_FIELDS = {option.name: option for option in dataclasses.fields(FailoverOptions)}


def make_options(options: Mapping[str, Any]) -> ConnectionOptions:
    """The options of these keywords; ``ValueError`` names the nearest known one for a name that is none."""
    for name in options:
        if name not in _FIELDS:
            raise ValueError(unknown_name("option", name, _FIELDS))
    return ConnectionOptions(**options)


def _read_option(name: str, text: str) -> tuple[str, Any] | None:
    """The option that a parameter of a URL gives, and its value; ``None`` for one that has no effect."""
    if name in WITHOUT_EFFECT:
        return None
    if name in QPID_NAMES:
        option, read = QPID_NAMES[name]
        return option, read(name, text)
    prefix, _, own = name.partition(".")
    fields = {"jms": _FIELDS, "failover": _FAILOVER_FIELDS}.get(prefix, {})
    if own in fields:
        return own, fields[own].metadata["kind"].read(name, text)
    if _NOT_OFFERED.fullmatch(name):
        tls = (
            "; TLS is set up by the options jms.tls_…, with files in PEM, or by ssl_context"
            if name.startswith("transport.")
            else ""
        )
        raise ValueError(f"the option {name!r} of Qpid JMS has no counterpart here{tls}")
    known = [f"jms.{option}" for option in _FIELDS] + [f"failover.{option}" for option in _FAILOVER_FIELDS]
    raise ValueError(unknown_name("option", name, [*known, *QPID_NAMES]))


_CREDENTIALS = ("username", "password", "client_id")
_UNSPEAKABLE = {"username": re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]"), "password": re.compile(r"[\x00\ud800-\udfff]")}


def _check_credential(name: str, value: Any) -> None:
    """No mechanism can carry a NUL or half a character, and a control character in a name would end a field early."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {type(value).__name__}")
    if value is not None and _UNSPEAKABLE[name].search(value):
        raise ValueError(f"the {name} has a control character or a lone surrogate, which no login can carry")
_DEFAULT_PORTS = {"amqp": 5672, "amqps": 5671, "amqpws": 80, "amqpwss": 443}
_SCHEMES = ("vm", "amqp", "amqps", "amqpws", "amqpwss", "failover")
_ALIASES = {"ws": "amqpws", "wss": "amqpwss"}


@dataclass(frozen=True, kw_only=True)
class ConnectionTarget:
    """Where to connect to and how: what a URL and the keywords beside it come to."""

    scheme: str
    """``"vm"``, ``"amqp"``, ``"amqps"``, ``"amqpws"``, ``"amqpwss"`` or ``"failover"``."""
    host: str | None = None
    """The host, without brackets; ``None`` for ``vm`` and ``failover``."""
    port: int | None = None
    """The port; where the URL names none 5672, with TLS 5671, over WebSocket 80, with TLS 443."""
    path: str = "/"
    """What is asked for at a WebSocket server."""
    name: str | None = None
    """The name of the embedded broker, for ``vm``."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id: str | None = None
    options: ConnectionOptions = field(default_factory=ConnectionOptions)
    failover: FailoverOptions | None = None
    """How to reconnect, for ``failover``."""
    targets: tuple[ConnectionTarget, ...] = ()
    """The brokers of a ``failover`` URL, in order."""

    def __post_init__(self) -> None:
        for name in ("username", "password"):
            _check_credential(name, getattr(self, name))

    @property
    def alternatives(self) -> tuple[ConnectionTarget, ...]:
        """The brokers to try in turn: those of a ``failover`` URL, else this one."""
        return self.targets or (self,)

    def at(self, host: str, port: int | None = None, scheme: str | None = None) -> ConnectionTarget:
        """The same at another host, one that a broker named."""
        scheme = scheme or ("amqp" if self.scheme == "vm" else self.scheme)
        port = _DEFAULT_PORTS[scheme] if port is None else port
        return dataclasses.replace(self, scheme=scheme, host=host, port=port, name=None)

    @property
    def peer(self) -> str:
        """What a broker is called in errors: host and port, or its name."""
        return f"vm://{self.name}" if self.scheme == "vm" else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL without credentials and options, for messages."""
        if self.scheme == "vm":
            return f"vm://{self.name}"
        if self.targets:
            return f"failover:({','.join(target.url for target in self.targets)})"
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path if self.is_websocket and self.path != '/' else ''}"

    @property
    def is_websocket(self) -> bool:
        return self.scheme in ("amqpws", "amqpwss")

    @property
    def is_secure(self) -> bool:
        """Whether there is TLS."""
        return self.scheme in ("amqps", "amqpwss")


def parse_url(
    url: str,
    *,
    username: str | None = None,
    password: str | None = None,
    client_id: str | None = None,
    **options: Any,
) -> ConnectionTarget:
    """What a URL and keywords mean; keywords win over the URL, and a URL inside ``failover:`` over the options outside.

    ``ValueError`` says what is wrong with it; no text of an error shows a password.
    """
    if not isinstance(url, str):
        raise TypeError(f"a URL is a str, not {type(url).__name__}")
    if is_connection_string(url):
        host, name, key = read_connection_string(url)
        url, username, password = f"amqps://{host}", username or name, password or key
    reconnect = {name: options.pop(name) for name in _FAILOVER_FIELDS if name in options}
    if options:
        make_options(options)
    given = {"username": username, "password": password, "client_id": client_id}
    keywords = {**{name: value for name, value in given.items() if value is not None}, **options}
    if url.partition(":")[0] == "failover":
        return _checked(_parse_failover(url, keywords, reconnect))
    if reconnect:
        raise ValueError(f"{next(iter(reconnect))} says how to reconnect, which takes a URL failover:({_shown(url)})")
    return _checked(_parse_single(url, {}, keywords))


def _checked(target: ConnectionTarget) -> ConnectionTarget:
    """Options of TLS where there is none would be passed over in silence: what is meant to be safe would not be."""
    if not any(place.is_secure for place in target.alternatives):
        for place in (target, *target.targets):
            for name in TLS_OPTIONS:
                if getattr(place.options, name) != _FIELDS[name].default:
                    raise _without_tls(name, place.url)
    return target


def _check_own(found: Mapping[str, Any], url: str) -> None:
    """What stands at a broker of a list is for that one, whatever the others are."""
    for name in TLS_OPTIONS:
        if found.get(name, _FIELDS[name].default) != _FIELDS[name].default:
            raise _without_tls(name, url)


def _without_tls(name: str, url: str) -> ValueError:
    return ValueError(f"{name} is for TLS, which {url} has not: amqps:// or amqpwss:// has it")


def _shown(url: str) -> str:
    """The URL as an error may show it: without what stands before the ``@``, and without parameters.

    A password that is not quoted may hold any of the characters that divide a URL, so from the first ``//`` to the last
    ``@`` all is left out; where the ``@`` was forgotten, the password stands where the port should. Where it cannot be
    told at all what is what, nothing but the scheme is shown.
    """
    scheme, mark, _ = url.partition("//")
    address, _, query = url.partition("?")
    if "@" in query or ("@" in url and not mark):
        return f"{scheme if mark else url.partition(':')[0] + ':'}{mark}…"
    shown = re.sub(r"//.*@", "//…@", address, flags=re.DOTALL)
    return re.sub(r"(//(?:\[[^\]]*\]|[^/:,@\[\]]+)):(?!\d{1,5}(?:[/,)#]|$)).+", r"\1:…", shown, flags=re.DOTALL)


def _read_query(url: str, query: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for parameter in filter(None, query.split("&")):
        name, mark, text = parameter.partition("=")
        name = unquote(name).removeprefix("failover.nested.")
        if "@" in name:
            raise ValueError(
                f"a parameter in {_shown(url)!r} has no name; a question mark in a password is written %3F"
            )
        if not mark:
            # What has no name that could be one may be the end of a password with a question mark in it.
            known = name.partition(".")[0] in ("jms", "amqp", "transport", "failover", "proxy")
            raise ValueError(f"{f'the parameter {name!r}' if known else 'a parameter'} in {_shown(url)!r} has no value")
        found = _read_option(name, unquote(text))
        if found is not None:
            values[found[0]] = found[1]
    return values


def _parse_single(url: str, common: Mapping[str, Any], keywords: Mapping[str, Any]) -> ConnectionTarget:
    shown = _shown(url)
    address, _, query = url.partition("?")
    scheme, mark, authority = address.partition("://")
    if not mark:
        raise ValueError(f"{shown!r} is no URL such as amqp://host:port or vm://name")
    scheme = _ALIASES.get(scheme, scheme)
    if scheme not in _SCHEMES:
        near = unknown_name("scheme", scheme, _SCHEMES).partition("; ")[0]
        raise ValueError(f"{near} (in {shown!r}; known: {', '.join(_SCHEMES)})")
    if scheme == "failover":
        raise ValueError(f"{shown!r}: a failover URL inside another, or without its parentheses")
    user, at, place = authority.rpartition("@")
    place, _, path = place.partition("/")
    if "#" in place + path or (path and not scheme.startswith("amqpws")):
        raise ValueError(f"{shown!r} has a path; a virtual host is chosen by ?amqp.vhost=NAME")
    if path and not re.fullmatch(r"[!-~]*", path):
        raise ValueError(f"{shown!r}: the path has a character that must be written as %XX")
    own = _read_query(url, query)
    if scheme not in ("amqps", "amqpwss"):
        _check_own(own, shown)
    found: dict[str, Any] = {**common, **own}
    if at:
        name, colon, secret = user.partition(":")
        found["username"] = unquote(name)
        if colon:
            found["password"] = unquote(secret)
    found.update(keywords)
    for option in _FAILOVER_FIELDS:
        if option in found:
            raise ValueError(f"{shown!r} has a failover option ({option}) but is no failover URL")
    credentials = {option: found.pop(option) for option in _CREDENTIALS if option in found}
    return ConnectionTarget(
        scheme=scheme,
        path=f"/{path}",
        **_read_place(scheme, place, shown),
        **credentials,
        options=ConnectionOptions(**found),
    )


def _read_place(scheme: str, place: str, shown: str) -> dict[str, Any]:
    if scheme == "vm":
        if not place:
            raise ValueError(f"{shown!r} does not name an embedded broker")
        return {"name": unquote(place)}
    if NO_HOST.search(place):
        raise ValueError(f"{shown!r} names no single host; several brokers are failover:(amqp://a,amqp://b)")
    found = re.fullmatch(r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^:\[\]]*))(?::(?P<port>.*))?", place)
    if found is None or (found["port"] or "").count(":"):
        raise ValueError(f"{shown!r}: an IPv6 address stands in brackets, as in amqp://[::1]:5672")
    host, port = found["six"] or found["host"], found["port"]
    if not host:
        raise ValueError(f"{shown!r} names no host")
    if port is None:
        return {"host": host, "port": _DEFAULT_PORTS[scheme]}
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= 0xFFFF):
        raise ValueError(f"{shown!r}: the port is no number from 1 to 65535")
    return {"host": host, "port": int(port)}


def _parse_failover(url: str, keywords: Mapping[str, Any], given: Mapping[str, Any]) -> ConnectionTarget:
    shape = re.fullmatch(r"failover:(?://)?\((?P<inside>.*)\)(?:\?(?P<query>.*))?", url)
    if shape is None:
        raise ValueError(f"{_shown(url)!r} is not of the form failover:(amqp://a,amqp://b)")
    common = _read_query(url, shape["query"] or "")
    reconnect = {option: common.pop(option) for option in _FAILOVER_FIELDS if option in common} | dict(given)
    # Parameters may hold commas too: only one before a scheme divides.
    inside = [part.strip() for part in re.split(r",(?=\s*[A-Za-z][\w+.-]*:)", shape["inside"])]
    targets = tuple(_parse_single(part, common, keywords) for part in inside)
    found = {**common, **keywords}
    credentials = {option: found.pop(option) for option in _CREDENTIALS if option in found}
    return ConnectionTarget(
        scheme="failover",
        **credentials,
        options=ConnectionOptions(**found),
        failover=FailoverOptions(**reconnect),
        targets=targets,
    )
