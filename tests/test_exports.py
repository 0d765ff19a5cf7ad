"""What `import jmsish` gives."""

from __future__ import annotations

import subprocess
import sys

import pytest

import jmsish


def test_every_name_of_all_is_there() -> None:
    assert all(hasattr(jmsish, name) for name in jmsish.__all__)
    assert len(set(jmsish.__all__)) == len(jmsish.__all__)


def test_aio_and_testing_come_by_name_and_only_then() -> None:
    program = (
        "import sys, jmsish; assert 'jmsish.aio' not in sys.modules and 'asyncio' not in sys.modules, 'a light import';"
        "jmsish.aio.connect, jmsish.testing.VirtualClock"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        jmsish.conect  # noqa: B018
