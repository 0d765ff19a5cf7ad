"""The command line: `jmsish demo | broker | send | receive | browse`, also as `python -m jmsish`."""
