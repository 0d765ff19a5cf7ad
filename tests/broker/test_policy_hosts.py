"""Virtual hosts by hostname, and remote hosts by address."""

from __future__ import annotations

import pytest

from jmsish.broker.hostnames import Hostnames
from jmsish.broker.remote_hosts import RemoteHosts, host_of, host_said

NAMES = {
    "main": ["main.example.com", "alias"],
    "one": ["*.example.com"],
    "any": ["#.example.com"],
    "left": ["eu.*.org"],
    "right": ["*.shop.org"],
    "all.of.it": [],
    "münchen.example": ["ROOT."],
}


@pytest.mark.parametrize(
    ("hostname", "vhost"),
    [
        ("main", "main"),
        ("MAIN", "main"),
        ("alias", "main"),
        ("main.example.com", "main"),
        ("x.example.com", "one"),
        ("x.y.example.com", "any"),
        ("example.com", "any"),
        ("eu.shop.org", "left"),  # exact beats `*`, label by label from the left
        ("us.shop.org", "right"),
        ("all.of.it", "all.of.it"),
        ("nobody", None),
        ("", None),
        (None, None),
        (".".join("a" * 300), None),
        ("Main.Example.COM.", "main"),
        ("root", "münchen.example"),
        ("MÜNCHEN.example", "münchen.example"),
        ("xn--mnchen-3ya.EXAMPLE", "münchen.example"),
        ("ü" * 300, None),
        (".", None),
    ],
)
def test_exact_beats_star_beats_hash(hostname: str | None, vhost: str | None) -> None:
    assert Hostnames(NAMES).find(hostname) == vhost


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ({"a": ["b"], "b": []}, "[vhosts.a] aliases: 'b' is a name of the virtual host 'b' already"),
        ({"a": ["c"], "b": ["c"]}, "[vhosts.b] aliases: 'c' is a name of the virtual host 'a' already"),
        ({"a": ["a"]}, "[vhosts.a] aliases: 'a' is a name of the virtual host 'a' already"),
        ({"a": ["c", "C"]}, "is a name of the virtual host 'a' already"),
        ({"a": [""]}, "[vhosts.a] aliases: '' is blank"),
        ({"a": ["#.*.x"], "b": ["*.#.x"]}, "conflicts with the virtual host 'a'"),
        ({"a": ["*.x"], "*.x": []}, "conflicts with the virtual host '*.x'"),
    ],
)
def test_names_that_are_given_twice_are_refused(names: dict[str, list[str]], fault: str) -> None:
    (found,) = Hostnames.faults(names)
    assert fault in found
    with pytest.raises(ValueError):
        Hostnames(names)


@pytest.mark.parametrize(
    ("texts", "host", "inside"),
    [
        ([], "127.0.0.1", False),
        (["*"], "127.0.0.1", True),
        (["*"], "whatever", True),
        (["10.0.0.1"], "10.0.0.1", True),
        (["10.0.0.1"], "10.0.0.2", False),
        (["10.0.0.1-10.0.0.9"], "10.0.0.1", True),
        (["10.0.0.1-10.0.0.9"], "10.0.0.9", True),
        (["10.0.0.1 - 10.0.0.9"], "10.0.0.5", True),
        (["10.0.0.1-10.0.0.9"], "10.0.0.10", False),
        (["::1"], "::1", True),
        (["2001:db8::1-2001:db8::ff"], "2001:db8::aa", True),
        (["2001:db8::1-2001:db8::ff"], "2001:db8::1:0", False),
        (["0.0.0.0-255.255.255.255"], "::1", False),
        (["::-ffff:ffff::"], "10.0.0.1", False),
        (["10.0.0.1"], "::ffff:10.0.0.1", True),
        (["10.0.0.0/8"], "10.200.3.4", True),
        (["::ffff:10.0.0.0/104"], "10.200.3.4", True),
        (["::ffff:10.0.0.0/104"], "::ffff:11.0.0.1", False),
        (["::/0"], "10.200.3.4", False),
        (["fe80::/10"], "fe80::1%eth0", True),
        (["localhost"], "127.0.0.1", True),
        (["localhost"], "::1", True),
        (["localhost"], "10.0.0.1", False),
        (["10.0.0.1"], "whatever", False),
    ],
)
def test_remote_hosts(texts: list[str], host: str, inside: bool) -> None:
    assert (host in RemoteHosts.read(texts)) is inside


@pytest.mark.parametrize(
    "text",
    ["", "10.0.0", "10.0.0.1-", "-10.0.0.1", "10.0.0.9-10.0.0.1", "10.0.0.1-::1", "a-b", "10.0.0.1/8", "1.2.3.4-5-6",
     "broker.example.com", "10.0.0.*"],
)  # fmt: skip
def test_malformed_remote_hosts_are_refused(text: str) -> None:
    with pytest.raises(ValueError) as raised:
        RemoteHosts.read([text])
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(
    ("said", "host"),
    [("localhost", "127.0.0.1"), (" LocalHost ", "127.0.0.1"), ("10.0.0.7", "10.0.0.7"),
     ("::ffff:10.0.0.7", "10.0.0.7"), ("[::1]", "::1")],
)  # fmt: skip
def test_the_host_that_somebody_asks_about(said: str, host: str) -> None:
    assert host_said(said) == host


@pytest.mark.parametrize("said", ["", "*", "broker.example.com", "10.0.0.0/8", "10.0.0.1:5672"])
def test_who_asks_about_a_host_by_a_name_that_is_not_looked_up_is_told_so(said: str) -> None:
    with pytest.raises(ValueError, match="names are not looked up"):
        host_said(said)


@pytest.mark.parametrize("alias", ["::1", "[::1]"])
@pytest.mark.parametrize("hostname", ["::1", "[::1]"])
def test_an_address_of_ipv6_may_be_in_brackets(alias: str, hostname: str) -> None:
    assert Hostnames({"shop": [alias]}).find(hostname) == "shop"
    assert Hostnames({"[x]": []}).find("x") is None


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1:5672", "127.0.0.1"),
        ("[::1]:5672", "::1"),
        ("[::ffff:10.0.0.1]:5672", "10.0.0.1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("vm://broker", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("memory", "memory"),
    ],
)
def test_the_host_of_a_peer(peer: str, host: str) -> None:
    assert host_of(peer) == host
