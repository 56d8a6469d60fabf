"""Which NumPy runs the tests: marks for what older ones do not have."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib import NumpyVersion

NUMPY = NumpyVersion(np.__version__)


def since(version: str) -> pytest.MarkDecorator:
    """Return the mark of a test of what NumPy has from this version on."""
    return pytest.mark.skipif(version > NUMPY, reason=f"new in NumPy {version}")


def until(version: str) -> pytest.MarkDecorator:
    """Return the mark of a test of what NumPy does only before this version."""
    reason = f"other than before NumPy {version}"
    return pytest.mark.skipif(version <= NUMPY, reason=reason)
