"""What all tests share: how much hypothesis may do."""

from __future__ import annotations

import os
from datetime import timedelta

from hypothesis import HealthCheck, settings

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=150, deadline=None, print_blob=True, suppress_health_check=SLOW_IS_FINE, derandomize=False
)
settings.register_profile(
    "long", max_examples=3000, deadline=timedelta(seconds=30), print_blob=True, suppress_health_check=SLOW_IS_FINE
)
settings.load_profile(os.environ.get("JMSISH_HYPOTHESIS", "default"))
