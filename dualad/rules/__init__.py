"""What is differentiated: formulas over ``np``, and nothing else.

Importing this package fills the table of rules, in reading order.
"""

# ruff: noqa: F401, I001 -- imported for their tables, in reading order

from dualad.rules import (
    kinds,
    elementwise,
    views,
    reductions,
    accumulations,
    nans,
    joining,
    indexing,
    products,
    linalg,
    ordering,
    constants,
    methods,
)
from dualad.rules.kinds import RULES
from dualad.rules.methods import METHODS

__all__ = ["METHODS", "RULES"]
