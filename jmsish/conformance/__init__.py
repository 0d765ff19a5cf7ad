"""The scenarios of this project as a table of functions over the public API, to be run against any broker.

::

    card = jmsish.conformance.check("amqp://broker:5672")
    print(card.passed, card.failed, card.not_supported)

`jmsish check URL` prints the same as a scorecard.  A scenario passes, fails with the reason, or is not supported, with
what the broker lacks.
"""

from jmsish.conformance.scorecard import FAIL, NOT_SUPPORTED, PASS, Result, Scorecard, check, scenarios
from jmsish.conformance.stage import Stage
from jmsish.conformance.table import Scenario

__all__ = ["FAIL", "NOT_SUPPORTED", "PASS", "Result", "Scenario", "Scorecard", "Stage", "check", "scenarios"]
