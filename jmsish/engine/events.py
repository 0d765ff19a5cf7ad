"""What an engine reports: tuples whose first item is one of these numbers, in the order of the frames.

======================  ==============================================================================================
``(OPENED,)``           the peer's open; :attr:`Engine.remote` is set
``(CLOSED, error)``     the peer's close; answer with ``engine.close()``
``(BEGUN, session)``    the peer's begin, an answer or a new session (``session.local_open`` is false: accept it)
``(ENDED, session, error)``      the peer's end, or the engine ended the session for what the peer did wrong
``(ATTACHED, link)``    the peer's attach, an answer or a new link (``link.attached`` is false: attach or refuse it)
``(DETACHED, link, closed, error)``  the peer's detach, or the engine detached the link (stolen, credit exceeded …)
``(FLOWED, link, properties)``  credit, drain or available of the link changed, as the link says; the properties are
                        those of this very flow, which a later one may have followed already
``(DELIVERED, link, delivery)``  a whole incoming delivery
``(ABORTED, link, delivery)``    the sender gave up an incoming delivery
``(PARTIAL, link, delivery)``    an incoming delivery has grown beyond ``link.stream_from``, and more of it comes
``(ARRIVED, link, delivery)``    the last frame of a delivery that is read while it arrives, or one that was awaited
``(SENT, link, delivery)``       a part of a delivery that is sent piece by piece has left, having waited for the window
``(OVERSIZE, link, delivery)``   a delivery grew beyond the link's max-message-size; what still comes of it is dropped
``(OVERSIZE_ENDED, link, delivery)``  the last frame of such a delivery, where it was not the one that went beyond; or,
                        while it is not complete, more of it was dropped than anybody has to wait for
``(MISSED, session, where, state)``  a transfer, or an outcome, of a transaction was dropped, with or behind what ended
                        its link or session from here; ``where`` names that
``(DISPOSED, session, deliveries, state, settled, sender_role)``  a disposition about deliveries unsettled until now
``(FAILED, error)``     the engine failed; nothing comes after this
``(AUTHENTICATED, identity, mechanism)``  a server's SASL exchange succeeded
``(ASKED, question)``   a server's SASL exchange waits for what ``question()`` gives, to be called outside of all
                        ownership; go on with ``engine.decide(answer)``
``(JUDGED, verdict)``   a server's SASL exchange has this end; ``engine.decide(verdict)`` tells the peer, now or later
======================  ==============================================================================================
"""

from __future__ import annotations

__all__ = [
    "ABORTED",
    "ARRIVED",
    "ASKED",
    "ATTACHED",
    "AUTHENTICATED",
    "BEGUN",
    "CLOSED",
    "DELIVERED",
    "DETACHED",
    "DISPOSED",
    "ENDED",
    "FAILED",
    "FLOWED",
    "JUDGED",
    "MISSED",
    "NAMES",
    "OPENED",
    "OVERSIZE",
    "OVERSIZE_ENDED",
    "PARTIAL",
    "SENT",
]

OPENED = 0
CLOSED = 1
BEGUN = 2
ENDED = 3
ATTACHED = 4
DETACHED = 5
FLOWED = 6
DELIVERED = 7
ABORTED = 8
DISPOSED = 9
FAILED = 10
AUTHENTICATED = 11
OVERSIZE = 12
OVERSIZE_ENDED = 13
PARTIAL = 14
ARRIVED = 15
SENT = 16
ASKED = 17
JUDGED = 18
MISSED = 19

NAMES = (
    "OPENED", "CLOSED", "BEGUN", "ENDED", "ATTACHED", "DETACHED", "FLOWED", "DELIVERED", "ABORTED", "DISPOSED",
    "FAILED", "AUTHENTICATED", "OVERSIZE", "OVERSIZE_ENDED", "PARTIAL", "ARRIVED", "SENT",
    "ASKED", "JUDGED", "MISSED",
)  # fmt: skip
"""The name of each event, for logs and traces."""
