"""The sections of a router's configuration: what is taken, and what is refused, each fault by its place."""

from __future__ import annotations

from typing import Any

import pytest

from jmsish.broker import BrokerConfig, ConfigurationError
from jmsish.broker.config.network import ConnectorConfig, LinkRouteConfig, RouterConfig
from jmsish.testing import RouterNetwork

INTERIOR: dict[str, Any] = {"router": {"id": "INT.A", "mode": "interior"}}
EDGE: dict[str, Any] = {"router": {"id": "EA1", "mode": "edge"}}


def test_a_full_one() -> None:
    config = BrokerConfig.from_mapping(
        {
            **INTERIOR,
            "listeners": [{"port": 0}, {"port": 0, "role": "edge"}, {"port": 0, "role": "inter-router"}],
            "connectors": [
                {"url": "amqp://int.b:5673", "role": "inter-router", "name": "to INT.B"},
                {"url": "amqps://me:secret@broker.example", "name": "store"},
                {"url": "vm://here"},
            ],
            "link_routes": [{"prefix": "orders", "connector": "store"}],
            "addresses": {"multicast": ["news.", "prices."]},
        }
    )
    assert config.router == RouterConfig("INT.A", "interior") and config.router.is_router
    assert [each.role for each in config.listeners] == ["normal", "edge", "inter-router"]
    assert config.connectors[0] == ConnectorConfig("amqp://int.b:5673", "inter-router", "to INT.B")
    assert [each.role for each in config.connectors[1:]] == ["normal", "normal"]
    assert [each.name for each in config.connectors[1:]] == ["store", "connector-3"]
    assert config.link_routes == (LinkRouteConfig("orders", "store"),)
    assert config.multicast == ("news.", "prices.")


@pytest.mark.parametrize("config", [{}, {"router": {}}, {"router": {"mode": "standalone"}}, {"router": {"id": "shop"}}])
def test_without_a_mode_it_is_a_broker(config: dict[str, Any]) -> None:
    assert not BrokerConfig.from_mapping(config).router.is_router


def connector(**settings: Any) -> dict[str, Any]:
    return {"connectors": [{"url": "amqp://x", **settings}]}


def route(**settings: Any) -> dict[str, Any]:
    return {"link_routes": [{"prefix": "orders", "connector": "store", **settings}]}


STORE = {"connectors": [{"url": "amqp://x", "name": "store"}]}

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"routers": {}}, "unknown key 'routers' in the configuration: did you mean 'router'?"),
    ({"connector": []}, "did you mean 'connectors'?"),
    ({"link_route": []}, "did you mean 'link_routes'?"),
    ({"adresses": {}}, "did you mean 'addresses'?"),
    ({"router": 5}, "[router]"),
    ({"router": {"mod": "edge"}}, "unknown key 'mod' in [router]: did you mean 'mode'?"),
    ({"router": {"id": "A", "mode": "Edge"}}, "[router] mode must be one of standalone, interior, edge, not 'Edge'"),
    ({"router": {"id": 5, "mode": "edge"}}, "[router] id must be a string, not 5"),
    ({"router": {"mode": "edge"}}, "[router] id is missing: a router of the mode 'edge' has a name"),
    ({"router": {"id": "x" * 128, "mode": "edge"}}, "[router] id must be a name of 127 octets at most"),
    ({"router": {"id": "a\nb", "mode": "edge"}}, "[router] id must be a name without control characters"),
    ({**INTERIOR, "listeners": [{"role": "edges"}]}, "role must be one of normal, inter-router, edge, not 'edges'"),
    ({**EDGE, "listeners": [{"role": "inter-router"}]}, "role 'inter-router' is a door of an interior router"),
    ({"listeners": [{"role": "edge"}]}, "role 'edge' is a door of an interior router, and this is none"),
    (connector(), "a connector is of use to a router only: give [router] an id and a mode, interior or edge"),
    ({**EDGE, **connector(rolle="edge")}, "unknown key 'rolle' in [[connectors]] 1: did you mean 'role'?"),
    ({**EDGE, **connector(role="uplink")}, "role must be one of normal, inter-router, edge, not 'uplink'"),
    ({**EDGE, **connector(role="inter-router")}, "role 'inter-router' joins two interior routers, and this one is an"),
    ({**INTERIOR, **connector(role="edge")}, "role 'edge' is the uplink of an edge, and this router is an interior"),
    ({**EDGE, **connector(name="")}, "name must be a text without control characters, not ''"),
    ({**EDGE, **connector(name="x" * 256)}, "[[connectors]] 1 name has at most 255 octets, not 256"),
    ({**EDGE, **STORE, **route(prefix="x" * 1025)}, "[[link_routes]] 1 prefix has at most 1024 octets"),
    ({"router": {"id": "a/b", "mode": "edge"}}, "[router] id must be a name without control characters and slashes"),
    ({**EDGE, **connector(name="a\nb")}, "name must be a text without control characters, not 'a\\nb'"),
    ({**EDGE, "connectors": [{"role": "edge"}]}, "url is missing: whom is it to dial?"),
    ({**EDGE, **connector(url="http://x")}, "url must be a URL like amqp://host:port, amqps://host:port or vm://name"),
    ({**EDGE, **connector(url="amqps://x:1?jms.tls_ca=y")}, "neither a path nor options: 'amqps://x:1'"),
    ({**EDGE, **connector(url="amqps://x/y#z")}, "neither a path nor options: 'amqps://x/y'"),
    ({**EDGE, **connector(url="amqp://bob:12?word@x")}, "neither a path nor options: 'amqp://x'"),
    ({**EDGE, **connector(url="amqp://x:port")}, "url must have a port from 0 to 65535"),
    ({**EDGE, "connectors": [STORE["connectors"][0]] * 2}, "name 'store' is that of another connector"),
    ({**EDGE, "connectors": {"url": "amqp://x"}}, "connectors"),
    ({**EDGE, **STORE, **route(prefx="x")}, "unknown key 'prefx' in [[link_routes]] 1: did you mean 'prefix'?"),
    ({**EDGE, **STORE, **route(prefix="")}, "prefix is missing: which addresses are to go there?"),
    ({**EDGE, **STORE, **route(connector="")}, "connector is missing: whose broker is it to lead to?"),
    ({**EDGE, **STORE, "link_routes": [*route()["link_routes"]] * 2}, "prefix 'orders' leads to another connector"),
    ({**EDGE, **connector(role="edge", name="store"), **route()}, "connector 'store' leads to a router"),
    ({"addresses": {"multicasts": []}}, "unknown key 'multicasts' in [addresses]: did you mean 'multicast'?"),
    ({"addresses": {"multicast": "news"}}, "[addresses] multicast must be a list of strings, not 'news'"),
    ({"addresses": {"multicast": [""]}}, "[addresses] multicast has an empty prefix, which would be every address"),
]


@pytest.mark.parametrize(("config", "says"), WRONG, ids=[says[:50] for _, says in WRONG])
def test_a_fault_is_told_with_its_place(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping(config)
    assert says in str(raised.value)
    assert len(raised.value.errors) == 1, raised.value.errors


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        BrokerConfig.from_mapping({**EDGE, **connector(role="uplink", name=""), **route(prefix=""), "adresses": {}})
    assert len(raised.value.errors) == 4, raised.value.errors


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"multicast": "news."}, "multicast must be a list of prefixes, not 'news.'"),
        ({"routes": {"work.": "amqp://x"}}, r"routes\['work.'\] must be \(router, url of the broker\), not 'amqp://x'"),
    ],
)
def test_a_network_of_wrong_arguments_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        RouterNetwork("EA1-INT.A", **options)
