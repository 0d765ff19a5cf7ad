"""A broker inside the program: no port, no process, started in less than a millisecond; and a port if wanted."""

from __future__ import annotations

from typing import Any

from jmsish._life import Authenticator, BrokerLife, Config
from jmsish._network import Connector, Router
from jmsish._policy import Policy
from jmsish._views import ExchangeView, QueueView
from jmsish.broker.bindings import Binding
from jmsish.broker.views import ConnectionView, SubscriptionView, TransactionView
from jmsish.broker.views import ExchangeView as BrokerExchangeView
from jmsish.drivers.listener import Listener
from jmsish.freezing import Freeze, FrozenExchange, Name, change, name_of, owner

__all__ = [
    "Authenticator",
    "Binding",
    "Config",
    "ConnectionView",
    "Connector",
    "EmbeddedBroker",
    "ExchangeView",
    "Freeze",
    "FrozenExchange",
    "Listener",
    "Policy",
    "QueueView",
    "Router",
    "SubscriptionView",
    "TransactionView",
]


class EmbeddedBroker(BrokerLife):
    """A broker in this process, reached by ``broker.url`` (``vm://NAME``) and by what it listens on.

    ::

        with jmsish.EmbeddedBroker() as broker:
            with jmsish.connect(broker.url) as connection:
                ...
            assert broker.queue("orders").depth == 0

    ``config`` says what queues, users and limits there are; ``clock`` is a callable that gives seconds since the epoch,
    such as a :class:`~jmsish.testing.VirtualClock`: it drives what happens to messages and transactions. ``profile``
    is the name of another broker (``"rabbitmq"``, ``"servicebus"``, ``"artemis"`` …) whose limits and refusals this one
    then has, for tests (docs/profiles.md). Everything may be called by any thread.

    ``authenticator`` is asked (mechanism, initial response) for who comes in by OAUTHBEARER or XOAUTH2, and by PLAIN
    where there are no ``users``, and answers a user name, or ``None`` to refuse. It runs in a thread of its own, so it
    may take its time; :func:`jmsish.broker.read_bearer` takes the response apart.
    """

    # Queues.

    def queue(self, name: Name) -> QueueView:
        """A live view of a queue that exists; :class:`~jmsish.errors.InvalidDestinationError` for others."""
        text = name_of(name)
        return QueueView(self._driver, self._call(lambda: self._broker.queue(text)))

    def queues(self) -> list[QueueView]:
        """Views of all queues, temporary ones included."""
        return [QueueView(self._driver, view) for view in self._call(self._broker.queues)]

    def declare_queue(self, name: str, **settings: Any) -> QueueView:
        """Make a queue with these settings, or give them to the one that exists.

        ``durable``, ``max_delivery_attempts`` (0: no limit), ``dead_letter``, ``expiry_address``, ``redelivery_delay``,
        ``max_messages``, ``max_octets``, ``overflow`` (``"reject"``, ``"drop-head"``, ``"block"``).
        """
        return QueueView(self._driver, self._call(lambda: self._broker.declare_queue(name, **settings)))

    def delete_queue(self, name: Name) -> None:
        """Delete a queue and what it holds; its consumers are detached."""
        text = name_of(name)
        self._call(lambda: self._broker.delete_queue(text))

    def redirect(self, source: Name, target: Name) -> None:
        """Pair two queues: from now on what is sent to ``source`` goes into ``target``, and the other way round.

        Who receives goes on receiving from the queue it has. It is one step: a message sent before is in one queue, a
        message sent after in the other. ``InvalidDestinationError`` for an unknown queue, ``ValueError`` for a queue
        with itself and for temporary ones and those of subscriptions, ``IllegalStateError`` where one is paired.
        """
        pair = name_of(source), name_of(target)
        self._call(lambda: self._broker.redirect(*pair))

    def end_redirect(self, source: Name) -> int:
        """End the pair of a queue, as deleting one of the two does: each queue is given its own messages back.

        Returns how many went back. What a consumer holds stays in the queue it was taken from. ``IllegalStateError``
        where the queue is in no pair.
        """
        name = name_of(source)
        return self._call(lambda: self._broker.end_redirect(name))

    # Exchanges and subscriptions.

    def exchange(self, name: Name) -> ExchangeView:
        """A live view of an exchange that exists; :class:`~jmsish.errors.InvalidDestinationError` for others.

        ``amq.direct``, ``amq.topic``, ``amq.fanout`` and ``amq.match`` (headers) always do. The keys of ``amq.topic``
        are the topics that have no exchange of their own. In the nameless exchange, ``""``, every queue is bound by its
        own name.
        """
        text = name_of(name)
        return self._view(self._call(lambda: self._broker.exchange(text)))

    def exchanges(self) -> list[ExchangeView]:
        """Views of all exchanges, temporary topics included."""
        return [self._view(view) for view in self._call(self._broker.exchanges)]

    def declare_exchange(self, name: str, type: str, **settings: Any) -> ExchangeView:
        """Make an exchange of the type ``"direct"``, ``"topic"``, ``"fanout"`` or ``"headers"``, or find the one that
        is there and give it these settings; ``ValueError`` where it has another type.

        ``durable``, ``auto_delete`` (with its last binding and link), ``alternate`` (the exchange that gets what goes
        nowhere), ``unroutable`` (``"discard"``, ``"reject"``, ``"release"``; by default a direct exchange rejects and
        the others discard), ``sequence`` (messages are numbered), ``initial_value`` (a new binding gets the last one).

        A topic of exactly that name is then this exchange, and its messages are told apart by their subjects.
        """
        return self._view(self._call(lambda: self._broker.declare_exchange(name, type, **settings)))

    def delete_exchange(self, name: Name, *, timeout: float | None = None) -> None:
        """Delete an exchange, its bindings and its subscriptions; their producers and consumers are detached.

        ``ValueError`` for those that are always there, and for the alternate of another. Where somebody else holds it
        frozen this waits, at most ``timeout`` seconds (:class:`~jmsish.errors.FreezeTimeoutError`).
        """
        exchange = self.exchange(name)._view.exchange
        name, who = exchange.name, owner()
        if self._call(lambda: self._broker.freezes.is_held_by(exchange, who)):
            self._call(lambda: self._broker.delete_exchange(name))
        else:
            freezes = self._broker.freezes
            change(self._driver, freezes, exchange, lambda: self._broker.delete_exchange(name), timeout)

    def freeze(self, *names: Name, timeout: float | None = None, max_hold: float | None = None) -> Freeze:
        """Hold several exchanges still for a block: see :class:`~jmsish.freezing.Freeze`.

        They are taken in the order of their names, so that two who want the same do not wait for each other.
        """
        return Freeze(self._driver, self._broker.freezes, names, timeout, max_hold)

    def _view(self, view: BrokerExchangeView) -> ExchangeView:
        return ExchangeView(self._driver, view, self._broker.freezes)

    def subscriptions(self) -> list[SubscriptionView]:
        """The subscriptions to topics, as they are at this moment; what they hold is in the queue they name."""
        return self._call(self._broker.subscriptions)

    # Policy.

    @property
    def policy(self) -> Policy:
        """Who may come in and what they may do, while it runs: see :class:`~jmsish.embedded.Policy`."""
        return Policy(self._driver, self._core)

    # What is live now.

    def transactions(self) -> list[TransactionView]:
        """The transactions that are open, as they are at this moment."""
        return self._call(self._broker.transactions)
