"""What the documentation says to type works when it is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import jmsish
from tests.house.source import ROOT


def blocks(page: Path, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(page: Path, sources: list[str]) -> None:
    namespace: dict[str, object] = {"__name__": page.stem}
    for number, source in enumerate(sources, 1):
        exec(compile(source, f"{page.name} block {number}", "exec"), namespace)  # noqa: S102


def test_the_first_thing_a_reader_sees_runs() -> None:
    run(ROOT / "README.md", blocks(ROOT / "README.md")[:1])


def test_getting_started_runs_from_top_to_bottom() -> None:
    page = ROOT / "docs/getting-started.md"
    run(page, blocks(page))


def test_the_page_about_messages_runs() -> None:
    page = ROOT / "docs/messages.md"
    run(page, blocks(page))


@pytest.mark.parametrize(
    "name",
    ["exchanges", "freeze", "management", "message-size", "policy", "producing", "queues", "topics", "websocket"],
)
def test_a_page_that_begins_with_its_broker_runs(name: str) -> None:
    page = ROOT / f"docs/{name}.md"
    run(page, blocks(page))


def test_the_simplified_api_runs_from_top_to_bottom() -> None:
    page = ROOT / "docs/simplified-api.md"
    run(page, blocks(page))


MIGRATIONS = sorted((ROOT / "docs").glob("from-*.md"))


def invoices_by(source: str, page: Path) -> list[tuple[Any, Any]]:
    """What the program has made of two orders, of which it left none."""
    with jmsish.EmbeddedBroker() as broker, jmsish.connect(broker.url) as connection:
        session = connection.create_session()
        producer = session.create_producer(session.create_queue("orders"))
        for name in ("lamp", "chair"):
            producer.send(name, properties={"customer": f"who wants a {name}"})
        exec(compile(source, page.name, "exec"), {"url": broker.url})  # noqa: S102
        assert broker.queue("orders").depth == 0
        made = broker.queue("invoices").messages()
        return [(message.body, message.properties["customer"]) for message in made]


@pytest.fixture(scope="module")
def invoices() -> Iterator[dict[Path, list[Future[Any]]]]:
    """By all programs of the migration pages at once: each waits a second for more orders."""
    with ThreadPoolExecutor(16) as pool:
        yield {
            page: [pool.submit(invoices_by, block, page) for block in blocks(page) if block.startswith("# jmsish\n")]
            for page in MIGRATIONS
        }


@pytest.mark.parametrize("page", MIGRATIONS, ids=lambda page: page.stem)
def test_the_program_of_a_migration_page_runs(page: Path, invoices: dict[Path, list[Future[Any]]]) -> None:
    """Those blocks of it that are ours: each makes invoices of the orders, and leaves none of these."""
    assert invoices[page]
    for made in invoices[page]:
        assert made.result() == [(f"invoice for {name}", f"who wants a {name}") for name in ("lamp", "chair")]


@pytest.mark.parametrize("command", ["run", "test"])
def test_readme_has_its_two_command_lines(command: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"<!-- command: {command} -->\n```bash\n(.*?)```", text, re.DOTALL)
    assert block.count("\n") == 1, "one command line"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")) + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []
