"""Which kind of broker a peer is, by what it says in its open, and by the host where it says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jmsish.profiles.profile import ANONYMOUS_RELAY, DELAY, SHARED, Profile
from jmsish.profiles.table import PROFILES, UNKNOWN

__all__ = ["missing_at", "recognise", "version_of"]

_BY_PRODUCT: tuple[tuple[str, str], ...] = (
    (r"jmsish", "jmsish"),
    (r".*artemis.*", "artemis"),
    (r"(apache[- ])?activemq( classic)?", "activemq"),
    (r"qpid-cpp|qpidd", "qpidd"),
    (r".*broker-j.*|qpid|apache qpid.*", "broker-j"),
    (r"rabbitmq", "rabbitmq"),
    (r".*\b(ibm|websphere) ?mq\b.*", "ibmmq"),
    (r".*solace.*", "solace"),
    (r".*service ?bus.*", "servicebus"),
)
"""Patterns of the property ``product``, in small letters; the first that fits counts."""

_AZURE = re.compile(r".*\.servicebus\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)\.?", re.IGNORECASE)
"""Azure Service Bus says nothing of itself; its hosts have these names."""

_RABBITMQ_4 = 4


def recognise(
    properties: Mapping[Any, Any] | None, capabilities: Iterable[str] = (), host: str | None = None
) -> Profile:
    """The profile of a peer whose open had these properties and offered capabilities; `UNKNOWN` where none fits.

    ``host`` is the host name that the open was sent to.
    """
    properties = properties or {}
    product = str(properties.get("product") or "").strip().lower()
    for pattern, name in _BY_PRODUCT if product else ():
        if re.fullmatch(pattern, product):
            if name == "rabbitmq" and version_of(properties) < (_RABBITMQ_4,):
                name = "rabbitmq-3"
            return PROFILES[name]
    if host is not None and _AZURE.fullmatch(host):
        return PROFILES["servicebus"]
    return UNKNOWN


_OFFERED = (
    (ANONYMOUS_RELAY, "ANONYMOUS-RELAY", "the broker has no anonymous relay: a link is attached for each destination"),
    (SHARED, "SHARED-SUBS", "the broker does not offer shared subscriptions"),
    (DELAY, "DELAYED_DELIVERY", "the broker does not offer delayed delivery"),
)
"""What has to be offered, by the connection or later by a link (M34)."""


def missing_at(profile: Profile, capabilities: Iterable[str]) -> Mapping[str, str]:
    """The features that a broker lacks: those of its profile, and those that its connection did not offer.

    What a profile says to be offered on links only is not missing.
    """
    missing = dict(profile.lacks)
    for feature, capability, sentence in _OFFERED:
        on_link = feature == DELAY and (profile.is_delay_per_link or profile.delay_annotation is not None)
        if capability not in capabilities and not on_link:
            missing.setdefault(feature, sentence)
    return missing


def version_of(properties: Mapping[Any, Any] | None) -> tuple[int, ...]:
    """The numbers at the beginning of the property ``version``; none where it has none."""
    found = re.match(r"\d+(\.\d+)*", str((properties or {}).get("version") or ""))
    return tuple(map(int, found[0].split("."))) if found else ()
