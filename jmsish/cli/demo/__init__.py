"""The demo: a file of orders through transacted sessions, with failures on purpose, and a proof that nothing was lost.

Everything that decides is free of I/O and can be read and tested alone: `orders` (what an order is), `plan` (which
fail, and what goes wrong when), `ledger` (what happened), `story` (who does what, as generators), `conservation`
(the proof) and `trace` (the picture). `stage_threads` and `stage_aio` perform a story with the blocking and with
the asyncio face; `command` is the command line.
"""
