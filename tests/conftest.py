"""Profiles of the property tests: ``default`` is quick and repeatable.

``deep`` draws thousands of programs: ``DUALAD_PROFILE=deep python -m pytest`` or
``python -m pytest --hypothesis-profile=deep``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

QUICK = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default",
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=False,
    report_multiple_bugs=False,
    phases=QUICK,
    suppress_health_check=SLOW_IS_FINE,
)
settings.register_profile(
    "deep",
    max_examples=5000,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=SLOW_IS_FINE,
)
settings.load_profile(os.environ.get("DUALAD_PROFILE", "default"))
