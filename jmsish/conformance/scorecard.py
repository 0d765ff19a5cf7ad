"""Running scenarios one after the other, and what came of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from time import perf_counter
from typing import Any

import jmsish
from jmsish._metadata import ConnectionMetaData
from jmsish.conformance import (  # noqa: F401  # each enters its scenarios into the table
    acknowledging,
    closing,
    listening,
    messages,
    nodes,
    redelivery,
    rollback,
    selecting,
    timing,
    topics,
    transactions,
)
from jmsish.conformance.stage import QUIET, Difference, Stage
from jmsish.conformance.table import TABLE, Scenario
from jmsish.errors import InvalidDestinationError, JMSError, UnsupportedFeatureError
from jmsish.option_kinds import unknown_name
from jmsish.options import parse_url
from jmsish.profiles.profile import TEMPORARY, TOPIC_CONSUMERS

PASS = "pass"
FAIL = "fail"
NOT_SUPPORTED = "not supported"

LIMITS = {"request_timeout": 10, "close_timeout": 10, "send_timeout": 10}
"""A broker that does not answer must not hold a check up for long."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one scenario."""

    scenario: str
    title: str
    result: str
    """`PASS`, `FAIL` or `NOT_SUPPORTED`."""
    why: str = ""
    """What was otherwise, or what the broker lacks."""
    seconds: float = 0.0


@dataclass(slots=True)
class Scorecard:
    """What came of all."""

    url: str
    product: str = ""
    version: str | None = None
    profile: str = ""
    results: list[Result] = field(default_factory=list)

    def _count(self, result: str) -> int:
        return sum(each.result == result for each in self.results)

    @property
    def passed(self) -> int:
        return self._count(PASS)

    @property
    def failed(self) -> int:
        return self._count(FAIL)

    @property
    def not_supported(self) -> int:
        return self._count(NOT_SUPPORTED)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the broker, the counts, and each result."""
        return {
            "url": self.url,
            "broker": {"product": self.product, "version": self.version, "profile": self.profile},
            "passed": self.passed,
            "failed": self.failed,
            "not_supported": self.not_supported,
            "results": [asdict(each) for each in self.results],
        }


def scenarios(patterns: Iterable[str] = ()) -> list[Scenario]:
    """The scenarios whose names fit one of the patterns (``"redelivery-*"``), in their order; all without a pattern.

    `ValueError` for a pattern that fits none.
    """
    patterns = list(patterns)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in TABLE):
            raise ValueError(unknown_name("scenario", pattern, TABLE))
    return [
        each for name, each in TABLE.items() if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def check(
    url: str,
    *,
    only: Iterable[str] = (),
    queue: str | None = None,
    patience: float = 5.0,
    quiet: float = QUIET,
    tell: Callable[[Result], Any] | None = None,
    **options: Any,
) -> Scorecard:
    """Run scenarios against the broker of `url`, and give the scorecard.

    `only` chooses them by patterns of their names. With `queue` they share that queue, which is emptied before each;
    otherwise each has queues of its own, made by their first use. At a router that is a queue behind a link route of
    it: without one, `UnsupportedFeatureError`, for a router keeps no messages. `patience` is how many seconds a message
    may take that must come, `quiet` how long is waited where none may; `tell` is called with each result when it is
    there. Other options are those of `jmsish.connect`, whose errors are raised where the broker cannot be reached.
    """
    chosen = scenarios(only)
    options = {**LIMITS, **options}
    with jmsish.connect(url, **options) as connection:
        told = connection.metadata
    router = router_of(told)
    if router and queue is None:
        raise UnsupportedFeatureError(kept_by_none(router))
    missing = lacking(told)
    card = Scorecard(parse_url(url).url, told.broker_product, told.broker_version, told.profile.name)
    for each in chosen:
        result = run_scenario(each, Stage(url, options, queue, patience, quiet), missing)
        card.results.append(result)
        if tell is not None:
            tell(result)
    return card


def router_of(told: ConnectionMetaData) -> str:
    """The id of the router that is connected to; empty where it is a broker."""
    return str(told.remote_properties.get("router-id") or "")


def kept_by_none(router: str) -> str:
    """Why nothing is tried at a router without a queue of a broker."""
    return (
        f"{router} is a router, which keeps no messages: a send waits for who receives. Name a queue behind one of its "
        "link routes (--queue) to try the broker there"
    )


def lacking(told: ConnectionMetaData) -> Mapping[str, str]:
    """What the broker does not do; at a router, by whose link route one queue is reached, nor what the others are."""
    if not router_of(told):
        return told.missing
    own = f"this address would be one of the router {router_of(told)} itself, which keeps no messages"
    return {**told.missing, TEMPORARY: own, TOPIC_CONSUMERS: own}


def run_scenario(scenario: Scenario, stage: Stage, missing: Mapping[str, str]) -> Result:
    """What comes of one scenario, where these features are missing; the stage is left clean."""
    began = perf_counter()
    outcome, why = PASS, ""
    lacking = [missing[feature] for feature in scenario.needs if feature in missing]
    if lacking:
        return Result(scenario.name, scenario.title, NOT_SUPPORTED, lacking[0])
    try:
        scenario.play(stage)
    except UnsupportedFeatureError as error:
        outcome, why = NOT_SUPPORTED, str(error)
    except Difference as difference:
        outcome, why = FAIL, str(difference)
    except InvalidDestinationError as error:
        outcome, why = NOT_SUPPORTED, f"the broker has no such node and makes none: {error}"
    except JMSError as error:
        outcome, why = FAIL, f"{type(error).__name__}: {error}"
    finally:
        stage.leave()
    return Result(scenario.name, scenario.title, outcome, why, round(perf_counter() - began, 3))
