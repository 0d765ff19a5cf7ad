"""`jmsish check`."""

from __future__ import annotations

import json

import jmsish
from jmsish.cli.main import main
from jmsish.testing import RouterNetwork

from .conftest import Complaint, Run


def test_lines_and_a_summary(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    out = run("check", broker.url, "--only", "message-text", "--only", "message-map", "--quiet", "0.01").splitlines()
    assert [line.split()[:2] for line in out[:-1]] == [["ok", "message-text"], ["ok", "message-map"]]
    assert out[-1].startswith("jmsish ") and out[-1].endswith("(jmsish): 2 passed, 0 failed, 0 not supported")


def test_json(broker: jmsish.EmbeddedBroker, run: Run) -> None:
    card = json.loads(run("check", broker.url, "--only", "message-text", "--json"))
    assert card["passed"] == 1 and card["results"][0]["scenario"] == "message-text"


def test_the_status_is_one_where_something_failed(capsys: object) -> None:
    config = {"queues": {"q": {"max_messages": 1}}}
    with jmsish.EmbeddedBroker(config=config) as broker:
        assert main(["check", broker.url, "--only", "redelivery-012", "--queue", "q", "--quiet", "0.01"]) == 1


def test_list_needs_no_broker(run: Run) -> None:
    assert run("check", "--list", "--only", "redelivery-00[12]").count("\n") == 2


def test_wrong_usage(complaint: Complaint) -> None:
    assert complaint("check") == (2, "jmsish: check needs the URL of a broker (or --list)\n")
    status, text = complaint("check", "http://localhost")
    assert status == 2 and "unknown scheme" in text
    status, text = complaint("check", "vm://nobody", "--only", "redelivry-001")
    assert status == 2 and "did you mean 'redelivery-001'" in text


def test_a_broker_that_is_not_there(complaint: Complaint) -> None:
    status, text = complaint("check", "vm://nobody")
    assert status == 1 and "nobody" in text


def test_a_router_keeps_no_messages_to_check(broker: jmsish.EmbeddedBroker, run: Run, complaint: Complaint) -> None:
    with RouterNetwork("INT.A", routes={"work.": ("INT.A", broker.url)}) as network:
        url = network["INT.A"].url
        status, text = complaint("check", url, "--only", "message-text")
        assert status == 1 and text.startswith("jmsish: INT.A is a router, which keeps no messages")
        out = run("check", url, "--queue", "work.q", "--only", "message-text", "--only", "temporary-001").splitlines()
        assert [line.split()[:2] for line in out[:-1]] == [["ok", "message-text"], ["-", "temporary-001"]]
        assert "one of the router INT.A itself" in out[1]
