"""`jmsish doctor`: how far one gets with a broker, what works there, and, where something does not, why.

`stages.py` goes from a host name to an AMQP connection; `speakers.py` finds out what else is at a port; `trials.py`
tries what JMS needs on scratch addresses; `command.py` prints.
"""
