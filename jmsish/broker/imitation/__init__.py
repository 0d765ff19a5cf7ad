"""Other brokers, imitated: their openings, limits and refusals, so that a program is tested against its own broker's.

`IMITATIONS` is the table; `ImitatingConnection`, `ImitatingRouter` and `ImitatingCoordinator` do what it says, each
in the place of what it is an heir of.  A broker that imitates nobody has none of them, and pays nothing.
"""

from jmsish.broker.imitation.connection import ImitatingConnection
from jmsish.broker.imitation.router import ImitatingRouter, LosingSettlement
from jmsish.broker.imitation.table import IMITATIONS, LOST, Imitation, imitation_of

__all__ = [
    "IMITATIONS", "LOST", "ImitatingConnection", "ImitatingRouter", "Imitation", "LosingSettlement", "imitation_of",
]  # fmt: skip
