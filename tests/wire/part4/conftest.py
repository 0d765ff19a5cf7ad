from __future__ import annotations

import pytest

from tests.wire.part4.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()
