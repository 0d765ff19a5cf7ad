"""The same peer over a socket: some of the tests of this folder once more, at a broker of ours that listens.

What else there is can be run at any broker: JMSISH_WIRE_TARGET=host:port pytest tests/wire/protocol
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jmsish import EmbeddedBroker
from tests.wire.protocol import (
    test_connection,
    test_exchanges,
    test_habits,
    test_pieces,
    test_posting,
    test_receiving,
    test_transactions,
)
from tests.wire.protocol.steps import Wire, socket_wire


@pytest.fixture
def wire() -> Iterator[Wire]:
    with EmbeddedBroker() as broker:
        listener = broker.listen()
        wire = socket_wire("q", f"{listener.host}:{listener.port}")
        yield wire
        wire.hang_up()


SAME = [
    test_connection.test_a_least_open,
    test_connection.test_the_line_ends_after_the_closes,
    test_connection.test_an_open_on_another_channel,
    test_exchanges.test_a_topic_exchange_by_filter,
    test_exchanges.test_a_direct_exchange_by_filter,
    test_exchanges.test_a_headers_exchange_by_filter,
    test_exchanges.test_a_subject_filter_at_a_queue,
    test_exchanges.test_an_illegal_filter,
    test_exchanges.test_a_dynamic_exchange,
    test_exchanges.test_what_goes_nowhere_as_the_link_asks,
    test_habits.test_all_in_one_write,
    test_posting.test_an_unsettled_transfer_is_accepted_and_settled,
    test_receiving.test_a_range_of_outcomes,
    test_receiving.test_a_lost_line_gives_back_what_was_not_disposed_of,
    test_pieces.test_later_pieces_may_leave_out_id_and_tag,
    test_transactions.test_a_commit_after_the_receiver_has_gone,
]
globals().update({case.__name__: case for case in SAME})
