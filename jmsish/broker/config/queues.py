"""The section ``[queues]``: queues that are there from the beginning, with their settings."""

from __future__ import annotations

from jmsish.broker.config.faults import Table
from jmsish.broker.names import check_queue_name
from jmsish.broker.policy import QueueSettings


def read_queues(config: Table) -> dict[str, QueueSettings]:
    """The settings of the queues by name."""
    queues = {}
    for name, table in config.tables_of("queues").items():
        with table.faults.caught():
            check_queue_name(name, table.where)
        right = {}
        for key, value in table.table.items():
            with table.faults.caught():
                QueueSettings.from_mapping({key: value}, table.where)  # no setting's rule depends on another's
                right[key] = value
        queues[name] = QueueSettings.from_mapping(right, table.where)
    return queues
