"""A topology as a tree of text, and as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jmsish.cli.parsing import visible

if TYPE_CHECKING:
    from jmsish.cli.topology import Exchange, Topology


def heading(exchange: Exchange) -> str:
    """An exchange in a few words."""
    more = f", alternate {exchange.alternate}" if exchange.alternate else ""
    return f"{exchange.name} ({exchange.type}{more}{', frozen' if exchange.frozen else ''})"


# --- a tree


def tree(topology: Topology) -> str:
    """Each exchange with what is bound to it, then the queues to which nothing leads but their names."""
    lines = [topology.broker]
    bound = {way.target for exchange in topology.exchanges for way in exchange.bindings if not way.is_exchange}
    alone = [queue for queue in topology.queues if queue.name not in bound]
    blocks: list[tuple[str, list[str]]] = [
        (f"{heading(exchange)}  {exchange.counters}", list(_ways(topology, exchange)))
        for exchange in topology.exchanges
    ]
    if alone:
        blocks.append(("queues that no exchange leads to", [f"{queue.said}  {queue.counters}" for queue in alone]))
    for number, (title, items) in enumerate(blocks, 1):
        last = number == len(blocks)
        lines.append(f"{'└─' if last else '├─'} {title}")
        for index, item in enumerate(items, 1):
            lines.append(f"{' ' if last else '│'}  {'└─' if index == len(items) else '├─'} {item}")
    return "\n".join(visible(line) for line in lines) + "\n"


def _ways(topology: Topology, exchange: Exchange) -> Iterator[str]:
    queues = {queue.name: queue for queue in topology.queues}
    width = max((len(way.said) for way in exchange.bindings), default=0)
    for way in exchange.bindings:
        if way.is_exchange:
            target = f"exchange {way.target}"
        else:
            queue = queues[way.target]
            target = f"{queue.said}  {queue.counters}"
        yield f"{way.said.ljust(min(width, 40))} ─{way.matched:,}→ {target}"


# --- Mermaid


def mermaid(topology: Topology) -> str:
    """A flowchart: exchanges are hexagons, queues cylinders, bindings arrows with their keys, alternates dotted."""
    lines = ["---", f"title: {quoted(topology.broker)}", "---", "flowchart LR"]
    exchanges = {exchange.name: f"e{number}" for number, exchange in enumerate(topology.exchanges)}
    queues = {queue.name: f"q{number}" for number, queue in enumerate(topology.queues)}
    for exchange in topology.exchanges:
        title = escaped(f"{exchange.name} ({exchange.type}{', frozen' if exchange.frozen else ''})")
        lines.append(f'    {exchanges[exchange.name]}{{{{"{title}<br>{exchange.counters}"}}}}')
    for queue in topology.queues:
        lines.append(f'    {queues[queue.name]}[("{escaped(queue.said)}<br>{queue.counters}")]')
    for exchange in topology.exchanges:
        name = exchanges[exchange.name]
        for way in exchange.bindings:
            target = exchanges.get(way.target) if way.is_exchange else queues[way.target]
            lines.append(f'    {name} -- "{escaped(way.said)} ({way.matched:,})" --> {target}')
        if exchange.alternate in exchanges:
            lines.append(f'    {name} -. "alternate" .-> {exchanges[exchange.alternate]}')
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Letters that mean something to Mermaid, or to Markdown in it, by their numbers."""
    # A dash in the beginning would begin a list.
    return "".join(
        letter if letter.isalnum() or letter in " .,:=/()" or number and letter in "-_" else f"#{ord(letter)};"
        for number, letter in enumerate(visible(text))
    )


def quoted(text: str) -> str:
    """A title in YAML, quoted."""
    return "'" + visible(text).replace("'", "''") + "'"
