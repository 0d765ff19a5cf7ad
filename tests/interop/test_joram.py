"""JORAM's conformance tests of JMS 1.1, by Qpid JMS against our broker: 196 of 196."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

from jmsish import EmbeddedBroker
from tests.interop import fetch
from tests.interop.conftest import need

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]  # The first class of them waits for all.

ADMINISTRATION = Path(__file__).parent / "peers/JoramAdmin.java"
PACKAGE = "org.objectweb.jtests.jms.conform"
TESTS = {
    "connection.ConnectionTest": 7,
    "connection.TopicConnectionTest": 2,
    "message.MessageBodyTest": 3,
    "message.MessageDefaultTest": 2,
    "message.MessageTypeTest": 14,
    "message.headers.MessageHeaderTest": 9,
    "message.properties.JMSXPropertyTest": 3,
    "message.properties.MessagePropertyConversionTest": 71,
    "message.properties.MessagePropertyTest": 15,
    "queue.QueueBrowserTest": 2,
    "queue.TemporaryQueueTest": 1,
    "selector.SelectorSyntaxTest": 22,
    "selector.SelectorTest": 14,
    "session.QueueSessionTest": 5,
    "session.SessionTest": 10,
    "session.TopicSessionTest": 7,
    "session.UnifiedSessionTest": 8,
    "topic.TemporaryTopicTest": 1,
}
"""Class by class, how many there are."""

ASKED = "jms.requestTimeout=10000&jms.sendTimeout=10000"


@dataclass
class Verdicts:
    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if other := os.environ.get("JMSISH_INTEROP_URL"):
        yield other
        return
    with EmbeddedBroker(config={"users": {"guest": {"password": "guest"}}}) as broker:
        yield broker.listen().url


@pytest.fixture(scope="module")
def verdicts(address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdicts]:
    """What one run of all of them says, by class: one broker, one virtual machine."""
    classes = need(fetch.joram, ADMINISTRATION)
    folder = tmp_path_factory.mktemp("joram")
    (folder / "provider.properties").write_text("jms.provider.admin.class=JoramAdmin\n")
    command = ["java", "-XX:+UseSerialGC", "-Xshare:auto", f"-Djmsish.url={address}?{ASKED}"]
    command += ["-cp", os.pathsep.join([str(folder), classes]), "org.junit.platform.console.ConsoleLauncher", "execute"]
    command += [f"--select-class={PACKAGE}.{name}" for name in TESTS]
    command += ["--disable-banner", "--details=none", f"--reports-dir={folder}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400)
    report = folder / "TEST-junit-vintage.xml"
    assert report.exists(), done.stdout[-3000:]
    return _read(report)


def _read(report: Path) -> dict[str, Verdicts]:
    verdicts = {name: Verdicts() for name in TESTS}
    for case in ElementTree.parse(report).iter("testcase"):
        of_class = verdicts[case.get("classname", "").removeprefix(f"{PACKAGE}.")]
        name = case.get("name", "")
        trouble = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        if trouble is None:
            of_class.passed.append(name)
        else:
            of_class.failed[name] = (trouble.text or trouble.tag)[:1500]
    return verdicts


def test_these_are_all() -> None:
    assert sum(TESTS.values()) == 196


@pytest.mark.parametrize("name", TESTS)
def test_joram(verdicts: dict[str, Verdicts], name: str) -> None:
    failed = verdicts[name].failed
    assert not failed, "".join(f"\n{test}: {trouble}" for test, trouble in failed.items())
    assert len(verdicts[name].passed) == TESTS[name]
