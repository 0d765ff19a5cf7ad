"""topology and list at a router: the network as a tree, a Mermaid flowchart and an SVG in which nothing overlaps."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

import jmsish
from jmsish.cli import network_drawings, svg
from jmsish.cli.network import Address, Network, Route, Router
from jmsish.testing import RouterNetwork

from .conftest import Run

UGLY = "<&\"'#\n\x1b[31m]]>--> \ud800 名前"


@pytest.fixture(scope="module")
def routers() -> Iterator[RouterNetwork]:
    """A network in use: two addresses with receivers, one that only a sender has, a broker at the end of a route."""
    with jmsish.EmbeddedBroker("store") as broker:
        line = "EA1-INT.A-INT.B-EB1, EB2-INT.B"
        with RouterNetwork(line, multicast=["news."], routes={"work.": ("INT.B", broker.url)}) as network:
            with jmsish.connect(network["EB1"].url) as far, jmsish.connect(network["EA1"].url) as near:
                session, other = far.create_session(), near.create_session()
                session.create_consumer(session.create_queue("orders"))
                session.create_consumer(session.create_queue("news.eu"))
                other.create_consumer(other.create_queue("returns"))
                for address in ("orders", "news.eu", "returns"):
                    network.wait_for_address(address)
                yield network


def test_the_tree_from_an_interior(routers: RouterNetwork, run: Run) -> None:
    assert run("topology", routers["INT.A"].url).splitlines() == [
        "INT.A (interior)",
        "├─ EA1 (edge)",
        "└─ INT.B (interior)",
        "   ├─ EB1 (edge)",
        "   └─ EB2 (edge)",
        "",
        "addresses",
        "├─ news.eu (multicast)  2 hops, over INT.B",
        "├─ orders               2 hops, over INT.B",
        "└─ returns              1 hop, at EA1",
        "",
        "link routes",
        "└─ work.*  1 hop, the connector broker-1 of INT.B",
    ]


def test_the_tree_from_an_edge(routers: RouterNetwork, run: Run) -> None:
    assert run("topology", routers["EB1"].url).splitlines() == [
        "EB1 (edge)",
        "└─ INT.B (interior)",
        "   ├─ EB2 (edge)",
        "   └─ INT.A (interior)",
        "      └─ EA1 (edge)",
        "",
        "addresses",
        "├─ news.eu (multicast)  here  1 receiver",
        "├─ orders               here  1 receiver",
        "└─ returns              3 hops, at EA1",
        "",
        "link routes",
        "└─ work.*  1 hop, the connector broker-1 of INT.B",
    ]


def test_messages_that_went_by_are_counted(run: Run) -> None:
    with RouterNetwork("EA1-INT.A") as network, jmsish.connect(network["EA1"].url) as connection:
        session = connection.create_session()
        consumer = session.create_consumer(session.create_queue("orders"))
        producer = session.create_producer(session.create_queue("orders"))
        producer.send(session.create_text_message("one"), on_completion=lambda *_: None)
        assert consumer.receive(timeout=30) is not None
        said = run("topology", network["EA1"].url)
    assert "└─ orders  here  1 in, 1 out, 1 receiver, 1 sender\n" in said


def test_a_connector_that_is_down_is_told(run: Run) -> None:
    with RouterNetwork("INT.A") as network:
        connector = network["INT.A"].connector("vm://me:secret@nobody", role="inter-router", name="to nobody")
        network["INT.A"].router._wait_until(lambda: bool(connector.error), "the failure", 30)
        said = run("topology", network["INT.A"].url)
    assert said.startswith("INT.A (interior)\n\nnot connected\n└─ to nobody  vm://nobody: ") and "secret" not in said


def test_the_files(routers: RouterNetwork, run: Run, tmp_path: Path) -> None:
    for name in ("n.svg", "n.mmd", "n.txt"):
        assert run("topology", routers["INT.A"].url, "-o", str(tmp_path / name)) == ""
    drawn = (tmp_path / "n.mmd").read_text(encoding="utf-8").splitlines()
    assert drawn == [
        "---",
        "title: 'the network of INT.A'",
        "---",
        "flowchart LR",
        '    r0["INT.A (interior)"]',
        '    r1("EA1 (edge)<br>returns")',
        '    r2["INT.B (interior)<br>news.eu (multicast) (beyond)<br>orders (beyond)"]',
        '    r3("EB1 (edge)")',
        '    r4("EB2 (edge)")',
        "    r0 --- r1",
        "    r0 --- r2",
        "    r2 --- r3",
        "    r2 --- r4",
        '    b0[("broker-1")]',
        '    r2 -- "work.#42;" --> b0',
    ]
    picture = ElementTree.parse(tmp_path / "n.svg").getroot()
    texts = ["".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"INT.A", "EA1", "INT.B", "EB1", "EB2", "broker-1", "work.*", "returns", "asked"} <= set(texts)
    assert "INT.A: 5 routers, 3 addresses" in texts


def large(seed: int) -> Network:
    """A tree at random, with ugly names and many rows."""
    chance = random.Random(seed)
    numbers = iter(range(1000))

    def grown(hops: int) -> Router:
        name = f"router-{next(numbers)}" + UGLY * chance.randrange(3)
        beyond = tuple(grown(hops + 1) for _ in range(chance.randrange(4) if 0 < hops < 4 else 3 * (hops == 0)))
        return Router(name, chance.choice(["edge", "interior"]), hops, beyond)

    root = grown(0)
    names = [router.name for router in Network(root, (), (), ()).routers]
    addresses = tuple(
        Address(f"address-{number}" + UGLY * 5, number % 2 == 0, 1, chance.choice(names), (), "1 in, 1 out", 123456)
        for number in range(20)
    )
    routes = tuple(Route(chance.choice(names), f"broker-{number}", (UGLY, "x"), 1) for number in range(5))
    return Network(root, addresses, routes, ((UGLY, UGLY),))


@pytest.mark.parametrize("seed", range(5))
def test_no_box_overlaps_another_and_all_are_in_the_picture(seed: int) -> None:
    picture = network_drawings.layout(large(seed))
    boxes = picture.exchanges + picture.queues
    for one, other in combinations(boxes, 2):
        apart = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y
    for box in boxes:
        assert 0 <= box.x and box.x + box.width <= picture.width and svg.TOP <= box.y + 1e-6
        assert box.y + box.height <= picture.height
        for first, second in box.lines:
            assert (svg._cells(first) + svg._cells(second)) * svg.LETTER + 2 * svg.PAD <= box.width


@pytest.mark.parametrize("seed", range(3))
def test_ugly_names_break_no_form(seed: int) -> None:
    network = large(seed)
    ElementTree.fromstring(network_drawings.draw(network))
    for text in (network_drawings.tree(network), network_drawings.mermaid(network)):
        text.encode("utf-8")
        assert "\x1b" not in text


def test_a_network_that_changes_while_it_is_read_is_no_endless_tree() -> None:
    class Changing:
        """Joins that make a ring, as rows of two moments may."""

        def ask(self, *_: object, **__: object) -> dict[str, object]:
            return {"name": "A", "mode": "interior"}

        def rows(self, kind: str) -> list[dict[str, object]]:
            joins = [("A", "B"), ("B", "C"), ("C", "A")]
            rows = [{"role": "inter-router", "dialler": near, "dialled": far} for near, far in joins]
            return rows if kind == "join" else []

    from jmsish.cli.network import read

    network = read(Changing())  # type: ignore[arg-type]
    assert sorted(router.name for router in network.routers) == ["A", "B", "C"]


def test_a_list_of_what_a_router_knows(routers: RouterNetwork, run: Run) -> None:
    said = run("list", routers["INT.A"].url)
    for head in ("router ", "neighbour ", "connector ", "address ", "link_route ", "connection ", "link "):
        assert any(line.startswith(head) for line in said.splitlines()), head
    rows = [json.loads(line) for line in run("list", "--json", routers["INT.A"].url).splitlines()]
    assert {row["name"] for row in rows if row["type"] == "router"} == {"EA1", "INT.A", "INT.B", "EB1", "EB2"}


def test_a_router_is_seen_from_python(routers: RouterNetwork) -> None:
    router = routers["INT.A"].router
    assert [(join.dialler, join.dialled) for join in router.joins] == [
        ("EA1", "INT.A"), ("EB1", "INT.B"), ("EB2", "INT.B"), ("INT.A", "INT.B"),
    ]  # fmt: skip
    beyond = router.neighbour("INT.B")
    assert beyond is not None and beyond.behind == {"INT.B": 1, "EB1": 2, "EB2": 2} and beyond.up
    assert router.neighbour("EB1") is None
    orders = router.address("orders")
    assert orders is not None and (orders.hops, orders.towards, orders.receivers) == (2, ("INT.B",), 0)
    assert router.address("nowhere") is None
    assert {link.peer for link in router.links if link.kind == "control"} == {"EA1", "INT.B"}
