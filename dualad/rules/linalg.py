"""Functions of ``np.linalg``: solve, inv and the norms.

Derivations: Giles (2008), "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation"; conjugates for complex numbers throughout.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from dualad.errors import UnsupportedArgumentError
from dualad.rules.kinds import (
    composition,
    conjugated,
    expanded,
    general,
    is_complex,
    overridable,
    transposed,
)

Array = Any


# --- linear systems ---------------------------------------------------------------
# b is a vector only if it has one axis; then x has one axis per matrix (NumPy 2).


def solve_a_dot(a_dot: Array, x: Array, a: Array, b: Array) -> Array:
    """Push a change of the matrix forward."""  # Giles (2008), section 2.3.1
    if b.ndim == 1:
        return -np.linalg.solve(a, a_dot @ x[..., None])[..., 0]
    return -np.linalg.solve(a, a_dot @ x)


def solve_b_bar(x_bar: Array, x: Array, a: Array, b: Array) -> Array:
    """Pull back to the right-hand side."""
    if b.ndim == 1:
        return np.linalg.solve(transposed(a), x_bar[..., None])[..., 0]
    return np.linalg.solve(transposed(a), x_bar)


def solve_a_bar(x_bar: Array, x: Array, a: Array, b: Array) -> Array:
    """Pull back to the matrix."""
    b_bar = solve_b_bar(x_bar, x, a, b)
    if b.ndim == 1:
        return -b_bar[..., :, None] * conjugated(x)[..., None, :]
    return -b_bar @ transposed(x)


general(
    np.linalg.solve,
    pushforwards=(solve_a_dot, lambda b_dot, x, a, b: np.linalg.solve(a, b_dot)),
    pullbacks=(solve_a_bar, solve_b_bar),
)

general(
    np.linalg.inv,  # Giles (2008), section 2.2.3
    pushforwards=(lambda y_dot, y, x: -y @ y_dot @ y,),
    pullbacks=(lambda y_bar, y, x: -transposed(y) @ y_bar @ transposed(y),),
)


# --- norms ------------------------------------------------------------------------


@overridable
def length(x: Array, ord: Any, axis: Any, keepdims: Any) -> Array:  # noqa: A002 -- NumPy's own name
    """Return the p-norm of vectors, the Frobenius norm of matrices."""
    return np.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)


def length_slope(z: Array, x: Array, ord: Any, axis: Any, keepdims: Any) -> Array:  # noqa: A002 -- NumPy's own name
    """Return the derivative of :func:`length`, and 0 where it is 0."""
    z = expanded(z, axis, x.ndim, keepdims=keepdims)
    z = np.where(z == 0, math.inf, z)
    if ord in (None, 2, "fro", "f"):
        return x / z
    return np.sign(x) * (np.absolute(x) / z) ** (ord - 1)


def length_dot(x_dot: Array, z: Array, x: Array, **params: Any) -> Array:
    """Push a change of the vectors forward."""
    z_dot = conjugated(length_slope(z, x, **params)) * x_dot
    return np.sum(
        np.real(z_dot) if is_complex(z_dot) else z_dot,
        axis=params["axis"],
        keepdims=params["keepdims"],
    )


def length_bar(z_bar: Array, z: Array, x: Array, **params: Any) -> Array:
    """Pull back to the vectors."""
    z_bar = expanded(z_bar, params["axis"], x.ndim, keepdims=params["keepdims"])
    return z_bar * length_slope(z, x, **params)


general(length, pushforwards=(length_dot,), pullbacks=(length_bar,))


@composition(np.linalg.norm)
def norm(
    x: Array,
    ord: Any = None,  # noqa: A002 -- NumPy's own name
    axis: Any = None,
    keepdims: bool = False,  # noqa: FBT001 -- NumPy's own signature
) -> Array:
    """Return the norm of vectors or matrices."""
    if type(ord) is not str and ord is not None:
        ord = plain_order(ord)  # noqa: A001 -- NumPy's own name
    axes = tuple(range(x.ndim))
    if axis is not None:
        axes = normalize_axis_tuple(axis, x.ndim)
    if is_root_of_powers(ord, axis, len(axes)):
        return length(x, ord=ord, axis=axis, keepdims=keepdims)
    if len(axes) == 1:
        return vector_norm(x, ord, axes[0], keepdims=keepdims)
    if len(axes) == 2:
        return matrix_norm(x, ord, *axes, keepdims=keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def plain_order(ord: Any) -> float:  # noqa: A002 -- NumPy's own name
    """Return the order as a Python number; an active one has no rule."""
    if isinstance(ord, int | float | np.integer | np.floating):
        return float(ord)
    raise UnsupportedArgumentError(
        "np.linalg.norm",
        "ord",
        ord,
        "Write the norm out: np.sum(np.abs(x) ** p) ** (1 / p).",
    )


def is_root_of_powers(ord: Any, axis: Any, count: int) -> bool:  # noqa: A002 -- NumPy's own name
    """Say whether :func:`length` has this norm of ``count`` axes."""
    if ord is None:
        return axis is None or count in (1, 2)
    if type(ord) is str:
        return count == 2 and ord in ("fro", "f")
    return count == 1 and ord not in (0, 1) and math.isfinite(ord)


def vector_norm(x: Array, ord: Any, axis: int, *, keepdims: bool) -> Array:  # noqa: A002 -- NumPy's own name
    """Return the other norms of vectors."""
    if ord == math.inf:
        return largest(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        nonzero = np.not_equal(x, 0).astype(x.real.dtype)
        return np.sum(nonzero, axis=axis, keepdims=keepdims)
    raise ValueError(f"Invalid norm order {ord!r} for vectors")


def largest(x: Array, axis: int, *, keepdims: bool) -> Array:
    """Return the maximum of numbers that are not negative, 0 if there are none."""
    extreme = np.max if x.size else np.sum
    return extreme(x, axis=axis, keepdims=keepdims)


def matrix_norm(
    x: Array,
    ord: Any,  # noqa: A002 -- NumPy's own name
    rows: int,
    columns: int,
    *,
    keepdims: bool,
) -> Array:
    """Return the other norms of matrices: extreme sums of absolute values."""
    if ord in (2, -2, "nuc"):
        raise UnsupportedArgumentError(
            "np.linalg.norm",
            "ord",
            ord,
            "Norms by singular values have no rule; 'fro', 1 and np.inf have one.",
        )
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError("Invalid norm order for matrices.")
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    summed, compared = summed % x.ndim, compared % x.ndim
    if summed == compared:
        raise ValueError("Duplicate axes given.")
    sums = np.sum(np.abs(x), axis=summed, keepdims=keepdims)
    if compared > summed and not keepdims:
        compared -= 1
    if ord > 0:
        return largest(sums, axis=compared, keepdims=keepdims)
    return np.min(sums, axis=compared, keepdims=keepdims)


@composition(np.linalg.vector_norm)
def linalg_vector_norm(
    x: Array,
    /,
    *,
    axis: Any = None,
    keepdims: bool = False,
    ord: Any = 2,  # noqa: A002 -- NumPy's own name
) -> Array:
    """Return the norm of the vectors that lie in the given axes."""
    every = tuple(range(x.ndim))
    axes = every if axis is None else normalize_axis_tuple(axis, x.ndim)
    rest = tuple(a for a in every if a not in axes)
    count = math.prod(x.shape[a] for a in axes)
    shape = (count, *(x.shape[a] for a in rest))
    vectors = np.reshape(np.transpose(x, axes + rest), shape)
    z = np.linalg.norm(vectors, axis=0, ord=ord)
    if keepdims:
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        return np.reshape(z, shape)
    return z


@composition(np.linalg.matrix_norm)
def linalg_matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: Any = "fro",  # noqa: A002 -- NumPy's own name
) -> Array:
    """Return the norm of the matrices in the last two axes."""
    return np.linalg.norm(x, axis=(-2, -1), keepdims=keepdims, ord=ord)
