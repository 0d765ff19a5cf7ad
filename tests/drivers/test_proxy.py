"""HTTP proxies: the tunnel without a socket, and which one the environment names."""

from __future__ import annotations

import pytest

from jmsish.drivers.proxy import ProxyFailure, ProxyTunnel, proxy_of_environment
from jmsish.options import Proxy, parse_url, read_proxy


def tunnel(**fields: str) -> ProxyTunnel:
    return ProxyTunnel(Proxy("proxy", 3128, **fields), "bus.example:443")


def test_what_is_asked_of_the_proxy() -> None:
    assert tunnel().request == b"CONNECT bus.example:443 HTTP/1.1\r\nHost: bus.example:443\r\n\r\n"
    secret = tunnel(username="ann", password="s3cret").request
    assert b"\r\nProxy-Authorization: Basic YW5uOnMzY3JldA==\r\n\r\n" in secret


@pytest.mark.parametrize("size", [1, 1000])
def test_what_comes_behind_the_answer_is_not_lost(size: int) -> None:
    way = tunnel()
    octets = b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nAMQP"
    got = b""
    for start in range(0, len(octets), size):
        part = octets[start : start + size]
        got += part if way.established else way.receive(part)
    assert way.established and got == b"AMQP"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy answered HTTP 407 Proxy Authentication"),
        (b"HTTP/1.0 403 Forbidden\r\n\r\nno", "the proxy answered HTTP 403 Forbidden"),
        (b"HTTP/1.0 403 \x1b[31mred\r\n\r\nno", r"the proxy answered HTTP 403 \?\[31mred"),
        (b"SSH-2.0-x\r\n", "no HTTP"),
        (b"HTTP/1.1 what\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000, "no HTTP"),
    ],
)
def test_a_proxy_that_does_not_open_the_way(answer: bytes, said: str) -> None:
    with pytest.raises(ProxyFailure, match=said):
        tunnel().receive(answer)


ENVIRONMENT = {"https": "http://sec:8443", "http": "http://plain", "no": "inside.example,10.0.0.1"}


@pytest.mark.parametrize(
    ("host", "secure", "proxy"),
    [
        ("bus.example", True, Proxy("sec", 8443)),
        ("bus.example", False, Proxy("plain", 80)),
        ("inside.example", True, None),
        ("a.inside.example", True, None),
        ("10.0.0.1", True, None),
        ("localhost", True, None),
        ("127.0.0.7", True, None),
        ("::1", True, None),
        ("10.0.0.2", True, Proxy("sec", 8443)),
    ],
)
def test_the_proxy_that_the_environment_names(host: str, secure: bool, proxy: Proxy | None) -> None:
    assert proxy_of_environment(host, secure, ENVIRONMENT) == proxy


def test_a_host_may_be_excepted_by_its_port() -> None:
    environment = {"https": "http://sec:8443", "no": "bus.example:8443,[fd00::1]:443"}
    for host, port in (("bus.example", 8443), ("fd00::1", 443)):
        assert proxy_of_environment(host, True, environment, port=port) is None
        assert proxy_of_environment(host, True, environment, port=1) == Proxy("sec", 8443)


def test_an_environment_without_proxies() -> None:
    assert proxy_of_environment("bus.example", True, {}) is None


# The option.


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://proxy:3128", Proxy("proxy", 3128)),
        ("proxy:3128", Proxy("proxy", 3128)),
        ("http://ann:p%40ss@proxy", Proxy("proxy", 80, "ann", "p@ss")),
        ("http://[::1]:3128/", Proxy("::1", 3128)),
        ("", Proxy("")),
    ],
)
def test_proxies_as_options(url: str, proxy: Proxy) -> None:
    assert parse_url("amqpwss://h", proxy=url).options.proxy == proxy


@pytest.mark.parametrize(
    "url", ["socks5://proxy:1080", "https://proxy", "http://", "http://proxy:port", "http://proxy/path"]
)
def test_what_is_no_http_proxy(url: str) -> None:
    with pytest.raises(ValueError, match="proxy is an HTTP proxy, as http://host:port"):
        parse_url("amqpwss://h", proxy=url)


def test_no_password_of_a_proxy_is_shown() -> None:
    proxy = read_proxy("proxy", "http://ann:s3cret@proxy:3128")
    assert "s3cret" not in repr(proxy) and "s3cret" not in repr(parse_url("amqp://h", proxy="http://a:s3cret@p"))
    with pytest.raises(ValueError) as error:
        read_proxy("proxy", "http://ann:s3cret@proxy:port")
    assert "s3cret" not in str(error.value)
    with pytest.raises(TypeError, match="proxy is a str, not int"):
        parse_url("amqp://h", proxy=3128)
