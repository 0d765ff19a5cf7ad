"""The policy of an embedded broker, or router, as a program sees and changes it: live, from any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jmsish.broker.admission import Denied
from jmsish.broker.broker import Broker
from jmsish.broker.denials import Denials
from jmsish.broker.grants import Grant
from jmsish.broker.network.node import RouterNode
from jmsish.broker.remote_hosts import INSIDE, host_said
from jmsish.drivers.serving import BrokerDriver
from jmsish.errors import JMSSecurityError

_T = TypeVar("_T")


class Policy:
    """Who may come in and what they may do.

    Settings are those of the configuration, by the same names and checked in the same way; ``None`` takes one back to
    what holds where nothing is said. What is granted to a connection is granted when it opens: those that are open keep
    it. Names that are not there, and settings that are wrong, raise ``ValueError``, which names all of them.
    """

    __slots__ = ("_broker", "_driver")

    def __init__(self, driver: BrokerDriver, broker: Broker | RouterNode) -> None:
        self._driver = driver
        self._broker = broker

    @property
    def settings(self) -> dict[str, Any]:
        """What holds for the whole broker: the section ``[policy]``."""
        return self._call(self._broker.admission.described)

    def change(self, **settings: Any) -> None:
        """Change some of what holds for the whole broker. Sizes and the virtual host are of connections to come; how
        many connections and queues there may be, and what holds for transactions, is asked anew from now on.
        """
        self._call(lambda: self._broker.change_policy(settings))

    def vhosts(self) -> list[str]:
        """The names of the virtual hosts."""
        return self._call(lambda: list(self._broker.admission.vhosts))

    def vhost(self, name: str) -> dict[str, Any]:
        """The settings of a virtual host, its groups among them."""

        def describe() -> dict[str, Any]:
            groups = self._broker.admission.groups_of(name)
            settings = self._broker.admission.vhosts[name].described()
            return {**settings, "groups": {key: group.described() for key, group in groups.items()}}

        return self._call(describe)

    def declare_vhost(self, name: str, **settings: Any) -> None:
        """Make a virtual host, or give the one that is there these settings; ``groups`` are given as a whole."""
        self._call(lambda: self._broker.admission.put_vhost(name, settings))

    def delete_vhost(self, name: str) -> None:
        """Take a virtual host away. Who is connected to it stays connected."""
        self._call(lambda: self._broker.admission.delete_vhost(name))

    def declare_group(self, vhost: str, name: str, **settings: Any) -> None:
        """Make a group of a virtual host, or give the one that is there these settings."""
        self._call(lambda: self._broker.admission.put_group(vhost, name, settings))

    def delete_group(self, vhost: str, name: str) -> None:
        """Take a group away; its users are in another one, or unknown, when they connect again. ``ValueError`` for the
        group ``$default`` where unknown users are allowed: without it they could do more."""
        self._call(lambda: self._broker.admission.delete_group(vhost, name))

    # What it does.

    def grant(self, user: str, *, host: str = INSIDE, vhost: str | None = None) -> Grant:
        """What a connection of this user would be granted now; :class:`~jmsish.errors.JMSSecurityError` says why none.

        ``host`` is the address it comes from, or ``localhost``; ``vhost`` the hostname it asks for. ``ValueError`` for
        a host by another name: such names are not looked up.
        """
        place = host_said(host)
        try:
            return self._call(lambda: self._broker.admission.decide(user, place, vhost))
        except Denied as denied:
            raise JMSSecurityError(str(denied)) from None

    @property
    def denials(self) -> Denials:
        """What was counted up to now, for the broker and in ``.vhosts`` for each virtual host."""
        return self._call(self._broker.denials.snapshot)

    def reset_denials(self) -> None:
        """Begin to count anew; what is there now stays counted."""
        self._call(self._broker.denials.reset)

    def connected(self, vhost: str) -> tuple[dict[str, int], dict[str, int]]:
        """How many connections there are to a virtual host, by user and by host."""

        def read() -> tuple[dict[str, int], dict[str, int]]:
            self._broker.admission.groups_of(vhost)
            present = self._broker.admission.present(vhost)
            return dict(present.users), dict(present.hosts)

        return self._call(read)

    def _call(self, function: Callable[[], _T]) -> _T:
        try:
            return self._driver.call(function)
        except LookupError as error:
            raise ValueError(error.args[0]) from None
