"""The TLS of a listener, made from files, and made anew when they change; connections that are there stay."""

from __future__ import annotations

import logging
import ssl

from jmsish.drivers.files import Watched
from jmsish.drivers.tls_contexts import server_context

__all__ = ["ServerCertificates"]

_log = logging.getLogger("jmsish.broker")


class ServerCertificates:
    """Gives the context for the next connection. See :func:`~jmsish.drivers.tls_contexts.server_context`."""

    def __init__(
        self,
        certificate: str,
        key: str | None = None,
        *,
        key_password: str | None = None,
        client_ca: str | None = None,
        require_client_certificate: bool = False,
        alpn: bool = True,
    ) -> None:
        self.certificate = certificate
        self.demands_certificate = require_client_certificate
        self._key = key
        self._key_password = key_password
        self._client_ca = client_ca
        self._alpn = alpn
        self._watched = Watched(certificate, key, client_ca)
        self._context = self._make()

    def _make(self) -> ssl.SSLContext:
        return server_context(
            self.certificate,
            self._key,
            key_password=self._key_password,
            client_ca=self._client_ca,
            require_client_certificate=self.demands_certificate,
            alpn=self._alpn,
        )

    def __call__(self) -> ssl.SSLContext:
        """The context of what the files hold now; the one before, with a warning, where they hold nothing of use.

        They are looked at for each connection: a certificate and its key are two files, so a pair that does not fit may
        be half of a change, whose other half comes.
        """
        if self._watched.changed():
            try:
                self._context = self._make()
            except ValueError as error:
                _log.warning("the certificate before is shown on, for the new one is no good: %s", error)
            else:
                _log.info("the certificate %s is read anew", self.certificate)
        return self._context

    def reload(self) -> None:
        """Read the files now, changed or not. ``ValueError`` says what is wrong with them; then the old ones stay."""
        self._watched.changed()
        self._context = self._make()
