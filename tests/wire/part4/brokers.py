"""Brokers that do it their own way, for the client to bear."""

from __future__ import annotations

from typing import Any

from jmsish.engine.link import Link
from jmsish.engine.outcomes import (
    ACCEPTED,
    AmqpError,
    Coordinator,
    Declare,
    Declared,
    Source,
    decode_control,
)
from tests.wire.peer import Peer


class Broker(Peer):
    """A peer whose coordinator answers as it is told."""

    control_credit = 100
    capabilities: tuple[str, ...] = ("amqp:local-transactions",)

    def __init__(self, **options: Any) -> None:
        self.commands: list[str] = []
        self.declare_answer: Any = "declared"
        self.discharge_answer: Any = ACCEPTED
        self.settles = True
        self.detach_after_discharge = False
        super().__init__(**options)

    def _attached(self, link: Link) -> None:
        if link.is_sender or not isinstance(link.remote_target, Coordinator):
            super()._attached(link)
            return
        self.coordinators.append(link)
        self._take_control(link)

    def _take_control(self, link: Link) -> None:
        link.attach(target=Coordinator(self.capabilities))
        link.flow(self.control_credit)

    def _delivered(self, link: Link, delivery: Any) -> None:
        if link not in self.coordinators:
            super()._delivered(link, delivery)
            return
        command = decode_control(delivery.payload)
        if isinstance(command, Declare):
            self.commands.append("declare")
            answer = self.declare_answer
            if answer == "declared":
                self.declared += 1
                answer = Declared(b"txn-%d" % self.declared)
        else:
            self.commands.append("rollback" if command.fail else "commit")
            answer = self.discharge_answer
        if answer is not None and not link.mute:
            link.session.disposition(delivery, answer, self.settles)
        if self.detach_after_discharge and not isinstance(command, Declare):
            link.detach(closed=True, error=AmqpError("amqp:internal-error", "tired"))
        elif link.credit == 0:
            link.flow(self.control_credit)


class BrokerJ(Broker):
    """Qpid Broker-J: an empty coordinator, and one credit after each command."""

    control_credit = 1
    capabilities = ()


class Grudging(Broker):
    """A coordinator that has these capabilities and no others."""

    def __init__(self, capabilities: tuple[str, ...]) -> None:
        self.capabilities = capabilities
        super().__init__()


class Silent(Broker):
    """One that declares, and answers no discharge until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.discharge_answer = None

    def answers(self) -> None:
        self.discharge_answer = ACCEPTED

    def _delivered(self, link: Link, delivery: Any) -> None:
        self.declare_answer = "declared" if self.discharge_answer is not None or not self.declared else None
        super()._delivered(link, delivery)


class NoCoordinator(Broker):
    """A broker that has no coordinator, and one of several ways to say so."""

    def __init__(self, how: str, condition: str) -> None:
        self.how = how
        self.error = AmqpError(condition, "no such thing here")
        super().__init__()

    def _take_control(self, link: Link) -> None:
        if self.how == "session ended":
            link.session.end(self.error)
        elif self.how == "attach refused":
            link.refuse(self.error)
        else:
            link.source, link.target = Source(), None
            link.refuse(None)
