"""Long runs that look for hangs and lost messages; not part of the suite: `python -m tests.stress.threads --help`."""
