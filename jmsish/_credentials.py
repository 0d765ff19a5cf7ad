"""What both faces know of logging in and of TLS: which options mean what, before there is a connection."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from jmsish.client.cbs import MakeToken, TokenNode
from jmsish.client.connection import ClientConnection
from jmsish.drivers.loopback import is_loopback
from jmsish.drivers.tls_contexts import client_context
from jmsish.engine.oauth import check_token
from jmsish.engine.sasl import SaslClient
from jmsish.errors import ConnectionLostError, JMSSecurityError
from jmsish.option_security import TLS_OPTIONS
from jmsish.options import ConnectionOptions, ConnectionTarget
from jmsish.profiles.shared_access import AccessKey


def tls_context(target: ConnectionTarget, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """The TLS of a connection: verification and host names by default; none for a scheme without TLS.

    Raises `ValueError` for `ssl_context` together with options that would be in it, and for files that are no good.
    """
    if not target.is_secure:
        return None
    options = target.options
    if given is not None:
        for name in TLS_OPTIONS:
            if name != "tls_server_name" and getattr(options, name) != getattr(_DEFAULTS, name):
                raise ValueError(f"{name} and ssl_context are both given: what the context says cannot be added to")
        return given
    return client_context(
        ca=options.tls_ca,
        certificate=options.tls_certificate,
        key=options.tls_key,
        key_password=options.tls_key_password,
        verify=options.tls_verify,
        verify_host=options.tls_verify_host,
        alpn=not target.is_websocket,  # there the protocol inside of TLS is HTTP
    )


_DEFAULTS = ConnectionOptions()


def check_context(target: ConnectionTarget, given: ssl.SSLContext | None) -> None:
    """A context where there is no TLS would be passed over in silence, and what is meant to be safe would not be.

    In a list of brokers one with TLS is enough: the others were asked for without, by their URLs.
    """
    if given is None:
        return
    if not isinstance(given, ssl.SSLContext):
        raise TypeError(f"ssl_context must be an ssl.SSLContext, not {type(given).__name__}")
    if not any(place.is_secure for place in target.alternatives):
        raise ValueError(f"ssl_context is for TLS, which {target.url} has not: amqps:// or amqpwss:// has it")


def sasl_client(target: ConnectionTarget, token: str | None, given: ssl.SSLContext | None) -> SaslClient | None:
    """What a connection brings into the SASL exchange; none over `vm://` without a name, where nobody asks.

    A certificate logs in (EXTERNAL) where nothing else was given to log in with, or it was named. Whether there is one
    in an `ssl_context` cannot be seen; the broker offers EXTERNAL only to those who have shown one.
    """
    options = target.options
    if target.scheme == "vm" and target.username is None:
        return None
    layered, exposed = target.is_secure or target.is_websocket, _is_exposed(target)
    if options.cbs:  # who we are is said at the node $cbs
        return SaslClient(("ANONYMOUS",), exposed=exposed, promised=True, layered=layered)
    mechanisms = options.sasl_mechanisms
    certified = target.is_secure and (options.tls_certificate is not None or given is not None)
    alone = target.username is None and target.password is None and token is None
    password = target.password
    if target.scheme == "vm" and password is None:
        password = ""  # nobody looks at it: the name is believed
    return SaslClient(
        mechanisms,
        target.username,
        password,
        certified and (alone or "EXTERNAL" in (mechanisms or ())),
        token=token,
        host=target.host,
        port=target.port,
        exposed=exposed,
        layered=layered,
    )


def _is_exposed(target: ConnectionTarget) -> bool:
    """Whether others can read what is sent there, and nobody has said that they may."""
    options = target.options
    if target.scheme == "vm" or target.is_secure or options.allow_cleartext:
        return False
    by_proxy = options.proxy is not None and bool(options.proxy.host)  # an empty one says: none
    return by_proxy or not is_loopback(target.host or "")


FetchToken = Callable[[ConnectionTarget], "str | None | Awaitable[str | None]"]
"""What asks the application for a token: `token_now`, or what a coroutine function is awaited by."""


def token_node(
    core: ClientConnection, target: ConnectionTarget, token: str | None, fetch: FetchToken
) -> TokenNode | None:
    """Who puts tokens, with the option ``cbs``. `ValueError` where there is nothing to make them of."""
    if not target.options.cbs:
        return None
    asks = partial(fetch, target) if target.options.token is not None else None
    return TokenNode(core, token_maker(target, token), asks)


def token_maker(target: ConnectionTarget, token: str | None) -> MakeToken | None:
    """What makes the tokens for one broker, with the option ``cbs``; None where one is still to be fetched."""
    if token is not None:
        return lambda audience, expiry: token
    if target.options.token is not None:
        return None
    if target.username is None or target.password is None:
        raise ValueError("cbs needs token, or user name and password: the name of a shared access key and the key")
    return AccessKey(target.username, target.password).token


def token_now(target: ConnectionTarget) -> str | None:
    """The token of a blocking connection, fetched anew. Raises `JMSSecurityError` where there is none to be had."""
    found = _ask(target)
    if inspect.isawaitable(found):
        if inspect.iscoroutine(found):
            found.close()
        raise TypeError(
            "token gave something to be awaited, which only jmsish.aio does; here it gives the token itself"
        )
    return None if found is None else check_token(found)


async def token_soon(target: ConnectionTarget) -> str | None:
    """The same for an asyncio connection, whose callable may be a coroutine function."""
    found = _ask(target)
    if inspect.isawaitable(found):
        try:
            found = await found
        except Exception as error:
            raise no_token(target, f"the callable raised {type(error).__name__}") from error
        if found is None:
            raise TypeError("the token must be a str, not NoneType")
    return None if found is None else check_token(found)


def _ask(target: ConnectionTarget) -> Any:
    token = target.options.token
    if token is None or (target.scheme == "vm" and not target.options.cbs):
        return None
    try:
        found = token()
    except Exception as error:
        raise no_token(target, f"the callable raised {type(error).__name__}") from error
    if found is None:
        raise TypeError("the token must be a str, not NoneType")
    return found


def no_token(target: ConnectionTarget, why: str) -> JMSSecurityError:
    """The text of what was raised is left out: who knows what a token server says."""
    return JMSSecurityError(f"cannot connect to {target.peer}: there is no token to log in with: {why} (stage: SASL)")


@contextmanager
def brought_along(place: ConnectionTarget, stage: str) -> Iterator[None]:
    """What an attempt to connect brings along may be wrong this time: a token that is none, a file half replaced.

    That is one attempt that failed, and no fault inside the client: the next may find it in order.
    """
    try:
        yield
    except (TypeError, ValueError, ImportError) as error:
        kind = JMSSecurityError if stage == "SASL" else ConnectionLostError
        raise kind(f"cannot connect to {place.peer}: {error} (stage: {stage})") from error
