"""The command: examines a broker and prints what was found, as lines or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import jmsish
from jmsish._credentials import tls_context
from jmsish._metadata import ConnectionMetaData
from jmsish.cli.doctor.findings import FAILED, MISSING, OK, SKIPPED, Examination, Finding, Stop
from jmsish.cli.doctor.stages import Approach
from jmsish.cli.doctor.trials import TRIALS
from jmsish.cli.parsing import (
    add_command,
    add_connection_arguments,
    connection_options,
    read_target,
    seconds,
    url_with_options,
    visible,
)
from jmsish.cli.told_once import told_once
from jmsish.conformance import scorecard
from jmsish.conformance.stage import Stage
from jmsish.errors import JMSError, JMSSecurityError, OperationTimeoutError
from jmsish.options import ConnectionTarget

EPILOG = """\
examples:
  jmsish doctor amqp://localhost
  jmsish doctor amqps://broker.example.org --ca ca.pem --username alice
  jmsish doctor amqp://rabbit --queue scratch     at a broker that makes no queues by itself
  jmsish doctor amqp://localhost --json

Stages: resolve, connect, TLS, protocol, open; then the broker, and trials on scratch addresses (jmsish.check.…), which
are left empty. With --queue the trials use that queue, which is emptied first.
Status: 0 all works that the broker has, 1 a trial failed, 2 wrong usage, 3 the broker was not reached (resolve,
connect, TLS or protocol failed), 4 it did not let us in (open failed).
"""
MARKS = {OK: "ok  ", MISSING: "-   ", FAILED: "FAIL", SKIPPED: "    "}


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "doctor",
        run,
        help="find out what works with a broker, and why it does not",
        description="Connect to a broker stage by stage, and say what works there and what is missing.",
        epilog=EPILOG,
    )
    parser.add_argument("url", metavar="URL", help="amqp://HOST[:PORT] or amqps://HOST[:PORT]")
    parser.add_argument("--queue", metavar="NAME", help="use this queue, which is emptied, for all trials")
    parser.add_argument("--timeout", metavar="S", type=seconds, default=5.0, help="give each stage S seconds (5)")
    parser.add_argument("--no-trials", action="store_true", help="connect only, and send nothing")
    parser.add_argument("--json", action="store_true", help="print what was found as one line of JSON")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    url = url_with_options(arguments.url, arguments.option)
    options = connection_options(arguments)
    target = read_target(url, options)
    examination = Examination(target.url)
    with told_once():
        _examine(examination, target, url, options, arguments)
    if arguments.json:
        print(json.dumps(_as_dict(examination), ensure_ascii=False))
    else:
        print(examination.summary())
    return examination.status


def _as_dict(examination: Examination) -> dict[str, Any]:
    return {
        "url": examination.url,
        "status": examination.status,
        "summary": examination.summary(),
        "findings": [asdict(each) for each in examination.findings],
    }


def _print_new(examination: Examination, first: int) -> None:
    for each in examination.findings[first:]:
        print(f"{MARKS[each.result]} {each.what:21} {visible(each.detail)}")
        if each.advice:
            print(f"{'':26} {visible(each.advice)}")
    sys.stdout.flush()


def _examine(
    examination: Examination, target: ConnectionTarget, url: str, options: dict[str, Any], arguments: argparse.Namespace
) -> None:
    patience = arguments.timeout

    def step(action: Any, *terms: Any) -> Any:
        first = len(examination.findings)
        try:
            return action(*terms)
        finally:
            if not arguments.json:
                _print_new(examination, first)

    try:
        step(_approach, examination, target, patience)
        limits = {"connect_timeout": patience, **scorecard.LIMITS, **options}
        told = step(_open, examination, url, limits)
    except Stop:
        return
    router = scorecard.router_of(told)
    if router and arguments.queue is None and not arguments.no_trials:
        step(examination.add, Finding("trials", SKIPPED, scorecard.kept_by_none(router)))
    elif not arguments.no_trials:
        missing = scorecard.lacking(told)
        for trial in TRIALS:
            stage = Stage(url, limits, arguments.queue, patience)
            step(_try, examination, trial, stage, missing)


def _approach(examination: Examination, target: ConnectionTarget, patience: float) -> None:
    """The stages up to AMQP, for each broker of a list.  Raises the last `Stop` where none can be reached."""
    last: Stop | None = None
    reached = False
    for place in target.alternatives:
        if len(target.alternatives) > 1:
            examination.add(Finding("host", SKIPPED, place.url))
        try:
            if place.scheme != "vm":
                Approach(place, tls_context(place, None), patience).go(examination)
            reached = True
        except Stop as stop:
            last = stop
    if not reached and last is not None:
        raise last


def _open(examination: Examination, url: str, options: dict[str, Any]) -> ConnectionMetaData:
    """Log in and open; what the broker says of itself.  Raises `Stop` where it does not let in."""
    try:
        with jmsish.connect(url, **options) as connection:
            told = connection.metadata
    except JMSError as error:
        examination.add(Finding("open", FAILED, str(error), _why_not_open(error)))
        raise Stop(str(error)) from None
    examination.add(Finding("open", OK, f"container {told.remote_container_id or '?'}"))
    version = f" {told.broker_version}" if told.broker_version else ""
    examination.add(Finding("broker", OK, f"{told.broker_product}{version}, profile {told.profile.name}"))
    offered = ", ".join(told.remote_capabilities) or "none offered"
    examination.add(Finding("capabilities", OK, offered))
    return told


def _why_not_open(error: JMSError) -> str:
    text = str(error).lower()
    if "mechanism" in text or "no common" in text:
        return "the broker lets in by other mechanisms (see protocol): --username, --password, --option sasl_mechanisms"
    if isinstance(error, JMSSecurityError):
        return "is the user name right, and the password? (--username, --password, $JMSISH_USERNAME, $JMSISH_PASSWORD)"
    if isinstance(error, OperationTimeoutError) or "did not answer" in text:
        return "the broker took the connection and did not finish it: it may be overloaded or starting"
    if "amqp:not-found" in text:
        return "the broker knows no virtual host of this name: --option amqp.vhost=NAME"
    return ""


def _try(examination: Examination, trial: Any, stage: Stage, missing: Mapping[str, str]) -> None:
    result = scorecard.run_scenario(trial, stage, missing)
    kind = {scorecard.PASS: OK, scorecard.FAIL: FAILED, scorecard.NOT_SUPPORTED: MISSING}[result.result]
    examination.add(Finding(trial.name, kind, result.why or trial.title))
