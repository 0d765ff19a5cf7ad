"""Plain words for what the frame-level tests are about, where their names alone would not tell a user."""

from __future__ import annotations

from typing import Final

# The lines break where they read best.
# fmt: off
EXPECTED: Final = {
    # transactions
    "an_unknown_id_where_the_source_knows_rejected": "A discharge of an unknown transaction is *rejected* with "
    "`amqp:transaction:unknown-id`",
    "an_unknown_id_where_it_knows_accepted_only": "The same for a controller that cannot hear *rejected*: its link is "
    "detached",
    "a_transaction_is_discharged_once": "A second discharge is *rejected* with `amqp:transaction:unknown-id`",
    "a_transaction_of_another_connection_is_unknown": "A transaction of another connection is unknown",
    "a_commit_after_the_receiver_has_gone": "An acknowledgement made after its receiver was detached is committed",
    "a_commit_after_the_sender_has_gone_that_would_have_settled_second": "A send is committed though its sender has "
    "gone, receiver settles second",
    "a_post": "A send in a transaction is accepted at once and visible after the commit; `fail` may be left out of the "
    "discharge",
    "a_post_that_is_settled_second": "The same where the receiver settles second",
    "a_post_that_its_sender_never_settles": "The same where the sender never settles",
    "a_post_in_an_unknown_transaction":
        "A send in an unknown transaction is refused with `amqp:transaction:unknown-id`",
    "posts_over_two_sessions": "One transaction over two sessions",
    "a_control_link_that_goes_takes_its_work_back":
        "Detach of the controller, end, close or loss of the line rolls back "
    "acknowledgements and sends",
    "a_retirement_in_an_unknown_transaction": "An acknowledgement in an unknown transaction is refused with "
    "`amqp:transaction:unknown-id`",
    "an_acquisition": "Credit given in a transaction: what comes belongs to it (transactional acquisition)",
    "an_acquisition_in_an_unknown_transaction": "The same with an unknown transaction is refused",
    "a_declare_with_a_global_id": "A global transaction id is refused in an orderly way",
    # receiving
    "receiver_settles_second": "Receiver settles second: outcome, the broker's settlement, then the receiver's",
    "receiver_settles_second_and_rejects": "The same with *rejected*",
    "receiver_settles_second_without_a_state": "Settled without an outcome: the message is available again",
    "unsettled_and_accepted_is_answered_in_any_mode": "An outcome that is not settled is answered by a settlement",
    "modified_with_a_failure_counts": "*modified* with *delivery-failed* comes again, counted (the broker lists this "
    "outcome)",
    "modified_and_undeliverable_here":
        "*modified* with *undeliverable-here* goes to others only (the broker lists this "
    "outcome)",
    "a_state_that_is_no_outcome_changes_nothing":
        "The state *received* changes nothing: the outcome said after it holds",
    "a_delivery_in_pieces_may_be_disposed_of_before_its_end": "The same in the middle of a message of several frames",
    # sending
    "a_first_transfer_without_delivery_id": "A transfer without a delivery-id is refused by name",
    "a_first_transfer_without_delivery_tag": "A transfer without a delivery-tag is refused by name",
    "a_transfer_on_no_link": "A transfer on no link ends the session only",
    "a_delivery_of_nothing": "A message without any section is refused",
    "a_delivery_id_that_is_unsettled_already": "A delivery-id that is in use is refused",
    "receiver_settles_second_where_the_link_says_first": "A transfer may not say *second* where the link says *first*",
    "receiver_settles_first_though_the_link_says_second": "A transfer may say *first* where the link says *second*",
    "a_delivery_to_be_resumed": "A delivery to be resumed of which nothing is known is refused",
    "octets_that_are_no_message": "Octets that are no message are refused",
    # pieces
    "deliveries_of_one_link_may_not": "Two messages of one link may not be interleaved: neither gets on the queue",
    "the_tag_may_not_change": "The tag may not change in the middle of a message",
    "the_message_format_may_not_change": "The message format may not change in the middle of a message",
    "a_link_takes_what_it_said_it_takes": "A message beyond max-message-size ends the link",
    # anonymous
    "settled_to_an_unknown_address":
        "Sent settled to the address of a temporary queue that is gone: the link is detached",
    "unsettled_to_an_unknown_address": "The same sent unsettled: *rejected*",
    "unsettled_to_an_unknown_address_and_rejected_is_not_known":
        "The same where the sender cannot hear *rejected*: the "
    "link is detached",
    "to_a_known_address": "A message goes to the queue that its `to` names",
    "to_two_addresses": "One sender, two queues",
    "in_a_transaction_to_a_known_address": "A message goes to the queue that its `to` names, in a transaction",
    "in_a_transaction_unsettled_to_an_unknown_address": "In a transaction to an address that is gone: *rejected*",
    "in_a_transaction_to_an_unknown_address_and_rejected_is_not_known": "The same where the sender cannot hear "
    "*rejected*: the link is detached",
    "in_a_transaction_settled_to_an_unknown_address": "The same sent settled: the commit fails with "
    "`amqp:transaction:rollback`",
    "in_a_transaction_settled_and_the_controller_knows_no_rejected": "The same for a controller that cannot hear "
    "*rejected*: its link is detached",
    # flow
    "a_session_flow_is_echoed": "A flow of the session with `echo` is answered",
    "a_link_flow_is_echoed": "A flow of a link with `echo` is answered",
    "a_flow_for_no_link": "A flow for no link ends the session only",
    "a_flow_that_saw_more_than_was_sent": "A flow that claims to have seen more than was sent is refused",
    "a_drain_without_credit_is_answered_at_once": "A drain without credit, with `echo`, is answered at once",
    "get_with_a_timeout_and_nothing_there": "A receive that waits: credit with `echo` is answered, then drained",
    "credit_taken_back_stops_the_link":
        "Credit that is taken back stops the link, and the flow with `echo` is answered",
    # nodes
    "a_dynamic_node_lives_as_long_as_its_link": "A dynamic node is gone when its link is closed",
    "a_detach_that_is_no_close_keeps_it": "A detach that is no close keeps it for the link that comes again",
    "a_dynamic_node_goes_with_session_or_connection": "A dynamic node is gone with its session or connection",
    "a_lifetime_policy_that_is_none": "A lifetime policy that is none is refused",
    "distribution_modes_that_are_none": "A distribution mode that is none is refused",
    "a_temporary_queue_goes_with_its_connection": "A temporary queue is gone with its connection",
    "another_connection_does_not": "Only its own connection may receive from a temporary queue",
    "no_queue_is_made_of_a_name_that_was_a_temporary_one": "No queue is made of a name that was a temporary one's",
    # attach
    "a_sender_without_initial_delivery_count": "A sender without initial-delivery-count is refused",
    "a_sender_to_nowhere": "A sender without a target is refused with `amqp:invalid-field`",
    "a_receiver_from_nowhere": "A receiver without a source is refused",
    "a_handle_in_use": "A handle in use ends the session only",
    "a_detach_of_no_link": "A detach of no link ends the session",
    "handles_beyond_handle_max": "A handle beyond handle-max closes the connection",
    "what_a_detached_receiver_had_is_disposed_of_later": "Outcomes said after the link was detached still hold",
    "the_source_in_force_is_echoed": "The attach answers the outcomes and the default outcome that are in force",
    "settle_modes_are_echoed": "The attach answers the settle modes asked for",
    # connection
    "another_header_is_answered_with_ours_and_the_end": "Another protocol is answered with the AMQP 1.0 header and the "
    "end of the line",
    "an_open_on_another_channel": "An open on another channel than 0 is refused",
    "an_open_twice": "A second open is refused",
    "a_frame_that_is_no_performative": "A frame that is no performative closes the connection",
    "any_hostname_is_served": "Any hostname is served",
    "one_container_only": "A second connection of one container is refused where that was asked for (client identifier "
    "in use)",
    "one_container_only_and_the_older_goes": "The same, and the older connection is closed instead",
    "one_container_only_and_the_newer_goes": "The same where only one of the two connections asks for it",
    "a_begin_beyond_channel_max": "A session beyond channel-max closes the connection",
    "a_frame_of_a_session_that_never_began": "A frame of a session that never began is refused",
    # habits
    "all_in_one_write": "Everything from header to close in one write, before anything was heard",
    "a_transaction_in_one_write": "Declare and the next attach in one write, answered in that order",
    "many_transfers_in_one_write": "Ten transfers in one write",
}
"""What a yes means, by test."""

INSTEAD: Final = {
    "to_a_known_address": "makes a topic of an address that does not exist yet",
    "to_two_addresses": "makes a topic of an address that does not exist yet",
    "in_a_transaction_to_a_known_address": "makes a topic of an address that does not exist yet",
    "in_a_transaction_unsettled_to_an_unknown_address": "*accepted*: the address is made anew",
    "in_a_transaction_to_an_unknown_address_and_rejected_is_not_known": "*accepted*: the address is made anew",
    "all_in_one_write": "closes without having given credit",
    "a_post": "*rejected* where `fail` is left out",
    "a_control_link_that_goes_takes_its_work_back": "the acknowledged message is not back",
    "an_acquisition_in_an_unknown_transaction": "takes no notice",
    "receiver_settles_second_without_a_state": "the message is gone",
    "a_state_that_is_no_outcome_changes_nothing": "the message is on the queue again",
    "a_delivery_in_pieces_may_be_disposed_of_before_its_end": "the message is on the queue again",
    "deliveries_of_one_link_may_not": "something gets on the queue",
    "one_container_only": "refused, but the property that says so first is a string",
    "one_container_only_and_the_newer_goes": "refused, but the property that says so first is a string",
    "what_a_detached_receiver_had_is_disposed_of_later": "all is on the queue again",
    "the_source_in_force_is_echoed": "no outcomes are answered where none were asked for",
    "a_dynamic_node_lives_as_long_as_its_link": "the name can be attached to, made anew",
    "a_dynamic_node_goes_with_session_or_connection": "the name can be attached to, made anew",
    "a_temporary_queue_goes_with_its_connection": "the name can be attached to, made anew",
    "no_queue_is_made_of_a_name_that_was_a_temporary_one": "makes one",
    "another_connection_does_not": "others may, too",
    "a_detach_that_is_no_close_keeps_it": "the link gets another node, or none is left",
    "a_sender_without_initial_delivery_count": "taken",
    "unsettled_to_an_unknown_address": "*accepted*: the address is made anew",
    "unsettled_to_an_unknown_address_and_rejected_is_not_known": "*accepted*: the address is made anew",
    "settled_to_an_unknown_address": "nothing is said",
    "a_lifetime_policy_that_is_none": "taken",
    "distribution_modes_that_are_none": "taken",
    "a_transaction_in_one_write": "the attach is answered first",
}
"""What the assertion that failed means, where it does not say so itself."""
