"""What a listener is told, checked before there is a socket; and what must not be served to everybody."""

from __future__ import annotations

import inspect
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from jmsish.broker.config.listeners import PROTOCOLS, check_origin
from jmsish.drivers.certificates import ServerCertificates
from jmsish.drivers.loopback import is_loopback
from jmsish.drivers.sockets import address_text
from jmsish.drivers.websocket import ServerWebSocket

Tls = ssl.SSLContext | ServerCertificates | None


def websocket_of(protocol: object, origins: object) -> Callable[[], ServerWebSocket] | None:
    """What makes the WebSocket of a client; none for a listener without."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    if isinstance(origins, str) or not isinstance(origins, Sequence) or not all(isinstance(o, str) for o in origins):
        raise TypeError(f"origins must be a list of strings, not {origins!r}")
    if protocol == "amqp":
        if origins:
            raise ValueError('origins are for protocol="ws": other clients have none')
        return None
    for origin in origins:
        check_origin(origin)
    make = partial(ServerWebSocket, tuple(origins))
    make()  # says now, and not to the first client, where the library is missing
    return make


def check_authenticator(authenticator: object) -> None:
    """Raise what is wrong with who decides about logins."""
    if not callable(authenticator):
        raise TypeError(f"authenticator must be a callable, not {type(authenticator).__name__}")
    if inspect.iscoroutinefunction(authenticator) or inspect.iscoroutinefunction(type(authenticator).__call__):
        raise TypeError("authenticator must be a plain function, asked in a thread of its own: nobody awaits it")


def check_listen(host: object, port: object) -> None:
    """Raise what is wrong with them."""
    if not isinstance(host, str):
        raise TypeError(f"host must be a str, not {type(host).__name__}")
    if isinstance(port, bool) or not isinstance(port, int):
        raise TypeError(f"port must be an int, not {type(port).__name__}")
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be from 0 to 65535, not {port}")


def tls_of(
    ssl_context: object,
    certificate: str | None,
    key: str | None,
    key_password: str | None,
    client_ca: str | None,
    require_client_certificate: bool,
    protocol: str,
) -> Tls:
    """The TLS of a listener: the context it was given, one from files, or none."""
    if ssl_context is not None and not isinstance(ssl_context, ssl.SSLContext):
        raise TypeError(f"ssl_context must be an ssl.SSLContext, not {type(ssl_context).__name__}")
    further = key or key_password or client_ca or require_client_certificate
    if ssl_context is not None:
        if certificate is not None or further:
            raise ValueError("ssl_context and files for TLS are both given: what the context says cannot be added to")
        return ssl_context
    if certificate is None:
        if further:
            raise ValueError("key, key_password, client_ca and require_client_certificate go with certificate")
        return None
    return ServerCertificates(
        certificate,
        key,
        key_password=key_password,
        client_ca=client_ca,
        require_client_certificate=require_client_certificate,
        alpn=protocol == "amqp",
    )


def demands_certificate(tls: Tls) -> bool:
    """Whether nobody comes in without a certificate."""
    if isinstance(tls, ssl.SSLContext):
        return tls.verify_mode == ssl.CERT_REQUIRED
    return tls is not None and tls.demands_certificate


def check_exposure(host: str, port: int, tls: Tls, *, asks: bool) -> None:
    """Raise ``ValueError`` where a listener would be reached from other machines, and by whom and how is nobody's care.

    ``asks`` says whether the broker asks anybody who they are.
    """
    missing = []
    if not (asks or demands_certificate(tls)):
        missing.append(
            "nobody would be asked who they are (there are no users, no users_file, no authenticator, and no "
            "certificate is required of clients)"
        )
    if tls is None:
        missing.append("all that is sent could be read on the way (there is no TLS: a certificate and its key)")
    if missing and not _stays_here(host, port):
        raise ValueError(
            f"listening on {address_text(host, port)} is refused, for other machines reach it, and "
            f"{', and '.join(missing)}; allow_insecure=True (jmsish broker: --allow-insecure) serves all the same"
        )


def _stays_here(host: str, port: int) -> bool:
    if not host:
        return False
    if is_loopback(host):
        return True
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True  # Nobody reaches it: what is wrong with it is said where it is bound.
    return all(is_loopback(str(address[0])) for *_, address in found)
