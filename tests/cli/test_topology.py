"""topology: a tree of text, an SVG in which nothing overlaps, a Mermaid flowchart."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

import jmsish
from jmsish.cli import drawings, svg
from jmsish.cli.topology import Binding, Exchange, Queue, Topology

from .conftest import Complaint, Run

SVG = "{http://www.w3.org/2000/svg}"
UGLY = "<&\"'#\n\x1b[31m]]>--> \ud800 名前"


@pytest.fixture
def broker() -> Iterator[jmsish.EmbeddedBroker]:
    with jmsish.EmbeddedBroker("shop") as broker:
        for name in ("blue", "green", "alone"):
            broker.declare_queue(name)
        broker.declare_exchange("orders", "topic", alternate="amq.fanout").bind("blue", "eu.#")
        broker.exchange("orders").bind("green", "eu.#")
        broker.exchange("amq.match").bind("green", arguments={"x-match": "all", "colour": "red"})
        broker.exchange("amq.fanout").bind_exchange("orders")
        yield broker


def large(exchanges: int = 5, queues: int = 20, seed: int = 1) -> Topology:
    """Many exchanges and queues with long and ugly names, bound at random, to one another too."""
    chance = random.Random(seed)
    names = [f"exchange-{number}" + "x" * chance.randrange(70) for number in range(exchanges)]
    targets = [f"queue-{number}" + UGLY * chance.randrange(3) for number in range(queues)]
    found = []
    for name in names:
        ways = [Binding(chance.choice(targets), False, UGLY, UGLY * chance.randrange(4), 12345) for _ in range(8)]
        ways.append(Binding(chance.choice(names), True, "", "everything", 0))
        alternate = chance.choice([None, *names])
        found.append(Exchange(name, "headers", alternate, chance.random() < 0.5, "1,234,567 in, 7 routed", tuple(ways)))
    return Topology(UGLY, tuple(found), tuple(Queue(name, name, 3, "3 deep, 1 consumer, 4 in") for name in targets))


def test_the_tree(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    run("send", broker.url, "orders/eu.x", "-m", "hello")
    assert run("topology", broker.url).splitlines() == [
        "shop",
        "├─ amq.fanout (fanout)  0 in, 0 routed",
        "│  └─ everything ─0→ exchange orders",
        "├─ amq.match (headers)  0 in, 0 routed",
        '│  └─ x-match="all" colour="red" ─0→ green  1 deep, 0 consumers, 1 in',
        "├─ orders (topic, alternate amq.fanout)  1 in, 1 routed",
        "│  ├─ eu.# ─1→ blue  1 deep, 0 consumers, 1 in",
        "│  └─ eu.# ─1→ green  1 deep, 0 consumers, 1 in",
        "└─ queues that no exchange leads to",
        "   └─ alone  0 deep, 0 consumers, 0 in",
    ]


def test_exchanges_that_nobody_uses_are_shown_if_wanted(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    assert "amq.direct" not in run("topology", broker.url)
    assert "amq.direct (direct)" in run("topology", broker.url, "--all")


def test_a_subscription_is_shown_by_its_name(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    with jmsish.connect(broker.url, client_id="ann") as connection:
        session = connection.create_session()
        session.create_durable_consumer(session.create_topic("news"), "daily")
        temporary = session.create_temporary_queue()
        shown = run("topology", broker.url)
    assert "news ─0→ subscription daily of ann  0 deep, 1 consumer" in shown
    assert re.search(r"temporary [0-9a-f]{8}  0 deep", shown) and temporary.name not in shown


def test_pictures_go_to_files(broker: jmsish.EmbeddedBroker, run: Run, complaint: Complaint, tmp_path: Path) -> None:
    for name in ("a.svg", "a.mmd", "a.txt", "a.SVG"):
        assert run("topology", broker.url, "-o", str(tmp_path / name)) == ""
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag == f"{SVG}svg" and (tmp_path / "a.SVG").read_text() == (tmp_path / "a.svg").read_text()
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"shop: 3 exchanges, 3 queues", "orders", "blue", "alone", "eu.#"} <= set(texts)
    assert "orders (topic, alternate amq.fanout)" in (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert (tmp_path / "a.mmd").read_text(encoding="utf-8").splitlines() == [
        "---",
        "title: 'shop'",
        "---",
        "flowchart LR",
        '    e0{{"amq.fanout (fanout)<br>0 in, 0 routed"}}',
        '    e1{{"amq.match (headers)<br>0 in, 0 routed"}}',
        '    e2{{"orders (topic)<br>0 in, 0 routed"}}',
        '    q0[("blue<br>0 deep, 0 consumers, 0 in")]',
        '    q1[("green<br>0 deep, 0 consumers, 0 in")]',
        '    q2[("alone<br>0 deep, 0 consumers, 0 in")]',
        '    e0 -- "everything (0)" --> e2',
        '    e1 -- "x-match=#34;all#34; colour=#34;red#34; (0)" --> q1',
        '    e2 -- "eu.#35; (0)" --> q0',
        '    e2 -- "eu.#35; (0)" --> q1',
        '    e2 -. "alternate" .-> e0',
    ]
    status, line = complaint("topology", broker.url, "-o", str(tmp_path / "a.png"))
    assert status == 2 and ".svg, .mmd, .txt" in line


@pytest.mark.parametrize("seed", range(5))
def test_in_the_picture_nothing_overlaps(seed: int) -> None:
    """Boxes stand apart, texts inside their boxes, beside one another, and curves only where no boxes are."""
    picture = svg.layout(large(seed=seed))
    boxes = picture.exchanges + picture.queues
    assert len(boxes) == 25
    for one, other in combinations(boxes, 2):
        apart = one.x + one.width < other.x or other.x + other.width < one.x
        assert apart or one.y + one.height < other.y or other.y + other.height < one.y
    for box in boxes:
        assert 0 <= box.x and box.x + box.width <= picture.width and box.y + box.height <= picture.height
        for first, second in box.lines:
            assert (svg._cells(first) + svg._cells(second)) * svg.LETTER + 2 * svg.PAD <= box.width
    left = max(box.x + box.width for box in picture.exchanges)
    right, start = min(box.x for box in picture.queues), min(box.x for box in picture.exchanges)
    for curve in picture.curves:
        numbers = [float(each) for each in re.findall(r"[\d.]+", curve.path)]
        if "alternate" in curve.shape:
            assert 0 < min(numbers) and numbers[2] < start
        else:
            across = numbers[0:1] + numbers[-6::2]
            assert left <= min(across) and max(across) <= right


def test_the_picture_is_valid_whatever_the_names() -> None:
    root = ElementTree.fromstring(svg.draw(large()).encode("utf-8"))
    boxes = root.findall(f"{SVG}g")
    assert len(boxes) == 25 and len(root.findall(f"{SVG}path")) == len(svg.layout(large()).curves) >= 40
    names = "".join(title.text or "" for title in root.iter(f"{SVG}title"))
    assert "<&\"'#\\u000a\\u001b[31m]]>--> \\ud800 名前" in names


def test_a_broker_with_nothing_is_drawn_too() -> None:
    empty = Topology("shop", (), ())
    assert ElementTree.fromstring(svg.draw(empty)).find(f"{SVG}g") is None
    assert drawings.tree(empty) == "shop\n" and drawings.mermaid(empty).endswith("flowchart LR\n")


def test_nothing_in_a_tree_or_a_flowchart_is_obeyed() -> None:
    """No name moves a cursor, ends a line, or closes a label."""
    tree, flowchart = drawings.tree(large()), drawings.mermaid(large())
    assert all(letter.isprintable() for line in tree.splitlines() for letter in line)
    lines = flowchart.splitlines()[4:]
    assert all(line.count('"') == 2 and re.fullmatch(r"    [eq]\d+ ?(\{\{|\[\(|--|-\.).*", line) for line in lines)
    assert all("<" not in line.replace("<br>", "") for line in lines)
