"""A topology as a picture (SVG): exchanges in a column at the left, queues at the right, bindings between.

An exchange is a box with a row for each of its bindings, and a curve leads from the row to its queue; so no text stands
on a line. Curves stay between the columns: those between exchanges turn back there, those to alternates run at the left
edge. Queues are in the order that makes curves cross little: each at the middle of what leads to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final
from unicodedata import east_asian_width

from jmsish.cli.parsing import visible

if TYPE_CHECKING:
    from jmsish.cli.topology import Exchange, Queue, Topology

LETTER: Final = 7.3
"""The width of a letter of a fixed-width font of 12 pixels, rounded up."""
LINE: Final = 18
PAD: Final = 10
GAP: Final = 16
TOP: Final = 64
LONGEST: Final = 44
"""Letters of a name or a row; what is longer is cut, and whole in the tooltip."""
COLOURS: Final = ("#2563a8", "#b4532a", "#3b7d3b", "#7d4a9b", "#8a6d00", "#0f7a7a", "#a83264", "#555555")

STYLE: Final = (
    "text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1c2733}"
    ".name{font-weight:bold}.dim{fill:#5b6875}.title{font-size:15px}"
    ".box{fill:#f6f8fa;stroke:#93a1af}.queue{fill:#fffaf0}.full{fill:#ffe9c7}.frozen{fill:#e3f1fc;stroke:#2563a8}"
    ".way{fill:none;stroke-width:1.5}.alternate{stroke:#5b6875;stroke-dasharray:5 4}"
)


@dataclass
class Box:
    """A box where it stands."""

    x: float
    y: float
    width: float
    lines: list[tuple[str, str]]
    """Texts at the left and at the right, a line each; the first is the name."""
    shape: str
    hint: str = ""
    rows: list[float] = field(default_factory=list)
    """The middle of each line, from the top of the box."""

    def __post_init__(self) -> None:
        self.rows = [PAD + LINE * number + LINE / 2 for number in range(len(self.lines))]

    @property
    def height(self) -> float:
        return 2 * PAD + LINE * len(self.lines)


@dataclass
class Curve:
    """A line with an arrow."""

    path: str
    colour: str
    shape: str = "way"
    hint: str = ""
    arrow: bool = True


@dataclass
class Picture:
    """All that is drawn."""

    title: str
    width: float
    height: float
    exchanges: list[Box]
    queues: list[Box]
    curves: list[Curve]


def draw(topology: Topology) -> str:
    """A picture, an XML document."""
    return written(layout(topology))


# --- where everything stands


def layout(topology: Topology) -> Picture:
    """Boxes and curves."""
    lanes = sum(exchange.alternate is not None for exchange in topology.exchanges)
    left = 24.0 + 10 * lanes
    exchanges = [_exchange_box(exchange) for exchange in topology.exchanges]
    queues = [_queue_box(queue) for queue in topology.queues]
    _stack(exchanges, left)
    width = max((box.width for box in exchanges), default=0.0)
    gutter = 140.0 + 4 * sum(len(exchange.bindings) for exchange in topology.exchanges)
    _stack(_ordered(topology, exchanges, queues), left + width + min(gutter, 320.0))
    _centre(exchanges, queues)
    everything = exchanges + queues
    right = max((box.x + box.width for box in everything), default=left + 200)
    bottom = max((box.y + box.height for box in everything), default=TOP)
    curves = _curves(topology, exchanges, queues, min(gutter, 320.0))
    title = f"{topology.broker}: {len(exchanges)} exchanges, {len(queues)} queues"
    return Picture(title, max(right, len(title) * 9.5) + 24, bottom + 24, exchanges, queues, curves)


def _exchange_box(exchange: Exchange) -> Box:
    kind = exchange.type + (", frozen" if exchange.frozen else "")
    lines = [(cut(exchange.name), kind), (exchange.counters, "")]
    lines += [(cut(way.said), f"{way.matched:,}") for way in exchange.bindings]
    return Box(0, 0, width_of(lines), lines, "box frozen" if exchange.frozen else "box", exchange.name)


def _queue_box(queue: Queue) -> Box:
    lines = [(cut(queue.said), ""), (queue.counters, "")]
    return Box(0, 0, width_of(lines), lines, "box full" if queue.depth else "box queue", queue.name)


def width_of(lines: list[tuple[str, str]]) -> int:
    """The width of a box with these lines, in pixels."""
    # The name is bold, and bold letters may be a little wider.
    cells = max(_cells(first) + (_cells(second) + 3 if second else 0) for first, second in lines)
    return ceil(max(cells, 16) * LETTER) + 2 * PAD


def _cells(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str) -> str:
    """A text that is not longer than a box may be wide."""
    text = visible(text)
    if _cells(text) <= LONGEST:
        return text
    while _cells(text) >= LONGEST:
        text = text[:-1]
    return text + "…"


def _stack(boxes: list[Box], x: float) -> None:
    """A column: one below the other, all as wide as the widest."""
    y, width = float(TOP), max((box.width for box in boxes), default=0.0)
    for box in boxes:
        box.x, box.y, box.width = x, y, width
        y += box.height + GAP


def _ordered(topology: Topology, exchanges: list[Box], queues: list[Box]) -> list[Box]:
    """Queues at the middle of what leads to them; those that nothing leads to at the end."""
    heights: dict[str, list[float]] = {}
    for exchange, box in zip(topology.exchanges, exchanges, strict=True):
        for way, row in zip(exchange.bindings, box.rows[2:], strict=True):
            if not way.is_exchange:
                heights.setdefault(way.target, []).append(box.y + row)
    middles = {name: sum(each) / len(each) for name, each in heights.items()}
    return sorted(queues, key=lambda box: middles.get(box.hint, float("inf")))


def _centre(*columns: list[Box]) -> None:
    """The shorter column in the middle of the longer."""
    heights = [max((box.y + box.height for box in column), default=float(TOP)) for column in columns]
    for column, height in zip(columns, heights, strict=True):
        for box in column:
            box.y += (max(heights) - height) / 2


def _curves(topology: Topology, exchanges: list[Box], queues: list[Box], gutter: float) -> list[Curve]:
    at = {box.hint: box for box in exchanges}
    queue_at = {box.hint: box for box in queues}
    edge = max((box.x + box.width for box in exchanges), default=0.0)
    curves, lane = [], 0
    for number, (exchange, box) in enumerate(zip(topology.exchanges, exchanges, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        for way, row in zip(exchange.bindings, box.rows[2:], strict=True):
            x, y = box.x + box.width, box.y + row
            hint = f"{exchange.name} / {way.said} / {way.target}: {way.matched:,}"
            if way.is_exchange:
                path = _turning(x, y, at.get(way.target), edge + gutter * 0.7)
            else:
                path = _crossing(x, y, edge, queue_at[way.target])
            if path:
                curves.append(Curve(path, colour, "way", hint))
        other = at.get(exchange.alternate or "")
        if other is not None:
            hint = f"{exchange.name}: what goes nowhere goes to {other.hint}"
            curves.append(Curve(_aside(box, other, 12.0 + 10 * lane), COLOURS[-1], "way alternate", hint))
            lane += 1
    return curves


def _crossing(x: float, y: float, edge: float, queue: Box) -> str:
    """From a row past the other exchanges, then over to the queue."""
    to = queue.y + queue.height / 2
    middle = (edge + queue.x) / 2
    return f"M{x:.1f} {y:.1f} H{edge:.1f} C{middle:.1f} {y:.1f} {middle:.1f} {to:.1f} {queue.x:.1f} {to:.1f}"


def _turning(x: float, y: float, other: Box | None, turn: float) -> str:
    """From a row to the head of an exchange, which is in the same column."""
    if other is None:
        return ""
    to, end = other.y + other.rows[0], other.x + other.width
    return f"M{x:.1f} {y:.1f} C{turn:.1f} {y:.1f} {turn:.1f} {to:.1f} {end:.1f} {to:.1f}"


def _aside(box: Box, other: Box, x: float) -> str:
    """From the side of an exchange along the left edge to its alternate."""
    start, to = box.y + box.rows[1], other.y + other.rows[0]
    return f"M{box.x:.1f} {start:.1f} H{x:.1f} V{to:.1f} H{other.x:.1f}"


# --- and how it is written


def written(picture: Picture) -> str:
    """The document."""
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{_text(picture.title)}</title><style>{STYLE}</style>",
        '<rect width="100%" height="100%" fill="#ffffff"/><defs>',
    ]
    for number, colour in enumerate(COLOURS):
        parts.append(
            f'<marker id="a{number}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        )
    parts.append(f'</defs><text class="name title" x="24" y="34">{_text(picture.title)}</text>')
    for curve in picture.curves:
        arrow = f' marker-end="url(#a{COLOURS.index(curve.colour)})"' if curve.arrow else ""
        parts.append(
            f'<path class="{curve.shape}" d="{curve.path}" stroke="{curve.colour}"{arrow}>'
            f"<title>{_text(curve.hint)}</title></path>"
        )
    for box in picture.exchanges + picture.queues:
        parts += _box(box)
    return "\n".join([*parts, "</svg>", ""])


def _box(box: Box) -> list[str]:
    radius = 9 if box.shape.endswith(("queue", "full")) else 2
    parts = [
        f'<g><title>{_text(box.hint)}</title><rect class="{box.shape}" x="{box.x:.1f}" y="{box.y:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"/>'
    ]
    for number, ((first, second), row) in enumerate(zip(box.lines, box.rows, strict=True)):
        y = box.y + row + 4
        shape = "name" if number == 0 else "dim" if number == 1 else "key"
        parts.append(f'<text class="{shape}" x="{box.x + PAD:.1f}" y="{y:.1f}">{_text(first)}</text>')
        if second:
            x = box.x + box.width - PAD
            parts.append(f'<text class="dim" x="{x:.1f}" y="{y:.1f}" text-anchor="end">{_text(second)}</text>')
    return [*parts, "</g>"]


def _text(text: str) -> str:
    """Text of an XML document."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
