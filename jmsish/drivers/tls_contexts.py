"""The TLS of a connection, made from files: what is verified, what is shown, and at least TLS 1.2.

A context that a program gives itself is used as it is.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["ALPN", "client_context", "server_context"]

ALPN: Final = "amqp"
"""What both ends say is spoken inside (RFC 7301), so that one port may serve several protocols."""


def client_context(
    *,
    ca: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    key_password: str | None = None,
    verify: bool = True,
    verify_host: bool = True,
    alpn: bool = True,
) -> ssl.SSLContext:
    """For a client. ``ValueError`` says which file is not what it should be."""
    with _told("tls_ca", ca):
        context = ssl.create_default_context(cafile=ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if alpn:
        context.set_alpn_protocols([ALPN])
    if not verify or not verify_host:
        context.check_hostname = False
    if not verify:
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, ("tls_certificate", certificate), ("tls_key", key), _Opener("tls_key_password", key_password))
    elif key is not None:
        raise ValueError("tls_key is the key of tls_certificate, which is not given")
    elif key_password is not None:
        raise ValueError("tls_key_password opens the key of tls_certificate, which is not given")
    return context


def server_context(
    certificate: str,
    key: str | None = None,
    *,
    key_password: str | None = None,
    client_ca: str | None = None,
    require_client_certificate: bool = False,
    alpn: bool = True,
) -> ssl.SSLContext:
    """For a listener. ``ValueError`` says which file is not what it should be."""
    if require_client_certificate and client_ca is None:
        raise ValueError("require_client_certificate needs client_ca: the certificates of those who may issue them")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # OpenSSL before 3 has a client of TLS 1.2 shake hands again as often as it likes, which costs us ten times as much.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if alpn:
        context.set_alpn_protocols([ALPN])
    _load(context, ("certificate", certificate), ("key", key), _Opener("key_password", key_password))
    if client_ca is not None:
        with _told("client_ca", client_ca):
            context.load_verify_locations(cafile=client_ca)
        context.verify_mode = ssl.CERT_REQUIRED if require_client_certificate else ssl.CERT_OPTIONAL
    return context


class _Opener:
    """What OpenSSL asks for the password of a key: without it would ask the terminal, and wait there for ever."""

    def __init__(self, name: str, password: str | None) -> None:
        self.name = name
        self.was_asked = False
        self._password = password

    def __call__(self) -> str:
        self.was_asked = True
        if self._password is None:
            raise ValueError(f"the key is encrypted, and there is no {self.name}")
        return self._password


def _load(context: ssl.SSLContext, certificate: tuple[str, str], key: tuple[str, str | None], opener: _Opener) -> None:
    """A certificate and its key, each as the name of what says where it is, and the file."""
    with _told(*certificate, key[1], key[0], opener):
        context.load_cert_chain(certificate[1], key[1], opener)


_SAID: Final = {
    "no start line": "there is no certificate in it (PEM)",
    "no certificate or crl found": "there is no certificate in it (PEM)",
    "key values mismatch": "the key is not that of the certificate",
    "bad decrypt": "the password does not open the key",
}


@contextmanager
def _told(
    name: str, path: str | None, key: str | None = None, key_name: str = "", opener: _Opener | None = None
) -> Iterator[None]:
    """What goes wrong with a file is told with its name."""
    where = f"{name}={path!r}" + (f", {key_name}={key!r}" if key is not None else "")
    try:
        yield
    except ssl.SSLError as error:
        reason = (error.reason or "").replace("_", " ").lower()
        said = _SAID.get(reason, reason)
        if not reason or reason == "pem lib":  # OpenSSL says no more of what it cannot read
            said = f"there is no certificate {'with its key ' if key_name else ''}in it (PEM)"
            if opener is not None and opener.was_asked:
                said = "the password does not open the key"
        raise ValueError(f"{where}: {said}") from error
    except OSError as error:
        raise ValueError(f"{where}: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
