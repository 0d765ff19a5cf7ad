"""The lab: real brokers that are asked to do what applications need, stopped, killed and started again.

`servers.py` starts them, `rows.py` says what each is asked, `load.py` is the traffic that a kill meets, and
`python -m tests.interop.lab` writes what came of it into docs/brokers.md. `tests/interop/test_lab.py` holds two of them
to it in continuous integration.
"""
