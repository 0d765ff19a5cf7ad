"""A thousand losses leave nothing behind."""

from __future__ import annotations

import gc
import logging

from jmsish.modes import AcknowledgeMode

from .cutting import CuttingRig
from .rig import decode, encode


def test_memory_is_flat_over_a_thousand_reconnects() -> None:
    """With sessions of two modes, a consumer, a producer and a temporary queue; counted are the objects alive."""
    logging.disable(logging.CRITICAL)  # what catches the log for a failed test would be what grows
    try:
        rig = CuttingRig()
        rig.core.event_listener = None
        mine = rig.run(rig.core.temporary.create(topic=False))
        replies = rig.consumer(rig.session(), mine)
        transacted = rig.session(AcknowledgeMode.TRANSACTED)
        consumer, producer = rig.consumer(transacted), rig.producer(transacted)
        alive: list[int] = []
        for number in range(1000):
            rig.core.now += 60
            rig.cut()
            rig.pump()
            assert not rig.core.offline
            if number % 250 == 249:
                rig.run(producer.send(encode("m"), None))
                rig.run(transacted.commit())
                assert decode(rig.run(consumer.receive(None))) == "m"
                rig.run(transacted.commit())
                gc.collect()
                alive.append(len(gc.get_objects()))
    finally:
        logging.disable(logging.NOTSET)
    assert alive[3] - alive[1] < 200, f"objects alive after each 250: {alive}"
    assert replies.destination in rig.core.temporary.nodes and len(rig.core.temporary.aliases) <= 16
    assert rig.core.temporary.current(mine) == replies.destination
