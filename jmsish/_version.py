"""The version, as pyproject.toml has it (`tests/house` compares the two)."""

VERSION = "0.1.0"
