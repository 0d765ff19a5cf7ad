"""What kind of broker a peer is, and how its destinations are called on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jmsish.profiles import PROFILES, Profile, recognise

if TYPE_CHECKING:
    from jmsish.destination import Prefixes
    from jmsish.engine.performatives import Open
    from jmsish.options import ConnectionOptions


def known_as(options: ConnectionOptions, remote: Open, host: str | None) -> tuple[Profile, Prefixes]:
    """The profile of the peer that has opened, and what it wants before names.

    The option ``profile`` goes before what is found; the options ``queue_prefix`` and ``topic_prefix`` before what the
    peer announces (M25), and that before the profile.
    """
    properties = remote.properties or {}
    if options.profile is None:
        profile = recognise(properties, remote.offered_capabilities, host)
    else:
        profile = PROFILES[options.profile]
    queue = options.queue_prefix
    if queue is None:
        queue = str(properties.get("queue-prefix") or profile.queue_prefix)
    topic = options.topic_prefix
    if topic is None:
        topic = str(properties.get("topic-prefix") or profile.topic_prefix)
    encoded = profile.encoded
    return profile, ((queue, topic, encoded) if encoded else (queue, topic))
