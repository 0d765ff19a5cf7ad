"""A way through an HTTP proxy: ``CONNECT host:port`` (RFC 9110, 9.3.6), octets in and out, no socket in between."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address
from urllib import request

from jmsish.drivers.websocket import printable
from jmsish.options import Proxy, read_proxy

__all__ = ["ProxyFailure", "ProxyTunnel", "proxy_of_environment"]

_ANSWER_LIMIT = 16 * 1024
"""A proxy's answer has at most so many octets before what is behind it."""


class ProxyFailure(Exception):
    """The proxy did not open the way; the text says why in one line."""


class ProxyTunnel:
    """Asks a proxy for the way to a host. Write :attr:`request` first, then feed :meth:`receive`."""

    def __init__(self, proxy: Proxy, authority: str) -> None:
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if proxy.username is not None:
            secret = b64encode(f"{proxy.username}:{proxy.password or ''}".encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {secret}")
        self.request = ("\r\n".join(lines) + "\r\n\r\n").encode()
        self.established = False
        self._answer = b""

    def receive(self, data: bytes) -> bytes:
        """Take what came from the proxy and give what came behind its answer. Raises :class:`ProxyFailure`."""
        self._answer += data
        head, mark, rest = self._answer.partition(b"\r\n\r\n")
        if not mark:
            if len(self._answer) > _ANSWER_LIMIT or not b"HTTP/1.".startswith(self._answer[:7]):
                raise ProxyFailure("the proxy's answer is no HTTP")
            return b""
        version, _, said = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1.") or not said[:3].isdigit():
            raise ProxyFailure("the proxy's answer is no HTTP")
        # RFC 9110, 9.3.6: "Any 2xx (Successful) response indicates" that the tunnel stands.
        if said[0] != "2":
            raise ProxyFailure(f"the proxy answered HTTP {printable(said[:100])}")
        self.established = True
        return rest


def proxy_of_environment(
    host: str, secure: bool, environment: Mapping[str, str] | None = None, *, port: int = 0
) -> Proxy | None:
    """The proxy that ``HTTPS_PROXY`` (or ``HTTP_PROXY``, without TLS) names for a host, ``NO_PROXY`` respected.

    This machine itself is reached without one.
    """
    if host == "localhost" or _is_loopback(host):
        return None
    found = dict(request.getproxies_environment() if environment is None else environment)
    url = found.get("https" if secure else "http")
    bypass = request.proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed
    if not url or bypass(host, found) or bypass(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", found):
        return None
    return read_proxy("HTTPS_PROXY" if secure else "HTTP_PROXY", url)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
