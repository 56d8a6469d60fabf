"""Derivatives of the NumPy code people already write.

>>> import numpy as np
>>> import dualad as ad
>>> ad.gradient(lambda x: np.sum(np.sin(x) * x), np.array([0.0, 1.0]))
array([0.        , 1.38177329])
"""

from dualad import testing
from dualad.activity import (
    Duplicated,
    Forward,
    Reverse,
    autodiff,
    make_shadow,
    zero_shadow,
)
from dualad.derivatives import (
    derivative,
    grad,
    gradient,
    jacobian,
    jvp,
    value_and_grad,
    value_and_gradient,
    vjp,
)
from dualad.errors import (
    AliasedArgumentsError,
    ChangedArrayError,
    DualadError,
    EscapedArrayError,
    IndependentOutputWarning,
    InternalError,
    LostDerivativeError,
    MissingRuleError,
    NotDifferentiableError,
    OverlappingWriteError,
    ReadAfterWriteError,
    ScalarOutputError,
    ShadowMismatchError,
    StructureMismatchError,
    UnrepeatableFunctionError,
    UnsupportedArgumentError,
)
from dualad.levels import debug
from dualad.second_order import (
    hessian,
    hessian_diagonal,
    hvp,
    value_gradient_and_hvp,
)
from dualad.structs import Const, primal, stop_gradient

__version__ = "0.1.0"

__all__ = [
    "AliasedArgumentsError",
    "ChangedArrayError",
    "Const",
    "DualadError",
    "Duplicated",
    "EscapedArrayError",
    "Forward",
    "IndependentOutputWarning",
    "InternalError",
    "LostDerivativeError",
    "MissingRuleError",
    "NotDifferentiableError",
    "OverlappingWriteError",
    "ReadAfterWriteError",
    "Reverse",
    "ScalarOutputError",
    "ShadowMismatchError",
    "StructureMismatchError",
    "UnrepeatableFunctionError",
    "UnsupportedArgumentError",
    "autodiff",
    "debug",
    "derivative",
    "grad",
    "gradient",
    "hessian",
    "hessian_diagonal",
    "hvp",
    "jacobian",
    "jvp",
    "make_shadow",
    "primal",
    "stop_gradient",
    "testing",
    "value_and_grad",
    "value_and_gradient",
    "value_gradient_and_hvp",
    "vjp",
    "zero_shadow",
]
